//! Labels and annotations that have another name now, wherever definitions use them.

use serde_json::Value;

use super::object_editor::ObjectEditor;
use crate::api::keys;
use crate::definitions::document::spans;

const NAMES: [(&str, &str); 3] = [
    ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool"),
    (keys::DO_NOT_EVICT, keys::DO_NOT_DISRUPT),
    (keys::DO_NOT_CONSOLIDATE, keys::DO_NOT_DISRUPT),
];
/// Mappings by label or annotation.
const MAPPINGS: [&str; 4] = ["annotations", "labels", "matchLabels", "nodeSelector"];
/// Fields that hold one.
const FIELDS: [&str; 2] = ["key", "topologyKey"];

pub fn is_old(text: &str) -> bool {
    NAMES.iter().any(|(old, _)| text.contains(old))
}

pub fn migrate(object: &mut ObjectEditor<'_>) {
    let mut found = Vec::new();
    if let Some(value) = object.get("") {
        find(value, "", &mut found);
    }
    for (pointer, new, is_key) in found {
        if !is_key {
            object.set(&pointer, new);
            continue;
        }
        let other = spans::join(spans::parent(&pointer), new);
        if object.has(&other) && object.get(&other) == object.get(&pointer) {
            object.remove(&pointer);
        } else {
            object.rename(&pointer, new);
        }
    }
}

/// Where an old name stands: the pointer, the new name, and whether it is a key.
fn find(value: &Value, pointer: &str, found: &mut Vec<(String, &'static str, bool)>) {
    let new = |old: &str| NAMES.iter().find(|(name, _)| *name == old).map(|(_, new)| *new);
    match value {
        Value::Object(members) => {
            let is_by_name = MAPPINGS.contains(&spans::last(pointer).as_str());
            for (key, value) in members {
                let at = spans::join(pointer, key);
                match value.as_str().filter(|_| FIELDS.contains(&key.as_str())).and_then(new) {
                    Some(new) => found.push((at, new, false)),
                    None if is_by_name => found.extend(new(key).map(|new| (at, new, true))),
                    None => find(value, &at, found),
                }
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| find(item, &format!("{pointer}/{index}"), found));
        }
        _ => {}
    }
}
