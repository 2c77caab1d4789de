//! Which nodes may go, and which of them should.
//! Behaviour: reference, section 4. The methods and their order: [`methods::METHODS`].

pub mod budgets;
pub mod candidate;
pub mod consolidate;
pub mod cost;
pub mod drift;
pub mod evictions;
mod going_first;
mod methods;
pub mod obstacle;
mod one_for_one;
mod pass;
mod refused;
pub mod rehome;
pub mod removal_cause;
pub mod removed_pools;
pub mod rollout;
pub mod schedules;
pub mod together;
pub mod waves;
pub mod windows;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;

use crate::inputs::Inputs;
pub use crate::plan::Outlook;
use crate::plan::{Balance, HeldBack, RemovalMode};
use crate::provision::backlog::is_reschedulable;
use crate::provision::bound::OpenNode;
use crate::provision::{Provisioning, Purchase};
use crate::scheduler::{Engine, HostIndex};
use crate::snapshot::PodIndex;
use cutlist_api::node_pool::NodePool;

use budgets::{Ledger, PoolNodes};
use consolidate::totals::PoolTotals;
use cost::MoveCosts;
use methods::METHODS;
use pass::Pass;
use removal_cause::RemovalCause;
use removed_pools::{Adoption, removed_pools};
use rollout::Rollouts;

/// Nodes that go together, with the creations that have to come first.
#[derive(Clone, Debug)]
pub struct Removal {
    pub nodes: Vec<Going>,
    pub cause: RemovalCause,
    pub mode: RemovalMode,
    pub purchases: Vec<Purchase>,
    /// Pods that move to nodes that exist: position in the snapshot, host.
    pub placements: Vec<(PodIndex, HostIndex)>,
    /// Of pools with `Balanced`.
    pub balances: Vec<Balance>,
}

/// One node that goes.
#[derive(Clone, Debug)]
pub struct Going {
    pub host: HostIndex,
    /// Positions of all its pods that have to move.
    pub pods: Vec<PodIndex>,
}

/// What disruption came to.
#[derive(Clone, Debug, Default)]
pub struct Disruption {
    pub removals: Vec<Removal>,
    /// Nodes that a confirmation is needed for.
    pub holds: Vec<(HostIndex, RemovalCause)>,
    pub held_back: Vec<HeldBack>,
    /// Nodes that stay, and belong to another pool from now on.
    pub adoptions: Vec<Adoption>,
    pub budgets: Ledger,
    pub candidates: usize,
    /// Of what consolidation looked at; `None` where it had nothing to look at.
    pub consolidation: Option<Outlook>,
    /// Nodes that might have gone to save money.
    pub open: Vec<OpenNode>,
}

/// Looks at every candidate. The engine holds the result of provisioning before, and of both after.
/// O(sum over candidates of their pods times nodes), most of which are refused by one comparison.
pub fn disrupt(engine: &mut Engine<'_, '_>, inputs: &Inputs<'_>, provisioning: &Provisioning) -> Disruption {
    let costs = MoveCosts::new(inputs, engine.problem);
    let candidates = candidate::candidates(engine, inputs, provisioning, &costs);
    let pools: Vec<NodePool> = inputs.node_pools.iter().chain(removed_pools(inputs)).cloned().collect();
    let ledger = Ledger::new(&pools, inputs.disruption_budgets, &pool_nodes(engine, inputs), inputs.now);
    let ledger = ledger.placed(inputs.places);
    let mut targets = rehome::targets(engine, inputs, provisioning);
    for candidate in candidates.iter().filter(|candidate| candidate.removal_cause.is_some()) {
        targets[candidate.host].leaving = true;
    }
    let mut pass = Pass {
        inputs,
        targets,
        held_back: Vec::new(),
        disruption: Disruption { budgets: ledger, candidates: candidates.len(), ..Disruption::default() },
        done: BTreeSet::new(),
        tried_without: 0,
        left_over: BTreeMap::new(),
        costs,
        pool_totals: pool_totals(engine, inputs),
        created: BTreeSet::new(),
        replaced: BTreeSet::new(),
        rollouts: Rollouts::new(engine, inputs, &candidates),
    };
    for look in METHODS {
        look(&mut pass, engine, &candidates);
    }
    let mut held_back: Vec<HeldBack> =
        pass.held_back.iter().map(|(host, refused)| pass.report(engine, *host, refused)).collect();
    held_back.sort();
    Disruption { held_back, ..pass.disruption }
}

/// All nodes of each pool together, those on their way out as well. Source: reference, section 4.5.
fn pool_totals(engine: &Engine<'_, '_>, inputs: &Inputs<'_>) -> BTreeMap<String, PoolTotals> {
    let problem = engine.problem;
    let mut totals: BTreeMap<String, PoolTotals> = BTreeMap::new();
    for (machine, node) in problem.machines.iter().zip(&problem.nodes).filter(|(machine, _)| machine.is_managed()) {
        let Some(pool) = machine.node_pool() else { continue };
        let pods = node.pods.iter().map(|(pod, _)| &problem.snapshot.pods[*pod]);
        let of_pool = totals.entry(pool.to_owned()).or_default();
        of_pool.price += problem.offer.price_of(inputs, machine).unwrap_or_default();
        of_pool.disruption_cost += cost::of_pods(pods.filter(|pod| is_reschedulable(pod)));
    }
    totals
}

/// Most drains end sooner. Whoever has not let a node go by then may not do so at all.
const LEAVES_FOR_LONG: SignedDuration = SignedDuration::from_mins(10);

/// By pool, what budgets count.
fn pool_nodes(engine: &Engine<'_, '_>, inputs: &Inputs<'_>) -> BTreeMap<String, PoolNodes> {
    let mut nodes: BTreeMap<String, PoolNodes> = BTreeMap::new();
    for machine in engine.problem.machines.iter().filter(|machine| machine.is_managed() && machine.is_initialized()) {
        let terminating = machine.claim.is_some_and(|claim| claim.is_true("InstanceTerminating"));
        let Some(pool) = machine.node_pool().filter(|_| !terminating) else { continue };
        let counted = nodes.entry(pool.to_owned()).or_default();
        counted.counted += 1;
        if machine.is_being_removed() || !machine.is_ready() {
            counted.disrupting += 1;
            counted.price_disrupting += engine.problem.offer.price_of(inputs, machine).unwrap_or_default();
            let since = machine.deleted_at().filter(|since| inputs.now.duration_since(*since) >= LEAVES_FOR_LONG);
            counted.leaving.extend(since.map(|since| (since, machine.name.to_owned())));
        }
    }
    nodes
}
