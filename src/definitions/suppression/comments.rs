//! Comments that begin with `cutlist:ignore`. What YAML takes for a comment is one; and what stands as a comment in a text that findings point
//! into: a patch in a kustomization, and user data.

use granit_parser::{Event, Parser, ScalarStyle};

use crate::definitions::diagnostic::Span;
use crate::definitions::limits;

/// How such a comment begins.
pub const MARK: &str = "cutlist:ignore";
/// What people write for it, which is no such comment.
const NEARLY_MARK: &str = "cutlist: ignore";

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
            Some(Ok((Event::Scalar(inner, ScalarStyle::Literal | ScalarStyle::Folded, ..), at))) => {
                if let (true, Some(start)) = (inner.contains(MARK), at.start.byte_offset()) {
                    let comments = in_block(text, start, &inner).into_iter();
                    found.extend(comments.map(|(span, said)| {
                        let span =
                            Span { start_byte: span.start_byte + offset, end_byte: span.end_byte + offset, ..span };
                        Comment { span, text: said, line: line_of(&lines, content, span.line) }
                    }));
                }
            }
            Some(Ok((Event::Comment(comment, _), at))) => {
                let Some(said) = said(&comment) else { continue };
                let (Some(start), Some(end)) = (at.start.byte_offset(), at.end.byte_offset()) else { continue };
                let span = Span {
                    line: at.start.line(),
                    column: at.start.col() + 1,
                    start_byte: start + offset,
                    end_byte: end + offset,
                };
                found.push(Comment { span, text: said.to_owned(), line: line_of(&lines, content, span.line) });
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

/// Comments that were meant to be such ones, and have a space too many: where each stands, and what it says behind the mark.
pub fn nearly(file_text: &str) -> Vec<(Span, &str)> {
    let mut found = Vec::new();
    if !file_text.contains(NEARLY_MARK) {
        return found;
    }
    let mut line_start = 0;
    for (number, line) in file_text.split_inclusive('\n').enumerate() {
        let comment = line.split_once('#').and_then(|(before, comment)| {
            let said = comment.trim_start().strip_prefix(NEARLY_MARK)?;
            (before.is_empty() || before.ends_with([' ', '\t'])).then_some((before, said.trim()))
        });
        if let Some((before, said)) = comment {
            let (column, start_byte) = (before.chars().count() + 1, line_start + before.len());
            let span = Span { line: number + 1, column, start_byte, end_byte: line_start + line.trim_end().len() };
            found.push((span, said));
        }
        line_start += line.len();
    }
    found
}

/// What a comment says behind the mark; `comment` is what stands behind the `#`.
fn said(comment: &str) -> Option<&str> {
    let said = comment.trim_start().strip_prefix(MARK)?;
    (!said.starts_with(|next: char| !next.is_whitespace())).then(|| said.trim())
}

/// Keys of texts that findings point into.
const READ_IN_PLACE: [&str; 2] = ["patch", "userData"];

/// The comments of a block that begins at a byte, if it is a text that findings point into.
fn in_block(text: &str, start: usize, inner: &str) -> Vec<(Span, String)> {
    let rest = text.get(start..).unwrap_or_default();
    let line_start = |at: usize| text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    // The block begins with its sign, or with its first line that is not empty.
    let (begin, content) = match rest.starts_with(['|', '>']) {
        true => (start + rest.find('\n').map_or(rest.len(), |newline| newline + 1), inner),
        false => (line_start(start), inner.trim_start_matches('\n')),
    };
    let lines = content.lines().count();
    let before = text.get(..begin).unwrap_or_default();
    let header = before.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !is_read_in_place(header) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = begin;
    let first = before.matches('\n').count() + 1;
    for (number, line) in text.get(begin..).unwrap_or_default().split_inclusive('\n').take(lines).enumerate() {
        let begins_one = |index: usize| line.get(..index).is_some_and(|it| it.is_empty() || it.ends_with([' ', '\t']));
        let comments = line.match_indices('#').filter(|(index, _)| begins_one(*index));
        let mut comments = comments.filter_map(|(index, _)| Some((index, said(line.get(index + 1..)?)?)));
        if let Some((index, said)) = comments.next() {
            let column = line.get(..index).unwrap_or_default().chars().count() + 1;
            let span =
                Span { line: first + number, column, start_byte: at + index, end_byte: at + line.trim_end().len() };
            found.push((span, said.to_owned()));
        }
        at += line.len();
    }
    found
}

/// Whether a block with this before it is one: the value of such a key, or an entry of a list of patches.
fn is_read_in_place(header: &str) -> bool {
    let header = header.trim_start();
    let entry = header.strip_prefix("- ").map_or(header, str::trim_start);
    let key = entry.split(':').next().unwrap_or_default().trim_matches(['"', '\'']);
    READ_IN_PLACE.contains(&key) || (header.starts_with("- ") && entry.starts_with(['|', '>']))
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
    fn a_space_too_many_is_seen() {
        let text =
            "a: 1\nb: 2 # cutlist: ignore CL0601 of the cluster\n# cutlist:ignore A x\nc: 'd#cutlist: ignore A'\n";
        let [(span, said)] = nearly(text)[..] else { panic!("{:?}", nearly(text)) };
        assert_eq!((span.line, span.column, said), (2, 6, "CL0601 of the cluster"));
        assert_eq!(text.get(span.start_byte..span.end_byte), Some("# cutlist: ignore CL0601 of the cluster"));
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
    fn comments_of_texts_that_findings_point_into_count() {
        let text = "patches:\n- patch: |-\n    # cutlist:ignore A next\n    - op: add\n      value: é # cutlist:ignore B this\n- target: {}\n  patch: |\n\n    a: 1\n    # cutlist:ignore C next\n    b: 2\nc: 3 # cutlist:ignore D x\n";
        assert_eq!(
            places(text),
            [
                (3, Some(4), "A next".to_owned()),
                (5, Some(5), "B this".to_owned()),
                (10, Some(11), "C next".to_owned()),
                (12, Some(12), "D x".to_owned()),
            ]
        );
        let text =
            "a: 1\nuserData: |\n  #!/bin/sh\n  # cutlist:ignore A x\n  b\nlist:\n- |\n  # cutlist:ignore B x\n  c: 1\n";
        assert_eq!(places(text), [(4, Some(5), "A x".to_owned()), (8, Some(9), "B x".to_owned())]);
        let comment = find(text).remove(0);
        assert_eq!(text.get(comment.span.start_byte..comment.span.end_byte), Some("# cutlist:ignore A x"));
    }

    #[test]
    fn a_broken_document_hides_none_of_the_others() {
        let text = "a: [\n---\nb: 1 # cutlist:ignore A x\n";
        assert_eq!(places(text), [(3, Some(3), "A x".to_owned())]);
        let many = format!("a: 1\n{}b: 2 # cutlist:ignore A x\n", "# x\n".repeat(1000));
        assert_eq!(places(&many).len(), 1);
    }
}
