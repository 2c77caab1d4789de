//! CL0650 to CL0699: settings and scenarios.

use std::collections::BTreeMap;

use super::Rule;
use crate::definitions::diagnostic::Severity::Error;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};
use crate::definitions::kinds::Kind;

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

pub static RULES: &[&Rule] = &[&VARIABLE_NAME, &DEPLOYMENT_NAME, &REPEATED_CONSTRAINT];

fn variable_name(document: &Document) -> Vec<Finding> {
    let valid = |name: &str| {
        !name.starts_with(|first: char| first.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    document
        .members("/spec/variables")
        .filter(|(_, name, _)| !valid(name))
        .map(|(pointer, name, _)| {
            let message = format!("`{name}` can not be the name of a variable");
            Finding::at(&VARIABLE_NAME, document, &pointer, Place::Key, message)
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
            findings.push(Finding::at(&DEPLOYMENT_NAME, document, &pointer, Place::Value, message).hint(hint));
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
                let finding = Finding::at(&REPEATED_CONSTRAINT, document, &key, Place::Value, message);
                findings.push(finding.hint("keep one of them").related(document, first, "the first is here"));
            }
        }
    }
    findings
}
