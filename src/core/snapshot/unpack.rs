//! Snapshots in gzip, read while they are unpacked: three megabytes of gzip may unpack to three gigabytes, so nothing is kept of them but
//! the object that is being read, and what is trimmed of those before it.

use std::io::{Error, Read};

use flate2::read::MultiGzDecoder;
use serde::de::DeserializeSeed;

use super::collect::Collector;
use super::json::End;
use super::problem::problem;
use super::read_error::ReadError;
use super::yaml::Document;

/// A snapshot of 5,000 nodes and 150,000 pods, untrimmed, takes about 1 GB. What unpacks to more than this is taken for an
/// archive that was made to fill memory.
pub const UNPACKED_BYTES_MAX: u64 = 4 << 30;
/// As much as one object may take, or what stands between two. etcd keeps none of more than a tenth of it.
pub const OBJECT_BYTES_MAX: u64 = 16 << 20;
/// YAML and UTF-16 are unpacked as a whole.
pub const UNPACKED_TEXT_BYTES_MAX: u64 = 512 << 20;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(GZIP_MAGIC)
}

/// The whole text, for what is no JSON.
pub(super) fn whole(bytes: &[u8]) -> Result<Vec<u8>, ReadError> {
    up_to(bytes, UNPACKED_TEXT_BYTES_MAX)
}

fn up_to(bytes: &[u8], limit_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let mut unpacked = Vec::new();
    let outcome = MultiGzDecoder::new(bytes).take(limit_bytes + 1).read_to_end(&mut unpacked);
    match outcome {
        Ok(length) if length as u64 > limit_bytes => Err(ReadError::TooLarge { limit_bytes }),
        Ok(_) => Ok(unpacked),
        Err(error) => Err(damaged(bytes, unpacked.len(), error)),
    }
}

fn damaged(bytes: &[u8], bytes_unpacked: usize, source: Error) -> ReadError {
    match source.kind() {
        std::io::ErrorKind::UnexpectedEof => ReadError::GzipCutOff { byte: bytes.len() },
        _ => ReadError::Gzip { bytes_unpacked, source },
    }
}

/// Reads JSON documents into the collector. `None`: it is something else than JSON in UTF-8.
pub(super) fn read_json(bytes: &[u8], collector: &mut Collector) -> Result<Option<End>, ReadError> {
    let mut stream = Unpacked::new(bytes, UNPACKED_BYTES_MAX, OBJECT_BYTES_MAX);
    let outcome = documents(&mut stream, collector);
    // What stopped the stream says more than what a parser makes of it.
    match stream.failure.take() {
        Some(failure) => Err(failure),
        None => outcome,
    }
}

fn documents(stream: &mut Unpacked<'_>, collector: &mut Collector) -> Result<Option<End>, ReadError> {
    if stream.peek() == Some(0xef) {
        // The mark of UTF-8.
        for mark in [0xef, 0xbb, 0xbf] {
            if stream.next() != Some(mark) {
                return Ok(None);
            }
        }
    }
    let mut number = 0;
    loop {
        match stream.first_of_document() {
            None => return Ok(Some(End::OfText)),
            Some(b'{' | b'[') => number += 1,
            Some(b'-') if number > 0 => return Ok(Some(End::AtYamlSeparator)),
            Some(_) if number == 0 => return Ok(None),
            Some(_) => {
                let problem = "neither an object nor a list".to_owned();
                return Err(ReadError::Syntax { line: stream.line, column: 1, problem });
            }
        }
        let line = stream.line;
        let mut failure = None;
        let seed = Document { collector: &mut *collector, failure: &mut failure, number };
        if let Err(error) = seed.deserialize(&mut serde_json::Deserializer::from_reader(&mut *stream)) {
            return Err(failure.unwrap_or_else(|| match error.is_eof() {
                true => ReadError::CutOff { byte: stream.bytes_read(), line: stream.line },
                false => ReadError::Syntax {
                    line: line - 1 + error.line(),
                    column: error.column(),
                    problem: problem(&error),
                },
            }));
        }
    }
}

/// Unpacked bytes one by one. It knows where an object ends, and stops where one does not.
struct Unpacked<'b> {
    packed: &'b [u8],
    decoder: MultiGzDecoder<&'b [u8]>,
    block: Vec<u8>,
    position: usize,
    /// Up to the end of the block.
    unpacked_bytes: u64,
    unpacked_bytes_max: u64,
    object_bytes: u64,
    object_bytes_max: u64,
    line: usize,
    /// How many brackets are open.
    depth: usize,
    in_text: bool,
    after_backslash: bool,
    failure: Option<ReadError>,
}

