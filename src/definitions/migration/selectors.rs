//! Selectors of an AWSNodeTemplate, which were mappings of tags, to lists of terms.

use serde_json::{Map, Value, json};

use super::object_editor::ObjectEditor;
use crate::definitions::document::spans;

pub struct Selector {
    old: &'static str,
    new: &'static str,
    /// Keys that are no tags, and the fields that took their place.
    special: &'static [(&'static str, &'static str)],
}

const IDS: [(&str, &str); 2] = [("aws-ids", "id"), ("aws::ids", "id")];

pub const ALL: [&Selector; 3] = [
    &Selector { old: "subnetSelector", new: "subnetSelectorTerms", special: &IDS },
    &Selector { old: "securityGroupSelector", new: "securityGroupSelectorTerms", special: &IDS },
    &Selector {
        old: "amiSelector",
        new: "amiSelectorTerms",
        special: &[("aws-ids", "id"), ("aws::ids", "id"), ("aws::name", "name"), ("aws::owners", "owner")],
    },
];

/// More terms than v1 takes.
const TERMS_MAX: usize = 30;

pub fn migrate(object: &mut ObjectEditor<'_>, selector: &Selector) {
    let pointer = format!("/spec/{}", selector.old);
    let Some(value) = object.get(&pointer).cloned() else { return };
    let terms = match value.as_object().ok_or("it is no mapping of texts").and_then(|tags| terms(tags, selector)) {
        Ok(terms) => terms,
        Err(why) => {
            let message = format!("`{}` is left as it is: {why}", spans::field_path(&pointer));
            let hint = format!(
                "write the terms of `spec.{}`: those of one term are true together, those of the list by themselves",
                selector.new
            );
            return object.by_hand(&pointer, message, hint);
        }
    };
    // Where the tags stay as they are, so does what is written.
    if terms == json!([{ "tags": value }]) {
        let hint = format!("it is now `{}`", selector.new);
        object.edit(&pointer, &hint, |editor, pointer| editor.wrap(pointer, selector.new, "tags"));
    } else {
        object.replace(&pointer, selector.new, &terms);
    }
}

/// Each combination of the values between commas is a term.
fn terms(selector: &Map<String, Value>, of: &Selector) -> Result<Value, &'static str> {
    if selector.is_empty() {
        return Err("it selects nothing");
    }
    let mut terms: Vec<Map<String, Value>> = vec![Map::new()];
    for (key, value) in selector {
        let text = value.as_str().ok_or("it is no mapping of texts")?;
        let field = of.special.iter().find(|(name, _)| name == key).map(|(_, field)| *field);
        let values: Vec<&str> = text.split(',').map(str::trim).collect();
        let mut combined = Vec::new();
        for term in &terms {
            for value in &values {
                let mut term = term.clone();
                match field {
                    Some(field) => {
                        term.insert(field.to_owned(), json!(value));
                    }
                    None => {
                        let tags = term.entry("tags").or_insert_with(|| Value::Object(Map::new()));
                        tags.as_object_mut().ok_or("it is no mapping of texts")?.insert(key.clone(), json!(value));
                    }
                }
                combined.push(term);
            }
        }
        terms = combined;
        if terms.len() > TERMS_MAX {
            return Err("it stands for more than 30 terms, which v1 does not take");
        }
    }
    if terms.iter().any(|term| term.contains_key("id") && term.len() > 1) {
        return Err("it asks for ids and something else together, which a term of v1 does not");
    }
    Ok(Value::Array(terms.into_iter().map(Value::Object).collect()))
}
