//! A strategic merge patch, as `kustomize build` applies it: mappings are merged, scalars replaced, a null removes, and
//! `$patch` says otherwise. Lists are replaced, but for those of Kubernetes' own kinds that have merge keys.

use serde_json::{Map, Value};

use super::{Item, origin};
use crate::definitions::document::{Document, spans};
use crate::definitions::kinds::Kind;

const DIRECTIVE: &str = "$patch";

/// Merges the patch into the object. Gives `false` for an object that the patch removes.
pub(super) fn apply(item: &mut Item, patch: &Document) -> bool {
    if directive(&patch.value) == Some("delete") {
        return false;
    }
    let mut value = std::mem::take(&mut item.document.value);
    let identity: Vec<Option<Value>> = IDENTITY.iter().map(|pointer| value.pointer(pointer).cloned()).collect();
    let parts = item.document.parts.clone();
    let mut written = Vec::new();
    let merges_lists =
        patch.str("/kind").or(value.get("kind").and_then(Value::as_str)) == Some(Kind::PodTemplate.name());
    merge(&mut value, &patch.value, "", merges_lists, &mut written);
    item.document.value = value;
    for pointer in written {
        item.written(&pointer, origin(patch, &pointer));
    }
    // What the object is called is not the patch's to say.
    for (pointer, before) in IDENTITY.iter().zip(identity) {
        restore(&mut item.document.value, pointer, before);
        item.document.parts.retain(|(at, _)| at != pointer);
        item.document.parts.extend(parts.iter().filter(|(at, _)| at == pointer).cloned());
    }
    true
}

const IDENTITY: [&str; 4] = ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"];

fn restore(value: &mut Value, pointer: &str, before: Option<Value>) {
    let Some(map) = value.pointer_mut(spans::parent(pointer)).and_then(Value::as_object_mut) else { return };
    match before {
        Some(before) => {
            map.insert(spans::last(pointer), before);
        }
        None => {
            map.shift_remove(&spans::last(pointer));
        }
    }
}

fn directive(value: &Value) -> Option<&str> {
    value.get(DIRECTIVE).and_then(Value::as_str)
}

fn merge(value: &mut Value, patch: &Value, pointer: &str, merges_lists: bool, written: &mut Vec<String>) {
    let (Value::Object(map), Value::Object(members)) = (&mut *value, patch) else {
        *value = cleaned(patch);
        written.push(pointer.to_owned());
        return;
    };
    if directive(patch) == Some("replace") {
        *value = cleaned(patch);
        written.push(pointer.to_owned());
        return;
    }
    for (key, member) in members.iter().filter(|(key, _)| !is_directive(key)) {
        let at = spans::join(pointer, key);
        if member.is_null() || directive(member) == Some("delete") {
            map.shift_remove(key);
        } else if let Some(existing) = map.get_mut(key) {
            let merge_key = MERGE_KEYS.iter().find(|(list, _)| merges_lists && list == key).map(|(_, key)| *key);
            match (existing, member, merge_key) {
                (Value::Array(entries), Value::Array(patches), Some(merge_key)) => {
                    merge_list(entries, patches, merge_key, &at);
                    written.push(at);
                }
                (existing, member, _) => merge(existing, member, &at, merges_lists, written),
            }
        } else {
            map.insert(key.clone(), cleaned(member));
            written.push(at);
        }
    }
}

/// Lists of a pod whose entries are merged, and by which of their fields. Source: the patch strategies of PodSpec and
/// Container in k8s.io/api/core/v1.
const MERGE_KEYS: [(&str, &str); 12] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("ephemeralContainers", "name"),
    ("volumes", "name"),
    ("imagePullSecrets", "name"),
    ("env", "name"),
    ("ports", "containerPort"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
    ("resourceClaims", "name"),
];

/// Those of the patch come first, in its order.
fn merge_list(entries: &mut Vec<Value>, patches: &[Value], merge_key: &str, pointer: &str) {
    if patches.iter().any(|patch| directive(patch) == Some("replace") && patch.get(merge_key).is_none()) {
        entries.clear();
    }
    let mut first = Vec::new();
    for patch in patches.iter().filter(|patch| patch.get(merge_key).is_some()) {
        let is_same = |entry: &Value| entry.get(merge_key) == patch.get(merge_key);
        let before = entries.iter().position(is_same).map(|index| entries.remove(index));
        match before {
            _ if directive(patch) == Some("delete") => {}
            Some(mut entry) => {
                merge(&mut entry, patch, pointer, true, &mut Vec::new());
                first.push(entry);
            }
            None => first.push(cleaned(patch)),
        }
    }
    entries.splice(0..0, first);
}

fn is_directive(key: &str) -> bool {
    key == DIRECTIVE || key.starts_with("$setElementOrder/") || key.starts_with("$deleteFromPrimitiveList/")
}

/// What a patch writes where nothing was: without directives, and without what it removes.
pub(super) fn cleaned(patch: &Value) -> Value {
    match patch {
        Value::Object(map) => {
            let keep = |(key, value): &(&String, &Value)| {
                !is_directive(key) && !value.is_null() && directive(value) != Some("delete")
            };
            let members = map.iter().filter(keep).map(|(key, value)| (key.clone(), cleaned(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        // What is in a list that is not merged stays as it is written: there `$patch` is a field like any other.
        other => other.clone(),
    }
}
