//! Bytes to text: gzip, and the encodings that shells write redirected output in.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::read::ReadError;

/// A snapshot of 5,000 nodes and 150,000 pods, untrimmed, takes about 1 GB. What unpacks to more than this is taken for an
/// archive that was made to fill memory.
const MAX_TEXT_BYTES: u64 = 8 << 30;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// The text of an input: unpacked if it is gzip, UTF-8 or (with a byte order mark, as PowerShell redirects) UTF-16. Borrowed
/// where it can be: inputs are large.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, ReadError> {
    if bytes.starts_with(GZIP_MAGIC) {
        let unpacked = unpack(bytes, MAX_TEXT_BYTES)?;
        return Ok(Cow::Owned(unicode(&unpacked)?.into_owned()));
    }
    unicode(bytes)
}

fn unpack(bytes: &[u8], limit_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let mut unpacked = Vec::new();
    let outcome = MultiGzDecoder::new(bytes).take(limit_bytes + 1).read_to_end(&mut unpacked);
    match outcome {
        Ok(length) if length as u64 > limit_bytes => Err(ReadError::TooLarge { limit_bytes }),
        Ok(_) => Ok(unpacked),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(ReadError::GzipCutOff { byte: bytes.len() })
        }
        Err(source) => Err(ReadError::Gzip { bytes_unpacked: unpacked.len(), source }),
    }
}

fn unicode(bytes: &[u8]) -> Result<Cow<'_, str>, ReadError> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes).map(Cow::Owned),
        [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes).map(Cow::Owned),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf_8(rest),
        _ => utf_8(bytes),
    }
}

fn utf_8(bytes: &[u8]) -> Result<Cow<'_, str>, ReadError> {
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| ReadError::NotText { byte: error.valid_up_to() })
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, ReadError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(pairs.len());
    for (index, character) in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).enumerate() {
        text.push(character.map_err(|_| ReadError::NotText { byte: index * 2 })?);
    }
    if rest.is_empty() { Ok(text) } else { Err(ReadError::NotText { byte: bytes.len() }) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn reads_what_shells_write() {
        let little: Vec<u8> = "\u{feff}kind: é😀".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}kind: é😀".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big, "\u{feff}kind: é😀".into(), "kind: é😀".into(), gzip("kind: é😀".as_bytes())]
        {
            assert_eq!(text(&bytes).unwrap(), "kind: é😀");
        }
    }

    #[test]
    fn two_gzip_files_one_after_the_other_are_one_text() {
        let both = [gzip(b"{}"), gzip(b"[]")].concat();
        assert_eq!(text(&both).unwrap(), "{}[]");
    }

    #[test]
    fn says_where_it_stops() {
        let whole = gzip(b"kind: List");
        let cut = &whole[..whole.len() - 6];
        assert!(matches!(text(cut), Err(ReadError::GzipCutOff { byte }) if byte == cut.len()));
        assert!(matches!(text(b"ab\xff"), Err(ReadError::NotText { byte: 2 })));
        assert!(matches!(text(b"\x1f\x8bnonsense"), Err(ReadError::Gzip { .. } | ReadError::GzipCutOff { .. })));
        assert!(matches!(unpack(&gzip(&[b' '; 5000]), 4999), Err(ReadError::TooLarge { limit_bytes: 4999 })));
    }
}
