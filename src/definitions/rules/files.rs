//! CL0650 to CL0699: settings and scenarios.

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

pub static RULES: &[&Rule] = &[&VARIABLE_NAME, &DEPLOYMENT_NAME];

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
