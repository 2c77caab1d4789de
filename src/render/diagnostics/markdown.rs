//! Findings as Markdown, for summaries and comments of forges.

use std::fmt::Write;

use super::LintReport;
use super::place::relative;
use crate::definitions::{Diagnostic, OpenDefinition};
use crate::render::plan::markdown::escape::{code, prose};

/// Findings that are shown; forges refuse long comments.
const ROWS_MAX: usize = 200;

pub fn markdown(report: &LintReport) -> String {
    let mut out = format!("### cutlist lint\n\n{}\n", prose(&super::text::summary(report)));
    if report.diagnostics.is_empty() {
        return out;
    }
    out.push_str("\n| severity | where | what | rule |\n|---|---|---|---|\n");
    for diagnostic in report.diagnostics.iter().take(ROWS_MAX) {
        out.push_str(&row(diagnostic));
    }
    let more = report.diagnostics.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        // Writing to a string can not fail.
        let _infallible = writeln!(out, "\n{more} more are not shown.");
    }
    out
}

/// The findings of a revision that is not used, with the definitions that keep it from being so without a finding.
pub fn markdown_of_refused<'d>(report: &LintReport, unchecked: impl Iterator<Item = &'d OpenDefinition>) -> String {
    let reasons = unchecked.map(|definition| format!("\n{}\n", prose(definition.why_unusable().trim_end())));
    [markdown(report)].into_iter().chain(reasons).collect()
}

fn row(diagnostic: &Diagnostic) -> String {
    let hint = diagnostic.hint.as_ref().map(|hint| format!("<br>{}", sentence(hint))).unwrap_or_default();
    let object = diagnostic.object.as_ref().map(|object| format!("<br>{}", code(object))).unwrap_or_default();
    let place = format!("{}:{}", relative(&diagnostic.file), diagnostic.span.line);
    format!(
        "| {} | {}{object} | {}{hint} | {} {} |\n",
        diagnostic.severity.word(),
        code(&place),
        sentence(&diagnostic.message),
        diagnostic.code,
        diagnostic.rule,
    )
}

/// The message as Markdown: what is in backticks becomes code.
fn sentence(text: &str) -> String {
    let text = text.replace('\n', " ");
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return prose(&text);
    }
    let part = |(index, part): (usize, &&str)| if index % 2 == 0 { prose(part) } else { code(part) };
    parts.iter().enumerate().map(part).collect()
}
