//! A strategic merge patch, as `kustomize build` applies it: mappings are merged, scalars replaced, a null removes, and
//! `$patch` says otherwise. Lists are replaced, but for those of Kubernetes' own kinds that have merge keys.

use serde_json::{Map, Value};

use super::{Item, ambiguous_below};
use crate::definitions::document::{Disagreement, Document, Origin, spans};

const DIRECTIVE: &str = "$patch";

/// Merges the patch into the object. Gives `false` for an object that the patch removes.
pub(super) fn apply(item: &mut Item, patch: &Document) -> bool {
    if directive(&patch.value) == Some("delete") {
        return false;
    }
    let mut value = std::mem::take(&mut item.document.value);
    let identity: Vec<Option<Value>> = IDENTITY.iter().map(|pointer| value.pointer(pointer).cloned()).collect();
    let (parts, ambiguous) = (item.document.parts.clone(), item.document.ambiguous.clone());
    let merges_lists = has_pods(&patch.value, &value);
    Merge { item, patch, merges_lists }.value(&mut value, &patch.value, "", "");
    item.document.value = value;
    // What the object is called is not the patch's to say.
    for (pointer, before) in IDENTITY.iter().zip(identity) {
        restore(&mut item.document.value, pointer, before);
        item.document.parts.retain(|(at, _)| at != pointer);
        item.document.parts.extend(parts.iter().filter(|(at, _)| at == pointer).cloned());
        item.document.ambiguous.retain(|(at, _)| at != pointer);
        item.document.ambiguous.extend(ambiguous.iter().filter(|(at, _)| at == pointer).cloned());
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

/// Kubernetes' own kinds with the template of a pod in them, by group. Of other kinds kustomize knows no merge keys.
const KINDS_WITH_PODS: [(&str, &str); 9] = [
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
];

/// Whether lists of a pod are merged: by what the patch says that it is, or else the object.
fn has_pods(patch: &Value, object: &Value) -> bool {
    let text = |field: &str| patch.get(field).or_else(|| object.get(field)).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    KINDS_WITH_PODS.contains(&(group, text("kind")))
}

fn directive(value: &Value) -> Option<&str> {
    value.get(DIRECTIVE).and_then(Value::as_str)
}

/// Lists of a pod whose entries are merged, and by which of their fields. Source: the patch strategies of PodSpec and
/// Container in k8s.io/api/core/v1, and the keys of list maps in its OpenAPI schema.
const MERGE_KEYS: [(&str, &[&str]); 12] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("volumes", &["name"]),
    ("imagePullSecrets", &["name"]),
    ("env", &["name"]),
    ("ports", &["containerPort", "protocol"]),
    ("volumeMounts", &["mountPath"]),
    ("volumeDevices", &["devicePath"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("resourceClaims", &["name"]),
];

fn merge_keys(list: &str, merges_lists: bool) -> Option<&'static [&'static str]> {
    MERGE_KEYS.iter().find(|(name, _)| merges_lists && *name == list).map(|(_, keys)| *keys)
}

/// Whether both are the same entry of a list.
fn is_same(one: &Value, other: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|key| one.get(key) == other.get(key))
}

/// Whether they are told apart by nothing but a key that one of them lacks: kustomize passes over such an entry of a patch.
fn is_half_the_same(one: &Value, other: &Value, keys: &[&str]) -> bool {
    keys.iter().all(|key| match (one.get(key), other.get(key)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    })
}

/// An entry of a merged list: which one of the list before, and of the patch.
struct Entry {
    value: Value,
    old: Option<usize>,
    patch: Option<usize>,
}

struct Merge<'m> {
    /// Without its value, which is being changed.
    item: &'m mut Item,
    patch: &'m Document,
    merges_lists: bool,
}

