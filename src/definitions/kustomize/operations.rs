//! A JSON 6902 patch, operation by operation, so that what it leaves alone keeps its place.

use json_patch::PatchOperation;
use serde::Deserialize;
use serde_json::Value;

use super::Item;
use super::weight::weight;
use crate::definitions::document::{Document, Origin, spans};
use crate::definitions::limits::BUILT_OBJECT_BYTES;

/// Applies the operations, a list as kubectl reads it. On an error the object is as it was; gives which operation failed, and why.
pub(super) fn apply(item: &mut Item, patch: &Document) -> Result<(), (String, String)> {
    let mut changed = item.clone();
    let mut bytes = weight(&changed.document.value);
    for (pointer, operation) in patch.items("") {
        let read = as_kustomize(operation, &changed.document.value);
        let parsed = PatchOperation::deserialize(&read);
        let parsed =
            parsed.map_err(|error| (pointer.clone(), format!("this is no operation of JSON 6902: {error}")))?;
        let path = parsed.path().to_string();
        if path.is_empty() {
            return Err((pointer, "the path of an operation begins with `/`".to_owned()));
        }
        bytes += added_bytes(&changed.document.value, &parsed);
        if bytes > BUILT_OBJECT_BYTES {
            let message = format!("the patch makes the object larger than {} MiB", BUILT_OBJECT_BYTES >> 20);
            return Err((pointer, message));
        }
        let entries = entries_at(&changed.document.value, &path);
        let before = changed.identity();
        let moved = match &parsed {
            PatchOperation::Move(operation) => {
                let from = operation.from.to_string();
                let entries = entries_at(&changed.document.value, &from);
                Some((from, entries))
            }
            _ => None,
        };
        let result = json_patch::patch(&mut changed.document.value, std::slice::from_ref(&parsed));
        if result.is_err() {
            return Err((pointer, failure(&parsed, &path, item)));
        }
        if let Some((from, entries)) = moved {
            shift(&mut changed, entries, &from, Shift::Removed);
        }
        match &parsed {
            PatchOperation::Test(_) => {}
            PatchOperation::Remove(_) => shift(&mut changed, entries, &path, Shift::Removed),
            PatchOperation::Replace(_) => changed.take_from(&path, (patch, &value_of(&pointer, operation)), |_| true),
            PatchOperation::Add(_) | PatchOperation::Move(_) | PatchOperation::Copy(_) => {
                let at = shift_for_added(&mut changed, entries, &path);
                changed.take_from(&at, (patch, &value_of(&pointer, operation)), |_| true);
            }
        }
        changed.remember(before);
    }
    *item = changed;
    Ok(())
}

/// The operation in the words of JSON 6902. What kustomize carries it out with takes more than that: paths and indices as they come, no value
/// for null, and a member that is not there, which is written, or copied and compared as null.
/// Source: github.com/evanphx/json-patch, version 4.
fn as_kustomize(operation: &Value, document: &Value) -> Value {
    let Value::Object(mut read) = operation.clone() else { return operation.clone() };
    let name = operation.get("op").and_then(Value::as_str).unwrap_or_default();
    let is_added = matches!(name, "add" | "copy" | "move");
    for (field, is_added) in [("path", is_added), ("from", false)] {
        if let Some(path) = operation.get(field).and_then(Value::as_str) {
            read.insert(field.to_owned(), path_in(document, path, is_added).into());
        }
    }
    if matches!(name, "add" | "replace" | "test") {
        read.entry("value").or_insert(Value::Null);
    }
    let absent = |field: &str| {
        let path = read.get(field).and_then(Value::as_str).unwrap_or_default();
        let is_of_object = document.pointer(spans::parent(path)).is_some_and(Value::is_object);
        is_of_object && document.pointer(path).is_none()
    };
    match name {
        "replace" if absent("path") => {
            read.insert("op".to_owned(), "add".into());
        }
        // Both come to the same.
        "copy" if absent("from") => {
            read.insert("op".to_owned(), "add".into());
            read.insert("value".to_owned(), Value::Null);
        }
        // The object around it is there: that of a whole object is true.
        "test" if absent("path") && read.get("value") == Some(&Value::Null) => {
            let around = spans::parent(read.get("path").and_then(Value::as_str).unwrap_or_default()).to_owned();
            read.insert("value".to_owned(), document.pointer(&around).cloned().unwrap_or_default());
            read.insert("path".to_owned(), around.into());
        }
        _ => {}
    }
    Value::Object(read)
}

