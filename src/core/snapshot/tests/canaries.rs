//! A mark in every text that a kind can have, and a look at where it comes out again: only where `kept` says so.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use regex::Regex;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::snapshot::read::read;
use crate::snapshot::write::write;
use crate::snapshot::{Snapshot, kept};

const MARK: &str = "canary:";

/// Makes an object of a schema in which each text says where it was put.
struct Planter {
    definitions: Map<String, Value>,
}

impl Planter {
    fn value(&self, schema: &Value, path: &str, depth: usize) -> Value {
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.rsplit('/').next().unwrap();
            return self.value(&self.definitions[name], path, depth);
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
            return first.clone();
        }
        for several in ["anyOf", "oneOf", "allOf"] {
            let some = schema[several].as_array();
            if let Some(one) = some.and_then(|all| all.iter().find(|one| one["type"] != "null")) {
                return self.value(one, path, depth);
            }
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().find(|it| *it != "null").cloned().unwrap_or_default(),
            one => one.clone(),
        };
        match types.as_str() {
            Some("string") => text(schema, path),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") if depth > 0 => json!([self.value(&schema["items"], path, depth - 1)]),
            Some("object") => self.fields(schema, path, depth),
            // Anything may stand there.
            _ => json!(format!("{MARK}{path}")),
        }
    }

    fn fields(&self, schema: &Value, path: &str, depth: usize) -> Value {
        let mut fields = Map::new();
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        if depth == 0 {
            return Value::Object(fields);
        }
        for (name, of_field) in schema["properties"].as_object().into_iter().flatten() {
            fields.insert(name.clone(), self.value(of_field, &below(name), depth - 1));
        }
        if let Some(of_values) = schema.get("additionalProperties").filter(|it| it.is_object()) {
            let value = self.value(of_values, path, depth - 1);
            fields.insert(format!("{MARK}{path}"), value);
        } else if fields.is_empty() {
            fields.insert(format!("{MARK}{path}"), json!(format!("{MARK}{path}")));
        }
        Value::Object(fields)
    }
}

/// A text that its type takes.
fn text(schema: &Value, path: &str) -> Value {
    match path.rsplit('.').next() {
        Some("operator") => return json!("In"),
        // Of objects in objects.
        Some("apiVersion") if path.contains("volumeClaimTemplates") => return json!("v1"),
        Some("kind") if path.contains("volumeClaimTemplates") => return json!("PersistentVolumeClaim"),
        _ => {}
    }
    if schema["format"] == "date-time" {
        return json!("2026-11-20T09:00:00Z");
    }
    let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
    let forms = ["1h", "10", "0 9 * * *"].into_iter().find(|form| pattern.as_ref().is_some_and(|it| it.is_match(form)));
    json!(forms.map_or_else(|| format!("{MARK}{path}"), str::to_owned))
}

fn of_schema<T: JsonSchema>(path: &str) -> Value {
    let schema = serde_json::to_value(SchemaGenerator::default().into_root_schema_for::<T>()).unwrap();
    let definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
    Planter { definitions }.value(&schema, path, 14)
}

fn planted<T: JsonSchema>(api_version: &str, kind: &str) -> Value {
    let mut object = of_schema::<T>("");
    // The schemas of custom resources leave it to the API server.
    object["metadata"] = of_schema::<ObjectMeta>("metadata");
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

/// Every text of a value, keys too.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key.clone());
            texts(value, found);
        }),
        _ => {}
    }
}

macro_rules! all_planted {
    ($($type:path => $api_version:literal $kind:literal),* $(,)?) => {
        vec![$(($kind, planted::<$type>($api_version, $kind))),*]
    };
}

