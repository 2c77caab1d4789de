//! Positions as types, and vectors that take no other.
//!
//! Our own, since no library fits. `typed-index-collections` brings `bincode` into the lock file, which nobody keeps any more; the indices
//! of `oxc_index` have an `unsafe` function to implement; `index_vec` lets a bare number index, which is what this is to keep out.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A position in some [`IndexVec`].
pub trait Index: Copy + From<usize> + Into<usize> {}

/// Defines types of positions. They are numbers in all but type: as small, as fast, and shown as such.
macro_rules! index {
    ($($(#[$attribute:meta])* $visibility:vis struct $name:ident;)+) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name(usize);

        impl $crate::model::index::Index for $name {}

        impl From<usize> for $name {
            #[inline]
            fn from(position: usize) -> Self {
                Self(position)
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(index: $name) -> Self {
                index.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, formatter)
            }
        }
    )+};
}

pub(crate) use index;

/// All positions from the one to before the other.
#[inline]
pub fn range<I: Index>(first: I, end: I) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone {
    (first.into()..end.into()).map(I::from)
}

/// The position after this one.
#[inline]
pub fn next<I: Index>(index: I) -> I {
    I::from(index.into() + 1)
}

/// A vector that only its own positions index. To everything that asks for no position it is a slice.
#[derive(Clone, PartialEq, Eq)]
pub struct IndexVec<I, T> {
    raw: Vec<T>,
    index: PhantomData<fn(I) -> I>,
}

impl<I: Index, T> IndexVec<I, T> {
    pub const fn new() -> Self {
        Self { raw: Vec::new(), index: PhantomData }
    }

    pub fn with_capacity(capacity: usize) -> Self {
        Self { raw: Vec::with_capacity(capacity), index: PhantomData }
    }

    /// The same value for so many positions.
    pub fn repeat(value: T, count: usize) -> Self
    where
        T: Clone,
    {
        vec![value; count].into()
    }

    /// The position that is pushed next.
    #[inline]
    pub fn end(&self) -> I {
        I::from(self.raw.len())
    }

    pub fn push(&mut self, value: T) -> I {
        let index = self.end();
        self.raw.push(value);
        index
    }

    /// Grows, where it must, until it has this position.
    pub fn at_or(&mut self, index: I, value: T) -> &mut T
    where
        T: Clone,
    {
        let position = index.into();
        if position >= self.raw.len() {
            self.raw.resize(position + 1, value);
        }
        &mut self.raw[position]
    }

    pub fn truncate(&mut self, end: I) {
        self.raw.truncate(end.into());
    }

    #[inline]
    pub fn get(&self, index: I) -> Option<&T> {
        self.raw.get(index.into())
    }

    #[inline]
    pub fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.raw.get_mut(index.into())
    }

    /// Where the first is that is wanted.
    pub fn position(&self, is_wanted: impl FnMut(&T) -> bool) -> Option<I> {
        self.raw.iter().position(is_wanted).map(I::from)
    }

    /// Its positions.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        range(I::from(0), self.end())
    }

    pub fn enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator + Clone {
        self.raw.iter().enumerate().map(|(position, value)| (I::from(position), value))
    }

    pub fn into_enumerated(self) -> impl DoubleEndedIterator<Item = (I, T)> + ExactSizeIterator {
        self.raw.into_iter().enumerate().map(|(position, value)| (I::from(position), value))
    }

    pub fn enumerated_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.raw.iter_mut().enumerate().map(|(position, value)| (I::from(position), value))
    }
}

impl<I: Index, T> std::ops::Index<I> for IndexVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, index: I) -> &T {
        &self.raw[index.into()]
    }
}

impl<I: Index, T> std::ops::IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.raw[index.into()]
    }
}

impl<I, T> Deref for IndexVec<I, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.raw
    }
}

impl<I, T> DerefMut for IndexVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.raw
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(raw: Vec<T>) -> Self {
        Self { raw, index: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(values: It) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<I, T> IntoIterator for IndexVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.raw.into_iter()
    }
}

impl<'v, I, T> IntoIterator for &'v IndexVec<I, T> {
    type Item = &'v T;
    type IntoIter = std::slice::Iter<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.raw.iter()
    }
}

impl<'v, I, T> IntoIterator for &'v mut IndexVec<I, T> {
    type Item = &'v mut T;
    type IntoIter = std::slice::IterMut<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.raw.iter_mut()
    }
}

impl<I, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::{IndexVec, next, range};

    index! {
        struct Place;
    }

    #[test]
    fn a_vector_numbers_what_is_pushed() {
        let mut names: IndexVec<Place, &str> = IndexVec::new();
        let (first, second) = (names.push("a"), names.push("b"));
        assert_eq!((names[first], names[second], names.get(names.end())), ("a", "b", None));
        assert_eq!(names.enumerated().collect::<Vec<_>>(), [(first, &"a"), (second, &"b")]);
        assert_eq!((next(first), range(first, names.end()).collect::<Vec<_>>()), (second, vec![first, second]));
        assert_eq!(format!("{second:?} {names:?}"), r#"1 ["a", "b"]"#);
        assert_eq!((names.position(|name| *name == "b"), names.position(|name| *name == "c")), (Some(second), None));
        *names.at_or(Place::from(3), "-") = "d";
        assert_eq!(*names, ["a", "b", "-", "d"]);
        names.truncate(second);
        assert_eq!((names.len(), names.indices().next_back()), (1, Some(first)));
    }
}
