//! Objects that several snapshots share.
//!
//! A snapshot is taken whenever something happened, and little has changed since the one before: thousands of pods, a handful
//! of which are new. So a list holds its objects by reference count. Copying a list copies no object, and changing an object
//! copies that one, if another list has it too.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use serde::Deserialize;

/// What numbers the objects of a kind: a type of its own where positions are handed on.
pub trait Numbered {
    type Position: Copy + From<usize> + Into<usize>;
}

/// Objects of one kind, in the order in which they were read.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Objects<T>(Vec<Arc<T>>);

/// Borrowed objects of a list.
pub type Iter<'a, T> = std::iter::Map<std::slice::Iter<'a, Arc<T>>, fn(&'a Arc<T>) -> &'a T>;
/// Objects of a list, each copied first if it is shared.
pub type IterMut<'a, T> = std::iter::Map<std::slice::IterMut<'a, Arc<T>>, fn(&'a mut Arc<T>) -> &'a mut T>;
/// Objects on their way out of a list, each copied if it is shared.
pub type IntoIter<T> = std::iter::Map<std::vec::IntoIter<Arc<T>>, fn(Arc<T>) -> T>;

impl<T> Objects<T> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> Iter<'_, T> {
        self.0.iter().map(|object| object.as_ref())
    }

    pub fn first(&self) -> Option<&T> {
        self.0.first().map(Arc::as_ref)
    }

    /// With their positions.
    pub fn enumerated(&self) -> impl DoubleEndedIterator<Item = (T::Position, &T)> + ExactSizeIterator + Clone
    where
        T: Numbered,
    {
        self.0.iter().enumerate().map(|(position, object)| (T::Position::from(position), object.as_ref()))
    }

    /// Objects in groups of `size`, the last one smaller.
    pub fn chunks(&self, size: usize) -> impl Iterator<Item = Self> {
        self.0.chunks(size.max(1)).map(Self::sharing)
    }

    pub fn push(&mut self, object: T) {
        self.0.push(Arc::new(object));
    }

    pub fn retain(&mut self, mut keeps: impl FnMut(&T) -> bool) {
        self.0.retain(|object| keeps(object));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// A list of objects that somebody else holds too.
    pub fn sharing<'a>(objects: impl IntoIterator<Item = &'a Arc<T>>) -> Self
    where
        T: 'a,
    {
        Self(objects.into_iter().cloned().collect())
    }

    /// The list itself, for those who share objects or put them in order.
    pub fn shared(&self) -> &[Arc<T>] {
        &self.0
    }

    pub fn shared_mut(&mut self) -> &mut Vec<Arc<T>> {
        &mut self.0
    }
}

impl<T: Clone> Objects<T> {
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.0.iter_mut().map(Arc::make_mut)
    }
}

impl<T> Default for Objects<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> PartialEq for Objects<T> {
    /// Shared objects are equal without a look into them.
    fn eq(&self, other: &Self) -> bool {
        let pairs = || self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs().all(|(one, two)| Arc::ptr_eq(one, two) || one == two)
    }
}

impl<T: Numbered> Index<T::Position> for Objects<T> {
    type Output = T;

    fn index(&self, position: T::Position) -> &T {
        &self.0[position.into()]
    }
}

impl<T: Numbered + Clone> IndexMut<T::Position> for Objects<T> {
    fn index_mut(&mut self, position: T::Position) -> &mut T {
        Arc::make_mut(&mut self.0[position.into()])
    }
}

impl<T> From<Vec<T>> for Objects<T> {
    fn from(objects: Vec<T>) -> Self {
        objects.into_iter().collect()
    }
}

impl<T> FromIterator<T> for Objects<T> {
    fn from_iter<I: IntoIterator<Item = T>>(objects: I) -> Self {
        Self(objects.into_iter().map(Arc::new).collect())
    }
}

impl<T> Extend<T> for Objects<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, objects: I) {
        self.0.extend(objects.into_iter().map(Arc::new));
    }
}

impl<T: Clone> IntoIterator for Objects<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        self.0.into_iter().map(Arc::unwrap_or_clone)
    }
}

impl<'a, T> IntoIterator for &'a Objects<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Objects<T> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Numbered for String {
        type Position = usize;
    }

    #[test]
    fn a_copy_shares_what_is_not_changed() {
        let one: Objects<String> = vec!["a".to_owned(), "b".to_owned()].into();
        let mut two = one.clone();
        two[1].push('c');
        assert_eq!((one[1].as_str(), two[1].as_str()), ("b", "bc"));
        let is_shared = |position: usize| Arc::ptr_eq(&one.shared()[position], &two.shared()[position]);
        assert!(is_shared(0) && !is_shared(1));
        assert!(one != two && one == one.clone());
    }
}
