//! GitLab's Code Quality report.
//! Source: <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use serde::Serialize;

use super::LintReport;
use super::place::relative;
use crate::definitions::Severity;

#[derive(Serialize)]
struct Issue<'r> {
    description: String,
    check_name: &'r str,
    fingerprint: &'r str,
    severity: &'static str,
    location: Location<'r>,
}

#[derive(Serialize)]
struct Location<'r> {
    path: &'r str,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: usize,
}

/// A list with one entry for each finding.
pub fn gitlab(report: &LintReport) -> String {
    let issues: Vec<Issue<'_>> = report
        .diagnostics
        .iter()
        .map(|diagnostic| Issue {
            description: match &diagnostic.hint {
                Some(hint) => format!("{}: {} ({hint})", diagnostic.code, diagnostic.message),
                None => format!("{}: {}", diagnostic.code, diagnostic.message),
            },
            check_name: &diagnostic.rule,
            fingerprint: &diagnostic.fingerprint,
            severity: match diagnostic.severity {
                Severity::Error => "critical",
                Severity::Warning => "minor",
                Severity::Note => "info",
            },
            location: Location {
                path: relative(&diagnostic.file),
                lines: Lines { begin: diagnostic.span.line.max(1) },
            },
        })
        .collect();
    serde_json::to_string_pretty(&issues).map(|text| text + "\n").unwrap_or_default()
}
