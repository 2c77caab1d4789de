//! CL0113 to CL0118: labels and annotations, of objects and of the nodes that a pool makes.

use serde_json::Value;

use super::Rule;
use super::kinds::{OBJECTS, is_subdomain};
use crate::definitions::diagnostic::Severity::Error;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub static KEY: Rule = Rule::document(
    "CL0113",
    "label-key",
    Error,
    "Keys of labels and annotations are qualified names: a name, and before it a domain with a `/` if need be.",
    OBJECTS,
    keys,
);
pub static VALUE: Rule = Rule::document(
    "CL0114",
    "label-value",
    Error,
    "Values of labels of an object are at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.",
    OBJECTS,
    values,
);
pub static NAME_AS_LABEL: Rule = Rule::document(
    "CL0115",
    "name-as-label",
    Error,
    "The name of a pool or class is the value of a label of its nodes, and so has at most 63 characters.",
    &[Kind::NodePool, Kind::EC2NodeClass],
    name_as_label,
);

pub static RULES: &[&Rule] = &[&KEY, &VALUE, &NAME_AS_LABEL];

/// Source: k8s.io/apimachinery/pkg/util/validation, `LabelValueMaxLength` and the length of a qualified name.
const NAME_CHARACTERS_MAX: usize = 63;

/// Where labels and annotations stand, and whether keys may have capital letters in their domain.
const PLACES: [(&str, bool); 6] = [
    ("/metadata/labels", false),
    ("/metadata/annotations", true),
    ("/spec/template/metadata/labels", false),
    ("/spec/template/metadata/annotations", true),
    ("/template/metadata/labels", false),
    ("/template/metadata/annotations", true),
];

fn keys(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (place, any_case) in PLACES {
        for (pointer, key, _) in document.members(place) {
            let lower = key.to_ascii_lowercase();
            let Err(problem) = qualified_name(if any_case { &lower } else { key }) else { continue };
            let what = if any_case { "an annotation" } else { "a label" };
            let message = format!("`{key}` can not be the key of {what}: {problem}");
            findings.push(Finding::at(&KEY, document, &pointer, FindingPlace::Key, message));
        }
    }
    findings
}

/// Source: k8s.io/apimachinery/pkg/util/validation, `IsQualifiedName`.
fn qualified_name(key: &str) -> Result<(), String> {
    let (domain, name) = match key.split_once('/') {
        Some((_, name)) if name.contains('/') => return Err("it has more than one `/`".to_owned()),
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    if domain.is_some_and(|domain| !is_subdomain(domain)) {
        return Err("what stands before the `/` is no domain of lower-case letters, digits, `-` and `.`".to_owned());
    }
    if name.len() > NAME_CHARACTERS_MAX {
        return Err(format!("the name has {} characters, {NAME_CHARACTERS_MAX} are allowed", name.len()));
    }
    match has_form(name) && !name.is_empty() {
        true => Ok(()),
        false => Err("a name is of letters, digits, `-`, `_` and `.`, with a letter or digit at both ends".to_owned()),
    }
}

/// Whether a name behind the domain, or a value, has the form it needs. A value may be empty.
fn has_form(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let is_end = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    text.chars().all(inner) && is_end(text.chars().next()) && is_end(text.chars().next_back())
}

/// The schema speaks of the nodes' labels.
fn values(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in ["/metadata/labels", "/template/metadata/labels"] {
        for (pointer, key, value) in document.members(place) {
            let Value::String(text) = value else { continue };
            if has_form(text) && text.len() <= NAME_CHARACTERS_MAX {
                continue;
            }
            let message = format!("`{text}` can not be the value of the label {key}");
            let finding = Finding::at(&VALUE, document, &pointer, FindingPlace::Value, message);
            findings.push(
                finding.hint("a value has at most 63 letters, digits, `-`, `_` and `.`; an annotation takes any text"),
            );
        }
    }
    findings
}

fn name_as_label(document: &Document) -> Vec<Finding> {
    let pointer = "/metadata/name";
    let Some(name) = document.str(pointer).filter(|name| name.len() > NAME_CHARACTERS_MAX && is_subdomain(name)) else {
        return Vec::new();
    };
    let message = format!(
        "the name has {} characters, and nodes carry it as a label, which takes {NAME_CHARACTERS_MAX}",
        name.len()
    );
    vec![
        Finding::at(&NAME_AS_LABEL, document, pointer, FindingPlace::Value, message)
            .hint("shorten it: no node could be made"),
    ]
}
