//! All documents of a revision together, for the rules that compare them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::asked::{self, Asked};
use super::document::Document;
use super::kinds::Kind;
use crate::core::plan::DefinitionPlace;

/// A document of a kind that is read.
#[derive(Clone, Debug)]
pub struct Object {
    pub kind: Kind,
    pub document: Document,
    pub asked: Arc<Asked>,
    /// Where fields that hold a variable get their values, where others give them.
    pub given_at: BTreeMap<String, DefinitionPlace>,
    /// Whether no error was found in the document.
    pub usable: bool,
    /// Whether there is an error is not known, as it depends on a variable without a value.
    pub unchecked: bool,
    /// Content that a scenario will commit later: checked, but not part of this revision.
    pub staged: bool,
    /// The file of the kustomization that it was built by.
    pub build: Option<usize>,
    /// The folder that Flux or Argo CD applies it with.
    pub root: Option<String>,
}

impl Object {
    pub fn name(&self) -> Option<&str> {
        self.document.str("/metadata/name")
    }

    /// The namespace of the object: `default` where it names none, and nothing for an object that lives in none.
    pub fn namespace(&self) -> &str {
        match self.document.str("/metadata/namespace") {
            _ if !self.kind.is_namespaced() => "",
            Some(namespace) if !namespace.is_empty() => namespace,
            _ => "default",
        }
    }
}

#[derive(Debug)]
pub struct Revision<'a> {
    /// Paths by file index.
    pub paths: Vec<&'a str>,
    pub objects: Vec<Object>,
}

impl Revision<'_> {
    /// Objects of the kind that are part of this revision, broken ones too.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| object.kind == kind && !object.staged)
    }

    /// Objects of all kinds that ask for instance types and places, broken ones too.
    pub fn asking(&self) -> impl Iterator<Item = &Object> {
        asked::KINDS.into_iter().flat_map(|kind| self.of(kind))
    }
}
