//! What an object takes of memory, about: a patch of some bytes can double it, again and again.

use serde_json::Value;

/// Of a value in a list or mapping.
const VALUE_BYTES: usize = size_of::<Value>();
/// Of a member of a mapping, beside its value and its text.
const KEY_BYTES: usize = size_of::<String>() + size_of::<u64>();

/// In bytes. O(values).
pub(super) fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| KEY_BYTES + key.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE_BYTES + inside
}
