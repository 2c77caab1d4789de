//! Patches that put a taint on a node and take it off again. They carry all taints of the node, since a merge patch replaces lists.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::snapshot::nodes::taints;

/// `None` when the node has a taint of that key.
pub fn with(node: &Node, key: &str, effect: &str) -> Option<Value> {
    if has(node, key) {
        return None;
    }
    let mut all: Vec<Value> = taints(node).iter().map(|taint| json!(taint)).collect();
    all.push(json!({ "key": key, "effect": effect }));
    Some(json!({ "spec": { "taints": all } }))
}

/// `None` when the node has no taint of that key.
pub fn without(node: &Node, key: &str) -> Option<Value> {
    if !has(node, key) {
        return None;
    }
    let kept: Vec<Value> = taints(node).iter().filter(|taint| taint.key != key).map(|taint| json!(taint)).collect();
    Some(json!({ "spec": { "taints": kept } }))
}

pub fn has(node: &Node, key: &str) -> bool {
    taints(node).iter().any(|taint| taint.key == key)
}
