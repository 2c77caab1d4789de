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

/// The text with a visible mark for each character that would move the cursor, change colours or turn the direction of
/// writing. Names and sentences come from clusters and repositories.
pub fn clean(text: &str) -> String {
    text.chars().map(|character| if is_hostile(character) { '\u{fffd}' } else { character }).collect()
}

/// [`clean`] for text of several lines: line breaks stay, and no line can be taken for a command of a CI system.
pub fn clean_lines(text: &str) -> String {
    let character = |character: char| if is_hostile(character) && character != '\n' { '\u{fffd}' } else { character };
    without_commands(text.chars().map(character).collect())
}

/// A page for a terminal or a log. Of what a terminal obeys only the colours of [`Style`] are left, and no line can be
/// taken for a command by a program that reads logs. Names and sentences are cleaned when they are put into a page.
/// This is for those that somebody forgets.
pub fn page(text: String) -> String {
    let is_plain = |character: char| character == '\n' || character == '\u{1b}' || !is_hostile(character);
    if !text.chars().all(is_plain) || text.contains('\u{1b}') {
        return without_commands(only_colours(&text));
    }
    without_commands(text)
}

/// [`page`] for Markdown, without colours. Spaces without width stay: they keep names from being mentioned and
/// addresses from being linked.
pub fn document(text: &str) -> String {
    let is_kept = |character: char| matches!(character, '\n' | '\u{200b}') || !is_hostile(character);
    without_commands(text.chars().map(|character| if is_kept(character) { character } else { '\u{fffd}' }).collect())
}

fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A colour or its end: `ESC [ 1 ; 31 m`.
fn colour(rest: &str) -> Option<&str> {
    let parameters = rest.strip_prefix("\u{1b}[")?;
    let length = parameters.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    parameters.get(length..)?.starts_with('m').then(|| rest.get(..length + 3)).flatten()
}

fn only_colours(text: &str) -> String {
    let mut page = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let colour = colour(rest);
        match colour {
            Some(colour) => page.push_str(colour),
            None if character == '\n' || !is_hostile(character) => page.push(character),
            None => page.push('\u{fffd}'),
        }
        rest = rest.get(colour.map_or(character.len_utf8(), str::len)..).unwrap_or_default();
    }
    page
}

/// What begins a command that a CI system obeys anywhere in a line of a log.
const COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// The text with a mark in each of `COMMANDS`, and in `::` at the beginning of a line, which other CI systems obey.
pub fn without_commands(mut text: String) -> String {
    for command in COMMANDS {
        if let Some(name) = command.strip_prefix("##").filter(|_| text.contains(command)) {
            text = text.replace(command, &format!("#\u{fffd}#{name}"));
        }
    }
    if !text.contains("::") {
        return text;
    }
    let mut page = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive('\n') {
        let mut start = line;
        // Colours are dropped where no terminal is, and then the line begins behind them.
        loop {
            start = start.trim_start();
            match colour(start) {
                Some(colour) => start = start.get(colour.len()..).unwrap_or_default(),
                None => break,
            }
        }
        if start.starts_with("::") {
            page.push_str(line.get(..line.len() - start.len()).unwrap_or_default());
            page.push('\u{fffd}');
            page.push_str(start);
        } else {
            page.push_str(line);
        }
    }
    page
}

