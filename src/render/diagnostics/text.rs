//! Findings in the form compilers print, each with the line it is about, and one line of summary at the end.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::LintReport;
use crate::definitions::{Diagnostic, Severity};
use crate::render::terminal::{clean, clean_lines, page};

/// Renders the report. `source` gives the text of a file by the path in its findings, `None` where it is not text.
/// With `colour` the text has terminal escapes.
pub fn text<'s>(report: &LintReport, source: impl Fn(&str) -> Option<&'s str>, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for diagnostic in &report.diagnostics {
        out.push_str(&finding(diagnostic, source(&diagnostic.file), &renderer));
        out.push_str("\n\n");
    }
    out.push_str(&summary(report));
    out.push('\n');
    // The renderer replaces the control characters of ASCII only. `page` replaces the others.
    page(out)
}

fn finding(diagnostic: &Diagnostic, source: Option<&str>, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let file = clean(&diagnostic.file);
    let title =
        level.primary_title(clean_lines(&diagnostic.message)).id(format!("{} {}", diagnostic.code, diagnostic.rule));
    let window = source.and_then(|source| window(source, diagnostic));
    let mut group = match &window {
        Some(window) => {
            let label = diagnostic.object.as_deref().map(clean);
            let annotation = AnnotationKind::Primary.span(window.span.clone()).label(label);
            let snippet = Snippet::source(window.line).line_start(diagnostic.span.line).path(&file);
            Group::with_title(title).element(snippet.annotation(annotation))
        }
        None => {
            let origin = Origin::path(&file).line(diagnostic.span.line);
            Group::with_title(title).element(origin.char_column(diagnostic.span.column))
        }
    };
    for related in &diagnostic.related {
        let place = format!("{}:{}:{}", related.file, related.span.line, related.span.column);
        group = group.element(Level::NOTE.message(clean_lines(&format!("{}: {place}", related.message))));
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.message(clean_lines(hint)));
    }
    renderer.render(&[group])
}

/// The line of a finding, and the part of it to underline.
struct Window<'s> {
    line: &'s str,
    span: Range<usize>,
}

/// Bytes of the longest line that is drawn. Longer ones are written by programs, and drawing them takes long.
const LINE_BYTES_MAX: usize = 1000;

/// The line that is drawn, alone: the renderer looks at all text that it is given, once for each finding.
fn window<'s>(source: &'s str, diagnostic: &Diagnostic) -> Option<Window<'s>> {
    let (start, end) = (diagnostic.span.start_byte, diagnostic.span.end_byte);
    let before = source.get(..start)?;
    let line_start = before.rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
    let rest = source.get(line_start..)?;
    let line = rest.split(['\n', '\r']).next().unwrap_or(rest);
    if line.len() > LINE_BYTES_MAX {
        return None;
    }
    let from = (start - line_start).min(line.len());
    let to = end.saturating_sub(line_start).clamp(from, line.len());
    Some(Window { line, span: from..to })
}

/// `4 files, 6 definitions: 2 errors, 1 warning, 3 notes`, or `clean`.
pub fn summary(report: &LintReport) -> String {
    if report.definitions == 0 && report.diagnostics.is_empty() {
        return format!("{}: no definitions found", counted(report.files, "file"));
    }
    let counts =
        [(report.summary.errors, "error"), (report.summary.warnings, "warning"), (report.summary.notes, "note")];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(n, word)| counted(*n, word)).collect();
    let mut outcome = if report.is_clean() { [vec!["clean".to_owned()], counts].concat() } else { counts };
    if report.summary.suppressed > 0 {
        outcome.push(format!("{} suppressed", report.summary.suppressed));
    }
    let (files, definitions) = (counted(report.files, "file"), counted(report.definitions, "definition"));
    format!("{files}, {definitions}: {}", outcome.join(", "))
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
