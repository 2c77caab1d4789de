//! CL0650 to CL0679: settings and scenarios.

use std::collections::BTreeMap;

use super::Rule;
use crate::definitions::diagnostic::Severity::Error;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::patterns;

pub static VARIABLE_NAME: Rule = Rule::document(
    "CL0650",
    "variable-name",
    Error,
    "The name of a variable has letters, digits and `_`, and does not start with a digit.",
    &[Kind::Settings],
    variable_name,
);
pub static DEPLOYMENT_NAME: Rule = Rule::document(
    "CL0651",
    "deployment-name",
    Error,
    "A scenario names a Deployment as `namespace/name`.",
    &[Kind::Scenario],
    deployment_name,
);

pub static REPEATED_CONSTRAINT: Rule = Rule::document(
    "CL0652",
    "repeated-constraint",
    Error,
    "There is one default spread constraint for each topologyKey and whenUnsatisfiable.",
    &[Kind::Settings],
    repeated_constraint,
);

pub static LINT_RULE: Rule = Rule::document(
    "CL0653",
    "lint-rule",
    Error,
    "Entries of spec.lint.rules name rules that exist, by code or name.",
    &[Kind::Settings],
    lint_rule,
);
pub static LINT_PATH: Rule = Rule::document(
    "CL0654",
    "lint-path",
    Error,
    "Paths of spec.lint are well-formed patterns.",
    &[Kind::Settings],
    lint_path,
);

pub static RULES: &[&Rule] = &[&VARIABLE_NAME, &DEPLOYMENT_NAME, &REPEATED_CONSTRAINT, &LINT_RULE, &LINT_PATH];

/// Whether `${NAME}` can mean a variable of this name.
pub fn is_variable_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn variable_name(document: &Document) -> Vec<Finding> {
    document
        .members("/spec/variables")
        .filter(|(_, name, _)| !is_variable_name(name))
        .map(|(pointer, name, _)| {
            let message = format!("`{name}` can not be the name of a variable");
            Finding::at(&VARIABLE_NAME, document, &pointer, FindingPlace::Key, message)
                .hint("use letters, digits and `_`, and do not start with a digit")
        })
        .collect()
}

fn deployment_name(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (step, _) in document.items("/spec/steps") {
        let pointer = format!("{step}/scale/deployment");
        let Some(text) = document.str(&pointer) else { continue };
        let parts: Vec<&str> = text.split('/').collect();
        if parts.len() != 2 || parts.iter().any(|part| part.is_empty()) {
            let message = format!("`{text}` does not name a Deployment");
            let hint = "write namespace/name, such as karpenter-test/inflate";
            findings.push(Finding::at(&DEPLOYMENT_NAME, document, &pointer, FindingPlace::Value, message).hint(hint));
        }
    }
    findings
}

/// kube-scheduler refuses such a configuration when it starts.
fn repeated_constraint(document: &Document) -> Vec<Finding> {
    let mut seen: BTreeMap<(&str, &str), String> = BTreeMap::new();
    let mut findings = Vec::new();
    for (pointer, _) in document.items("/spec/scheduling/defaultTopologySpreadConstraints") {
        let (key, action) = (format!("{pointer}/topologyKey"), format!("{pointer}/whenUnsatisfiable"));
        let Some(pair) = document.str(&key).zip(document.str(&action)) else { continue };
        match seen.get(&pair) {
            None => {
                seen.insert(pair, key);
            }
            Some(first) => {
                let message = format!("a second constraint over {} with {}", pair.0, pair.1);
                let finding = Finding::at(&REPEATED_CONSTRAINT, document, &key, FindingPlace::Value, message);
                findings.push(finding.hint("keep one of them").related(document, first, "the first is here"));
            }
        }
    }
    findings
}

fn lint_rule(document: &Document) -> Vec<Finding> {
    let entries = document.items("/spec/lint/rules").filter_map(|(pointer, entry)| {
        let word = entry.get("rule")?.as_str()?;
        super::find(word).is_none().then(|| (format!("{pointer}/rule"), word))
    });
    let finding = |(pointer, word): (String, &str)| {
        let message = format!("there is no rule `{word}`");
        let near = super::did_you_mean(word);
        Finding::at(&LINT_RULE, document, &pointer, FindingPlace::Value, message)
            .hint("schemas/rules.md lists them")
            .maybe_hint(near)
    };
    entries.map(finding).collect()
}

fn lint_path(document: &Document) -> Vec<Finding> {
    let of_rules = document.items("/spec/lint/rules").map(|(pointer, _)| format!("{pointer}/paths"));
    let lists = of_rules.chain(["/spec/lint/ignoredPaths".to_owned()]);
    let mut findings = Vec::new();
    for (pointer, pattern) in lists.flat_map(|list| document.items(&list).collect::<Vec<_>>()) {
        if let Some(problem) = pattern.as_str().and_then(patterns::problem) {
            let message = format!("`{}` is no pattern: {problem}", pattern.as_str().unwrap_or_default());
            findings.push(Finding::at(&LINT_PATH, document, &pointer, FindingPlace::Value, message));
        }
    }
    findings
}
