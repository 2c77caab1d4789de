//! What spreads come to beside their counts: which domains pods can get to, and who is counted by spreads of others.
//!
//! kube-scheduler spreads over domains that have a node. The reference also over those in which its pools could have one, which is
//! what people want of it; but a domain that has no node, and in which the pod can not have one, is empty for ever.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::model::IndexVec;

use super::indices::{ClassIndex, GroupIndex, KeyIndex};
use super::topology::Domain;

/// By domain, whether a node could be bought there.
pub(super) type Reached = IndexVec<KeyIndex, Vec<bool>>;

#[derive(Debug, Default)]
pub struct Spreading {
    /// `None` where a class gets to every domain that it is spread over.
    pub(super) reached: IndexVec<ClassIndex, Option<Rc<Reached>>>,
    /// Spreads that count pods of a class, are no constraint of theirs, and are one of pods that wait.
    pub(super) of_others: IndexVec<ClassIndex, Vec<GroupIndex>>,
    /// All of these.
    pub(super) mixed: BTreeSet<GroupIndex>,
    /// Spreads of pods that wait, over something else than hosts.
    pub(super) of_waiting: Vec<GroupIndex>,
    /// Those of them with domains that have no node and that some of the pods do not get to.
    pub(super) partly_reached: Vec<GroupIndex>,
}

impl Spreading {
    /// Whether a pod of the class could have a node bought in the domain; true as well where nothing depends on it.
    pub fn reaches(&self, class: ClassIndex, key: KeyIndex, domain: Domain) -> bool {
        let reached = self.reached[class].as_ref();
        reached.is_none_or(|reached| reached[key].get(domain.position()).copied().unwrap_or(false))
    }

    /// Whether [`Self::reaches`] is true of every domain.
    pub fn reaches_all(&self, class: ClassIndex) -> bool {
        self.reached[class].is_none()
    }

    pub fn of_others(&self, class: ClassIndex) -> &[GroupIndex] {
        &self.of_others[class]
    }

    /// Spreads of pods that wait, which count others that do not have them.
    pub fn mixed(&self) -> &BTreeSet<GroupIndex> {
        &self.mixed
    }

    pub fn of_waiting(&self) -> &[GroupIndex] {
        &self.of_waiting
    }

    pub fn partly_reached(&self) -> &[GroupIndex] {
        &self.partly_reached
    }
}
