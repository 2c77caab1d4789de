//! A JSON 6902 patch, operation by operation, so that what it leaves alone keeps its place.

use json_patch::PatchOperation;
use serde::Deserialize;
use serde_json::Value;

use super::weight::weight;
use super::{Item, origin};
use crate::definitions::document::{Document, Origin, spans};
use crate::definitions::limits::BUILT_OBJECT_BYTES;

/// Applies the operations, a list. On an error the object is as it was; gives which operation failed, and why.
pub(super) fn apply(item: &mut Item, patch: &Document) -> Result<(), (String, String)> {
    let mut changed = item.clone();
    let mut bytes = weight(&changed.document.value);
    for (pointer, operation) in patch.items("") {
        let parsed = PatchOperation::deserialize(operation);
        let parsed =
            parsed.map_err(|error| (pointer.clone(), format!("this is no operation of JSON 6902: {error}")))?;
        let path = parsed.path().to_string();
        bytes += added_bytes(&changed.document.value, &parsed);
        if bytes > BUILT_OBJECT_BYTES {
            let message = format!("the patch makes the object larger than {} MiB", BUILT_OBJECT_BYTES >> 20);
            return Err((pointer, message));
        }
        let entries = entries_at(&changed.document.value, &path);
        let name = changed.name().to_owned();
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
            PatchOperation::Replace(_) => changed.written(&path, origin(patch, &value_of(&pointer, operation))),
            PatchOperation::Add(_) | PatchOperation::Move(_) | PatchOperation::Copy(_) => {
                let at = shift_for_added(&mut changed, entries, &path);
                changed.written(&at, origin(patch, &value_of(&pointer, operation)));
            }
        }
        if changed.name() != name && !changed.earlier_names.contains(&name) {
            changed.earlier_names.push(name);
        }
    }
    *item = changed;
    Ok(())
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