/// A path from its first slash on, with indices of lists as JSON 6902 has them: -1 is the last entry, or, of what is added, behind it.
fn path_in(document: &Value, path: &str, is_added: bool) -> String {
    let Some((_, path)) = path.split_once('/') else { return path.to_owned() };
    let parts: Vec<&str> = path.split('/').collect();
    let mut found = String::new();
    let mut around = Some(document);
    for (number, part) in parts.iter().enumerate() {
        let part = match around {
            Some(Value::Array(entries)) => {
                let is_new = is_added && number + 1 == parts.len();
                index_in(entries.len() + usize::from(is_new), part).unwrap_or_else(|| (*part).to_owned())
            }
            _ => (*part).to_owned(),
        };
        found.push('/');
        found.push_str(&part);
        around = document.pointer(&found);
    }
    found
}

fn index_in(length: usize, part: &str) -> Option<String> {
    let index: i64 = part.parse().ok()?;
    let from_start = if index < 0 { index + i64::try_from(length).ok()? } else { index };
    (from_start >= 0).then(|| from_start.to_string())
}

/// The value of an operation; the operation itself where it has none.
fn value_of(pointer: &str, operation: &Value) -> String {
    if operation.get("value").is_some() { format!("{pointer}/value") } else { pointer.to_owned() }
}

fn failure(operation: &PatchOperation, path: &str, item: &Item) -> String {
    let object = item.document.name().unwrap_or_default();
    match operation {
        PatchOperation::Test(_) => format!("the test of `{path}` fails on {object}"),
        PatchOperation::Add(_) => format!("{object} has nothing to which `{path}` can be added"),
        _ => format!("{object} has no `{path}`"),
    }
}

enum Shift {
    Added,
    Removed,
}

/// Where an added value is: `-` is the end of a list.
fn shift_for_added(item: &mut Item, entries: Option<usize>, path: &str) -> String {
    let at = match entries {
        Some(entries) if spans::last(path) == "-" => format!("{}/{entries}", spans::parent(path)),
        _ => path.to_owned(),
    };
    shift(item, entries, &at, Shift::Added);
    at
}

/// Of the list that holds what is at the path; `None` where that is in no list.
fn entries_at(value: &Value, path: &str) -> Option<usize> {
    value.pointer(spans::parent(path)).and_then(Value::as_array).map(Vec::len)
}

/// How much larger an operation makes the object, at most.
fn added_bytes(value: &Value, operation: &PatchOperation) -> usize {
    match operation {
        PatchOperation::Copy(operation) => value.pointer(operation.from.as_str()).map_or(0, weight),
        PatchOperation::Add(operation) => weight(&operation.value),
        PatchOperation::Replace(operation) => weight(&operation.value),
        PatchOperation::Remove(_) | PatchOperation::Move(_) | PatchOperation::Test(_) => 0,
    }
}

