//! Bytes to text: the encodings that shells write redirected output in.

use std::borrow::Cow;

use super::read_error::ReadError;

/// The text of an input: UTF-8 or (with a byte order mark, as PowerShell redirects) UTF-16. Borrowed where it can be: inputs are large.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, str>, ReadError> {
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
    use super::*;

    #[test]
    fn reads_what_shells_write() {
        let little: Vec<u8> = "\u{feff}kind: é😀".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}kind: é😀".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big, "\u{feff}kind: é😀".into(), "kind: é😀".into()] {
            assert_eq!(text(&bytes).unwrap(), "kind: é😀");
        }
    }

    #[test]
    fn says_where_it_stops() {
        assert!(matches!(text(b"ab\xff"), Err(ReadError::NotText { byte: 2 })));
    }
}
