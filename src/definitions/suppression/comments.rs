//! Comments that begin with `cutlist:ignore`. Only what YAML takes for a comment is one: not a line of a script in user data.

use granit_parser::{Event, Parser};

use crate::definitions::diagnostic::Span;
use crate::definitions::limits;

/// How such a comment begins.
pub const MARK: &str = "cutlist:ignore";

/// The parser holds comments back until it knows what they stand before. They are bounded by the size of a file.
const BUFFERED_COMMENTS: usize = limits::FILE_BYTES;

#[derive(Debug, PartialEq, Eq)]
pub struct Comment {
    pub span: Span,
    /// What it says behind the mark.
    pub text: String,
    /// The line that it is for; `None` for the whole file.
    pub line: Option<usize>,
}

/// All of a file.
pub fn find(file_text: &str) -> Vec<Comment> {
    if !file_text.contains(MARK) {
        return Vec::new();
    }
    let text = file_text.strip_prefix('\u{feff}').unwrap_or(file_text);
    let offset = file_text.len() - text.len();
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(true);
    options.max_buffered_comment_events = BUFFERED_COMMENTS;
    options.flow_nesting_limit = 4 * limits::DEPTH;
    options.block_nesting_limit = 4 * limits::DEPTH;
    let lines: Vec<&str> = text.split('\n').collect();
    let content = lines.iter().position(|line| !is_before_content(line)).unwrap_or(lines.len());
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut found = Vec::new();
    loop {
        match parser.next_event() {
            None => break,
            Some(Ok((Event::Comment(comment, _), at))) => {
                let Some(said) = comment.trim_start().strip_prefix(MARK) else { continue };
                if said.starts_with(|next: char| !next.is_whitespace()) {
                    continue;
                }
                let (Some(start), Some(end)) = (at.start.byte_offset(), at.end.byte_offset()) else { continue };
                let span = Span {
                    line: at.start.line(),
                    column: at.start.col() + 1,
                    start_byte: start + offset,
                    end_byte: end + offset,
                };
                found.push(Comment { span, text: said.trim().to_owned(), line: line_of(&lines, content, span.line) });
            }
            Some(Ok(_)) => {}
            Some(Err(_)) => {
                if !matches!(parser.proceed_next_document(), Ok(true)) {
                    break;
                }
            }
        }
    }
    found
}

/// The line that a comment on `line` (from 1) is for: its own, or the next one with content where it stands alone. `content` is the
/// first line with content (from 0), before which a comment is for the whole file.
fn line_of(lines: &[&str], content: usize, line: usize) -> Option<usize> {
    let index = line.saturating_sub(1);
    if index < content {
        return None;
    }
    if lines.get(index).is_some_and(|own| !own.trim_start().starts_with('#')) {
        return Some(line);
    }
    let mut below = lines.iter().enumerate().skip(line);
    let next = below.find(|(_, text)| !text.trim().is_empty() && !text.trim_start().starts_with('#'));
    Some(next.map_or(line, |(index, _)| index + 1))
}

/// Comments, blanks, directives and the mark of the first document.
fn is_before_content(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with(['#', '%']) || line == "---" || line.starts_with("--- #")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(usize, Option<usize>, String)> {
        find(text).into_iter().map(|comment| (comment.span.line, comment.line, comment.text)).collect()
    }

    #[test]
    fn a_comment_is_for_its_line_the_next_or_the_file() {
        let text = "\u{feff}# cutlist:ignore A whole file\n---\na: 1 # cutlist:ignore B this line\nb:\n  # cutlist:ignore C next\n  # more\n\n  c: 2\n";
        assert_eq!(
            places(text),
            [
                (1, None, "A whole file".to_owned()),
                (3, Some(3), "B this line".to_owned()),
                (5, Some(8), "C next".to_owned()),
            ]
        );
    }

    #[test]
    fn only_comments_are_comments() {
        assert_eq!(
            places("a: |\n  # cutlist:ignore A x\nb: '# cutlist:ignore A x'\nc: \"\n  # cutlist:ignore A x\"\n"),
            []
        );
        assert_eq!(places("a: 1\nb: 2 # cutlist:ignored A\nc: x#cutlist:ignore A\n"), []);
    }

    #[test]
    fn a_broken_document_hides_none_of_the_others() {
        let text = "a: [\n---\nb: 1 # cutlist:ignore A x\n";
        assert_eq!(places(text), [(3, Some(3), "A x".to_owned())]);
        let many = format!("a: 1\n{}b: 2 # cutlist:ignore A x\n", "# x\n".repeat(1000));
        assert_eq!(places(&many).len(), 1);
    }
}