impl Merge<'_> {
    /// `pointer` is that of the value in the object, `at` that of the patch in its document.
    fn value(&mut self, value: &mut Value, patch: &Value, pointer: &str, at: &str) {
        let (Value::Object(map), Value::Object(members)) = (&mut *value, patch) else {
            return self.replace(value, patch, pointer, at);
        };
        if directive(patch) == Some("replace") {
            return self.replace(value, patch, pointer, at);
        }
        for (key, member) in members.iter().filter(|(key, _)| !is_directive(key)) {
            let (pointer, at) = (spans::join(pointer, key), spans::join(at, key));
            if member.is_null() || directive(member) == Some("delete") {
                map.shift_remove(key);
            } else if let Some(existing) = map.get_mut(key) {
                match (existing, member, merge_keys(key, self.merges_lists)) {
                    (Value::Array(entries), Value::Array(patches), Some(keys)) => {
                        self.list(entries, patches, keys, (&pointer, &at));
                    }
                    (existing, member, Some(_)) => {
                        *existing = cleaned_list(member, key, self.merges_lists);
                        self.item.take_from(&pointer, (self.patch, &at), is_open);
                    }
                    (existing, member, None) => self.value(existing, member, &pointer, &at),
                }
            } else {
                map.insert(key.clone(), cleaned_list(member, key, self.merges_lists));
                self.item.take_from(&pointer, (self.patch, &at), is_open);
            }
        }
    }

    fn replace(&mut self, value: &mut Value, patch: &Value, pointer: &str, at: &str) {
        *value = cleaned(patch, self.merges_lists);
        self.item.take_from(pointer, (self.patch, at), is_open);
    }

    /// Those of the patch come first, in its order.
    fn list(&mut self, entries: &mut Vec<Value>, patches: &[Value], keys: &[&str], (pointer, at): (&str, &str)) {
        let is_told_apart = |patch: &Value| keys.iter().any(|key| patch.get(key).is_some());
        let is_replaced = patches.iter().any(|patch| directive(patch) == Some("replace") && !is_told_apart(patch));
        let old = std::mem::take(entries).into_iter().enumerate().filter(|_| !is_replaced);
        let mut rest: Vec<Entry> = old.map(|(index, value)| Entry { value, old: Some(index), patch: None }).collect();
        let mut first = Vec::new();
        for (index, patch) in patches.iter().enumerate().filter(|(_, patch)| is_told_apart(patch)) {
            let before = rest.iter().position(|entry| is_same(&entry.value, patch, keys)).map(|at| rest.remove(at));
            match before {
                _ if directive(patch) == Some("delete") => {}
                Some(entry) => first.push(Entry { patch: Some(index), ..entry }),
                None if rest.iter().any(|entry| is_half_the_same(&entry.value, patch, keys)) => {}
                None => {
                    first.push(Entry { value: cleaned(patch, self.merges_lists), old: None, patch: Some(index) });
                }
            }
        }
        first.append(&mut rest);
        self.place(&first, (pointer, at));
        for (index, mut entry) in first.into_iter().enumerate() {
            if let (Some(of_patch), Some(_)) = (entry.patch, entry.old)
                && let Some(patch) = patches.get(of_patch)
            {
                self.value(&mut entry.value, patch, &format!("{pointer}/{index}"), &format!("{at}/{of_patch}"));
            }
            entries.push(entry.value);
        }
    }

    /// Each entry keeps the place where it was written, wherever it is in the list now.
    fn place(&mut self, entries: &[Entry], (pointer, at): (&str, &str)) {
        let document = &mut self.item.document;
        let mut parts: Vec<(String, Origin)> = Vec::new();
        let mut ambiguous = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let now = format!("{pointer}/{index}");
            match (entry.old, entry.patch) {
                (Some(old), _) => {
                    let before = format!("{pointer}/{old}");
                    parts.push((now.clone(), document.origin(&before)));
                    let inner =
                        document.parts.iter().filter_map(|(it, origin)| Some((spans::below(&before, it)?, origin)));
                    let inner = inner.filter(|(rest, _)| !rest.is_empty());
                    parts.extend(inner.map(|(rest, origin)| (format!("{now}{rest}"), origin.clone())));
                    ambiguous.extend(ambiguous_below(&document.ambiguous, &before, &now));
                }
                (None, Some(of_patch)) => {
                    let from = format!("{at}/{of_patch}");
                    parts.push((now.clone(), self.patch.origin(&from)));
                    let of_patch = ambiguous_below(&self.patch.ambiguous, &from, &now);
                    ambiguous.extend(of_patch.filter(|(_, what)| is_open(*what)));
                }
                (None, None) => {}
            }
        }
        let is_entry = |it: &str| spans::below(pointer, it).is_some_and(|rest| !rest.is_empty());
        document.parts.retain(|(it, _)| !is_entry(it));
        document.parts.append(&mut parts);
        document.ambiguous.retain(|(it, _)| !is_entry(it));
        document.ambiguous.append(&mut ambiguous);
    }
}

/// Whether others may read differently what is merged: kustomize itself takes `yes` and `off` for text here, and writes it so.
fn is_open(what: Disagreement) -> bool {
    !matches!(what, Disagreement::Boolean(_))
}

fn is_directive(key: &str) -> bool {
    key == DIRECTIVE || key.starts_with("$setElementOrder/") || key.starts_with("$deleteFromPrimitiveList/")
}

/// The patch as a whole object: without directives, and without what it removes.
pub(super) fn without_directives(patch: &Value) -> Value {
    cleaned(patch, has_pods(patch, patch))
}

/// What a patch writes where nothing was: without directives, and without what it removes.
fn cleaned(patch: &Value, merges_lists: bool) -> Value {
    match patch {
        Value::Object(map) => {
            let keep = |(key, value): &(&String, &Value)| {
                !is_directive(key) && !value.is_null() && directive(value) != Some("delete")
            };
            let members = map.iter().filter(keep);
            let members = members.map(|(key, value)| (key.clone(), cleaned_list(value, key, merges_lists)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        // What is in a list that is not merged stays as it is written: there `$patch` is a field like any other.
        other => other.clone(),
    }
}

/// The same of a member, which may be a list that is merged.
fn cleaned_list(member: &Value, key: &str, merges_lists: bool) -> Value {
    match (member, merge_keys(key, merges_lists)) {
        (Value::Array(entries), Some(keys)) => {
            let is_written = |entry: &&Value| {
                directive(entry) != Some("delete")
                    && (directive(entry).is_none() || keys.iter().any(|key| entry.get(key).is_some()))
            };
            entries.iter().filter(is_written).map(|entry| cleaned(entry, merges_lists)).collect()
        }
        _ => cleaned(member, merges_lists),
    }
}
