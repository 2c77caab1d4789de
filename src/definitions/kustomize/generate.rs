//! ConfigMaps and Secrets that a kustomization generates: no definitions, and what replacements copy from.

use serde_json::{Map, Value, json};

use super::{Item, Known};
use crate::definitions::document::{Document, SharedValue};

/// Adds what the generators of a kustomization make. What a base made is changed, where they say so.
pub(super) fn apply(document: &Document, items: &mut Vec<Item>) {
    for (field, kind) in [("/configMapGenerator", "ConfigMap"), ("/secretGenerator", "Secret")] {
        for (pointer, generator) in document.items(field) {
            let Some(name) = generator.get("name").and_then(Value::as_str) else { continue };
            let (data, known) = data(generator, kind);
            let behavior = generator.get("behavior").and_then(Value::as_str).unwrap_or_default();
            let is_meant =
                |item: &&mut Item| item.generated.is_some() && item.kind() == kind && item.names().any(|it| it == name);
            match items.iter_mut().find(is_meant).filter(|_| matches!(behavior, "merge" | "replace")) {
                Some(item) => change(item, data, known, behavior == "merge"),
                None => items.push(item(document, &pointer, kind, name, data, known)),
            }
        }
    }
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
    let before = item.generated.filter(|_| is_merged);
    item.generated = Some(if before == Some(Known::Part) { Known::Part } else { known });
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
