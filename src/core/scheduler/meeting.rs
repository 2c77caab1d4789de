//! Where pods with an affinity and those that they want to be near can come together, before any of them has a place.
//!
//! kube-scheduler lets the first pod of such a group be anywhere, and binds the others to where it is; one that does not get there waits
//! for ever. What is bought first is therefore bought where all of them get to.

use std::collections::BTreeMap;

use crate::model::IndexVec;

use super::indices::{ClassIndex, GroupIndex};
use super::topology::Domain;

#[derive(Debug, Default)]
pub struct Meetings {
    /// By affinity over something else than hosts, by domain, whether all pods that have it get there.
    pub(super) common: BTreeMap<GroupIndex, Vec<bool>>,
    /// By class, those of these affinities that count its pods.
    pub(super) of_class: IndexVec<ClassIndex, Vec<GroupIndex>>,
}

impl Meetings {
    /// Whether pods require this affinity, over something else than hosts.
    pub fn has(&self, group: GroupIndex) -> bool {
        self.common.contains_key(&group)
    }

    /// Those that count pods of a class.
    pub fn of_class(&self, class: ClassIndex) -> &[GroupIndex] {
        &self.of_class[class]
    }

    /// Whether all pods with the affinity get to the domain.
    pub fn is_common(&self, group: GroupIndex, domain: Domain) -> bool {
        self.common.get(&group).is_some_and(|domains| domains.get(domain.position()).copied().unwrap_or(false))
    }
}
