//! Where pods with an affinity and those that they want to be near can come together, before any of them has a place.
//!
//! kube-scheduler lets the first pod of such a group be anywhere, and binds the others to where it is; one that does not get there waits
//! for ever. What is bought first is therefore bought where all of them get to.

use std::collections::BTreeMap;

use crate::model::IndexVec;

use super::class::ClassIndex;
use super::problem::Problem;
use super::spreading::reached_by;
use super::topology::{Domain, GroupIndex, GroupKind};

#[derive(Debug, Default)]
pub struct Meetings {
    /// By affinity over something else than hosts, by domain, whether all pods that have it get there.
    common: BTreeMap<GroupIndex, Vec<bool>>,
    /// By class, those of these affinities that count its pods.
    of_class: IndexVec<ClassIndex, Vec<GroupIndex>>,
}

impl Meetings {
    /// O(classes with affinities x templates x keys).
    pub fn new(problem: &Problem<'_>) -> Self {
        let mut common: BTreeMap<GroupIndex, Vec<bool>> = BTreeMap::new();
        for (class, pods) in problem.classes.enumerated() {
            let required = pods.variants.last().map(|variant| problem.variants[*variant].constraints.as_slice());
            let affinities = required.unwrap_or_default().iter().filter(|group| is_affinity(problem, **group));
            let affinities: Vec<GroupIndex> = affinities.copied().collect();
            if affinities.is_empty() {
                continue;
            }
            let reached = reached_by(problem, class);
            for group in affinities {
                let of_class = &reached[problem.groups[group].key];
                let known = common.entry(group).or_insert_with(|| vec![true; of_class.len()]);
                known.iter_mut().zip(of_class).for_each(|(all, this)| *all &= *this);
            }
        }
        let of_class = problem.classes.iter().map(|pods| {
            let counting = pods.counted_in.iter().filter(|group| common.contains_key(group));
            counting.copied().collect()
        });
        Self { of_class: of_class.collect(), common }
    }

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
        self.common.get(&group).is_some_and(|domains| domains.get(domain as usize).copied().unwrap_or(false))
    }
}

fn is_affinity(problem: &Problem<'_>, group: GroupIndex) -> bool {
    let compiled = &problem.groups[group];
    matches!(compiled.kind, GroupKind::Affinity) && !problem.domains.is_hostname(compiled.key)
}
