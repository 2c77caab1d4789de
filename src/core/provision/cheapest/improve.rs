//! Takes purchases apart and tries again: ruin and recreate, in the small.
//! Idea: Schrimpf et al., "Record Breaking Optimization Results Using the Ruin and Recreate Principle", 2000.

use std::collections::BTreeMap;

use crate::core::model::HourlyPrice;
use crate::core::provision::choice::{alternatives_of, capacity_of, choose};
use crate::core::provision::karpenter::Leftover;
use crate::core::scheduler::offerings::OfferingSet;
use crate::core::scheduler::{ClassIndex, Engine, HostIndex, Mark};

use super::{Budget, greedy};

/// Largest number of nodes that are taken apart together.
const RUIN_NODES_MAX: usize = 3;

/// Improves the nodes opened since the mark until a round finds nothing or the budget is used up.
pub fn improve(engine: &mut Engine<'_, '_>, since: Mark, level: usize, budget: &mut Budget) {
    for host in opened_since(engine, since) {
        tighten(engine, host);
    }
    let mut found = true;
    while found && budget.patterns > 0 {
        found = (1..=RUIN_NODES_MAX).any(|size| round(engine, since, level, size, budget));
    }
}

fn opened_since(engine: &Engine<'_, '_>, since: Mark) -> Vec<HostIndex> {
    engine.open_hosts().filter(|host| *host >= since.hosts() && !engine.is_closed(*host)).collect()
}

/// Tries each run of nodes that are alike in how well they are used; whether one was improved.
fn round(engine: &mut Engine<'_, '_>, since: Mark, level: usize, size: usize, budget: &mut Budget) -> bool {
    let mut hosts = opened_since(engine, since);
    if hosts.len() < size {
        return false;
    }
    hosts.sort_by_cached_key(|host| (used_share(engine, *host), *host));
    let mut found = false;
    for start in 0..=hosts.len() - size {
        if budget.patterns == 0 {
            break;
        }
        let ruined = &hosts[start..start + size];
        if ruined.iter().all(|host| !engine.is_closed(*host)) && rebuild(engine, since, ruined, level, budget) {
            found = true;
        }
    }
    found
}

/// Thousandths of the dearest resource in use; the emptiest nodes are worth looking at first.
fn used_share(engine: &Engine<'_, '_>, host: HostIndex) -> i64 {
    let Some(open) = engine.open_node(host) else { return 0 };
    let shares = open.requested.iter().zip(&open.room_most).filter(|(_, room)| **room > 0);
    shares.map(|(requested, room)| requested.saturating_mul(1000) / room).max().unwrap_or(0)
}

/// Gives up some nodes and buys again for their pods, in several ways; keeps the best if it is better.
fn rebuild(engine: &mut Engine<'_, '_>, since: Mark, ruined: &[HostIndex], level: usize, budget: &mut Budget) -> bool {
    let before = (price_of(engine, ruined), ruined.len());
    let mark = engine.mark();
    for together in [true, false] {
        let mut demand = discard_all(engine, ruined);
        budget.patterns = budget.patterns.saturating_sub(1);
        if together {
            in_one_node(engine, level, &mut demand);
        } else {
            with_others_room(engine, since, level, &mut demand, budget);
        }
        let bought = opened_since(engine, mark);
        for host in &bought {
            tighten(engine, *host);
        }
        let after = (price_of(engine, &bought), bought.len());
        if demand.is_empty() && after < before {
            return true;
        }
        engine.revert(mark);
    }
    false
}

fn discard_all(engine: &mut Engine<'_, '_>, hosts: &[HostIndex]) -> Leftover {
    let mut demand = BTreeMap::new();
    for host in hosts {
        for (class, count) in engine.discard(*host) {
            *demand.entry(class).or_insert(0) += usize::try_from(count).unwrap_or(usize::MAX);
        }
    }
    demand
}

/// Everything on one node of the cheapest type that holds it; the demand is empty afterwards, or nothing has changed.
pub fn in_one_node(engine: &mut Engine<'_, '_>, level: usize, demand: &mut Leftover) {
    let problem = engine.problem;
    let classes: Vec<ClassIndex> = demand.keys().copied().collect();
    let Some(first) = classes.first().copied() else { return };
    let mark = engine.mark();
    for template in 0..problem.templates.len() {
        let Some(variant) = problem.classes[first].variants.get(level) else { return };
        let Ok(open) = engine.opened(first, *variant, template, None) else { continue };
        let host = engine.open(first, open, crate::core::model::Resources::new());
        let mut missing = 0;
        for class in &classes {
            let Some(variant) = problem.classes[*class].variants.get(level) else { return };
            let count = demand[class] - usize::from(*class == first);
            missing += (0..count).filter(|_| !greedy::add(engine, *class, *variant, host)).count();
        }
        if missing == 0 && tighten(engine, host) {
            demand.clear();
            return;
        }
        engine.revert(mark);
    }
}

/// Room of the other open nodes first, then new ones.
fn with_others_room(
    engine: &mut Engine<'_, '_>,
    since: Mark,
    level: usize,
    demand: &mut Leftover,
    budget: &mut Budget,
) {
    let problem = engine.problem;
    for (class, count) in demand.iter_mut() {
        let Some(variant) = problem.classes[*class].variants.get(level) else { continue };
        while *count > 0 {
            let hosts: Vec<HostIndex> = engine.open_by_fewest_pods().filter(|host| *host >= since.hosts()).collect();
            if !hosts.into_iter().any(|host| greedy::add(engine, *class, *variant, host)) {
                break;
            }
            *count -= 1;
        }
    }
    demand.retain(|_, count| *count > 0);
    greedy::fill(engine, since.hosts(), level, demand, budget);
}

/// What the nodes opened since the mark cost together.
pub fn price_since(engine: &Engine<'_, '_>, since: Mark) -> HourlyPrice {
    price_of(engine, &opened_since(engine, since))
}

fn price_of(engine: &Engine<'_, '_>, hosts: &[HostIndex]) -> HourlyPrice {
    hosts.iter().filter_map(|host| Some(choose(engine, engine.open_node(*host)?)?.price)).sum()
}

/// Settles an open node on the cheapest type that holds its pods. False when the pool's limits allow none.
pub fn tighten(engine: &mut Engine<'_, '_>, host: HostIndex) -> bool {
    let Some(open) = engine.open_node(host) else { return false };
    let Some(set) = alternatives_of(engine, host) else { return true };
    let widest = crate::core::scheduler::OpenNode { set, ..open.clone() };
    let Some(choice) = choose(engine, &widest) else { return true };
    let mut types = widest.set.types.clone();
    types.clear();
    types.insert(choice.instance_type);
    let template = &engine.problem.templates[open.template];
    let entry = &template.offerings.types[choice.instance_type];
    // Zones that cost the same stay open: a pod that comes later may need one of them.
    let same_price = crate::core::scheduler::offerings::bits(widest.set.slots & entry.available)
        .filter(|slot| entry.price(*slot) == choice.price);
    let slots = same_price.fold(0, |slots, slot| slots | 1 << slot);
    let capacity = capacity_of(engine, &widest, &choice);
    let mut planned = engine.planned(open.template).clone();
    planned.subtract(&open.limit_capacity);
    let allowed = template.limit_exceeded(&planned, &capacity).is_none();
    engine.fix(host, OfferingSet { types, slots }, capacity);
    allowed
}
