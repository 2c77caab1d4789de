//! The CEL rules of a kind, as the API server would evaluate them.

use kube::core::cel::{ErrorKind, Validator};
use serde_json::{Map, Value};

use super::KindSchema;
use crate::api::validation::ec2_node_class as cel;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::rules::{self, schema};

thread_local! {
    /// It holds the functions that rules may call, and no state; to register them takes as long as a few rules.
    static VALIDATOR: Validator = Validator::new();
}

/// What the CEL rules have against the document, which was `old` before. A rule does not speak where the schema has spoken: `found` are its
/// findings.
pub fn check(document: &Document, old: Option<&Value>, kind: &KindSchema, found: &[Finding]) -> Vec<Finding> {
    let validated = VALIDATOR.with(|validator| validator.validate_compiled(&kind.cel, &document.value, old));
    let Err(errors) = validated else { return Vec::new() };
    let mut findings = Vec::new();
    for error in errors.into_vec() {
        // On a document that its schema refuses, rules may stumble over what is not there.
        if error.kind != ErrorKind::ValidationFailure && !found.is_empty() {
            continue;
        }
        let pointer = pointer_of(&document.value, &error.field_path);
        if found.iter().any(|finding| speaks_of(finding, &pointer)) {
            continue;
        }
        let (rule, hint) = rules::of_cel(&error.rule, &error.message).unwrap_or((&schema::OTHER, rules::no_hint));
        let message = if error.kind == ErrorKind::ValidationFailure {
            error.message.clone()
        } else {
            format!("a rule of the kind could not be evaluated: {}", error.message)
        };
        for (pointer, place) in offenders(document, &pointer, &error.rule) {
            let at_fault = match place {
                FindingPlace::Key => spans::last(&pointer),
                FindingPlace::Value => document.str(&pointer).unwrap_or_default().to_owned(),
            };
            let finding = Finding::at(rule, document, &pointer, place, message.clone());
            findings.push(finding.maybe_hint(hint(&at_fault)));
        }
    }
    findings
}

/// Whether a finding of the schema makes one of a rule at `pointer` a repetition: it is about the same or what that is in, or a member
/// of it is not there under its name and in its type, which rules ask for.
fn speaks_of(finding: &Finding, pointer: &str) -> bool {
    let Some(spoken) = finding.pointer.as_deref() else { return false };
    let inside =
        |outer: &str, inner: &str| inner == outer || inner.strip_prefix(outer).is_some_and(|r| r.starts_with('/'));
    let of_members = [&schema::UNKNOWN_FIELD, &schema::MISSING_FIELD, &schema::WRONG_TYPE, &schema::UNQUOTED];
    let is_of_member = of_members.iter().any(|rule| std::ptr::eq(*rule, finding.rule));
    (!spoken.is_empty() && inside(spoken, pointer))
        || (is_of_member && !pointer.is_empty() && spans::parent(spoken) == pointer)
}

/// A rule on a list or mapping says only that one of the entries is wrong. Which one shows when the rule is put to
/// each entry alone; when it holds for each alone, it is about all together.
fn offenders(document: &Document, pointer: &str, rule: &str) -> Vec<(String, FindingPlace)> {
    if let Some(second) = second_of_two(document, pointer, rule) {
        return vec![(second, FindingPlace::Key)];
    }
    let whole = || {
        let exact = document.value.pointer(pointer).is_some_and(|value| !value.is_object() && !value.is_array());
        vec![(pointer.to_owned(), if exact { FindingPlace::Value } else { FindingPlace::Key })]
    };
    let anything = serde_json::json!({ "x-kubernetes-preserve-unknown-fields": true });
    let rules = serde_json::json!([{ "rule": rule, "message": "no" }]);
    let schema = match document.value.pointer(pointer) {
        Some(Value::Object(_)) => serde_json::json!({
            "type": "object", "additionalProperties": anything, "x-kubernetes-validations": rules,
        }),
        _ => serde_json::json!({ "type": "array", "items": anything, "x-kubernetes-validations": rules }),
    };
    let schema = kube::core::cel::compile_schema(&schema);
    let fails = |value: Value| VALIDATOR.with(|validator| validator.validate_compiled(&schema, &value, None).is_err());
    let one_by_one: Vec<(String, FindingPlace)> = match document.value.pointer(pointer) {
        Some(Value::Array(items)) if rule.starts_with("self.all(") => items
            .iter()
            .enumerate()
            .filter(|(_, item)| fails(Value::Array(vec![(*item).clone()])))
            .map(|(index, _)| match rule.starts_with("self.all(requirement, requirement.key ") {
                true => (format!("{pointer}/{index}/key"), FindingPlace::Value),
                false => (format!("{pointer}/{index}"), FindingPlace::Value),
            })
            .collect(),
        Some(Value::Object(map)) if rule.starts_with("self.all(") => map
            .iter()
            .filter(|(key, value)| fails(Value::Object(Map::from_iter([((*key).clone(), (*value).clone())]))))
            .map(|(key, _)| (spans::join(pointer, key), FindingPlace::Key))
            .collect(),
        _ => Vec::new(),
    };
    if one_by_one.is_empty() { whole() } else { one_by_one }
}

/// Of two that exclude each other the second, for the rules that say so.
fn second_of_two(document: &Document, pointer: &str, rule: &str) -> Option<String> {
    let is_root = |(_, mapping): &(String, &Value)| mapping.get("rootVolume") == Some(&Value::Bool(true));
    let second = match rule {
        _ if rule == cel::ROLE_OR_PROFILE.rule => spans::join(pointer, "instanceProfile"),
        _ if rule == cel::ONE_ROOT_VOLUME.rule => {
            format!("{}/rootVolume", document.items(pointer).filter(is_root).nth(1)?.0)
        }
        _ => return None,
    };
    document.value.pointer(&second).is_some().then_some(second)
}

/// `spec.template.spec.requirements[5].key` as a pointer into `value`. Keys may hold dots, so the longest that fits wins.
fn pointer_of(value: &Value, path: &str) -> String {
    let mut pointer = String::new();
    let mut rest = path.trim_start_matches('.');
    let mut here = Some(value);
    while !rest.is_empty() {
        if let Some((index, after)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            let index = index.trim_matches('"');
            pointer = spans::join(&pointer, index);
            here = here.and_then(|value| match value {
                Value::Array(items) => index.parse::<usize>().ok().and_then(|index| items.get(index)),
                other => other.get(index),
            });
            rest = after.trim_start_matches('.');
            continue;
        }
        let fits =
            |key: &&String| rest.strip_prefix(key.as_str()).is_some_and(|r| r.is_empty() || r.starts_with(['.', '[']));
        let keys = here.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let key = keys.filter(fits).max_by_key(|key| key.len()).cloned();
        let key = key.unwrap_or_else(|| rest.split(['.', '[']).next().unwrap_or(rest).to_owned());
        rest = rest.get(key.len()..).unwrap_or_default().trim_start_matches('.');
        here = here.and_then(|value| value.get(&key));
        pointer = spans::join(&pointer, &key);
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_paths_into_pointers() {
        let value = serde_json::json!({ "spec": { "limits": { "nvidia.com/gpu": 1 }, "list": [{ "key": "a" }] } });
        for (path, pointer) in [
            ("", ""),
            ("spec", "/spec"),
            ("spec.list[0].key", "/spec/list/0/key"),
            ("spec.limits.nvidia.com/gpu", "/spec/limits/nvidia.com~1gpu"),
            (".spec.absent", "/spec/absent"),
        ] {
            assert_eq!(pointer_of(&value, path), pointer, "{path}");
        }
    }
}
