//! Every rule, as data: code, name, severity, one line of documentation, and how it is checked.
//!
//! To add one: write it in the file of its subject (or a new one), with the next free code of that file's hundred, and
//! name it in that file's `RULES`. A code is never reused.

pub mod kinds;
pub mod reading;
pub mod schema;

use super::diagnostic::Severity;
use super::document::Document;
use super::findings::Finding;
use super::kinds::Kind;
use super::revision::Revision;

pub struct Rule {
    /// `CL0001` and up; one code, one meaning.
    pub code: &'static str,
    /// In words: `duplicate-key`.
    pub name: &'static str,
    pub severity: Severity,
    /// One line for the documentation.
    pub summary: &'static str,
    pub check: Check,
}

/// How a rule is checked.
pub enum Check {
    /// While the text is read or held against the schema; the pass names the rule itself.
    Pass,
    /// On each document of these kinds.
    Document(&'static [Kind], fn(&Document) -> Vec<Finding>),
    /// On all documents together.
    Revision(fn(&Revision<'_>) -> Vec<Finding>),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.code, self.name)
    }
}

impl Rule {
    pub(super) const fn pass(
        code: &'static str,
        name: &'static str,
        severity: Severity,
        summary: &'static str,
    ) -> Self {
        Self { code, name, severity, summary, check: Check::Pass }
    }
}

/// The rule of the registry, and its hint, for a CEL rule of a kind's schema.
pub fn of_cel(_rule: &str) -> (&'static Rule, Option<&'static str>) {
    (&schema::OTHER, None)
}

/// Every rule, ordered by code.
pub fn all() -> Vec<&'static Rule> {
    [reading::RULES, kinds::RULES, schema::RULES].concat()
}