/// Entries behind one that was added to a list, or taken off it, keep the places where they were written. `entries`: how many there were
/// before.
fn shift(item: &mut Item, entries: Option<usize>, path: &str, how: Shift) {
    let (list, index) = (spans::parent(path), spans::last(path));
    let (Some(entries), Ok(index)) = (entries, index.parse::<usize>()) else { return };
    let mut moved: Vec<(String, Origin)> = Vec::new();
    let mut ambiguous = Vec::new();
    for old in index..entries {
        let new = match how {
            Shift::Added => Some(old + 1),
            Shift::Removed => (old > index).then(|| old - 1),
        };
        let (from, to) = (format!("{list}/{old}"), new.map(|new| format!("{list}/{new}")));
        if let Some(to) = &to {
            moved.push((to.clone(), item.document.origin(&from)));
        }
        let rest = |at: &str| at.strip_prefix(&from).filter(|r| r.is_empty() || r.starts_with('/')).map(str::to_owned);
        for (at, origin) in &item.document.parts {
            if let (Some(rest), Some(to)) = (rest(at).filter(|rest| !rest.is_empty()), &to) {
                moved.push((format!("{to}{rest}"), origin.clone()));
            }
        }
        for (at, what) in &item.document.ambiguous {
            if let (Some(rest), Some(to)) = (rest(at), &to) {
                ambiguous.push((format!("{to}{rest}"), *what));
            }
        }
    }
    let behind = |at: &str| {
        let rest = at.strip_prefix(list).and_then(|rest| rest.strip_prefix('/'));
        let first = rest.and_then(|rest| rest.split('/').next());
        first.and_then(|first| first.parse::<usize>().ok()).is_some_and(|it| it >= index)
    };
    item.document.parts.retain(|(at, _)| !behind(at));
    item.document.parts.extend(moved);
    item.document.ambiguous.retain(|(at, _)| !behind(at));
    item.document.ambiguous.extend(ambiguous);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::definitions::document;

    fn document(value: &Value) -> Document {
        document::parse(0, &Arc::from(value.to_string())).documents.remove(0)
    }

    /// As kustomize 5.5 carries it out; `None` where it builds nothing.
    fn applied(operations: &Value) -> Option<Value> {
        let object = json!({ "kind": "A", "metadata": { "name": "a" }, "spec": { "limits": { "cpu": "1" }, "none": null, "list": ["x", "y"] } });
        let mut item = Item::new(document(&object));
        apply(&mut item, &document(operations)).ok()?;
        let spec = item.document.value.get("spec").cloned().unwrap_or_default();
        let changed = |(name, value): &(String, Value)| object["spec"].get(name) != Some(value);
        let root = item.document.value.get("weight").map(|it| ("/weight".to_owned(), it.clone()));
        let spec = spec.as_object().unwrap().clone();
        let gone = object["spec"].as_object().unwrap().keys().filter(|it| !spec.contains_key(*it));
        let gone: Vec<_> = gone.map(|name| (format!("-{name}"), Value::Null)).collect();
        Some(spec.into_iter().filter(changed).chain(gone).chain(root).collect())
    }

    #[test]
    fn operations_are_carried_out_as_kustomize_does() {
        for (operation, expected) in [
            (json!({ "op": "replace", "path": "/spec/weight", "value": 3 }), Some(json!({ "weight": 3 }))),
            (json!({ "op": "replace", "path": "/spec/none", "value": 3 }), Some(json!({ "none": 3 }))),
            (json!({ "op": "replace", "path": "/spec/x/y", "value": 3 }), None),
            (json!({ "op": "replace", "path": "/spec/limits/cpu/x", "value": 3 }), None),
            (json!({ "op": "replace", "path": "/spec/list/2", "value": "z" }), None),
            (json!({ "op": "replace", "path": "/spec/list/-", "value": "z" }), None),
            (json!({ "op": "replace", "path": "/spec/list/-1", "value": "z" }), Some(json!({ "list": ["x", "z"] }))),
            (json!({ "op": "replace", "path": "/spec/list/-3", "value": "z" }), None),
            (json!({ "op": "replace", "path": "/spec/limits" }), Some(json!({ "limits": null }))),
            (json!({ "op": "remove", "path": "/spec/weight" }), None),
            (json!({ "op": "remove", "path": "/spec/list/-1" }), Some(json!({ "list": ["x"] }))),
            (json!({ "op": "add", "path": "/spec/list/-1", "value": "z" }), Some(json!({ "list": ["x", "y", "z"] }))),
            (json!({ "op": "add", "path": "/spec/list/00", "value": "z" }), Some(json!({ "list": ["z", "x", "y"] }))),
            (json!({ "op": "add", "path": "/spec/list/3", "value": "z" }), None),
            (json!({ "op": "add", "path": "/spec/x/y", "value": 3 }), None),
            (json!({ "op": "add", "path": "/spec/weight" }), Some(json!({ "weight": null }))),
            (json!({ "op": "add", "path": "spec/weight", "value": 3 }), Some(json!({ "/weight": 3 }))),
            (json!({ "op": "add", "path": "", "value": {} }), None),
            (json!({ "op": "add", "path": "weight", "value": {} }), None),
            (json!({ "op": "test", "path": "/spec/weight", "value": null }), Some(json!({}))),
            (json!({ "op": "test", "path": "/spec/weight", "value": 1 }), None),
            (json!({ "op": "test", "path": "/spec/limits/cpu", "value": "1" }), Some(json!({}))),
            (json!({ "op": "copy", "from": "/spec/weight", "path": "/spec/other" }), Some(json!({ "other": null }))),
            (json!({ "op": "move", "from": "/spec/weight", "path": "/spec/other" }), None),
            (
                json!({ "op": "move", "from": "/spec/list", "path": "/spec/other" }),
                Some(json!({ "other": ["x", "y"], "-list": null })),
            ),
            (json!({ "op": "merge", "path": "/spec/weight", "value": 3 }), None),
        ] {
            assert_eq!(applied(&json!([operation])), expected, "{operation}");
        }
        let twice = json!([{ "op": "remove", "path": "/spec/limits" }, { "op": "replace", "path": "/spec/limits", "value": {} }]);
        assert_eq!(applied(&twice), Some(json!({ "limits": {} })));
    }
}
