//! One object as its format gives it, and its way into its type.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::read_error::without_position;

/// One object as its format gives it.
pub(super) enum Object<'a> {
    Json(&'a str),
    Value(Value),
}

/// Where an object stands, for messages.
pub(super) enum ObjectPlace<'a> {
    Byte { text: &'a str, byte: usize },
    Document { number: usize, item: Option<usize> },
}

impl fmt::Display for ObjectPlace<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte { text, byte } => {
                let before = text.get(..*byte).unwrap_or_default();
                write!(formatter, "line {}", before.bytes().filter(|byte| *byte == b'\n').count() + 1)
            }
            Self::Document { number, item: None } => write!(formatter, "document {number}"),
            Self::Document { number, item: Some(item) } => write!(formatter, "document {number}, items[{item}]"),
        }
    }
}

/// Reads an object into its type; the error names the field.
pub(super) fn parse<T: DeserializeOwned>(object: &Object<'_>) -> Result<T, String> {
    let parsed = match object {
        Object::Json(text) => serde_json::from_str(text),
        Object::Value(value) => T::deserialize(value),
    };
    // Both cost time, so they are done only when something is wrong.
    let parsed = parsed.or_else(|error| with_empty_items(object).ok_or(error));
    parsed.map_err(|error| {
        let traced = match object {
            Object::Json(text) => {
                serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(text)).err()
            }
            Object::Value(value) => serde_path_to_error::deserialize::<_, T>(value).err(),
        };
        match traced {
            Some(traced) => format!("{}: {}", shorten(&traced.path().to_string()), without_position(traced.inner())),
            None => without_position(&error),
        }
    })
}

/// The object with what Kubernetes reads where an item of a list is null: an object, or a text, without content.
fn with_empty_items<T: DeserializeOwned>(object: &Object<'_>) -> Option<T> {
    let value = match object {
        Object::Json(text) => serde_json::from_str(text).ok()?,
        Object::Value(value) => value.clone(),
    };
    [Value::Object(serde_json::Map::new()), Value::String(String::new())].into_iter().find_map(|empty| {
        let mut value = value.clone();
        fill_items(&mut value, &empty).then(|| T::deserialize(&value).ok()).flatten()
    })
}

/// Whether there were any. No deeper than what was read, which has a limit.
fn fill_items(value: &mut Value, empty: &Value) -> bool {
    let mut any = false;
    match value {
        Value::Array(items) => {
            for item in items {
                if item.is_null() {
                    item.clone_from(empty);
                    any = true;
                } else {
                    any |= fill_items(item, empty);
                }
            }
        }
        Value::Object(members) => {
            for member in members.values_mut() {
                any |= fill_items(member, empty);
            }
        }
        _ => {}
    }
    any
}

/// A path that a person can look up is short; one that is not comes from nesting without end.
fn shorten(path: &str) -> String {
    const CHARACTERS_MAX: usize = 120;
    match path.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", path.get(..end).unwrap_or_default()),
        None => path.to_owned(),
    }
}
