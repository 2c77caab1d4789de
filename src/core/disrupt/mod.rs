//! Which nodes may go, and which of them should.
//! Behaviour: reference, section 4. Order of the methods: interrupted, broken, surplus, expired, empty, drifted, underutilized.

pub mod budgets;
pub mod candidate;
pub mod consolidate;
pub mod cost;
pub mod doubts;
pub mod drift;
pub mod evictions;
mod expired;
mod interrupted;
pub mod obstacle;
pub mod pod_disruption_budgets;
mod refused;
pub mod rehome;
pub mod removed_pools;
pub mod repair;
pub mod rollout;
pub mod schedules;
mod static_capacity;
pub mod waves;
pub mod windows;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::api::node_pool::{DisruptionReason, NodePool};
use crate::api::settings::Packing;
use crate::core::inputs::Inputs;
use crate::core::model::IndexVec;
pub use crate::core::plan::Outlook;
use crate::core::plan::{Balance, DefinitionPlace, HeldBack, Reason, ReasonCode, RemovalMode, field_of};
use crate::core::provision::backlog::is_reschedulable;
use crate::core::provision::bound::Open;
use crate::core::provision::{Provisioning, Purchase};
use crate::core::scheduler::quota::Scope;
use crate::core::scheduler::{Engine, HostIndex};

use budgets::{Ledger, PoolNodes};
use candidate::{Candidate, NotConsolidatable};
use consolidate::obstacle::NotSaved;
use consolidate::rules::{Likeness, PoolTotals};
use cost::MoveCosts;
use obstacle::NodeObstacle;
use refused::{Cause, Refused};
use rehome::{Rehoming, Target};
use removed_pools::{Adoption, removed_pools};
use rollout::{RolloutObstacle, Rollouts};
use static_capacity::StaticObstacle;

/// Nodes that go together, with the creations that have to come first.
#[derive(Clone, Debug)]
pub struct Removal {
    pub nodes: Vec<Going>,
    pub reason: Reason,
    pub mode: RemovalMode,
    pub purchases: Vec<Purchase>,
    /// Pods that move to nodes that exist: position in the snapshot, host.
    pub placements: Vec<(usize, HostIndex)>,
    /// Of pools with `Balanced`.
    pub balances: Vec<Balance>,
}

/// One node that goes.
#[derive(Clone, Debug)]
pub struct Going {
    pub host: HostIndex,
    /// Positions of all its pods that have to move.
    pub pods: Vec<usize>,
}

/// What disruption came to.
#[derive(Clone, Debug, Default)]
pub struct Disruption {
    pub removals: Vec<Removal>,
    /// Nodes that a confirmation is needed for.
    pub holds: Vec<(HostIndex, Reason)>,
    pub held_back: Vec<HeldBack>,
    /// Nodes that stay, and belong to another pool from now on.
    pub adoptions: Vec<Adoption>,
    pub budgets: Ledger,
    pub candidates: usize,
    /// Of what consolidation looked at; `None` where it had nothing to look at.
    pub consolidation: Option<Outlook>,
    /// Nodes that might have gone to save money.
    pub open: Vec<Open>,
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
    // The reference moves pods onto nodes that have drifted, and moves them again when it comes to these.
    let is_reference = inputs.policy.packing == Packing::Karpenter;
    let leaves = |cause: &Reason| !is_reference || cause.code != ReasonCode::Drifted;
    for candidate in candidates.iter().filter(|candidate| candidate.removal_cause.as_ref().is_some_and(leaves)) {
        targets[candidate.host].leaving = true;
    }
    let mut pass = Pass {
        inputs,
        targets,
        held_back: Vec::new(),
        disruption: Disruption { budgets: ledger, candidates: candidates.len(), ..Disruption::default() },
        done: BTreeSet::new(),
        left_over: BTreeMap::new(),
        costs,
        pool_totals: pool_totals(engine, inputs),
        created: BTreeSet::new(),
        replaced: BTreeSet::new(),
        rollouts: Rollouts::new(engine, inputs, &candidates),
    };
    pass.replace_interrupted(engine, &candidates);
    pass.hold_doubtful(engine, &candidates);
    pass.repair(engine, &candidates);
    pass.adopt(engine, &candidates);
    // What asks no budget first: the others have what is left.
    pass.remove_surplus(engine, &candidates);
    for candidate in pass.open(&candidates) {
        if let Some(obstacle) = candidate.obstacle.clone() {
            let cause = candidate.removal_cause.as_ref().map(Cause::from);
            pass.hold_back(candidate.host, Refused { cause, ..obstacle.into() });
        }
    }
    pass.replace_expired(engine, &candidates);
    pass.remove_empty(engine, &candidates);
    pass.replace_drifted(engine, &candidates);
    // Money is no reason to be less varied.
    engine.lower_min_values(false);
    pass.consolidate(engine, &candidates);
    let mut held_back: Vec<HeldBack> =
        pass.held_back.iter().map(|(host, refused)| pass.report(engine, *host, refused)).collect();
    held_back.sort();
    Disruption { held_back, ..pass.disruption }
}

