//! What `cutlist lint` found, for people and for programs.

mod json;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definitions::{Definitions, Diagnostic, Related, Severity};

pub use json::json;
pub use text::text;

/// The form in which findings are exchanged; its schema is `schemas/lint.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LintReport {
    /// Of this form: 1.
    pub version: u32,
    /// Files that were looked at.
    pub files: usize,
    /// Documents in them, empty ones not counted.
    pub documents: usize,
    /// Documents of the kinds that are read.
    pub definitions: usize,
    /// In the order file, line, column, code.
    pub diagnostics: Vec<Diagnostic>,
    pub summary: Summary,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub errors: usize,
    pub warnings: usize,
    /// Never change the exit code.
    pub notes: usize,
}

impl LintReport {
    pub fn new() -> Self {
        Self { version: 1, ..Self::default() }
    }

    /// Adds what was found in one set of files. `typed` turns a path of the set into the path as the user knows it.
    pub fn add(&mut self, definitions: &Definitions, typed: impl Fn(&str) -> String) {
        self.files += definitions.files_read;
        self.documents += definitions.documents_read;
        self.definitions += definitions.definitions_found;
        self.summary.errors += definitions.count(Severity::Error);
        self.summary.warnings += definitions.count(Severity::Warning);
        self.summary.notes += definitions.count(Severity::Note);
        let with_path = |diagnostic: &Diagnostic| {
            let related = diagnostic.related.iter();
            let related = related.map(|related| Related { file: typed(&related.file), ..related.clone() }).collect();
            Diagnostic { file: typed(&diagnostic.file), related, ..diagnostic.clone() }
        };
        self.diagnostics.extend(definitions.diagnostics.iter().map(with_path));
    }

    /// Neither errors nor warnings.
    pub fn is_clean(&self) -> bool {
        self.summary.errors == 0 && self.summary.warnings == 0
    }
}
