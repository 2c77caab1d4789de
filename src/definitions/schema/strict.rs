//! A published schema made strict, and a document made as the API server would store it.

use serde_json::{Map, Value, json};

use crate::definitions::document::{SharedValue, spans};
use crate::definitions::kinds::Kind;

/// Refuses fields that the schema does not name, and adds what every object has.
pub fn strict(kind: Kind, mut schema: Value) -> Value {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(properties) = properties.filter(|_| kind.is_object()) {
        properties.insert("apiVersion".to_owned(), json!({ "type": "string" }));
        properties.insert("kind".to_owned(), json!({ "type": "string" }));
        properties.insert("metadata".to_owned(), object_meta());
    }
    close(&mut schema);
    schema
}

/// Source: `ObjectMeta` of k8s.io/apimachinery/pkg/apis/meta/v1.
fn object_meta() -> Value {
    let text = json!({ "type": "string" });
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let anything = json!({ "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "type": "object",
        "properties": {
            "name": text, "generateName": text, "namespace": text, "labels": map, "annotations": map,
            "finalizers": { "type": "array", "items": text },
            "ownerReferences": { "type": "array", "items": anything },
            "uid": text, "resourceVersion": text, "selfLink": text, "creationTimestamp": text,
            "deletionTimestamp": text, "generation": { "type": "integer" },
            "deletionGracePeriodSeconds": { "type": "integer" },
            "managedFields": { "type": "array", "items": anything },
        },
    })
}

fn close(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    let open = map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if map.contains_key("properties") && !map.contains_key("additionalProperties") && !open {
        map.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    // Nulls are taken out before validation, so that a schema need not speak of them.
    if map.remove("nullable").is_some() || map.get("type").is_some_and(Value::is_array) {
        without_null(map);
    }
    // Its own type, which JSON Schema has no word for; read by `findings`.
    if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        map.remove("anyOf");
        map.insert("type".to_owned(), json!(["integer", "string"]));
    }
    for keyword in ["properties", "patternProperties", "definitions"] {
        if let Some(members) = map.get_mut(keyword).and_then(Value::as_object_mut) {
            members.values_mut().for_each(close);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(keyword) {
            close(inner);
        }
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        if let Some(inner) = map.get_mut(keyword).and_then(Value::as_array_mut) {
            inner.iter_mut().for_each(close);
        }
    }
}

fn without_null(map: &mut Map<String, Value>) {
    if let Some(types) = map.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
    }
    if let Some([only]) = map.get("type").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.clone();
        map.insert("type".to_owned(), only);
    }
    if let Some(options) = map.get_mut("enum").and_then(Value::as_array_mut) {
        options.retain(|option| !option.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(branches) = map.get_mut(keyword).and_then(Value::as_array_mut) else { continue };
        branches.retain(|branch| {
            let only_null = branch.get("type") == Some(&json!("null")) || branch.get("enum") == Some(&json!([null]));
            !only_null
        });
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            map.remove(keyword);
            map.extend(only);
        }
    }
}

/// Takes out the status, which is not the author's, and members that are null, as the API server does; gives the
/// pointers of the latter.
pub fn prune(value: &mut SharedValue) -> Vec<String> {
    let mut pruned = Vec::new();
    if value.get("status").is_none() && !has_null(value) {
        return pruned;
    }
    if let Some(map) = value.as_object_mut() {
        map.shift_remove("status");
    }
    prune_nulls(value, "", &mut pruned);
    pruned
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(has_null),
        Value::Array(items) => items.iter().any(|item| !item.is_null() && has_null(item)),
        _ => false,
    }
}

fn prune_nulls(value: &mut Value, pointer: &str, pruned: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if map.values().any(Value::is_null) {
                pruned.extend(map.iter().filter(|(_, v)| v.is_null()).map(|(key, _)| spans::join(pointer, key)));
                map.retain(|_, value| !value.is_null());
            }
            for (key, value) in map.iter_mut().filter(|(_, v)| v.is_object() || v.is_array()) {
                prune_nulls(value, &spans::join(pointer, key), pruned);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune_nulls(item, &format!("{pointer}/{index}"), pruned);
            }
        }
        _ => {}
    }
}