/// One look at all candidates.
#[derive(Clone)]
struct Pass<'p, 'a> {
    inputs: &'p Inputs<'a>,
    /// Where pods that have to move may go.
    targets: IndexVec<HostIndex, Target>,
    /// Candidates that stay, and why.
    held_back: Vec<(HostIndex, Refused)>,
    disruption: Disruption,
    /// Candidates that were decided on.
    done: BTreeSet<HostIndex>,
    /// Candidates that one method refused and left to the next, and why: it is said as well if they stay.
    left_over: BTreeMap<HostIndex, Refused>,
    costs: MoveCosts,
    /// By NodePool.
    pool_totals: BTreeMap<String, PoolTotals>,
    /// What consolidation creates, and what it removes.
    created: BTreeSet<Likeness>,
    replaced: BTreeSet<Likeness>,
    rollouts: Rollouts,
}

impl Pass<'_, '_> {
    fn hold_back(&mut self, host: HostIndex, refused: impl Into<Refused>) {
        self.done.insert(host);
        let refused = refused.into();
        let refused = match self.left_over.remove(&host) {
            Some(first) => first.nor_to_save(refused),
            None => refused,
        };
        self.held_back.push((host, refused));
    }

    /// As the report says it.
    fn report(&self, engine: &Engine<'_, '_>, host: HostIndex, refused: &Refused) -> HeldBack {
        let definition = refused.definition.clone().or_else(|| self.definition(engine, host, &refused.obstacle));
        let node = engine.problem.machines[host].name.to_owned();
        let budget = match refused.obstacle.as_ref() {
            NodeObstacle::Budget(spent) => Some(spent.for_plan()),
            _ => None,
        };
        HeldBack { node, code: refused.obstacle.code(), text: refused.to_string(), budget, definition }
    }

    /// Where the definition of its pool has what keeps a node.
    fn definition(&self, engine: &Engine<'_, '_>, host: HostIndex, obstacle: &NodeObstacle) -> Option<DefinitionPlace> {
        use NotConsolidatable::{Never, NotQuiet, OnlyWhenEmpty, StaticPool};
        let pool = engine.problem.machines[host].node_pool()?;
        let limit;
        let pointer = match obstacle {
            NodeObstacle::NoPlace { nearest, .. } => return nearest.as_ref()?.definition.clone(),
            NodeObstacle::Budget(spent) => return spent.definition.clone(),
            NodeObstacle::Static(StaticObstacle::Limit { scope: Scope::NodePool, resource }) => {
                limit = field_of("/spec/limits", resource);
                limit.as_str()
            }
            NodeObstacle::NotSaved(NotSaved::Limit(limit)) => {
                let of_pool = limit.scope == Scope::NodePool;
                let pointer = field_of("/spec/limits", &limit.resource);
                return self.inputs.places.of_pool(&limit.node_pool, &pointer).filter(|_| of_pool);
            }
            NodeObstacle::NotConsolidatable(NotQuiet { .. }) => "/spec/disruption/consolidateAfter",
            NodeObstacle::NotConsolidatable(StaticPool { .. }) => "/spec/replicas",
            NodeObstacle::NotConsolidatable(Never | OnlyWhenEmpty)
            | NodeObstacle::NotSaved(NotSaved::NotBalanced(_)) => "/spec/disruption",
            _ => return None,
        };
        self.inputs.places.of_pool(pool, pointer)
    }

