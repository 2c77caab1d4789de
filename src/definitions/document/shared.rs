//! The value of a document, which is copied only when one of those who have it changes it: what is read once is judged, kept and held
//! against others many times.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde_json::Value;

use super::spans;

#[derive(Clone, Debug, Default)]
pub struct SharedValue(Arc<Value>);

impl SharedValue {
    /// As a value of its own.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0)
    }

    /// As [`Value::pointer`], which makes two texts of each part of a pointer. Rules ask for some hundred pointers in each document.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        let mut value: &Value = self;
        let Some(parts) = pointer.strip_prefix('/') else { return pointer.is_empty().then_some(value) };
        for part in parts.split('/') {
            value = match value {
                Value::Object(members) if part.contains('~') => members.get(&spans::unescape(part))?,
                Value::Object(members) => members.get(part)?,
                Value::Array(items) => items.get(index(part)?)?,
                _ => return None,
            };
        }
        Some(value)
    }
}

/// An index as RFC 6901 has it: without a sign, and without zeros before it.
fn index(part: &str) -> Option<usize> {
    let is_index = !part.starts_with('+') && (part == "0" || !part.starts_with('0'));
    part.parse().ok().filter(|_| is_index)
}

impl From<Value> for SharedValue {
    fn from(value: Value) -> Self {
        Self(Arc::new(value))
    }
}

impl Deref for SharedValue {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

/// Copies what others have, too: ask before it whether there is anything to change.
impl DerefMut for SharedValue {
    fn deref_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.0)
    }
}

impl PartialEq for SharedValue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_where_serde_json_follows_them() {
        let value = serde_json::json!({ "a": [{ "b/c": 1, "~": 2, "": 3 }, 4], "01": 5, "": { "": 6 } });
        let shared = SharedValue::from(value.clone());
        for pointer in [
            "",
            "/",
            "//",
            "/a",
            "/a/0",
            "/a/0/b~1c",
            "/a/0/~0",
            "/a/0/",
            "/a/1",
            "/a/01",
            "/a/+1",
            "/a/2",
            "/01",
            "/b",
            "a",
        ] {
            assert_eq!(shared.pointer(pointer), value.pointer(pointer), "{pointer}");
        }
    }
}