/// JSON without what a terminal or a program that reads logs would obey. Such characters are written by number, as a
/// string of JSON allows.
pub fn json(text: String) -> String {
    let is_plain = |character: char| matches!(character, '\n' | ' '..='~') || !is_hostile(character);
    let mut json = text;
    if !json.chars().all(is_plain) {
        let mut escaped = String::with_capacity(json.len());
        for character in json.chars() {
            if is_plain(character) {
                escaped.push(character);
            } else {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
        json = escaped;
    }
    for command in COMMANDS {
        if let Some(name) = command.strip_prefix("##").filter(|_| json.contains(command)) {
            json = json.replace(command, &format!("#\\u0023{name}"));
        }
    }
    json
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

/// Bytes of a word for which no line has room.
const LONG_WORD_BYTES: usize = 4_096;

/// Splits at spaces into lines of at most `columns`; a word that is longer is cut.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut line_columns = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word;
        loop {
            let space = usize::from(!line.is_empty());
            // A very long word is not measured again for each of its lines, which would take long.
            let word_columns = if word.len() > LONG_WORD_BYTES { usize::MAX } else { width(word) };
            if word_columns.saturating_add(line_columns + space) <= columns {
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

/// Text behind a dimmed label that takes the first `columns`. Further lines begin below the text, and each line ends
/// with a line break.
pub fn labelled(style: Style, label: &str, columns: usize, text: &str) -> String {
    let line = |(row, line): (usize, String)| {
        let label = left(if row == 0 { label } else { "" }, columns);
        format!("{}\n", format!("{}{line}", style.paint(Tone::Dim, &label)).trim_end())
    };
    wrap(&clean(text), COLUMNS - columns).into_iter().enumerate().map(line).collect()
}

/// The first lines of [`wrap`]. The text behind them is not looked at.
pub fn wrap_first(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    // A line holds at most `columns` characters. One line more is kept, since its last word may be cut here.
    let beyond = text.char_indices().nth(columns.saturating_mul(lines_max + 1)).map_or(text.len(), |(start, _)| start);
    let mut lines = wrap(text.get(..beyond).unwrap_or(text), columns);
    lines.truncate(lines_max);
    lines
}

/// As many characters as fit into `columns`, and the rest of the text.
fn take_columns(text: &str, columns: usize) -> (&str, &str) {
    let mut end = 0;
    let mut taken = 0;
    for (start, character) in text.char_indices() {
        let next = start + character.len_utf8();
        taken += width(text.get(start..next).unwrap_or_default());
        // Characters that join are narrower together than alone, so the exact width is asked for only at the edge.
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
        let long = wrap(&format!("a {} b", "x".repeat(1_000_000)), 100);
        assert_eq!((long.len(), long[1].len(), long.last().map(String::as_str)), (10_002, 100, Some("b")));
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
    fn a_document_keeps_what_cuts_mentions_and_nothing_else_that_is_invisible() {
        let text = "al2023@\u{200b}v20251112 http:\u{200b}//a\n#\u{200b}1\n";
        assert_eq!(document(text), text);
        assert_eq!(document("a\u{1b}[1mb\rc\u{202e}d"), "a\u{fffd}[1mb\u{fffd}c\u{fffd}d");
        assert_eq!(document("##[group]a"), "#\u{fffd}#[group]a");
    }

    #[test]
    fn clips_by_columns() {
        assert_eq!(clip("us-east-1a", 10), "us-east-1a");
        assert_eq!(clip("us-east-1a", 5), "us-e…");
        assert_eq!(width(&clip("節点節点", 4)), 3);
    }

    #[test]
    fn a_page_keeps_its_colours_and_nothing_else() {
        let painted = Style::Coloured.paint(Tone::Strong, "a");
        assert_eq!(page(format!("{painted}\n")), format!("{painted}\n"));
        assert_eq!(
            page("a\u{1b}]0;b\u{7}\u{9b}2J\u{1b}[2Jc".to_owned()),
            "a\u{fffd}]0;b\u{fffd}\u{fffd}2J\u{fffd}[2Jc"
        );
        assert_eq!(page("\u{1b}[1m  ::error::a\n a::b".to_owned()), "\u{1b}[1m  \u{fffd}::error::a\n a::b");
        let commands = "x ##vso[task.x]y ##[error]z ##teamcity[buildStop]";
        let shown = "x #\u{fffd}#vso[task.x]y #\u{fffd}#[error]z #\u{fffd}#teamcity[buildStop]";
        assert_eq!(page(commands.to_owned()), shown);
        assert_eq!(clean_lines("a\n::b\u{1b}[1m"), "a\n\u{fffd}::b\u{fffd}[1m");
        let text = serde_json::json!({ "a": "\u{202e}\u{9b}##[b]##teamcity[c]\u{e0001}é" });
        let shown = json(serde_json::to_string_pretty(&text).unwrap());
        assert!(shown.chars().all(|it| it == '\n' || it == 'é' || (' '..='~').contains(&it)), "{shown}");
        assert!(!shown.contains("##[") && !shown.contains("##teamcity["));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), text);
    }

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(clean("a\u{1b}[2Jb\r\nc\u{202e}d"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}c\u{fffd}d");
    }
}
