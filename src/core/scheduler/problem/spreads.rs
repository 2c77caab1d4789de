//! What the spreads of pods come to beside their counts.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::model::{IndexVec, Requirements};
use crate::scheduler::class::ClassIndex;
use crate::scheduler::spreading::{Reached, Spreading};
use crate::scheduler::topology::{Domain, GroupIndex, GroupKind};
use cutlist_api::settings::Packing;

use super::Problem;
use super::reached::{reached_by, short_request};

/// What reaching a domain depends on: profiles, what is asked for where some node has no room for it, and where volumes are.
type Reaching<'p> = (Vec<usize>, Option<&'p [i64]>, &'p [Requirements]);

/// O(pods + classes x groups of each + distinct requirements and tight requests x templates x keys).
pub(super) fn spreading(problem: &Problem<'_>, packing: Packing) -> Spreading {
    let waiting = waiting(problem);
    let owned: BTreeSet<GroupIndex> =
        waiting.iter().flat_map(|class| &problem.classes[*class].spreads).copied().collect();
    let of_others = problem.classes.iter().map(|pods| {
        let foreign = pods.counted_in.iter().filter(|group| owned.contains(group) && !pods.spreads.contains(group));
        foreign.copied().collect()
    });
    let of_others: IndexVec<ClassIndex, Vec<GroupIndex>> = of_others.collect();
    let mut spreading = Spreading {
        mixed: of_others.iter().flatten().copied().collect(),
        of_others,
        of_waiting: owned.iter().copied().filter(|group| !is_by_host(problem, *group)).collect(),
        reached: IndexVec::repeat(None, problem.classes.len()),
        partly_reached: Vec::new(),
    };
    let mut known: BTreeMap<Reaching<'_>, Rc<Reached>> = BTreeMap::new();
    for (class, pods) in problem.classes.enumerated() {
        let spreads = spreads_of(problem, class);
        if spreads.is_empty() {
            continue;
        }
        let profiles: BTreeSet<usize> = pods.variants.iter().map(|variant| problem.profile(*variant)).collect();
        // The reference waits for a pod in a zone where no node has room for it.
        let request = if packing == Packing::Cheapest { short_request(problem, class) } else { None };
        let reached = known.entry((profiles.into_iter().collect(), request, pods.volume_alternatives.as_slice()));
        let reached = Rc::clone(reached.or_insert_with(|| Rc::new(reached_by(problem, class, request))));
        let missed = spreads.into_iter().filter(|group| misses_some(problem, *group, &reached));
        let missed: Vec<GroupIndex> = missed.collect();
        if !missed.is_empty() {
            spreading.reached[class] = Some(reached);
            spreading.partly_reached.extend(missed.into_iter().filter(|group| owned.contains(group)));
        }
    }
    spreading.partly_reached.sort_unstable();
    spreading.partly_reached.dedup();
    spreading
}

fn is_by_host(problem: &Problem<'_>, group: GroupIndex) -> bool {
    problem.domains.is_hostname(problem.groups[group].key)
}

/// Classes of pods that are on no node, or on one that goes.
fn waiting(problem: &Problem<'_>) -> BTreeSet<ClassIndex> {
    let pods = problem.snapshot.pods.iter().zip(&problem.class_of_pod);
    let unbound = pods.filter(|(pod, _)| pod.spec.node_name.is_none() && !pod.is_terminal());
    let going = problem.nodes.iter().filter(|node| node.being_removed);
    let displaced = going.flat_map(|node| &node.pods).map(|(_, class)| *class);
    unbound.filter_map(|(_, class)| *class).chain(displaced).collect()
}

/// Over something else than hosts, with those that are preferences.
fn spreads_of(problem: &Problem<'_>, class: ClassIndex) -> BTreeSet<GroupIndex> {
    let variants = problem.classes[class].variants.iter();
    let constraints = variants.flat_map(|variant| &problem.variants[*variant].constraints).copied();
    let is_spread = |group: &GroupIndex| matches!(problem.groups[*group].kind, GroupKind::Spread(_));
    constraints.filter(is_spread).filter(|group| !is_by_host(problem, *group)).collect()
}

fn misses_some(problem: &Problem<'_>, group: GroupIndex, reached: &Reached) -> bool {
    let of_key = &reached[problem.groups[group].key];
    let is_reached = |domain: Domain| of_key.get(domain.position()).copied().unwrap_or(false);
    problem.eligible_domains(group).any(|domain| !problem.is_there(group, domain) && !is_reached(domain))
}
