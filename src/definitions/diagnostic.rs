//! A finding as data; text, JSON and other forms are renderings of it (`render::diagnostics`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// Stable: one code, one meaning, never reused. `CL0001` and up.
    pub code: String,
    /// The rule's name, `unknown-field`.
    pub rule: String,
    pub severity: Severity,
    pub message: String,
    pub file: String,
    pub span: Span,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Other places that have to do with it, such as the first of two definitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// `NodePool/default`, when the document could be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// What can be written instead, where no decision is left to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Stays the same while the line is only moved; two findings of a report never share one. Empty before it is known which
    /// path the file has in its repository ([`super::fingerprint`]).
    #[serde(skip)]
    pub fingerprint: String,
}

/// Other text for a part of the finding's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// What is taken out.
    pub span: Span,
    /// What is put there.
    pub text: String,
}

/// A finding that is not counted, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suppressed {
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    pub by: SuppressedBy,
    /// The reason, in the words of whoever suppressed the finding.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SuppressedBy {
    /// `# cutlist:ignore` in the file.
    Comment,
    /// `cutlist.dev/ignore` of the object.
    Annotation,
    /// `spec.lint` of cutlist.yaml.
    Settings,
    /// `--baseline`.
    Baseline,
}

/// What a report says of a rule beside its findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleDescription {
    pub code: &'static str,
    /// The name of the rule in words: `duplicate-key`.
    pub name: &'static str,
    pub severity: Severity,
    /// One line.
    pub summary: &'static str,
    /// A paragraph.
    pub explanation: String,
    /// The same with examples and source, in Markdown.
    pub page: String,
}

/// A place beside that of the finding, and what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Related {
    pub file: String,
    pub span: Span,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The definition can not be used.
    Error,
    /// It can be used, and is probably not what was meant.
    Warning,
    /// There is nothing to do, and the note keeps people from wondering. It changes no exit code unless that is asked
    /// for.
    Note,
}

/// A place in a file. Lines and columns from 1, columns in characters; the byte range is for drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    pub line: usize,
    pub column: usize,
    pub start_byte: usize,
    pub end_byte: usize,
}

impl Severity {
    /// The word that people write for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Span {
    /// The start of the file, for what is about all of it.
    pub fn start() -> Self {
        Self { line: 1, column: 1, start_byte: 0, end_byte: 0 }
    }
}
