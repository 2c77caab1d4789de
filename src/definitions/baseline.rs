//! Findings that are known: so that lint can be adopted where there are many, and speaks of new ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::diagnostic::{Diagnostic, Severity, Span, Suppressed, SuppressedBy};
use super::rules::suppression as rules;

/// The file form, version 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Baseline {
    pub version: u32,
    pub findings: Vec<KnownFinding>,
}

/// What is known of a finding. Only the fingerprint counts; the rest is for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownFinding {
    pub code: String,
    pub file: String,
    pub message: String,
    pub fingerprint: String,
}

/// Why a file is no baseline.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    #[error("it is not JSON of this form")]
    Json(#[from] serde_json::Error),
    #[error("it has version {0}, and this program knows version 1")]
    Version(u32),
}

/// Findings that are new, and those that are known.
#[derive(Debug, Default)]
pub struct Applied {
    pub kept: Vec<Diagnostic>,
    pub suppressed: Vec<Suppressed>,
}

impl Baseline {
    pub fn of(diagnostics: &[Diagnostic]) -> Self {
        let known = |diagnostic: &Diagnostic| KnownFinding {
            code: diagnostic.code.clone(),
            file: diagnostic.file.strip_prefix("./").unwrap_or(&diagnostic.file).to_owned(),
            message: diagnostic.message.clone(),
            fingerprint: diagnostic.fingerprint.clone(),
        };
        Self { version: 1, findings: diagnostics.iter().map(known).collect() }
    }

    pub fn text(&self) -> String {
        // Texts only; nothing in it can fail to be written.
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, BaselineError> {
        let baseline: Self = serde_json::from_slice(bytes)?;
        if baseline.version == 1 { Ok(baseline) } else { Err(BaselineError::Version(baseline.version)) }
    }

    /// Sorts the findings. `paths` are the files that were looked at: of others nobody knows whether their findings are gone. `path` is that
    /// of the baseline.
    pub fn apply(&self, diagnostics: Vec<Diagnostic>, paths: &[String], path: &str) -> Applied {
        let mut open: BTreeMap<&str, &KnownFinding> =
            self.findings.iter().map(|known| (known.fingerprint.as_str(), known)).collect();
        let mut applied = Applied::default();
        for diagnostic in diagnostics {
            match open.remove(diagnostic.fingerprint.as_str()) {
                Some(_) => {
                    let reason = format!("known: it is in {path}");
                    applied.suppressed.push(Suppressed { diagnostic, by: SuppressedBy::Baseline, reason });
                }
                None => applied.kept.push(diagnostic),
            }
        }
        let paths: BTreeSet<&str> = paths.iter().map(|path| path.strip_prefix("./").unwrap_or(path)).collect();
        let was_read = |known: &&&KnownFinding| paths.contains(known.file.as_str());
        let gone = open.values().filter(was_read).count();
        if gone > 0 {
            applied.kept.push(outdated(gone, path));
        }
        applied
    }
}

fn outdated(gone: usize, path: &str) -> Diagnostic {
    let rule = &rules::OUTDATED_BASELINE;
    let what = if gone == 1 {
        "one finding of the baseline is".to_owned()
    } else {
        format!("{gone} findings of the baseline are")
    };
    Diagnostic {
        code: rule.code.to_owned(),
        rule: rule.name.to_owned(),
        severity: Severity::Note,
        message: format!("{what} gone"),
        file: path.to_owned(),
        span: Span::start(),
        hint: Some("write it anew with --write-baseline".to_owned()),
        related: Vec::new(),
        object: None,
        fix: None,
        fingerprint: format!("outdated-baseline:{path}"),
    }
}
