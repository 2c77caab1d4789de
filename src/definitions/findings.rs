//! A finding before it leaves this ring: it still knows its rule and its file by index.

use super::diagnostic::{Diagnostic, Span};
use super::document::Document;
use super::rules::Rule;

/// Which part of a member a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Key,
    Value,
}

#[derive(Clone, Debug)]
pub struct Finding {
    pub rule: &'static Rule,
    /// Index of the file.
    pub file: usize,
    pub span: Span,
    /// Inside the document; `None` for what is wrong with the text.
    pub pointer: Option<String>,
    pub message: String,
    pub hint: Option<String>,
    pub object: Option<String>,
}

impl Finding {
    pub fn at_span(rule: &'static Rule, file: usize, span: Span, message: impl Into<String>) -> Self {
        Self { rule, file, span, pointer: None, message: message.into(), hint: None, object: None }
    }

    /// About what `pointer` points at in `document`.
    pub fn at(
        rule: &'static Rule,
        document: &Document,
        pointer: &str,
        place: Place,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            file: document.file,
            span: document.place(pointer, place),
            pointer: Some(pointer.to_owned()),
            message: message.into(),
            hint: None,
            object: document.name(),
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    /// `path` is that of the file.
    pub fn diagnostic(self, path: &str) -> Diagnostic {
        Diagnostic {
            code: self.rule.code.to_owned(),
            rule: self.rule.name.to_owned(),
            severity: self.rule.severity,
            message: self.message,
            file: path.to_owned(),
            span: self.span,
            hint: self.hint,
            object: self.object,
        }
    }
}

/// Takes away what repeats: of findings at one place of one document only the first stage that spoke is kept.
pub fn without_repetition(findings: Vec<Finding>) -> Vec<Finding> {
    let mut seen = std::collections::BTreeSet::new();
    findings
        .into_iter()
        .filter(|finding| {
            let key =
                (finding.file, finding.span.line, finding.span.column, finding.rule.code, finding.message.clone());
            seen.insert(key)
        })
        .collect()
}
