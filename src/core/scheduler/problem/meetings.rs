//! Where pods with an affinity and those that they want to be near can come together.

use std::collections::BTreeMap;

use crate::scheduler::meeting::Meetings;
use crate::scheduler::topology::{GroupIndex, GroupKind};

use super::Problem;
use super::reached::{reached_by, short_request};

/// O(classes with affinities x templates x keys).
pub(super) fn meetings(problem: &Problem<'_>) -> Meetings {
    let mut common: BTreeMap<GroupIndex, Vec<bool>> = BTreeMap::new();
    for (class, pods) in problem.classes.enumerated() {
        let required = pods.variants.last().map(|variant| problem.variants[*variant].constraints.as_slice());
        let affinities = required.unwrap_or_default().iter().filter(|group| is_affinity(problem, **group));
        let affinities: Vec<GroupIndex> = affinities.copied().collect();
        if affinities.is_empty() {
            continue;
        }
        let reached = reached_by(problem, class, short_request(problem, class));
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
    Meetings { of_class: of_class.collect(), common }
}

fn is_affinity(problem: &Problem<'_>, group: GroupIndex) -> bool {
    let compiled = &problem.groups[group];
    matches!(compiled.kind, GroupKind::Affinity) && !problem.domains.is_hostname(compiled.key)
}
