//! What `cutlist lint` found, for people and for programs.

mod azure;
mod checkstyle;
mod github;
mod gitlab;
mod json;
mod junit;
mod markdown;
mod patch;
mod place;
mod sarif;
mod tap;
mod text;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::definitions::{Definitions, Diagnostic, Related, RuleDescription, Severity, Suppressed};

pub use azure::azure;
pub use checkstyle::checkstyle;
pub use github::github;
pub use gitlab::gitlab;
pub use json::{json, json_lines};
pub use junit::junit;
pub use markdown::{markdown, markdown_of_refused};
pub use patch::patch;
pub use place::page_of_rule;
pub use sarif::sarif;
pub use tap::tap;
pub use text::{summary, text};

/// What `cutlist lint` found in the files that it looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LintReport {
    /// The version of this form: 1.
    pub version: u32,
    /// How many files were looked at.
    pub files: usize,
    /// How many documents are in them. Empty ones do not count.
    pub documents: usize,
    /// How many of the documents are of kinds that Cutlist reads.
    pub definitions: usize,
    /// The findings, in the order file, line, column, code.
    pub diagnostics: Vec<Diagnostic>,
    /// Findings that do not count, and why, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<Suppressed>,
    pub summary: Summary,
    /// From which severity on a finding fails; `None`: none does.
    #[serde(skip)]
    pub fail_on: Option<Severity>,
    /// The files that were looked at, as the user knows them, in order.
    #[serde(skip)]
    pub paths: Vec<String>,
    /// The rules of which there are findings, by code.
    #[serde(skip)]
    pub rules: Vec<RuleDescription>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub errors: usize,
    pub warnings: usize,
    /// Notes do not change the exit code unless that is asked for.
    pub notes: usize,
    /// Findings of any severity that do not count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suppressed: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl LintReport {
    pub fn new() -> Self {
        Self { version: 1, fail_on: Some(Severity::Warning), ..Self::default() }
    }

    /// Adds the findings of one set of files. `typed` turns a path of the set into the path as the user knows it.
    pub fn add(&mut self, definitions: &Definitions, typed: impl Fn(&str) -> String) {
        self.files += definitions.files_read;
        self.documents += definitions.documents_read;
        self.definitions += definitions.definitions_found;
        let with_path = |diagnostic: &Diagnostic| {
            let related = diagnostic.related.iter();
            let related = related.map(|related| Related { file: typed(&related.file), ..related.clone() }).collect();
            Diagnostic { file: typed(&diagnostic.file), related, ..diagnostic.clone() }
        };
        self.paths.extend(definitions.paths_read.iter().map(|path| typed(path)));
        self.diagnostics.extend(definitions.diagnostics.iter().map(with_path));
        let suppressed = definitions.suppressed.iter();
        self.suppressed.extend(suppressed.map(|it| Suppressed { diagnostic: with_path(&it.diagnostic), ..it.clone() }));
        self.count();
    }

    /// Puts everything in the order file, line, column, code, and counts.
    pub fn sort(&mut self) {
        let order = |one: &Diagnostic, other: &Diagnostic| {
            let key = |it: &Diagnostic| (it.span.line, it.span.column);
            (&one.file, key(one), &one.code, &one.message).cmp(&(&other.file, key(other), &other.code, &other.message))
        };
        self.diagnostics.sort_by(order);
        self.suppressed.sort_by(|one, other| order(&one.diagnostic, &other.diagnostic));
        self.count();
    }

    /// Counts again, after findings were added or taken out.
    pub fn count(&mut self) {
        let of = |severity: Severity| self.diagnostics.iter().filter(|it| it.severity == severity).count();
        self.summary = Summary {
            errors: of(Severity::Error),
            warnings: of(Severity::Warning),
            notes: of(Severity::Note),
            suppressed: self.suppressed.len(),
        };
    }

    /// Whether there are neither errors nor warnings.
    pub fn is_clean(&self) -> bool {
        self.summary.errors == 0 && self.summary.warnings == 0
    }

    /// Whether the finding makes lint fail.
    pub fn fails(&self, diagnostic: &Diagnostic) -> bool {
        self.fail_on.is_some_and(|least| diagnostic.severity <= least)
    }

    /// Whether any finding makes lint fail.
    pub fn is_failed(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| self.fails(diagnostic))
    }
}

/// The findings in one file.
#[derive(Default)]
struct OfFile<'r> {
    counted: Vec<&'r Diagnostic>,
    suppressed: Vec<&'r Suppressed>,
}

/// The findings of each file of the report. Files that were read and have no findings are in it, too.
fn by_file(report: &LintReport) -> BTreeMap<&str, OfFile<'_>> {
    let mut files: BTreeMap<&str, OfFile<'_>> = BTreeMap::new();
    for path in &report.paths {
        files.entry(path).or_default();
    }
    for diagnostic in &report.diagnostics {
        files.entry(&diagnostic.file).or_default().counted.push(diagnostic);
    }
    for suppressed in &report.suppressed {
        files.entry(&suppressed.diagnostic.file).or_default().suppressed.push(suppressed);
    }
    files
}
