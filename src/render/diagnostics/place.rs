//! Places of findings, as the forms of other programs count and name them.

use crate::definitions::diagnostic::Span;

/// Where the pages of the rules are.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/schemas/rules.md");

/// The column behind the last character of the span, from 1, in characters. A span ends on its line. `source` is the
/// text of the file.
pub fn end_column(span: Span, source: Option<&str>) -> usize {
    let covered = source.and_then(|source| source.get(span.start_byte..span.end_byte)).unwrap_or_default();
    span.column + covered.chars().count()
}

/// The line and the column behind the last character of what may go over many lines.
pub fn end(span: Span, source: Option<&str>) -> (usize, usize) {
    let covered = source.and_then(|source| source.get(span.start_byte..span.end_byte)).unwrap_or_default();
    match covered.rsplit_once('\n') {
        Some((before, last)) => (span.line + before.matches('\n').count() + 1, last.chars().count() + 1),
        None => (span.line, end_column(span, source)),
    }
}

/// The path from the root of the repository, as forges want it: without `./`.
pub fn relative(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

/// The address of the page of a rule.
pub fn page_of_rule(code: &str) -> String {
    format!("{PAGES}#{}", code.to_lowercase())
}
