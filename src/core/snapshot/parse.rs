//! One object read into its type.
//!
//! What is wrong is looked for in the object's value, also where it was read from text. So each type is compiled for two readers, not for
//! four: the readers of Kubernetes' types are the largest part of this crate's compiled code.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::object::Object;
use super::problem::problem;

/// The error names the field.
pub(super) fn parse<T: DeserializeOwned>(object: &Object<'_>) -> Result<T, String> {
    match object {
        Object::Json(text) => from_json(text).map_err(|mistake| mistake.said),
        Object::Value(value) => from_value(value).or_else(|said| with_empty_items(value).ok_or(said)),
    }
}

/// Why a text is no object of its type.
pub(super) struct Mistake {
    /// What is wrong, and in which field.
    pub said: String,
    pub error: serde_json::Error,
    /// What was written, where it is JSON at all.
    pub value: Option<Value>,
}

/// O(bytes of the text); where something is wrong, some times that.
pub(super) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Box<Mistake>> {
    let error = match serde_json::from_str(text) {
        Ok(object) => return Ok(object),
        Err(error) => error,
    };
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Err(Box::new(Mistake { said: problem(&error), error, value: None }));
    };
    // A field that is written twice is one in the value, and no mistake there.
    let said = from_value::<T>(&value).err().unwrap_or_else(|| problem(&error));
    with_empty_items(&value).ok_or_else(|| Box::new(Mistake { said, error, value: Some(value) }))
}

fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let problem = problem(error.inner());
        match shorten(&error.path().to_string()).as_ref() {
            "." => problem,
            path => format!("{path}: {problem}"),
        }
    })
}

/// The object with what Kubernetes reads where an item of a list is null: an object, or a text, without content.
fn with_empty_items<T: DeserializeOwned>(value: &Value) -> Option<T> {
    [Value::Object(serde_json::Map::new()), Value::String(String::new())].into_iter().find_map(|empty| {
        let mut value = value.clone();
        fill_items(&mut value, &empty).then(|| from_value(&value).ok()).flatten()
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
fn shorten(path: &str) -> Cow<'_, str> {
    const CHARACTERS_MAX: usize = 120;
    match path.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", path.get(..end).unwrap_or_default()).into(),
        None => path.into(),
    }
}
