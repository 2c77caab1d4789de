//! The Test Anything Protocol, version 14: one test for each file, with its findings as a block of YAML.
//! Source: <https://testanything.org/tap-version-14-specification.html>.

use serde_json::{Value, json};

use super::LintReport;
use crate::definitions::Diagnostic;
use crate::render::terminal::{self, clean};

pub fn tap(report: &LintReport) -> String {
    let files = super::by_file(report);
    let mut out = format!("TAP version 14\n1..{}\n", files.len());
    for (index, (path, of_file)) in files.into_iter().enumerate() {
        let found = of_file.counted;
        let word = if found.iter().any(|it| report.fails(it)) { "not ok" } else { "ok" };
        out.push_str(&format!("{word} {} - {}\n", index + 1, description(path)));
        if !found.is_empty() {
            out.push_str("  ---\n  findings:\n");
            for diagnostic in found {
                // JSON is YAML, and has a way to write everything.
                out.push_str(&format!("    - {}\n", terminal::json(finding(diagnostic).to_string())));
            }
            out.push_str("  ...\n");
        }
    }
    out
}

fn finding(diagnostic: &Diagnostic) -> Value {
    json!({
        "code": diagnostic.code,
        "rule": diagnostic.rule,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "object": diagnostic.object,
        "line": diagnostic.span.line,
        "column": diagnostic.span.column,
    })
}

/// `#` begins a directive, such as one to skip.
fn description(path: &str) -> String {
    clean(path).replace('\\', "\\\\").replace('#', "\\#")
}
