//! Workloads beside the definitions: only whether Kubernetes knows their fields.
//!
//! The API server drops unknown fields in silence, so that `terminateionGracePeriodSeconds` is found when a pod takes
//! 30 seconds to go. The fields come from the schemas of k8s-openapi's types.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::{apps, batch, core, policy};
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, Place};
use crate::definitions::rules::schema::FOREIGN_FIELD;
use crate::definitions::suggest;

/// By `apiVersion kind`. Built when the first workload is met: 20 ms.
static SCHEMAS: LazyLock<BTreeMap<&'static str, Value>> = LazyLock::new(|| {
    fn of<T: schemars::JsonSchema>() -> Value {
        SchemaSettings::draft07().into_generator().into_root_schema_for::<T>().to_value()
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

/// Fields of a workload that Kubernetes does not know. Other kinds have none.
pub fn unknown_fields(document: &Document) -> Vec<Finding> {
    let text = |name| document.value.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{} {}", text("apiVersion"), text("kind"));
    let mut findings = Vec::new();
    if let Some(root) = SCHEMAS.get(name.as_str()) {
        walk(document, root, root, &document.value, "", &mut findings);
    }
    findings
}

fn walk(document: &Document, root: &Value, schema: &Value, value: &Value, pointer: &str, findings: &mut Vec<Finding>) {
    let schema = resolve(root, schema);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(document, root, &schema["items"], item, &format!("{pointer}/{index}"), findings);
            }
        }
        Value::Object(map) => {
            let Some(known) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            for (key, inner) in map {
                let at = spans::join(pointer, key);
                if let Some(inner_schema) = known.get(key) {
                    walk(document, root, inner_schema, inner, &at, findings);
                } else if !(pointer.is_empty() && matches!(key.as_str(), "apiVersion" | "kind")) {
                    let hint = suggest::did_you_mean(key, known.keys().map(String::as_str));
                    let message = format!("unknown field `{key}`: Kubernetes drops it");
                    let finding = Finding::at(&FOREIGN_FIELD, document, &at, Place::Key, message);
                    findings.push(finding.maybe_hint(hint));
                }
            }
        }
        _ => {}
    }
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
