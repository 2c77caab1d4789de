//! Places of findings, in the ways that other forms count.

use crate::definitions::diagnostic::Span;

/// The column behind the last character, from 1, in characters. Spans end on their line. `source` is the text of the file.
pub fn end_column(span: Span, source: Option<&str>) -> usize {
    let covered = source.and_then(|source| source.get(span.start_byte..span.end_byte)).unwrap_or_default();
    span.column + covered.chars().count()
}

/// The path from the root of the repository, as forges want it: without `./`.
pub fn relative(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}
