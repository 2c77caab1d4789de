//! Logging commands of Azure Pipelines: an issue for each error and warning, and a plain line for each note.
//! Source: <https://learn.microsoft.com/en-us/azure/devops/pipelines/scripts/logging-commands>.
//! The escapes are those of the task library.

use super::LintReport;
use super::place::relative;
use crate::definitions::Severity;
use crate::render::terminal::{clean, clean_lines};

/// One line for each finding, and one that says how the task went.
pub fn azure(report: &LintReport) -> String {
    let mut out = String::new();
    for diagnostic in &report.diagnostics {
        let hint = diagnostic.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let message = clean_lines(&format!("{}{hint}", diagnostic.message));
        let (file, span) = (relative(&diagnostic.file), diagnostic.span);
        let kind = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => {
                let line = format!("{file}:{}:{}: note: {message} [{}]", span.line, span.column, diagnostic.code);
                out.push_str(&format!("{}\n", clean_lines(&line).replace('\n', " ")));
                continue;
            }
        };
        out.push_str(&format!(
            "##vso[task.logissue type={kind};sourcepath={};linenumber={};columnnumber={};code={};]{}\n",
            property(file),
            span.line,
            span.column,
            property(&diagnostic.code),
            data(&message),
        ));
    }
    let result = match (report.is_failed(), report.is_clean()) {
        (true, _) => "Failed",
        (false, false) => "SucceededWithIssues",
        (false, true) => return out,
    };
    out.push_str(&format!("##vso[task.complete result={result};]\n"));
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%AZP25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(&clean(text)).replace(';', "%3B").replace(']', "%5D")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_command() {
        assert_eq!(data("a%\n"), "a%AZP25%0A");
        assert_eq!(property("a;type=x]b"), "a%3Btype=x%5Db");
    }
}
