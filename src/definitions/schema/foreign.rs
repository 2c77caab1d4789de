//! Workloads beside the definitions: only whether Kubernetes knows their fields, and can read what is in them.
//!
//! The API server drops unknown fields in silence, so that `terminateionGracePeriodSeconds` is found when a pod takes
//! 30 seconds to go; an object with a value of another type it refuses. The fields come from the schemas of k8s-openapi's types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::{apps, batch, core, policy};
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::findings::{name, type_words, value_words};
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::fixes::Instead;
use crate::definitions::rules::schema::{FOREIGN_FIELD, FOREIGN_TYPE};
use crate::definitions::suggest;

/// By `apiVersion kind`. Each is built when the first workload of its kind is met: some milliseconds.
static SCHEMAS: LazyLock<BTreeMap<&'static str, LazyLock<Value>>> = LazyLock::new(|| {
    fn of<T: schemars::JsonSchema>() -> LazyLock<Value> {
        LazyLock::new(|| SchemaSettings::draft07().into_generator().into_root_schema_for::<T>().to_value())
    }
    BTreeMap::from([
        ("apps/v1 Deployment", of::<apps::v1::Deployment>()),
        ("apps/v1 DaemonSet", of::<apps::v1::DaemonSet>()),
        ("apps/v1 StatefulSet", of::<apps::v1::StatefulSet>()),
        ("apps/v1 ReplicaSet", of::<apps::v1::ReplicaSet>()),
        ("batch/v1 Job", of::<batch::v1::Job>()),
        ("batch/v1 CronJob", of::<batch::v1::CronJob>()),
        ("policy/v1 PodDisruptionBudget", of::<policy::v1::PodDisruptionBudget>()),
        ("v1 Pod", of::<core::v1::Pod>()),
        ("v1 Namespace", of::<core::v1::Namespace>()),
        ("v1 PodTemplate", of::<core::v1::PodTemplate>()),
    ])
});

/// Fields of a workload that Kubernetes does not know, or whose values it can not read. Other kinds have none.
pub fn faults(document: &Document) -> Vec<Finding> {
    let text = |name| document.value.get(name).and_then(Value::as_str).unwrap_or_default();
    let called = format!("{} {}", text("apiVersion"), text("kind"));
    let Some(root) = SCHEMAS.get(called.as_str()) else { return Vec::new() };
    let read = if document.ambiguous.is_empty() { None } else { Some(document.clone().read_by_kubectl()) };
    let document = read.as_ref().unwrap_or(document);
    let mut walk = Walk { document, root, findings: Vec::new() };
    walk.value(root, &document.value, "");
    walk.findings
}

struct Walk<'d> {
    document: &'d Document,
    root: &'d Value,
    findings: Vec<Finding>,
}

impl<'d> Walk<'d> {
    fn value(&mut self, schema: &'d Value, value: &'d Value, pointer: &str) {
        let schema = resolve(self.root, schema);
        if let Some(wanted) = schema.get("type").and_then(Value::as_str).filter(|wanted| !is_of_type(value, wanted)) {
            let finding = wrong_type(self.document, pointer, value, wanted);
            return self.findings.extend(finding);
        }
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(&schema["items"], item, &format!("{pointer}/{index}"));
                }
            }
            Value::Object(members) => {
                for (key, inner) in members {
                    self.member(schema, key, inner, pointer);
                }
            }
            _ => {}
        }
    }

    fn member(&mut self, schema: &'d Value, key: &str, value: &'d Value, parent: &str) {
        let pointer = spans::join(parent, key);
        let Some(known) = schema.get("properties").and_then(Value::as_object) else {
            return self.value(&schema["additionalProperties"], value, &pointer);
        };
        if let Some(inner) = known.get(key) {
            self.value(inner, value, &pointer);
        } else if !(parent.is_empty() && matches!(key, "apiVersion" | "kind")) {
            let hint = suggest::did_you_mean(key, known.keys().map(String::as_str));
            let message = format!("unknown field `{key}`: Kubernetes drops it");
            let finding = Finding::at(&FOREIGN_FIELD, self.document, &pointer, FindingPlace::Key, message);
            self.findings.push(finding.maybe_hint(hint));
        }
    }
}

/// Whether the API server reads the value as this type. What is null it takes for nothing.
fn is_of_type(value: &Value, wanted: &str) -> bool {
    match (wanted, value) {
        (_, Value::Null) => true,
        ("string", _) => value.is_string(),
        ("boolean", _) => value.is_boolean(),
        ("array", _) => value.is_array(),
        ("object", _) => value.is_object(),
        ("number", _) => value.is_number(),
        ("integer", Value::Number(number)) => number.as_f64().is_none_or(|number| number.fract() == 0.0),
        ("integer", _) => false,
        _ => true,
    }
}

/// Nothing of text that another program may still make something of.
fn wrong_type(document: &Document, pointer: &str, value: &Value, wanted: &str) -> Option<Finding> {
    const OF_PROGRAMS: [&str; 3] = ["${", "$(", "{{"];
    let text = value.as_str();
    let is_ambiguous = document.ambiguous.iter().any(|(at, _)| at == pointer);
    if text.is_some_and(|text| is_ambiguous || OF_PROGRAMS.iter().any(|it| text.contains(it))) {
        return None;
    }
    let name = name(pointer);
    let is_scalar = value.is_number() || value.is_boolean();
    if wanted == "string" && is_scalar {
        let written = document.written(pointer).unwrap_or_else(|| value.to_string());
        let got = if value.is_boolean() { "a boolean" } else { "a number" };
        let message =
            format!("{name} must be text, and `{written}` without quotes is {got}: the API server refuses the object");
        let finding = Finding::at(&FOREIGN_TYPE, document, pointer, FindingPlace::Value, message);
        let quoted = format!("\"{written}\"");
        return Some(finding.hint(format!("quote it: {quoted}")).instead(Some(Instead::Yaml(quoted))));
    }
    let (wants, is) = (type_words(wanted), value_words(value));
    let message = format!("{name} must be {wants}, and is {is}: the API server refuses the object");
    let place = if value.is_object() || value.is_array() { FindingPlace::Key } else { FindingPlace::Value };
    let is_word = |text: &str| match wanted {
        "integer" => text.parse::<i64>().is_ok_and(|number| number.to_string() == text),
        _ => wanted == "boolean" && matches!(text, "true" | "false"),
    };
    let hint = match (value, wanted) {
        (Value::String(text), _) if is_word(text) => Some(format!("write it without quotes: {text}")),
        (Value::Object(_), "array") => Some("start each entry with `- `".to_owned()),
        (Value::Array(_), "object") => Some("write `key: value` without `- `".to_owned()),
        _ => None,
    };
    let finding = Finding::at(&FOREIGN_TYPE, document, pointer, place, message).maybe_hint(hint);
    let word = text.filter(|text| is_word(text));
    Some(finding.instead(word.map(|text| Instead::Yaml(text.to_owned()))))
}

/// Follows `$ref`, alone or as the one alternative beside null.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let mut schema = schema;
    // A reference may stand in an alternative that is a reference.
    for _ in 0..4 {
        let alternatives = ["anyOf", "oneOf", "allOf"].iter().find_map(|keyword| schema.get(keyword)?.as_array());
        let reference = schema.get("$ref").or_else(|| alternatives?.iter().find_map(|one| one.get("$ref")));
        match reference.and_then(Value::as_str).and_then(|reference| root.pointer(reference.strip_prefix('#')?)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}
