//! Findings as the editor shows them.

use std::borrow::Cow;

use gen_lsp_types as lsp;

use super::documents::range;
use crate::definitions::editing::positions::{Encoding, Lines};
use crate::definitions::{Diagnostic, Severity};
use crate::render::diagnostics::page_of_rule;

/// What the editor calls the source of findings.
const SOURCE: &str = "cutlist";

/// A text that findings are in, and how the editor counts in it.
pub struct Text<'t> {
    pub text: &'t str,
    pub lines: Cow<'t, Lines>,
    pub encoding: Encoding,
}

impl<'t> Text<'t> {
    pub fn of(text: &'t str, encoding: Encoding) -> Self {
        Self { text, lines: Cow::Owned(Lines::of(text)), encoding }
    }

    pub fn range(&self, start: usize, end: usize) -> lsp::Range {
        range(self.text, &self.lines, start, end, self.encoding)
    }
}

/// `related` are its other places, where the editor shows some.
pub fn diagnostic(
    found: &Diagnostic,
    text: &Text<'_>,
    related: Option<Vec<lsp::DiagnosticRelatedInformation>>,
) -> lsp::Diagnostic {
    let severity = match found.severity {
        Severity::Error => lsp::DiagnosticSeverity::Error,
        Severity::Warning => lsp::DiagnosticSeverity::Warning,
        Severity::Note => lsp::DiagnosticSeverity::Information,
    };
    let message = match &found.hint {
        Some(hint) => format!("{}\nhelp: {hint}", found.message),
        None => found.message.clone(),
    };
    lsp::Diagnostic {
        range: text.range(found.span.start_byte, found.span.end_byte),
        severity: Some(severity),
        code: Some(lsp::Code::String(found.code.clone())),
        code_description: Some(lsp::CodeDescription { href: lsp::Uri::from(page_of_rule(&found.code)) }),
        source: Some(SOURCE.to_owned()),
        message: lsp::Message::String(message),
        tags: None,
        related_information: related.filter(|related| !related.is_empty()),
        data: None,
    }
}
