//! Parts of an object that several objects have in common.
//!
//! The replicas of a workload differ in name and place, and hardly in anything else: what they ask for, tolerate and are called by
//! is the same. Each part that is equal is kept once, which is most of what a large cluster's pods take. Instance types are copied for
//! each plan, of which most parts never change.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Reads as what it holds. Changing it copies it first, if something else has it too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shared<T>(Arc<T>);

impl<T: PartialEq> Shared<T> {
    /// Keeps what the other one has, if that is equal.
    pub fn share_with(&mut self, other: &Self) {
        if self == other {
            self.0 = Arc::clone(&other.0);
        }
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

/// The items, copied if something else has them too.
impl<T: Clone + IntoIterator> IntoIterator for Shared<T> {
    type Item = T::Item;
    type IntoIter = T::IntoIter;

    fn into_iter(self) -> T::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Shared<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        (&*self.0).into_iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Shared<T>
where
    &'a mut T: IntoIterator,
{
    type Item = <&'a mut T as IntoIterator>::Item;
    type IntoIter = <&'a mut T as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        Arc::make_mut(&mut self.0).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_equal_is_kept_once_until_it_is_changed() {
        let (one, mut other, different) = (Shared::from(vec![1]), Shared::from(vec![1]), Shared::from(vec![2]));
        other.share_with(&one);
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.share_with(&different);
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.push(2);
        assert_eq!((one.as_slice(), other.as_slice()), ([1].as_slice(), [1, 2].as_slice()));
        assert_eq!(serde_json::to_string(&other).unwrap(), "[1,2]");
    }
}
