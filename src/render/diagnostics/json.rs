//! The report as JSON.

use super::LintReport;

/// Pretty-printed, with a line feed at the end.
pub fn json(report: &LintReport) -> String {
    // The report holds texts and numbers only; nothing in it can fail to be written.
    serde_json::to_string_pretty(report).map(|text| text + "\n").unwrap_or_default()
}
