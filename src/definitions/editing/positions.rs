//! Places in a text as editors count them: lines and columns from 0, columns in units of what was agreed.

/// What a column counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    /// What every client knows.
    #[default]
    Utf16,
    Utf32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub character: u32,
}

/// Where the lines of a text begin. A line ends as the protocol says: with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    starts: Vec<usize>,
}

impl Encoding {
    fn units(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

impl Lines {
    pub fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(index, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(index + 1) != Some(&b'\n'),
            _ => false,
        });
        Self { starts: std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect() }
    }

    /// The place of a byte. One inside a character is where the character begins; one beyond the end is the end.
    pub fn position(&self, text: &str, byte: usize, encoding: Encoding) -> Position {
        let byte = text.floor_char_boundary(byte);
        let line = self.starts.partition_point(|start| *start <= byte).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let before = text.get(start..byte).unwrap_or_default();
        let character = before.chars().map(|it| encoding.units(it)).sum::<usize>();
        Position { line: bounded(line), character: bounded(character) }
    }

    /// The byte of a place. A column beyond its line is the end of the line, a line beyond the text the end of the text; a column inside
    /// a character is where the character begins.
    pub fn byte(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let line = usize::try_from(position.line).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.starts.get(line.saturating_add(1)).copied().unwrap_or(text.len());
        let content = text.get(start..end).unwrap_or_default().trim_end_matches(['\n', '\r']);
        let mut left = usize::try_from(position.character).unwrap_or(usize::MAX);
        for (offset, character) in content.char_indices() {
            let units = encoding.units(character);
            if left < units {
                return start + offset;
            }
            left -= units;
        }
        start + content.len()
    }
}

/// No text has so many lines.
fn bounded(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_count_what_was_agreed() {
        let text = "a: é𝄞x\n";
        let lines = Lines::of(text);
        let x = text.find('x').unwrap();
        for (encoding, column) in [(Encoding::Utf8, 9), (Encoding::Utf16, 6), (Encoding::Utf32, 5)] {
            assert_eq!(lines.position(text, x, encoding), at(0, column));
            assert_eq!(lines.byte(text, at(0, column), encoding), x);
        }
        // Inside the character of two units.
        assert_eq!(lines.byte(text, at(0, 5), Encoding::Utf16), text.find('𝄞').unwrap());
        assert_eq!(lines.position(text, text.find('𝄞').unwrap() + 1, Encoding::Utf8), at(0, 5));
    }

    #[test]
    fn lines_end_in_three_ways() {
        let text = "a\r\nb\rc\nd";
        let lines = Lines::of(text);
        assert_eq!(lines.starts, [0, 3, 5, 7]);
        assert_eq!(lines.byte(text, at(0, 99), Encoding::Utf16), 1);
        assert_eq!(lines.byte(text, at(1, 99), Encoding::Utf16), 4);
        assert_eq!(lines.position(text, 3, Encoding::Utf16), at(1, 0));
    }

    #[test]
    fn places_out_of_the_text_are_its_end() {
        for text in ["", "a", "a\n", "\u{feff}é\r\n"] {
            let lines = Lines::of(text);
            for position in [at(u32::MAX, 0), at(u32::MAX, u32::MAX), at(7, 7)] {
                assert_eq!(lines.byte(text, position, Encoding::Utf16), text.len());
            }
            assert_eq!(
                lines.position(text, usize::MAX, Encoding::Utf8),
                lines.position(text, text.len(), Encoding::Utf8)
            );
        }
    }

    #[test]
    fn every_character_goes_there_and_back() {
        let text = "a: 𝄞\r\n\té\rü\n\nz";
        let lines = Lines::of(text);
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for (byte, character) in text.char_indices().filter(|(_, it)| !matches!(it, '\n' | '\r')) {
                assert_eq!(lines.byte(text, lines.position(text, byte, encoding), encoding), byte, "{character:?}");
            }
        }
    }
}
