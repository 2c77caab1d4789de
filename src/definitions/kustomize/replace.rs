//! Replacements: a value of one object is copied into others.

use serde_json::{Map, Value};

use super::Item;
use super::build::{Builder, not_there};
use super::layout::Target;
use super::select::Selector;
use super::weight::weight;
use crate::api::kustomization::folder;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, Place};
use crate::definitions::limits::BUILT_OBJECT_BYTES;
use crate::definitions::rules::kustomize as rules;

pub(super) fn apply(builder: &mut Builder<'_>, kustomization: usize, document: &Document, items: &mut [Item]) {
    let entries: Vec<(String, Option<String>)> = document
        .items("/replacements")
        .map(|(pointer, entry)| (pointer, entry.get("path").and_then(Value::as_str).map(str::to_owned)))
        .collect();
    for (pointer, path) in entries {
        let Some(path) = path else {
            let finding = replacement(builder, document, &pointer, items);
            builder.findings.extend(finding);
            continue;
        };
        let Target::File(file) = builder.layout.target(folder(builder.layout.path(kustomization)), &path) else {
            builder.findings.push(not_there(document, &format!("{pointer}/path"), &path));
            continue;
        };
        builder.used.insert(file);
        for of_file in builder.parsed.get(file).map_or(&[][..], |parsed| &parsed.documents) {
            let roots: Vec<String> = match &*of_file.value {
                Value::Array(_) => of_file.items("").map(|(pointer, _)| pointer).collect(),
                _ => vec![String::new()],
            };
            for root in roots {
                let finding = replacement(builder, of_file, &root, items);
                builder.findings.extend(finding);
            }
        }
    }
}

