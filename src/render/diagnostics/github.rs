//! Workflow commands of GitHub Actions: an annotation at the line of each finding.
//! Source: <https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>.
//! The escapes are those of the toolkit's `command.ts`.

use super::place::{end_column, relative};
use super::{LintReport, summary};
use crate::definitions::{Diagnostic, Severity};
use crate::render::terminal::{clean, clean_lines};

/// One line for each finding, the worst first, as GitHub shows ten of each sort, and one that counts them. The text of a finding is
/// escaped, so that it can neither end the line nor be taken for another command.
pub fn github<'s>(report: &LintReport, source: impl Fn(&str) -> Option<&'s str>) -> String {
    let mut out = String::new();
    let mut diagnostics: Vec<&Diagnostic> = report.diagnostics.iter().collect();
    diagnostics.sort_by_key(|diagnostic| diagnostic.severity);
    for diagnostic in &diagnostics {
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let hint = diagnostic.hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
        let message = clean_lines(&format!("{}{hint}", diagnostic.message));
        let span = diagnostic.span;
        out.push_str(&format!(
            "::{command} file={},line={},endLine={},col={},endColumn={},title={}::{}\n",
            property(relative(&diagnostic.file)),
            span.line,
            span.line,
            span.column,
            end_column(span, source(&diagnostic.file)),
            property(&format!("{} {}", diagnostic.code, diagnostic.rule)),
            data(&message),
        ));
    }
    if !diagnostics.is_empty() {
        out.push_str(&format!("{}\n", summary(report)));
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(&clean(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_command() {
        assert_eq!(data("a%\r\n::error::b"), "a%25%0D%0A::error::b");
        assert_eq!(property("a:b,c\n"), "a%3Ab%2Cc\u{fffd}");
    }
}
