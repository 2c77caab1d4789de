//! Who gets a place when not everybody can: the pods of higher priority. And who would not wait for a new node, because
//! kube-scheduler lets it push others aside.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::IndexVec;
use crate::scheduler::vectors::{self, Vector};
use crate::scheduler::{ClassIndex, Engine, HostIndex};

use super::cheapest::{self, WorkBudget};
use super::karpenter;
use crate::scheduler::Demand;

/// Packs everything at once, which is cheapest. Only when that leaves out a pod and places one of lower priority, the
/// priorities are packed one after the other, highest first, if that leaves out fewer of the higher ones.
pub fn pack(engine: &mut Engine<'_, '_>, order: &[ClassIndex], demand: &Demand, budget: &mut WorkBudget) -> Demand {
    let since = engine.mark();
    let together = cheapest::pack(engine, order, demand, budget);
    if !is_unjust(engine, demand, &together) {
        return together;
    }
    engine.revert(since);
    let in_turn = pack_in_turn(engine, order, demand);
    if left_out(engine, &in_turn) < left_out(engine, &together) {
        return in_turn;
    }
    engine.revert(since);
    cheapest::pack(engine, order, demand, &mut WorkBudget::new(engine.problem))
}

fn priority_of(engine: &Engine<'_, '_>, class: ClassIndex) -> i32 {
    engine.problem.classes[class].priority
}

/// Whether a pod is left out although one of lower priority got a place.
fn is_unjust(engine: &Engine<'_, '_>, demand: &Demand, leftover: &Demand) -> bool {
    let is_placed = |(class, count): &(&ClassIndex, &usize)| leftover.get(*class).copied().unwrap_or(0) < **count;
    let least_placed = demand.iter().filter(is_placed).map(|(class, _)| priority_of(engine, *class)).min();
    let most_left = leftover.keys().map(|class| priority_of(engine, *class)).max();
    least_placed.zip(most_left).is_some_and(|(placed, left)| placed < left)
}

/// Pods left out by priority, highest first: less is better.
fn left_out(engine: &Engine<'_, '_>, leftover: &Demand) -> Vec<(i32, usize)> {
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for (class, count) in leftover {
        *counts.entry(priority_of(engine, *class)).or_default() += count;
    }
    counts.into_iter().rev().collect()
}

fn pack_in_turn(engine: &mut Engine<'_, '_>, order: &[ClassIndex], demand: &Demand) -> Demand {
    let priorities: BTreeSet<i32> = demand.keys().map(|class| priority_of(engine, *class)).collect();
    let mut leftover = Demand::new();
    let mut budget = WorkBudget::new(engine.problem);
    for priority in priorities.into_iter().rev() {
        let is_of_turn = |class: &&ClassIndex| engine.problem.classes[**class].priority == priority;
        let turn = order.iter().filter(is_of_turn).copied().collect::<Vec<_>>();
        let wanted = turn.iter().filter_map(|class| Some((*class, *demand.get(class)?))).collect();
        leftover.extend(cheapest::pack(engine, &turn, &wanted, &mut budget));
    }
    // A pod may need one of lower priority near it.
    karpenter::pack(engine, order, &leftover)
}

/// Classes with pods among `waiting` that kube-scheduler could make room for on a node that exists, by evicting pods of
/// lower priority. Looks at requirements, taints and requests, not at budgets and topology.
/// O(pods) when some bound pod has a lower priority, and then O(classes x nodes x priorities).
pub fn may_preempt(engine: &Engine<'_, '_>, waiting: &BTreeSet<ClassIndex>) -> BTreeSet<ClassIndex> {
    let problem = engine.problem;
    let bound = || problem.nodes.iter().flat_map(|node| &node.pods).map(|(_, class)| priority_of(engine, *class));
    let least = bound().min();
    let mut pushing: BTreeSet<ClassIndex> = waiting
        .iter()
        .copied()
        .filter(|class| problem.classes[*class].preempts && Some(priority_of(engine, *class)) > least)
        .collect();
    if pushing.is_empty() || least.is_none() {
        return BTreeSet::new();
    }
    let below: IndexVec<HostIndex, BTreeMap<i32, Vector>> =
        problem.nodes.indices().map(|host| by_priority(engine, host)).collect();
    pushing.retain(|class| {
        let pods = &problem.classes[*class];
        below.enumerated().any(|(host, below)| {
            if engine.is_closed(host) || !pods.variants.iter().any(|variant| problem.fits_node(*variant, host)) {
                return false;
            }
            let mut room: Vector = engine.headroom(host).into();
            let victims = below.range(..pods.priority);
            let mut evicts = false;
            for (_, requests) in victims {
                vectors::add(&mut room, requests, 1);
                evicts = true;
            }
            evicts && vectors::fits(&pods.request, &room)
        })
    });
    pushing
}

/// What bound pods of each priority request on a node.
fn by_priority(engine: &Engine<'_, '_>, host: HostIndex) -> BTreeMap<i32, Vector> {
    let problem = engine.problem;
    let mut sums: BTreeMap<i32, Vector> = BTreeMap::new();
    for (_, class) in &problem.nodes[host].pods {
        let pods = &problem.classes[*class];
        let sum = sums.entry(pods.priority).or_insert_with(|| vec![0; problem.dimensions.count()].into_boxed_slice());
        vectors::add(sum, &pods.request, 1);
    }
    sums
}
