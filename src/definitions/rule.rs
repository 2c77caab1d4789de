//! A rule as data: its code, its name, and how it is checked. The rules themselves are in [`super::rules`].

use crate::api::validation::CelRule;

use super::diagnostic::Severity;
use super::document::Document;
use super::findings::Finding;
use super::kinds::Kind;
use super::revision::Revision;
use super::suggest::Hint;

/// What is held against definitions.
pub struct Rule {
    /// `CL0001` and up; one code, one meaning.
    pub code: &'static str,
    /// The name in words: `duplicate-key`.
    pub name: &'static str,
    pub severity: Severity,
    /// One line for the documentation.
    pub summary: &'static str,
    pub check: Check,
}

/// Makes a hint from the value at fault. For a member of a mapping it is the key.
pub type HintOfValue = fn(&str) -> Option<Hint>;

/// How a rule is checked.
pub enum Check {
    /// The rule is checked while the text is read or held against the schema. The pass names the rule itself.
    Pass,
    /// CEL rules of the kind's schema check it.
    Cel(&'static [&'static CelRule], HintOfValue),
    /// The function is called with each document of these kinds.
    Document(&'static [Kind], fn(&Document) -> Vec<Finding>),
    /// The function is called with all documents together.
    Revision(fn(&Revision<'_>) -> Vec<Finding>),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.code, self.name)
    }
}

impl Rule {
    /// Whether the rule is about the text, before its kind is known.
    pub(super) fn is_of_yaml(&self) -> bool {
        self.code.starts_with("CL00") && self.severity == Severity::Error
    }

    /// Whether the rule is about the form that a schema gives.
    pub(super) fn is_of_schema(&self) -> bool {
        self.code.starts_with("CL02")
    }

    pub(super) const fn pass(
        code: &'static str,
        name: &'static str,
        severity: Severity,
        summary: &'static str,
    ) -> Self {
        Self { code, name, severity, summary, check: Check::Pass }
    }

    /// An error that the schema's own rules find.
    pub(super) const fn cel(
        code: &'static str,
        name: &'static str,
        summary: &'static str,
        expressions: &'static [&'static CelRule],
        hint: HintOfValue,
    ) -> Self {
        Self { code, name, severity: Severity::Error, summary, check: Check::Cel(expressions, hint) }
    }

    pub(super) const fn document(
        code: &'static str,
        name: &'static str,
        severity: Severity,
        summary: &'static str,
        kinds: &'static [Kind],
        check: fn(&Document) -> Vec<Finding>,
    ) -> Self {
        Self { code, name, severity, summary, check: Check::Document(kinds, check) }
    }

    pub(super) const fn revision(
        code: &'static str,
        name: &'static str,
        severity: Severity,
        summary: &'static str,
        check: fn(&Revision<'_>) -> Vec<Finding>,
    ) -> Self {
        Self { code, name, severity, summary, check: Check::Revision(check) }
    }
}

/// Gives no hint, for rules whose message says it all.
pub(super) fn no_hint(_: &str) -> Option<Hint> {
    None
}
