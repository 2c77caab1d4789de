//! ConfigMaps and Secrets that a kustomization generates: no definitions, and what replacements copy from.

use serde_json::{Map, Value, json};

use super::{Item, Known};
use crate::definitions::document::{Document, SharedValue};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::rules::kustomize as rules;

/// Adds what the generators of a kustomization make. What is there of the name is changed, where they say so. `is_in_part`: more may be there
/// than is known. Gives what keeps the kustomization from being built.
pub(super) fn apply(document: &Document, items: &mut Vec<Item>, is_in_part: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (field, kind) in [("/configMapGenerator", "ConfigMap"), ("/secretGenerator", "Secret")] {
        for (pointer, generator) in document.items(field) {
            let Some(name) = generator.get("name").and_then(Value::as_str) else { continue };
            let (data, known) = data(generator, kind);
            findings.extend(no_pair(document, &pointer));
            let behavior = generator.get("behavior").and_then(Value::as_str).unwrap_or_default();
            let is_changed = matches!(behavior, "merge" | "replace");
            let namespace = generator.get("namespace").and_then(Value::as_str).unwrap_or_default();
            let is_meant = |item: &&mut Item| item.kind() == kind && item.names().any(|it| it == name);
            let is_same = |item: &Item| item.name() == name && item.text("/metadata/namespace") == namespace;
            let mut problem = |message: String| {
                let at = format!("{pointer}/name");
                let finding = Finding::at(&rules::INVALID, document, &at, FindingPlace::Value, message);
                findings.push(finding.hint("the kustomization can not be built"));
            };
            match items.iter_mut().find(is_meant) {
                Some(item) if is_changed => {
                    change(item, data, known, behavior == "merge");
                    continue;
                }
                Some(item) if is_same(item) => {
                    problem(format!(
                        "there is a {kind} `{name}` already: `behavior` says whether to merge or to replace it"
                    ));
                }
                None if is_changed && !is_in_part => problem(format!("there is no {kind} `{name}` to {behavior}")),
                _ => {}
            }
            items.push(item(document, &pointer, kind, name, data, known));
        }
    }
    findings
}

/// Literals without a value.
fn no_pair(document: &Document, pointer: &str) -> Vec<Finding> {
    let list = format!("{pointer}/literals");
    let literals = document.items(&list);
    let literals = literals.filter(|(_, literal)| literal.as_str().is_some_and(|text| !text.contains('=')));
    let finding = |(at, _): (String, &Value)| {
        let finding = Finding::at(&rules::INVALID, document, &at, FindingPlace::Value, "a literal is `KEY=VALUE`");
        finding.hint("the kustomization can not be built")
    };
    literals.map(finding).collect()
}

fn item(document: &Document, pointer: &str, kind: &str, name: &str, data: Map<String, Value>, known: Known) -> Item {
    let value = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name }, "data": data });
    let made = Document {
        value: SharedValue::from(value),
        root: format!("{}{pointer}", document.root),
        ambiguous: Vec::new(),
        ..document.clone()
    };
    Item { generated: Some(known), ..Item::new(made) }
}

fn change(item: &mut Item, data: Map<String, Value>, known: Known, is_merged: bool) {
    let is_in_part = known == Known::Part || (is_merged && item.generated == Some(Known::Part));
    // An object of a file that is all known stays one.
    item.generated = if is_in_part { Some(Known::Part) } else { item.generated.map(|_| Known::All) };
    let Some(old) = item.document.value.get_mut("data").and_then(Value::as_object_mut) else { return };
    if !is_merged {
        old.clear();
    }
    old.extend(data);
}

/// The literals; files are not read, and what is in a Secret is encoded.
fn data(generator: &Value, kind: &str) -> (Map<String, Value>, Known) {
    let of_files = ["files", "envs", "env"].iter().any(|field| generator.get(*field).is_some_and(|it| !it.is_null()));
    if kind == "Secret" {
        return (Map::new(), Known::Part);
    }
    let literals = generator.get("literals").and_then(Value::as_array).into_iter().flatten();
    let pairs = literals.filter_map(|literal| literal.as_str()?.split_once('='));
    let data = pairs.map(|(key, value)| (key.to_owned(), Value::String(unquoted(value).to_owned()))).collect();
    (data, if of_files { Known::Part } else { Known::All })
}

/// Without the quotes around it, if it has the same on both sides.
fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}