    fn open<'c>(&self, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
        candidates.iter().filter(|candidate| !self.done.contains(&candidate.host)).collect()
    }

    /// Nodes without pods that would have to move, the dearest first: of budgets that do not do for all, the most is saved.
    /// Nothing has to be placed, so each costs a comparison. Source: reference, section 4.3.
    fn remove_empty(&mut self, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
        let mut empty: Vec<&Candidate> = self.open(candidates);
        empty.retain(|candidate| candidate.is_empty());
        empty.sort_by_key(|candidate| (Reverse(candidate.price_counted()), &candidate.name));
        for candidate in empty {
            match self.take_empty(candidate) {
                Ok(()) => {
                    let text = format!("Empty for {}", candidate.quiet_text(self.inputs.now));
                    self.remove(engine, &[candidate], Reason { code: ReasonCode::Empty, text }, Rehoming::default());
                }
                // What drifted may go for that reason, whatever the policy says of emptiness.
                Err(_) if candidate.removal_cause.is_some() => {}
                Err(refused) => self.hold_back(candidate.host, refused),
            }
        }
    }

    /// Takes a node without pods off the budgets, if it may go as one.
    fn take_empty(&mut self, candidate: &Candidate) -> Result<(), Refused> {
        self.may_go_as_empty(candidate)?;
        // Asked just now.
        let _ = self.disruption.budgets.take(&candidate.pool, DisruptionReason::Empty, candidate.price_counted());
        Ok(())
    }

    fn may_go_as_empty(&self, candidate: &Candidate) -> Result<(), Refused> {
        candidate.consolidatable_at(self.inputs.now)?;
        self.is_not_receiving(candidate)?;
        self.disruption.budgets.check(&candidate.pool, DisruptionReason::Empty, candidate.price_counted())
    }

    /// Empty ones first, then the one that drifted first.
    fn replace_drifted(&mut self, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
        let mut drifted: Vec<&Candidate> = self.open(candidates);
        drifted.retain(|candidate| {
            candidate.removal_cause.as_ref().is_some_and(|cause| cause.code != ReasonCode::Expired)
        });
        drifted
            .sort_by_key(|candidate| (!candidate.is_empty(), candidate.drifted_since.clone(), candidate.name.clone()));
        for candidate in drifted {
            let Some(cause) = candidate.removal_cause.clone() else { continue };
            if cause.code == ReasonCode::NodePoolRemoved && self.must_be_confirmed() {
                self.done.insert(candidate.host);
                let text = format!("{}; removing every NodePool needs a confirmation", cause.text);
                self.disruption.holds.push((candidate.host, Reason { code: ReasonCode::ConfirmationNeeded, text }));
                continue;
            }
            self.renew(engine, candidate, cause, Some(DisruptionReason::Drifted));
        }
    }

    /// No pool is left: more likely a mistake than a wish.
    fn must_be_confirmed(&self) -> bool {
        self.inputs.node_pools.is_empty() && !self.inputs.policy.removal_confirmed
    }

    /// A node of a static pool is replaced by another of it.
    fn renew(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: Reason,
        budget: Option<DisruptionReason>,
    ) {
        if candidate.is_static {
            self.replace_static(engine, candidate, cause, budget);
        } else {
            self.replace(engine, candidate, cause, budget);
        }
    }

    /// Finds a place for every pod, on new nodes if need be, whatever they cost; whether the node goes.
    fn replace(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: Reason,
        budget: Option<DisruptionReason>,
    ) -> bool {
        if let Err(refused) = self.may_go_now(candidate, &cause, budget) {
            self.leave_over(candidate, refused.although(&cause));
            return false;
        }
        let mark = engine.mark();
        let rehomed = rehome::rehome(engine, &[candidate], &self.targets, self.inputs);
        let allowed = rehomed.and_then(|rehoming| {
            self.launch(engine, candidate, &cause, &rehoming)?;
            Ok(rehoming)
        });
        match allowed {
            Ok(rehoming) => {
                self.spend(engine, candidate, budget);
                self.remove(engine, &[candidate], cause, rehoming);
                true
            }
            Err(obstacle) => {
                engine.revert(mark);
                // Karpenter would drain it all the same, and leave its pods pending.
                let goes_when_placed = candidate.is_expired();
                let refused = Refused { goes_when_placed, ..obstacle.into() };
                self.leave_over(candidate, refused.although(&cause));
                false
            }
        }
    }

    /// Whether anything but its pods keeps a node from going for this reason.
    fn may_go_now(
        &self,
        candidate: &Candidate,
        cause: &Reason,
        budget: Option<DisruptionReason>,
    ) -> Result<(), Refused> {
        if let Some(obstacle) = self.rollout_obstacle(candidate, cause) {
            return Err(obstacle.into());
        }
        let check = |reason| self.disruption.budgets.check(&candidate.pool, reason, candidate.price_counted());
        budget.map_or(Ok(()), check)
    }

    /// A node that drifted, and may not go for that now: it may still go to save money, unless its pods would find no place.
    /// Source: reference, section 4.1: each method looks at all candidates.
    fn leave_over(&mut self, candidate: &Candidate, refused: Refused) {
        let is_of_rollout = matches!(*refused.obstacle, NodeObstacle::Budget(_) | NodeObstacle::Rollout(_));
        if !is_of_rollout || candidate.is_static || candidate.disruption.is_none() {
            return self.hold_back(candidate.host, refused);
        }
        self.left_over.insert(candidate.host, refused);
        // As empty it did not go before.
        if let Some(refused) = self.may_go_as_empty(candidate).err().filter(|_| candidate.is_empty()) {
            self.hold_back(candidate.host, refused);
        }
    }

    /// Takes a node off the budgets, which were asked about it where it goes for a reason that asks any.
    fn spend(&mut self, engine: &Engine<'_, '_>, candidate: &Candidate, budget: Option<DisruptionReason>) {
        let ledger = &mut self.disruption.budgets;
        let machine = &engine.problem.machines[candidate.host];
        match budget {
            Some(reason) => {
                // Asked before; nothing was taken since.
                let _ = ledger.take(&candidate.pool, reason, candidate.price_counted());
            }
            // What is not ready is taken off for that already.
            None if machine.is_initialized() && machine.is_ready() => {
                ledger.take_by_force(&candidate.pool, candidate.price_counted());
            }
            None => {}
        }
    }

    /// Why a node is not replaced before it is known by what. One without pods takes nothing with it.
    fn rollout_obstacle(&self, candidate: &Candidate, cause: &Reason) -> Option<RolloutObstacle> {
        let waits = is_rollout(cause) && (candidate.is_static || !candidate.is_empty());
        if waits { self.rollouts.obstacle(&candidate.pool) } else { None }
    }

    /// Whether what replaces a node may be launched now.
    fn launch(
        &mut self,
        engine: &Engine<'_, '_>,
        candidate: &Candidate,
        cause: &Reason,
        rehoming: &Rehoming,
    ) -> Result<(), NodeObstacle> {
        if !is_rollout(cause) {
            return Ok(());
        }
        let templates = &engine.problem.templates;
        let pools = rehoming.purchases.iter().map(|purchase| templates[purchase.template].name.as_str());
        Ok(self.rollouts.launch(pools, &candidate.name, &candidate.pool)?)
    }

    fn remove(&mut self, engine: &mut Engine<'_, '_>, going: &[&Candidate], reason: Reason, rehoming: Rehoming) {
        self.remove_as(RemovalMode::Graceful, engine, going, reason, rehoming);
    }

    fn remove_as(
        &mut self,
        mode: RemovalMode,
        engine: &mut Engine<'_, '_>,
        going: &[&Candidate],
        reason: Reason,
        rehoming: Rehoming,
    ) {
        for candidate in going {
            engine.close(candidate.host);
            self.done.insert(candidate.host);
            self.targets[candidate.host].stays = false;
        }
        // A node that gets pods by this plan is no candidate any more: nothing moves twice.
        for (_, host) in &rehoming.placements {
            if let Some(target) = self.targets.get_mut(*host) {
                target.receives = true;
            }
        }
        let going = going.iter().map(|candidate| Going { host: candidate.host, pods: candidate.pods.clone() });
        self.disruption.removals.push(Removal {
            nodes: going.collect(),
            reason,
            mode,
            purchases: rehoming.purchases,
            placements: rehoming.placements,
            balances: Vec::new(),
        });
    }
}

/// Whether nodes go for this because the definitions changed.
fn is_rollout(cause: &Reason) -> bool {
    matches!(cause.code, ReasonCode::Drifted | ReasonCode::NodePoolRemoved)
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
        }
    }
    nodes
}