fn objects() -> Vec<(&'static str, Value)> {
    use k8s_openapi::api;
    all_planted! {
        api::storage::v1::CSINode => "storage.k8s.io/v1" "CSINode",
        cutlist_api::capacity_buffer::CapacityBuffer => "autoscaling.x-k8s.io/v1beta1" "CapacityBuffer",
        api::apps::v1::DaemonSet => "apps/v1" "DaemonSet",
        api::apps::v1::Deployment => "apps/v1" "Deployment",
        api::resource::v1::DeviceClass => "resource.k8s.io/v1" "DeviceClass",
        cutlist_api::disruption_budget::DisruptionBudget => "cutlist.dev/v1alpha1" "DisruptionBudget",
        cutlist_api::ec2_node_class::EC2NodeClass => "karpenter.k8s.aws/v1" "EC2NodeClass",
        api::batch::v1::Job => "batch/v1" "Job",
        api::core::v1::LimitRange => "v1" "LimitRange",
        api::core::v1::Namespace => "v1" "Namespace",
        api::core::v1::Node => "v1" "Node",
        cutlist_api::node_claim::NodeClaim => "karpenter.sh/v1" "NodeClaim",
        cutlist_api::node_overlay::NodeOverlay => "karpenter.sh/v1alpha1" "NodeOverlay",
        cutlist_api::node_plan::NodePlan => "cutlist.dev/v1alpha1" "NodePlan",
        cutlist_api::node_pool::NodePool => "karpenter.sh/v1" "NodePool",
        api::core::v1::PersistentVolume => "v1" "PersistentVolume",
        api::core::v1::PersistentVolumeClaim => "v1" "PersistentVolumeClaim",
        Pod => "v1" "Pod",
        api::policy::v1::PodDisruptionBudget => "policy/v1" "PodDisruptionBudget",
        api::core::v1::PodTemplate => "v1" "PodTemplate",
        api::scheduling::v1::PriorityClass => "scheduling.k8s.io/v1" "PriorityClass",
        api::apps::v1::ReplicaSet => "apps/v1" "ReplicaSet",
        api::core::v1::ReplicationController => "v1" "ReplicationController",
        api::resource::v1::ResourceClaim => "resource.k8s.io/v1" "ResourceClaim",
        api::resource::v1::ResourceClaimTemplate => "resource.k8s.io/v1" "ResourceClaimTemplate",
        api::resource::v1::ResourceSlice => "resource.k8s.io/v1" "ResourceSlice",
        api::node::v1::RuntimeClass => "node.k8s.io/v1" "RuntimeClass",
        api::core::v1::Service => "v1" "Service",
        api::apps::v1::StatefulSet => "apps/v1" "StatefulSet",
        api::storage::v1::StorageClass => "storage.k8s.io/v1" "StorageClass",
        api::storage::v1::VolumeAttachment => "storage.k8s.io/v1" "VolumeAttachment",
    }
}

#[test]
fn what_stays_of_each_kind_is_what_the_table_names() {
    let objects = objects();
    let of_table: Vec<&str> = kept::KINDS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(objects.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), of_table);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (kind, object) in objects {
        let mut planted = Vec::new();
        texts(&object, &mut planted);
        assert!(planted.iter().filter(|text| text.starts_with(MARK)).count() > 5, "{kind}: {object:#}");
        let mut snapshot = Snapshot::default();
        read(object.to_string().as_bytes(), &mut snapshot).unwrap_or_else(|error| panic!("{kind}: {error}"));
        let written: Value = serde_json::from_str(&write(&snapshot).unwrap()).unwrap();
        assert_eq!(written["items"].as_array().map(Vec::len), Some(1), "{kind}");
        let mut found = Vec::new();
        texts(&written, &mut found);
        let paths = kept::paths(kind);
        for text in found.iter().filter_map(|text| text.split_once(MARK).map(|(_, path)| path)) {
            let is_kept = |path: &String| text == *path || text.starts_with(&format!("{path}."));
            assert!(paths.iter().any(is_kept), "{kind}: {text} is kept, and no table says so");
            assert!(!text.ends_with(".message"), "{kind}: {text}");
            *seen.entry(kind).or_default() += 1;
        }
        // What is read back is written the same.
        let mut again = Snapshot::default();
        read(write(&snapshot).unwrap().as_bytes(), &mut again).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(write(&again).unwrap(), write(&snapshot).unwrap(), "{kind}");
    }
    assert_eq!(seen.len(), of_table.len(), "of each kind something stays: {seen:?}");
}

#[test]
fn annotations_are_those_that_matter() {
    let node = |annotations: Value| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n", "annotations": annotations } });
    let mut snapshot = Snapshot::default();
    let given = json!({ "karpenter.sh/anything": "x", "cutlist.dev/x": "x", "karpenter.sh/do-not-disrupt": "true" });
    read(node(given).to_string().as_bytes(), &mut snapshot).unwrap();
    let written: Value = serde_json::from_str(&write(&snapshot).unwrap()).unwrap();
    assert_eq!(written["items"][0]["metadata"]["annotations"], json!({ "karpenter.sh/do-not-disrupt": "true" }));
}