/// Carries out the one at `pointer`; what is wrong with it, if something is.
fn replacement(builder: &mut Builder<'_>, document: &Document, pointer: &str, items: &mut [Item]) -> Option<Finding> {
    let invalid =
        |at: String, message: String| Some(Finding::at(&rules::INVALID, document, &at, Place::Value, message));
    let value = match source(document, &format!("{pointer}/source"), items) {
        Ok(value) => value,
        Err((at, message)) => return invalid(at, message),
    };
    let targets: Vec<(String, Value)> =
        document.items(&format!("{pointer}/targets")).map(|(at, target)| (at, target.clone())).collect();
    for (at, target) in targets {
        let mut selectors = Vec::new();
        for field in ["select", "reject"] {
            let entries = match target.get(field) {
                Some(Value::Array(entries)) => entries.clone(),
                Some(entry) => vec![entry.clone()],
                None => Vec::new(),
            };
            let parsed: Result<Vec<Selector>, _> = entries.iter().map(Selector::of).collect();
            match parsed {
                Ok(parsed) => selectors.push(parsed),
                Err((member, message)) => return invalid(format!("{at}/{field}/{member}"), message),
            }
        }
        let fits = |item: &Item, of: usize| selectors.get(of).is_some_and(|it| it.iter().any(|it| it.fits(item)));
        let paths = target.get("fieldPaths").and_then(Value::as_array).cloned().unwrap_or_default();
        let paths: Vec<String> = if paths.is_empty() {
            vec!["metadata.name".to_owned()]
        } else {
            paths.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for item in items.iter_mut().filter(|item| fits(item, 0) && !fits(item, 1)) {
            let written = paths.iter().map(|path| pointers(&item.document.value, path, false).len().max(1));
            let bytes = weight(&item.document.value) + written.sum::<usize>() * weight(&value);
            if bytes > BUILT_OBJECT_BYTES || !builder.may_take(bytes) {
                return invalid(
                    at,
                    format!("the replacement makes an object larger than {} MiB", BUILT_OBJECT_BYTES >> 20),
                );
            }
            for (index, path) in paths.iter().enumerate() {
                if !write(item, path, &value, &target, document, &at) {
                    let object = item.document.name().unwrap_or_default();
                    return invalid(format!("{at}/fieldPaths/{index}"), format!("{object} has no `{path}`"));
                }
            }
        }
    }
    None
}

/// The value that is copied.
fn source(document: &Document, pointer: &str, items: &[Item]) -> Result<Value, (String, String)> {
    let Some(source) = document.value.pointer(pointer) else {
        return Err((pointer.to_owned(), "a replacement has a `source`".to_owned()));
    };
    // Names of a source are names, and no patterns.
    let exact = |field: &str, own: &[&str]| {
        let wanted = source.get(field).and_then(Value::as_str).unwrap_or_default();
        wanted.is_empty() || own.contains(&wanted)
    };
    let is_meant = |item: &&Item| {
        let (group, version) = item.group_and_version();
        exact("group", &[group])
            && exact("version", &[version])
            && exact("kind", &[item.kind()])
            && exact("name", &item.names().collect::<Vec<_>>())
            && exact("namespace", &[item.text("/metadata/namespace")])
    };
    let mut meant = items.iter().filter(is_meant);
    let (Some(item), None) = (meant.next(), meant.next()) else {
        return Err((pointer.to_owned(), "the source of the replacement is not one object".to_owned()));
    };
    let path = source.get("fieldPath").and_then(Value::as_str).unwrap_or("metadata.name");
    let at = match pointers(&item.document.value, path, false).first() {
        Some(at) => at.clone(),
        None => return Err((format!("{pointer}/fieldPath"), format!("the source has no `{path}`"))),
    };
    let value = item.document.value.pointer(&at).cloned().unwrap_or_default();
    let (Some((delimiter, index)), Value::String(text)) = (options(source), &value) else { return Ok(value) };
    let part = text.split(delimiter).nth(index);
    part.map(|part| Value::String(part.to_owned()))
        .ok_or_else(|| (format!("{pointer}/options"), format!("`{text}` has no part {index}")))
}

/// Delimiter and which of the parts.
fn options(value: &Value) -> Option<(&str, usize)> {
    let delimiter = value.pointer("/options/delimiter")?.as_str().filter(|delimiter| !delimiter.is_empty())?;
    let index = value.pointer("/options/index").and_then(Value::as_u64).unwrap_or_default();
    Some((delimiter, usize::try_from(index).ok()?))
}

fn write(item: &mut Item, path: &str, value: &Value, target: &Value, document: &Document, at: &str) -> bool {
    let create = target.pointer("/options/create") == Some(&Value::Bool(true));
    if create {
        make(&mut item.document.value, path);
    }
    let pointers = pointers(&item.document.value, path, create);
    for pointer in &pointers {
        let Some(old) = item.document.value.pointer_mut(pointer) else { continue };
        *old = match (options(target), &*old) {
            (Some((delimiter, index)), Value::String(text)) => {
                Value::String(part_replaced(text, delimiter, index, value))
            }
            _ => value.clone(),
        };
        item.written(pointer, document.origin(at));
    }
    !pointers.is_empty()
}

fn part_replaced(text: &str, delimiter: &str, index: usize, value: &Value) -> String {
    let new = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut parts: Vec<String> = text.split(delimiter).map(str::to_owned).collect();
    match parts.get_mut(index) {
        Some(part) => *part = new,
        None => parts.push(new),
    }
    parts.join(delimiter)
}

/// Makes the mappings on the way to a field that is not there.
fn make(value: &mut Value, path: &str) {
    let mut here = value;
    for step in steps(path) {
        let Some(map) = here.as_object_mut().filter(|_| !step.starts_with('[') && step != "*") else { return };
        here = map.entry(step).or_insert_with(|| Value::Object(Map::new()));
    }
}

/// The steps of a path: `spec.list.[key=a.b].0.x\.y`.
fn steps(path: &str) -> Vec<String> {
    let mut steps = vec![String::new()];
    let mut inside = false;
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        let next = match character {
            '\\' => characters.next(),
            '.' if !inside => {
                steps.push(String::new());
                continue;
            }
            character => {
                inside = character == '[' || (inside && character != ']');
                Some(character)
            }
        };
        if let (Some(next), Some(step)) = (next, steps.last_mut()) {
            step.push(next);
        }
    }
    steps.retain(|step| !step.is_empty());
    steps
}

/// Where the path leads in the object. With `create` the last step may be one that is not there yet.
fn pointers(value: &Value, path: &str, create: bool) -> Vec<String> {
    let mut found = vec![String::new()];
    for step in steps(path) {
        let mut next = Vec::new();
        for pointer in found {
            let Some(here) = value.pointer(&pointer) else { continue };
            let entries = || here.as_array().into_iter().flatten().enumerate();
            if step == "*" {
                next.extend(entries().map(|(index, _)| format!("{pointer}/{index}")));
            } else if let Some((key, wanted)) =
                step.strip_prefix('[').and_then(|it| it.strip_suffix(']')).and_then(|it| it.split_once('='))
            {
                let is_meant = |entry: &Value| entry.get(key).and_then(Value::as_str) == Some(wanted);
                let meant = entries().filter(|(_, entry)| is_meant(entry));
                next.extend(meant.map(|(index, _)| format!("{pointer}/{index}")));
            } else {
                let at = spans::join(&pointer, &step);
                if value.pointer(&at).is_some() || (create && here.is_object()) {
                    next.push(at);
                }
            }
        }
        found = next;
    }
    found
}
