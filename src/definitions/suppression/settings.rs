//! What `spec.lint` of `cutlist.yaml` says of findings: other severities, and files that do not count.

use super::SortedOut;
use crate::api::lint_settings::{LintSettings, RuleSettings, RuleSeverity};
use crate::definitions::diagnostic::{Severity, SuppressedBy};
use crate::definitions::document::Document;
use crate::definitions::findings::Finding;
use crate::definitions::patterns::Patterns;

/// The settings, with their patterns read. What is wrong in them has rules of its own, and no effect.
#[derive(Debug, Default)]
pub struct Chosen {
    pub settings: LintSettings,
    ignored: Patterns,
    rules: Vec<(RuleSettings, Patterns)>,
}

impl Chosen {
    /// Those of the settings document.
    pub fn of(document: &Document) -> Self {
        let lint = document.value.pointer("/spec/lint").cloned();
        let settings: LintSettings = lint.and_then(|lint| serde_json::from_value(lint).ok()).unwrap_or_default();
        let rules = settings.rules.iter().map(|rule| (rule.clone(), Patterns::new(&rule.paths))).collect();
        Self { ignored: Patterns::new(&settings.ignored_paths), rules, settings }
    }

    pub(super) fn apply<'p>(&self, sorted: SortedOut, path: impl Fn(usize) -> &'p str) -> SortedOut {
        let SortedOut { kept, mut suppressed } = sorted;
        let mut counted = Vec::with_capacity(kept.len());
        for mut finding in kept {
            let path = path(finding.file);
            if self.ignored.has(path) {
                suppressed.push((
                    finding,
                    SuppressedBy::Settings,
                    "its file is among spec.lint.ignoredPaths".to_owned(),
                ));
                continue;
            }
            match self.of_rule(&finding, path) {
                None => counted.push(finding),
                Some(rule) => match severity(rule.severity) {
                    Some(severity) => {
                        finding.severity = severity;
                        counted.push(finding);
                    }
                    None => {
                        let reason = rule.reason.clone();
                        let reason = reason.unwrap_or_else(|| "the rule is off in spec.lint.rules".to_owned());
                        suppressed.push((finding, SuppressedBy::Settings, reason));
                    }
                },
            }
        }
        SortedOut { kept: counted, suppressed }
    }

    fn of_rule(&self, finding: &Finding, path: &str) -> Option<&RuleSettings> {
        let fits = |(rule, patterns): &&(RuleSettings, Patterns)| {
            (rule.rule == finding.rule.code || rule.rule == finding.rule.name)
                && (rule.paths.is_empty() || patterns.has(path))
        };
        self.rules.iter().rev().find(fits).map(|(rule, _)| rule)
    }
}

fn severity(chosen: RuleSeverity) -> Option<Severity> {
    match chosen {
        RuleSeverity::Error => Some(Severity::Error),
        RuleSeverity::Warning => Some(Severity::Warning),
        RuleSeverity::Note => Some(Severity::Note),
        RuleSeverity::Off => None,
    }
}
