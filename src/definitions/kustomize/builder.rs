//! What one build has in hand: the files, what was found, and how much was built.

use std::collections::{BTreeMap, BTreeSet};

use super::Item;
use super::elsewhere::elsewhere;
use super::layout::{Layout, Target};
use super::weight::weight;
use crate::api::kustomization::{self, Purpose, Reference};
use crate::definitions::document::{Document, Parsed};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::limits::BUILT_BYTES;
use crate::definitions::rules::kustomize as rules;

/// Objects of all builds together, those counted that are built more than once.
pub(super) const ITEMS_MAX: usize = 100_000;

/// Builds kustomizations one after another.
pub(super) struct Builder<'b> {
    pub layout: &'b Layout<'b>,
    pub parsed: &'b [Parsed],
    /// Files that had a part in it.
    pub used: BTreeSet<usize>,
    pub findings: Vec<Finding>,
    /// Some of the files that objects are taken from can not be read: what would be in them is not known.
    pub has_unread: bool,
    /// Kustomizations that are being built, outermost first.
    pub path: Vec<usize>,
    /// Whether an outermost one takes objects from where nothing is read, of those that were asked.
    pub open: BTreeMap<usize, bool>,
    /// What was made of those that begin with nothing: a base is taken by each overlay.
    pub built: BTreeMap<usize, Vec<Item>>,
    pub items: usize,
    /// Of objects that were built, patched and copied.
    pub bytes: usize,
}

impl<'b> Builder<'b> {
    pub(super) fn new(layout: &'b Layout<'b>, parsed: &'b [Parsed]) -> Self {
        Self {
            layout,
            parsed,
            used: BTreeSet::new(),
            findings: Vec::new(),
            has_unread: false,
            path: Vec::new(),
            open: BTreeMap::new(),
            built: BTreeMap::new(),
            items: 0,
            bytes: 0,
        }
    }
}

impl Builder<'_> {
    pub(super) fn count(&mut self, items: &[Item]) {
        self.items += items.len();
        self.bytes += items.iter().map(|item| weight(&item.document.value)).sum::<usize>();
    }

    /// Before an object is patched or copied into. `false`: too much was by now, and nothing more is done.
    pub(super) fn may_take(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        !self.is_too_much()
    }

    pub(super) fn is_too_much(&self) -> bool {
        self.items > ITEMS_MAX || self.bytes > BUILT_BYTES
    }

    /// Whether there may be objects beside those that are known: in files that can not be read, elsewhere, or made by what is not carried out.
    pub(super) fn may_hold_more(&mut self) -> bool {
        let layout = self.layout;
        match self.path.first().copied() {
            _ if self.has_unread => true,
            Some(top) => *self.open.entry(top).or_insert_with(|| !elsewhere(layout, top).is_empty()),
            None => self.is_in_part(),
        }
    }

    /// Whether all objects are known that the kustomization in this folder, one of the outermost, makes before others change them, and no
    /// configuration names more kinds that it changes.
    pub(super) fn knows_all_of(&self, folder: &str, tops: &[usize]) -> bool {
        let is_here = |top: &usize| kustomization::folder(self.layout.path(*top)) == folder;
        let Some(top) = tops.iter().copied().find(is_here).filter(|_| !self.is_in_part()) else { return false };
        elsewhere(self.layout, top).is_empty() && self.layout.below(&[top]).iter().all(|it| self.is_read_with_all(*it))
    }

    /// Whether the kustomization can be read, and each file that it takes objects from.
    fn is_read_with_all(&self, kustomization: usize) -> bool {
        let is_read = |(reference, target): (Reference, Target)| match (reference.purpose, target) {
            (Purpose::Configuration, _) => false,
            (Purpose::Resource | Purpose::Component, Target::File(file)) => {
                self.parsed.get(file).is_some_and(|parsed| !parsed.lacks_some())
            }
            (Purpose::Resource | Purpose::Component, target) => matches!(target, Target::Kustomization(_)),
            _ => true,
        };
        let references = || self.layout.references(kustomization).into_iter();
        self.layout.document(kustomization).is_some() && references().all(is_read)
    }

    /// Whether something of what was built so far is not carried out here.
    pub(super) fn is_in_part(&self) -> bool {
        self.has_unread || self.findings.iter().any(|finding| std::ptr::eq(finding.rule, &rules::NOT_CARRIED_OUT))
    }
}

/// What to do where not all of a kustomization is carried out here.
pub(super) const BUILD_HINT: &str = "to have all of it: kustomize build FOLDER | cutlist lint -";

/// A file or folder that is named and can not be read.
pub(super) fn not_there(document: &Document, pointer: &str, path: &str) -> Finding {
    let message = format!("there is no `{path}` that can be read");
    let hint = if path.starts_with('/') {
        "write a path that is relative to the folder of the kustomization"
    } else if path.contains("..") {
        "a path is relative to the folder of the kustomization; outside of it only files that Git tracks in this repository are read"
    } else {
        "a path is relative to the folder of the kustomization"
    };
    Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, message).hint(hint)
}
