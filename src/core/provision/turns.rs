//! Which of several pods that are alike goes to which node.
//!
//! kube-scheduler takes pods in the order in which it refused them last, which is mostly that in which they came. Where they spread, each of
//! the first ones goes to another domain, the next ones again, and so on: given out node by node, the second of them would come to a domain
//! that has one already, while others have none, and would land elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::scheduler::topology::{Domain, GroupIndex};
use crate::scheduler::{ClassIndex, Engine, HostIndex};

/// The pods of one domain that are still to be given out.
#[derive(Debug, Default)]
struct InDomain {
    /// Pods in the domain, those counted that are there already.
    count: u32,
    /// By pods on the node, if those count apart: positions of nodes that get further ones.
    nodes: BTreeSet<(u32, usize)>,
}

/// The nodes that pods of a class go to, the first pod's first. `places`: nodes, and how many of the pods each gets; empty where it does not
/// matter which pod goes where. O(pods x log nodes).
pub(super) fn in_turn(engine: &Engine<'_, '_>, class: ClassIndex, places: &[(HostIndex, u32)]) -> Vec<HostIndex> {
    let groups = spreads(engine, class);
    let Some(first) = groups.first() else { return Vec::new() };
    let mut domains = domains(engine, *first, groups.get(1).copied(), places);
    let mut left: Vec<u32> = places.iter().map(|(_, pods)| *pods).collect();
    let mut order: BTreeSet<(u32, Domain)> = domains.iter().map(|(domain, it)| (it.count, *domain)).collect();
    let mut turns = Vec::new();
    while let Some((count, domain)) = order.pop_first() {
        let Some(nodes) = domains.get_mut(&domain).map(|it| &mut it.nodes) else { continue };
        let Some((on_node, position)) = nodes.pop_first() else { continue };
        turns.push(places[position].0);
        left[position] -= 1;
        if left[position] > 0 {
            nodes.insert((on_node + u32::from(groups.len() > 1), position));
        }
        if !nodes.is_empty() {
            order.insert((count + 1, domain));
        }
    }
    turns
}

/// Spreads of the class that count its own pods, of which those over more than a node come first. Of more than two the others are rare.
fn spreads(engine: &Engine<'_, '_>, class: ClassIndex) -> Vec<GroupIndex> {
    let problem = engine.problem;
    let class = &problem.classes[class];
    let mut groups: Vec<GroupIndex> =
        class.spreads.iter().copied().filter(|group| class.counted_in.contains(group)).collect();
    groups.sort_by_key(|group| problem.domains.is_hostname(problem.groups[*group].key));
    groups.truncate(2);
    groups
}

/// With what is there before any of these pods.
fn domains(
    engine: &Engine<'_, '_>,
    group: GroupIndex,
    within: Option<GroupIndex>,
    places: &[(HostIndex, u32)],
) -> BTreeMap<Domain, InDomain> {
    let domain_of = |host: HostIndex, group: GroupIndex| engine.host(host).domains[engine.problem.groups[group].key];
    let mut domains: BTreeMap<Domain, InDomain> = BTreeMap::new();
    let mut given: BTreeMap<Domain, u32> = BTreeMap::new();
    for (position, (host, pods)) in places.iter().enumerate().filter(|(_, (_, pods))| *pods > 0) {
        let on_node = within.map_or(0, |within| engine.counted(within, domain_of(*host, within)).saturating_sub(*pods));
        let domain = domain_of(*host, group);
        domains.entry(domain).or_default().nodes.insert((on_node, position));
        *given.entry(domain).or_default() += pods;
    }
    for (domain, it) in &mut domains {
        it.count = engine.counted(group, *domain).saturating_sub(given[domain]);
    }
    domains
}