impl<'b> Unpacked<'b> {
    fn new(packed: &'b [u8], unpacked_bytes_max: u64, object_bytes_max: u64) -> Self {
        Self {
            packed,
            decoder: MultiGzDecoder::new(packed),
            block: Vec::new(),
            position: 0,
            unpacked_bytes: 0,
            unpacked_bytes_max,
            object_bytes: 0,
            object_bytes_max,
            line: 1,
            depth: 0,
            in_text: false,
            after_backslash: false,
            failure: None,
        }
    }

    fn bytes_read(&self) -> usize {
        let left = self.block.len() - self.position;
        usize::try_from(self.unpacked_bytes).unwrap_or(usize::MAX).saturating_sub(left)
    }

    fn peek(&mut self) -> Option<u8> {
        const BLOCK_BYTES: usize = 64 << 10;
        if self.position == self.block.len() && self.failure.is_none() {
            self.block.resize(BLOCK_BYTES, 0);
            self.position = 0;
            let length = match self.decoder.read(&mut self.block) {
                Ok(length) => length,
                Err(error) => {
                    let unpacked = usize::try_from(self.unpacked_bytes).unwrap_or(usize::MAX);
                    self.failure = Some(damaged(self.packed, unpacked, error));
                    0
                }
            };
            self.block.truncate(length);
            self.unpacked_bytes += length as u64;
            if self.unpacked_bytes > self.unpacked_bytes_max {
                self.stop(ReadError::TooLarge { limit_bytes: self.unpacked_bytes_max });
            }
        }
        self.block.get(self.position).copied()
    }

    fn stop(&mut self, failure: ReadError) {
        self.failure = Some(failure);
        self.block.clear();
        self.position = 0;
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.position += 1;
        self.object_bytes += 1;
        match byte {
            b'\n' => self.line += 1,
            _ if self.after_backslash => self.after_backslash = false,
            b'\\' if self.in_text => self.after_backslash = true,
            b'"' => self.in_text = !self.in_text,
            b'{' | b'[' if !self.in_text => self.depth += 1,
            b'}' | b']' if !self.in_text => {
                self.depth = self.depth.saturating_sub(1);
                // The items of a list are two deep.
                if self.depth <= 2 {
                    self.object_bytes = 0;
                }
            }
            _ => {}
        }
        if self.object_bytes > self.object_bytes_max {
            let limit_bytes = self.object_bytes_max;
            self.stop(ReadError::ObjectTooLarge { line: self.line, limit_bytes });
            return None;
        }
        Some(byte)
    }

    /// Behind all that is blank.
    fn first_of_document(&mut self) -> Option<u8> {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.next();
        }
        self.peek()
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some(place) = into.first_mut() else { return Ok(0) };
        match self.next() {
            Some(byte) => {
                *place = byte;
                Ok(1)
            }
            None if self.failure.is_some() => Err(Error::other("the stream stops here")),
            None => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn failure(text: &str, unpacked: u64, object: u64) -> Option<String> {
        let packed = gzip(text);
        let mut stream = Unpacked::new(&packed, unpacked, object);
        let outcome = documents(&mut stream, &mut Collector::default());
        stream.failure.take().or(outcome.err()).map(|error| error.to_string())
    }

    #[test]
    fn what_does_not_end_is_stopped_where_the_limit_is() {
        let blank = " ".repeat(10_000);
        let of_object = "line 1: an object of more than 5000 bytes, or so much between two";
        for text in [
            format!("{{\"kind\":\"List\",\"items\":[]{blank}}}"),
            format!("{blank}{{}}"),
            format!("{{\"kind\":\"List\",\"items\":[{{\"kind\":\"Pod\",\"x\":\"{blank}\"}}]}}"),
            format!("{{\"kind\":\"List\",\"items\":[[{}]]}}", "[],".repeat(4_000)),
        ] {
            assert_eq!(failure(&text, 1 << 20, 5_000).as_deref(), Some(of_object));
        }
        let small = "{\"kind\":\"ConfigMap\",\"data\":{\"a\":\"}]\\\"\"}},".repeat(1_000);
        let many = format!("{{\"kind\":\"List\",\"items\":[{}]}}", small.trim_end_matches(','));
        assert_eq!(failure(&many, 1 << 20, 5_000), None);
        assert_eq!(failure(&many, 20_000, 5_000).as_deref(), Some("it unpacks to more than 20000 bytes"));
    }

    #[test]
    fn yaml_is_unpacked_up_to_a_limit() {
        assert!(matches!(up_to(&gzip(&" ".repeat(5_000)), 4_999), Err(ReadError::TooLarge { limit_bytes: 4_999 })));
        assert_eq!(up_to(&gzip("kind: List"), 4_999).unwrap(), b"kind: List");
    }
}
