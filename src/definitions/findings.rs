//! A finding before it leaves this ring: it still knows its rule and its file by index.

use std::collections::BTreeSet;

use super::diagnostic::{Diagnostic, Related, Span};
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
    /// File by index, place, and what is there.
    pub related: Vec<(usize, Span, String)>,
}

impl Finding {
    pub fn at_span(rule: &'static Rule, file: usize, span: Span, message: impl Into<String>) -> Self {
        Self { rule, file, span, pointer: None, message: message.into(), hint: None, object: None, related: Vec::new() }
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
            file: document.file_of(pointer),
            span: document.place(pointer, place),
            pointer: Some(pointer.to_owned()),
            message: message.into(),
            hint: None,
            object: document.name(),
            related: Vec::new(),
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

    /// Names what stands at `pointer` of another document.
    #[must_use]
    pub fn related(mut self, document: &Document, pointer: &str, message: impl Into<String>) -> Self {
        self.related.push((document.file_of(pointer), document.place(pointer, Place::Value), message.into()));
        self
    }

    /// `path` gives that of a file.
    pub fn diagnostic<'p>(self, path: impl Fn(usize) -> &'p str) -> Diagnostic {
        let related = self.related.into_iter();
        let related = related.map(|(file, span, message)| Related { file: path(file).to_owned(), span, message });
        Diagnostic {
            code: self.rule.code.to_owned(),
            rule: self.rule.name.to_owned(),
            severity: self.rule.severity,
            message: self.message,
            file: path(self.file).to_owned(),
            span: self.span,
            hint: self.hint,
            object: self.object,
            related: related.collect(),
        }
    }
}

/// Takes away what repeats: the same twice; and what the schema says of a scalar or a tag that the YAML itself is
/// wrong in, at the same place.
pub fn without_repetition(findings: Vec<Finding>) -> Vec<Finding> {
    let place = |finding: &Finding| (finding.file, finding.span.line, finding.span.column);
    let of_yaml: BTreeSet<_> = findings.iter().filter(|f| f.rule.is_of_yaml()).map(place).collect();
    let mut seen = BTreeSet::new();
    findings
        .into_iter()
        .filter(|finding| !finding.rule.is_of_schema() || !of_yaml.contains(&place(finding)))
        .filter(|finding| seen.insert((place(finding), finding.rule.code, finding.message.clone())))
        .collect()
}
