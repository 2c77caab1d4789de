//! Pods that kube-scheduler binds at once, so that nothing is bought for them.
//!
//! Of some pods the reference asks more than kube-scheduler does: their spreads are also over domains in which there could be a node and is
//! none, and their preferences are kept as long as a node can be had that keeps them. kube-scheduler knows no node that is yet to come:
//! what one that is there takes is bound to it before another has started, and that would run nothing.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use fixedbitset::FixedBitSet;

use crate::scheduler::topology::GroupIndex;
use crate::scheduler::{ClassIndex, Demand, Engine, HostIndex};

use super::backlog::Backlog;
use super::cheapest::WorkBudget;
use super::expected::take_off;
use super::priority;

/// Packs what is wanted, and pods that kube-scheduler binds at once where it may bind them: whether there were any. A plan is carried out in
/// whichever order things come, so where the nodes that are then bought would send these pods away if they joined first, all is packed as
/// if nodes that are there took none of them.
pub fn pack(
    engine: &mut Engine<'_, '_>,
    order: &[ClassIndex],
    backlog: &Backlog,
    demand: &Demand,
    budget: &mut WorkBudget,
) -> bool {
    let start = engine.mark();
    let mut left = demand.clone();
    if let Some(spreads) = bind(engine, order, backlog, &mut left) {
        priority::pack(engine, order, &left, budget);
        if engine.hold_beside_new_nodes(&spreads) {
            return true;
        }
        engine.revert(start);
        *budget = WorkBudget::new(engine.problem);
    }
    priority::pack(engine, order, demand, budget);
    false
}

/// Places pods that would otherwise be bought for, though nodes that are there take them now, and takes them off the demand; gives their
/// spreads, and `None` where there are no such pods. Of pods with a spread all of a class or none: what is bought for some is where the
/// spread wants them, and then so are the others. O(pods x nodes / 64), and nothing where no pod has a spread or preference.
fn bind(
    engine: &mut Engine<'_, '_>,
    order: &[ClassIndex],
    backlog: &Backlog,
    demand: &mut Demand,
) -> Option<BTreeSet<GroupIndex>> {
    let problem = engine.problem;
    let asks_for_more = |class: &ClassIndex| {
        let pods = &problem.classes[*class];
        !pods.spreads.is_empty() || pods.variants.len() > 1
    };
    let ready = ready(engine);
    if ready.is_clear() || !order.iter().any(asks_for_more) {
        return None;
    }
    let mut order: Vec<ClassIndex> = order.to_vec();
    order.sort_by_key(|class| Reverse(problem.classes[*class].priority));
    let start = engine.mark();
    let mut bound: Vec<(ClassIndex, HostIndex)> = Vec::new();
    for class in order {
        if backlog.is_of_buffer(problem, class) {
            continue;
        }
        let found = find(engine, class, waiting(backlog, demand, class), &ready);
        let is_whole = found.hosts.len() == demand.get(&class).copied().unwrap_or(0);
        if found.would_be_bought && (is_whole || problem.classes[class].spreads.is_empty()) {
            bound.extend(found.hosts.into_iter().map(|host| (class, host)));
        }
    }
    engine.revert(start);
    let mut spreads: Option<BTreeSet<GroupIndex>> = None;
    for (class, host) in bound {
        if engine.bind_at_once(class, host) {
            take_off(demand, class);
            spreads.get_or_insert_default().extend(&problem.classes[class].spreads);
        }
    }
    spreads
}

/// Where kube-scheduler could bind pods of a class.
struct Found {
    hosts: Vec<HostIndex>,
    /// Whether a node would be bought for one of them.
    would_be_bought: bool,
}

/// Places as many pods of the class as nodes that are there take.
fn find(engine: &mut Engine<'_, '_>, class: ClassIndex, pods: usize, ready: &FixedBitSet) -> Found {
    let mut found = Found { hosts: Vec::new(), would_be_bought: false };
    while found.hosts.len() < pods {
        let Some(host) = engine.find_at_once(class, ready) else { break };
        found.would_be_bought = found.would_be_bought || would_be_bought(engine, class);
        engine.place_on_existing(class, host);
        found.hosts.push(host);
    }
    found
}

/// Whether a node would be bought for the next pod of the class: before any that exists takes it with fewer of its preferences.
/// O(nodes / 64 + templates x types).
fn would_be_bought(engine: &Engine<'_, '_>, class: ClassIndex) -> bool {
    let takes = |variant| engine.find_existing(class, variant, HostIndex::default(), None).is_some();
    for variant in engine.problem.classes[class].variants.iter().copied() {
        if takes(variant) {
            return false;
        }
        if engine.opens(class, variant) {
            return true;
        }
    }
    false
}

/// Nodes that kube-scheduler may bind pods to now.
fn ready(engine: &Engine<'_, '_>) -> FixedBitSet {
    let machines = &engine.problem.machines;
    let open = engine.existing_hosts().filter(|host| !engine.is_closed(*host) && machines[*host].is_initialized());
    open.map(usize::from).collect()
}

/// How many pods of the class are on no node.
fn waiting(backlog: &Backlog, demand: &Demand, class: ClassIndex) -> usize {
    let Some(pods) = backlog.waiting.get(&class) else { return 0 };
    let unbound = pods.iter().filter(|pod| !backlog.displaced.contains(pod)).count();
    unbound.min(demand.get(&class).copied().unwrap_or(0))
}
