//! The value of a document, which is copied only when one of those who have it changes it: what is read once is judged, kept and held
//! against others many times.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde_json::Value;

#[derive(Clone, Debug, Default)]
pub struct SharedValue(Arc<Value>);

impl SharedValue {
    /// As a value of its own.
    pub fn into_value(self) -> Value {
        Arc::unwrap_or_clone(self.0)
    }
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
