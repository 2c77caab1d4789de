//! Objects of one kind by name, shared with the observations that show them.

use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use crate::core::snapshot::Objects;

/// A map whose values can be handed out without copying them. Changing a value copies it if somebody still looks at it.
pub(super) struct Store<T>(BTreeMap<String, Arc<T>>);

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> FromIterator<(String, T)> for Store<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(values: I) -> Self {
        Self(values.into_iter().map(|(key, value)| (key, Arc::new(value))).collect())
    }
}

impl<T> Store<T> {
    pub(super) fn get(&self, key: &str) -> Option<&T> {
        self.0.get(key).map(Arc::as_ref)
    }

    pub(super) fn contains_key(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn insert(&mut self, key: String, value: T) {
        self.0.insert(key, Arc::new(value));
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<T>> {
        self.0.remove(key)
    }

    pub(super) fn keys(&self) -> btree_map::Keys<'_, String, Arc<T>> {
        self.0.keys()
    }

    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.values().map(Arc::as_ref)
    }

    pub(super) fn retain(&mut self, mut keeps: impl FnMut(&String, &T) -> bool) {
        self.0.retain(|key, value| keeps(key, value));
    }

    /// All values, in the order of their keys.
    pub(super) fn shared(&self) -> Objects<T> {
        Objects::sharing(self.0.values())
    }
}

impl<T: Clone> Store<T> {
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        self.0.get_mut(key).map(Arc::make_mut)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut().map(Arc::make_mut)
    }
}
