//! The report as JSON: one object, or one line for each finding.

use serde_json::{Value, json};

use super::LintReport;
use crate::render::terminal;

/// The report as pretty JSON, with a line feed at the end.
pub fn json(report: &LintReport) -> String {
    // The report holds texts and numbers only, and these can always be written.
    serde_json::to_string_pretty(report).map(|text| text + "\n").unwrap_or_default()
}

/// JSON Lines: each finding as in the JSON report, and a last line `{"summary": ...}` with the counts.
pub fn json_lines(report: &LintReport) -> String {
    let findings = report.diagnostics.iter().map(|diagnostic| serde_json::to_value(diagnostic).unwrap_or_default());
    let suppressed = report.suppressed.iter().map(|suppressed| serde_json::to_value(suppressed).unwrap_or_default());
    let summary = serde_json::to_value(report.summary).unwrap_or_default();
    let last = json!({
        "files": report.files, "documents": report.documents, "definitions": report.definitions, "summary": summary,
    });
    let lines = findings.chain(suppressed).chain([last]);
    lines.map(|line: Value| terminal::json(line.to_string()) + "\n").collect()
}
