//! Messages in a stream of bytes: a header with their length, then JSON.
//!
//! The framing is our own, since the libraries for it end with the first message that is not JSON, and take as much
//! memory as a header says.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, sync_channel};

use gen_lsp_types::json_rpc::{Id, RequestObject};
use serde_json::Value;

/// Messages that wait to be handled. More of them wait in the pipe.
const WAITING_MAX: usize = 64;
/// Bytes of a message. A definition is at most 8 MiB, and a JSON text at most some times that.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Bytes of all headers of a message: there are two.
const HEADER_BYTES_MAX: usize = 4096;

#[derive(Debug)]
pub enum Incoming {
    Message(RequestObject),
    /// The length was right, but what came was no message. The next one may be one.
    Malformed {
        id: Id,
        is_json: bool,
        why: String,
    },
    /// Nothing follows: the stream has ended, or can not be read further because of the error.
    Ended(Option<FramingError>),
}

#[derive(Debug, thiserror::Error)]
pub enum FramingError {
    #[error("standard input can not be read")]
    Read(#[source] io::Error),
    #[error("the stream ends inside a message")]
    CutOff,
    #[error("a message has no header `Content-Length` with a number")]
    NoLength,
    #[error("the headers of a message have more than {HEADER_BYTES_MAX} bytes")]
    LongHeader,
    #[error("a message of {0} bytes is more than the {MESSAGE_BYTES_MAX} that are read")]
    TooLarge(usize),
}

/// Reads until the stream ends, in a thread of its own.
pub fn read_in_background(stream: impl Read + Send + 'static) -> Receiver<Incoming> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        loop {
            let message = next(&mut stream);
            let is_end = matches!(message, Incoming::Ended(_));
            if sender.send(message).is_err() || is_end {
                return;
            }
        }
    });
    receiver
}

/// What comes next in the stream.
pub fn next(stream: &mut impl BufRead) -> Incoming {
    match body(stream) {
        Ok(Some(body)) => parse(&body),
        Ok(None) => Incoming::Ended(None),
        Err(error) => Incoming::Ended(Some(error)),
    }
}

/// The bytes of the next message; `None` where the stream ends before one.
fn body(stream: &mut impl BufRead) -> Result<Option<Vec<u8>>, FramingError> {
    let Some(length) = length(stream)? else { return Ok(None) };
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body).map_err(FramingError::Read)?;
    if body.len() < length { Err(FramingError::CutOff) } else { Ok(Some(body)) }
}

fn length(stream: &mut impl BufRead) -> Result<Option<usize>, FramingError> {
    let mut length = None;
    let mut read = 0;
    loop {
        let mut line = Vec::new();
        let left = HEADER_BYTES_MAX.saturating_sub(read) as u64;
        read += stream.take(left).read_until(b'\n', &mut line).map_err(FramingError::Read)?;
        if line.is_empty() && left > 0 {
            return if read == 0 { Ok(None) } else { Err(FramingError::CutOff) };
        }
        if !line.ends_with(b"\n") {
            return Err(if read < HEADER_BYTES_MAX { FramingError::CutOff } else { FramingError::LongHeader });
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            let length: usize = length.ok_or(FramingError::NoLength)?;
            return if length > MESSAGE_BYTES_MAX { Err(FramingError::TooLarge(length)) } else { Ok(Some(length)) };
        }
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse().map_err(|_| FramingError::NoLength)?);
        }
    }
}

fn parse(body: &[u8]) -> Incoming {
    match serde_json::from_slice(body) {
        Ok(message) => Incoming::Message(message),
        Err(error) => {
            let value: Option<Value> = serde_json::from_slice(body).ok();
            let id = value.as_ref().and_then(|value| serde_json::from_value(value.get("id")?.clone()).ok());
            Incoming::Malformed { id: id.unwrap_or(Id::Null), is_json: value.is_some(), why: error.to_string() }
        }
    }
}

/// Writes messages, each with its header.
pub fn write_all(out: &mut impl Write, messages: Vec<String>) -> io::Result<()> {
    for message in messages {
        write!(out, "Content-Length: {}\r\n\r\n{message}", message.len())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &'static str) -> Vec<String> {
        let said = |incoming: Incoming| match incoming {
            Incoming::Message(message) => message.method().to_owned(),
            Incoming::Malformed { id, is_json, .. } => format!("malformed {id:?} {is_json}"),
            Incoming::Ended(None) => "end".to_owned(),
            Incoming::Ended(Some(error)) => error.to_string(),
        };
        read_in_background(stream.as_bytes()).into_iter().map(said).collect()
    }

    #[test]
    fn messages_follow_each_other() {
        let stream = "Content-Length: 33\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}content-length:33\nContent-Type: a\n\n{\"jsonrpc\":\"2.0\",\"method\":\"exit\"}";
        assert_eq!(read(stream), ["exit", "exit", "end"]);
    }

    #[test]
    fn what_is_no_message_does_not_end_the_stream() {
        let stream = "Content-Length: 3\r\n\r\n{a}Content-Length: 8\r\n\r\n{\"id\":7}Content-Length: 2\r\n\r\n\u{fffd}";
        assert_eq!(read(stream)[..2], ["malformed Null false", "malformed Number(7) true"]);
    }

    #[test]
    fn broken_frames_end_it() {
        for (stream, why) in [
            ("", "end"),
            ("Content-Length: 5\r\n\r\n{}", "the stream ends inside a message"),
            ("Content-Length: 5\r\n", "the stream ends inside a message"),
            ("Content-Len", "the stream ends inside a message"),
            ("\r\n{}", "a message has no header `Content-Length` with a number"),
            ("Content-Length: -1\r\n\r\n", "a message has no header `Content-Length` with a number"),
            (
                "Content-Length: 99999999999\r\n\r\n",
                "a message of 99999999999 bytes is more than the 67108864 that are read",
            ),
        ] {
            assert_eq!(read(stream), [why], "{stream:?}");
        }
        let long: &'static str = Box::leak("x".repeat(2 * HEADER_BYTES_MAX).into_boxed_str());
        assert_eq!(read(long), ["the headers of a message have more than 4096 bytes"]);
    }
}
