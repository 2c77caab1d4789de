//! Words on a terminal: colour, width, wrapping, alignment.

use anstyle::{AnsiColor, Style as Code};
use unicode_width::UnicodeWidthStr;

/// Columns that every text output keeps to.
pub const COLUMNS: usize = 100;

/// Whether to put colour codes into the text. The caller strips them for what is no terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Coloured,
}

/// What a piece of text means, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Dim,
    Created,
    Removed,
    Replaced,
    Adopted,
}

impl Style {
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Strong => Code::new().bold(),
            Tone::Dim => Code::new().dimmed(),
            Tone::Created => AnsiColor::Green.on_default(),
            Tone::Removed => AnsiColor::Red.on_default(),
            Tone::Replaced => AnsiColor::Yellow.on_default(),
            Tone::Adopted => AnsiColor::Cyan.on_default(),
        };
        if self == Self::Plain || text.is_empty() { text.to_owned() } else { format!("{code}{text}{code:#}") }
    }
}

/// Columns that the text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text with spaces behind it up to `columns`.
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text with spaces before it up to `columns`.
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Names and sentences come from clusters and repositories: what would move the cursor, change colours or turn the direction of
/// writing becomes a visible mark.
pub fn clean(text: &str) -> String {
    let hostile = |character: char| {
        character.is_control()
            || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|character| if hostile(character) { '\u{fffd}' } else { character }).collect()
}

/// The beginning of the text, with `…` where it was cut.
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut clipped = take_columns(text, columns.saturating_sub(1)).0.to_owned();
    clipped.push('…');
    clipped
}

/// Splits at spaces into lines of at most `columns`; a word that is longer is cut.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut line_columns = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word;
        loop {
            let space = usize::from(!line.is_empty());
            let word_columns = width(word);
            if line_columns + space + word_columns <= columns {
                line.push_str(&" ".repeat(space));
                line.push_str(word);
                line_columns += space + word_columns;
                break;
            }
            if line.is_empty() {
                let (head, rest) = take_columns(word, columns.max(2));
                lines.push(head.to_owned());
                word = rest;
            } else {
                lines.push(std::mem::take(&mut line));
                line_columns = 0;
            }
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The first lines of [`wrap`]; what comes behind is not looked at.
pub fn wrap_first(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    // A line holds at most so many characters, and a word that is cut leaves no more of it over.
    let beyond = text.char_indices().nth(columns.saturating_mul(lines_max + 1)).map_or(text.len(), |(start, _)| start);
    let mut lines = wrap(text.get(..beyond).unwrap_or(text), columns);
    lines.truncate(lines_max);
    lines
}

/// As many characters as fit, and the rest.
fn take_columns(text: &str, columns: usize) -> (&str, &str) {
    let mut end = 0;
    let mut taken = 0;
    for (start, character) in text.char_indices() {
        let next = start + character.len_utf8();
        taken += width(text.get(start..next).unwrap_or_default());
        // Characters that join take less together than alone, so the exact sum is asked only at the edge.
        if taken > columns && width(text.get(..next).unwrap_or_default()) > columns {
            break;
        }
        end = next;
    }
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_cuts_what_is_longer_than_a_line() {
        assert_eq!(wrap("five pods are pending", 9), ["five pods", "are", "pending"]);
        assert_eq!(wrap("a 0123456789 b", 4), ["a", "0123", "4567", "89 b"]);
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("節点節点", 5), ["節点", "節点"], "two columns each");
    }

    #[test]
    fn the_first_lines_are_those_of_the_whole() {
        let text = "one two three four five six seven eight nine ten";
        for columns in 3..20 {
            for lines in 1..4 {
                let mut all = wrap(text, columns);
                all.truncate(lines);
                assert_eq!(wrap_first(text, columns, lines), all, "{lines} of {columns}");
            }
        }
    }

    #[test]
    fn clips_by_columns() {
        assert_eq!(clip("us-east-1a", 10), "us-east-1a");
        assert_eq!(clip("us-east-1a", 5), "us-e…");
        assert_eq!(width(&clip("節点節点", 4)), 3);
    }

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(clean("a\u{1b}[2Jb\r\nc\u{202e}d"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}d");
    }
}
