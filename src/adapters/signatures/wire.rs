//! Bytes one after the other, as signatures and keys have them; and the text that carries them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes that are not taken yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next so many; `None` where there are fewer.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).and_then(|taken| taken.first().copied())
    }

    pub fn two(&mut self) -> Option<usize> {
        let taken: [u8; 2] = self.take(2)?.try_into().ok()?;
        Some(usize::from(u16::from_be_bytes(taken)))
    }

    pub fn four(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// Four bytes that say how many follow, and these, as SSH has all its texts.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.four()?).ok()?;
        self.take(count)
    }

    pub fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.string()?).ok()
    }
}

/// A number without the zeros before it.
pub(super) fn trimmed(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

/// A number as exactly so many bytes; `None` where it is larger.
pub(super) fn padded(number: &[u8], size: usize) -> Option<Vec<u8>> {
    let number = trimmed(number);
    let mut padded = vec![0; size.checked_sub(number.len())?];
    padded.extend(number);
    Some(padded)
}

/// One part of a text between `-----BEGIN LABEL-----` and `-----END LABEL-----`.
pub(super) struct Armoured<'a> {
    pub lines: Vec<&'a str>,
    /// From 1, of its first line.
    pub line: usize,
}

/// All parts with this label, in their order; `None` where one has no end.
pub(super) fn armoured<'a>(text: &'a str, label: &str) -> Option<Vec<Armoured<'a>>> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut parts = Vec::new();
    let mut open: Option<Armoured<'a>> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        match &mut open {
            None if line == begin => open = Some(Armoured { lines: Vec::new(), line: index + 1 }),
            None => {}
            Some(_) if line == end => parts.extend(open.take()),
            Some(part) => part.lines.push(line),
        }
    }
    open.is_none().then_some(parts)
}

/// Base64 over several lines.
pub(super) fn decoded(lines: &[&str]) -> Option<Vec<u8>> {
    STANDARD.decode(lines.iter().map(|line| line.trim()).collect::<String>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_is_there() {
        let mut bytes = Bytes(&[0, 0, 0, 2, b'a', b'b', 0, 0, 0, 9, b'c']);
        assert_eq!(bytes.text(), Some("ab"));
        assert_eq!((bytes.string(), bytes.is_empty()), (None, false));
        assert_eq!(Bytes(&[0xff; 4]).string(), None);
        assert_eq!(padded(&[0, 0, 1, 2], 3), Some(vec![0, 1, 2]));
        assert_eq!(padded(&[1, 2, 3], 2), None);
    }

    #[test]
    fn finds_each_part() {
        let text = "x\n-----BEGIN A-----\nYQ==\n-----END A-----\n-----BEGIN A-----\r\nYg==\r\n-----END A-----\r\n";
        let parts = armoured(text, "A").unwrap();
        let decoded: Vec<_> = parts.iter().map(|part| (part.line, decoded(&part.lines).unwrap())).collect();
        assert_eq!(decoded, [(2, b"a".to_vec()), (5, b"b".to_vec())]);
        assert!(armoured("-----BEGIN A-----\nYQ==", "A").is_none() && armoured("", "A").unwrap().is_empty());
    }
}
