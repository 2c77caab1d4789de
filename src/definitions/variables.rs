//! What is known of the variables in a document once those with a value have been replaced.

use std::collections::{BTreeMap, BTreeSet};

use super::document::spans;

/// Which texts of a document hold variables.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Values with a variable that was left as written, by pointer.
    pub(super) open_values: BTreeSet<String>,
    /// Members whose key holds such a variable, by pointer.
    pub(super) open_keys: BTreeSet<String>,
    /// Values with text for a shell, in which no variable has a value.
    pub(super) shell_values: BTreeSet<String>,
    /// The variables in the text at a pointer, or in its key, with a value or without.
    pub(super) names: BTreeMap<String, BTreeSet<String>>,
    pub(super) as_written: AsWritten,
    /// Whether Flux replaces the variables.
    pub(super) is_of_flux: bool,
}

/// What is known of a document without the values that are shown nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AsWritten {
    /// The variables of such values that stand in the document.
    pub hidden: BTreeSet<String>,
    /// For an EC2NodeClass with such variables, SHA-256 in hexadecimal of what is written, of their names, and of the
    /// other values. A hash of the hidden values would let everybody who sees it try what a short value may be.
    pub hash: Option<String>,
}

impl Variables {
    /// Whether the text at `pointer`, or its key, holds a variable without a value.
    pub fn is_open(&self, pointer: &str) -> bool {
        self.open_values.contains(pointer) || self.open_keys.contains(pointer)
    }

    /// Whether anything at or below `pointer` holds a variable without a value.
    pub fn is_open_within(&self, pointer: &str) -> bool {
        self.open().any(|open| is_within(pointer, open))
    }

    /// Whether a key of the mapping at `pointer` holds a variable without a value.
    pub fn has_open_key(&self, pointer: &str) -> bool {
        self.open_keys.iter().any(|open| spans::parent(open) == pointer)
    }

    /// Pointers of texts with a variable without a value, but not those for a shell.
    pub fn open(&self) -> impl Iterator<Item = &str> {
        self.open_values.iter().chain(&self.open_keys).map(String::as_str)
    }

    /// Pointers of texts that somebody may know a value for: also those for a shell, which Flux can not tell apart.
    pub fn open_to_others(&self) -> impl Iterator<Item = &str> {
        self.open().chain(self.shell_values.iter().map(String::as_str))
    }

    pub fn is_open_key(&self, pointer: &str) -> bool {
        self.open_keys.contains(pointer)
    }

    pub fn names(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.names
    }

    pub fn as_written(&self) -> &AsWritten {
        &self.as_written
    }

    pub fn is_of_flux(&self) -> bool {
        self.is_of_flux
    }
}

/// Whether `inner` is `outer` or below it.
pub fn is_within(outer: &str, inner: &str) -> bool {
    spans::below(outer, inner).is_some()
}
