//! A finding before it leaves this ring: it still knows its rule and its file by index.

use std::collections::BTreeSet;

use super::diagnostic::{Diagnostic, Fix, Related, Severity, Span};
use super::document::Document;
use super::fixes::{Instead, Scalar};
use super::rule::Rule;
use super::suggest::Hint;

/// Which part of a member a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingPlace {
    Key,
    Value,
}

#[derive(Clone, Debug)]
pub struct Finding {
    pub rule: &'static Rule,
    /// That of the rule, unless the settings say otherwise.
    pub severity: Severity,
    /// Index of the file.
    pub file: usize,
    pub span: Span,
    /// Inside the document; `None` for what is wrong with the text.
    pub pointer: Option<String>,
    pub message: String,
    pub hint: Option<String>,
    /// What the hint asks about: the thing that was probably meant. Of several things it is the likeliest.
    pub meant: Option<String>,
    pub object: Option<String>,
    /// File by index, place, and what is there.
    pub related: Vec<(usize, Span, String)>,
    /// The key or value that the finding is at, where the file has it as it is.
    scalar: Option<Scalar>,
    /// What can be written for it.
    instead: Option<Instead>,
    /// What can be written for more than the key or value.
    fix: Option<Fix>,
}

impl Finding {
    pub fn at_span(rule: &'static Rule, file: usize, span: Span, message: impl Into<String>) -> Self {
        Self {
            rule,
            severity: rule.severity,
            file,
            span,
            pointer: None,
            message: message.into(),
            hint: None,
            meant: None,
            object: None,
            related: Vec::new(),
            scalar: None,
            instead: None,
            fix: None,
        }
    }

    /// About what `pointer` points at in `document`.
    pub fn at(
        rule: &'static Rule,
        document: &Document,
        pointer: &str,
        place: FindingPlace,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            severity: rule.severity,
            file: document.file_of(pointer),
            span: document.place(pointer, place),
            pointer: Some(pointer.to_owned()),
            message: message.into(),
            hint: None,
            meant: None,
            object: document.name(),
            related: Vec::new(),
            scalar: Scalar::at(document, pointer, place),
            instead: None,
            fix: None,
        }
    }

    /// What to do. A hint that asks whether one thing was meant is also what `--fix` writes.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        let hint = hint.into();
        if let Some(meant) = hint.only_meant() {
            self = self.meaning(meant);
        }
        self.meant = hint.meant.into_iter().next();
        self.hint = Some(hint.text);
        self
    }

    /// What was probably meant by the key or value that the finding is at. `--fix` leaves a mere guess to people.
    #[must_use]
    pub fn meaning(mut self, meant: &str) -> Self {
        if self.scalar.as_ref().is_some_and(|scalar| scalar.is_slip_of(meant)) {
            self.instead = Some(Instead::Text(meant.to_owned()));
        }
        self
    }

    /// What `--fix` writes for the key or value that the finding is at.
    #[must_use]
    pub fn instead(mut self, instead: Option<Instead>) -> Self {
        self.instead = instead.or(self.instead);
        self
    }

    /// What `--fix` writes, for more than the key or value that the finding is at.
    #[must_use]
    pub fn fixed_by(mut self, fix: Option<Fix>) -> Self {
        self.fix = fix;
        self
    }

    #[must_use]
    pub fn maybe_hint(self, hint: Option<impl Into<Hint>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Names what stands at `pointer` of another document.
    #[must_use]
    pub fn related(mut self, document: &Document, pointer: &str, message: impl Into<String>) -> Self {
        self.related.push((document.file_of(pointer), document.place(pointer, FindingPlace::Value), message.into()));
        self
    }

    /// `path` gives that of a file.
    pub fn diagnostic<'p>(self, path: impl Fn(usize) -> &'p str) -> Diagnostic {
        let related = self.related.into_iter();
        let related = related.map(|(file, span, message)| Related { file: path(file).to_owned(), span, message });
        let written = self.scalar.zip(self.instead).and_then(|(scalar, instead)| scalar.written(&instead));
        Diagnostic {
            code: self.rule.code.to_owned(),
            rule: self.rule.name.to_owned(),
            severity: self.severity,
            message: self.message,
            file: path(self.file).to_owned(),
            span: self.span,
            hint: self.hint,
            object: self.object,
            related: related.collect(),
            fix: self.fix.or_else(|| written.map(|text| Fix { span: self.span, text })),
            fingerprint: String::new(),
        }
    }
}

/// Takes away findings that repeat another one at the same place: one that is the same, and one of the schema about a
/// scalar or a tag in which the YAML itself is wrong.
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
