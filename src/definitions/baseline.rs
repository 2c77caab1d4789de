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

/// What a baseline is held against.
#[derive(Clone, Copy, Debug)]
pub struct LookedAt<'p> {
    /// The files that were looked at: of others nobody knows whether their findings are gone.
    pub paths: &'p [String],
    /// Whether these are all files of a folder, and all that is found in them.
    pub is_whole: bool,
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

    /// Sorts the findings. `path` is that of the baseline. What is found in the baseline itself has no fingerprint yet.
    pub fn apply(&self, diagnostics: Vec<Diagnostic>, looked_at: LookedAt<'_>, path: &str) -> Applied {
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
        let paths: BTreeSet<&str> =
            looked_at.paths.iter().map(|path| path.strip_prefix("./").unwrap_or(path)).collect();
        let was_read = |known: &&&KnownFinding| paths.contains(known.file.as_str());
        let gone = open.values().filter(was_read).count();
        if gone > 0 {
            applied.kept.push(outdated(gone_text(gone), "write it anew with --write-baseline", path));
        } else if looked_at.is_whole && applied.suppressed.is_empty() && !self.findings.is_empty() {
            let hint = "lint from the folder that it was written in, or write it anew with --write-baseline";
            applied.kept.push(outdated(nothing_text(self.findings.len()), hint, path));
        }
        applied
    }
}

fn gone_text(gone: usize) -> String {
    match gone {
        1 => "one finding of the baseline is gone".to_owned(),
        _ => format!("{gone} findings of the baseline are gone"),
    }
}

fn nothing_text(known: usize) -> String {
    let nothing = match known {
        1 => "the one finding of the baseline is not".to_owned(),
        _ => format!("none of the {known} findings of the baseline is"),
    };
    format!("{nothing} in these files: they were moved, or it is the baseline of others")
}

fn outdated(message: String, hint: &str, path: &str) -> Diagnostic {
    let rule = &rules::OUTDATED_BASELINE;
    Diagnostic {
        code: rule.code.to_owned(),
        rule: rule.name.to_owned(),
        severity: Severity::Note,
        message,
        file: path.to_owned(),
        span: Span::start(),
        hint: Some(hint.to_owned()),
        related: Vec::new(),
        object: None,
        fix: None,
        fingerprint: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(file: &str) -> Diagnostic {
        Diagnostic {
            code: "CL0464".to_owned(),
            rule: "unpinned-alias".to_owned(),
            severity: Severity::Note,
            message: "a new image drifts every node".to_owned(),
            file: file.to_owned(),
            span: Span::start(),
            hint: None,
            related: Vec::new(),
            object: None,
            fix: None,
            fingerprint: format!("of {file}"),
        }
    }

    fn said(known: &[&str], found: &[&str], read: &[&str], is_whole: bool) -> Vec<String> {
        let diagnostics = |files: &[&str]| files.iter().map(|file| diagnostic(file)).collect::<Vec<_>>();
        let paths: Vec<String> = read.iter().map(|path| (*path).to_owned()).collect();
        let looked_at = LookedAt { paths: &paths, is_whole };
        let applied = Baseline::of(&diagnostics(known)).apply(diagnostics(found), looked_at, "known.json");
        let own = applied.kept.into_iter().filter(|it| it.code == rules::OUTDATED_BASELINE.code);
        own.map(|it| it.message).collect()
    }

    #[test]
    fn a_baseline_of_which_nothing_is_there_says_so_once() {
        let (old, new) = (["old/a.yaml", "old/b.yaml"], ["new/a.yaml", "new/b.yaml"]);
        let moved = "none of the 2 findings of the baseline is in these files: they were moved, or it is the baseline of others";
        assert_eq!(said(&old, &new, &new, true), [moved]);
        let one =
            "the one finding of the baseline is not in these files: they were moved, or it is the baseline of others";
        assert_eq!(said(&old[..1], &new, &new, true), [one]);
        assert_eq!(said(&old, &new, &new, false), [""; 0], "these are some of the files");
        assert_eq!(said(&old, &["old/a.yaml"], &["old/a.yaml"], true), [""; 0], "one is there");
        assert_eq!(said(&old, &[], &old, true), ["2 findings of the baseline are gone"]);
        assert_eq!(said(&[], &new, &new, true), [""; 0]);
    }
}
