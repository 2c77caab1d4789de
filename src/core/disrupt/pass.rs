//! One look at all candidates, and what methods may do in it: keep a node, replace it, remove it.

use std::collections::{BTreeMap, BTreeSet};

use crate::inputs::Inputs;
use crate::model::IndexVec;
use crate::plan::{DefinitionPlace, HeldBack, RemovalMode, field_of};
use crate::scheduler::quota::LimitScope;
use crate::scheduler::{Engine, HostIndex};
use cutlist_api::node_pool::DisruptionReason;

use super::candidate::Candidate;
use super::consolidate::obstacle::NotSaved;
use super::consolidate::totals::{Likeness, PoolTotals};
use super::cost::MoveCosts;
use super::obstacle::NodeObstacle;
use super::obstacle::consolidation::NotConsolidatable;
use super::obstacle::rollout::RolloutObstacle;
use super::obstacle::static_capacity::StaticObstacle;
use super::refused::Refused;
use super::rehome::{self, Rehoming, Target};
use super::removal_cause::RemovalCause;
use super::rollout::Rollouts;
use super::{Disruption, Going, Removal};

/// One look at all candidates.
#[derive(Clone)]
pub(super) struct Pass<'p, 'a> {
    pub inputs: &'p Inputs<'a>,
    /// Where pods that have to move may go.
    pub targets: IndexVec<HostIndex, Target>,
    /// Candidates that stay, and why.
    pub held_back: Vec<(HostIndex, Refused)>,
    pub disruption: Disruption,
    /// Candidates that were decided on.
    pub done: BTreeSet<HostIndex>,
    /// How many nodes were tried in a cluster without them, in vain.
    pub tried_without: usize,
    /// Candidates that one method refused and left to the next, and why: it is said as well if they stay.
    pub left_over: BTreeMap<HostIndex, Refused>,
    pub costs: MoveCosts,
    /// By NodePool.
    pub pool_totals: BTreeMap<String, PoolTotals>,
    /// What consolidation creates, and what it removes.
    pub created: BTreeSet<Likeness>,
    pub replaced: BTreeSet<Likeness>,
    pub rollouts: Rollouts,
}

impl Pass<'_, '_> {
    pub(super) fn hold_back(&mut self, host: HostIndex, refused: impl Into<Refused>) {
        self.done.insert(host);
        let refused = refused.into();
        let refused = match self.left_over.remove(&host) {
            Some(first) => first.nor_to_save(refused),
            None => refused,
        };
        self.held_back.push((host, refused));
    }

    /// As the report says it.
    pub(super) fn report(&self, engine: &Engine<'_, '_>, host: HostIndex, refused: &Refused) -> HeldBack {
        let definition = refused.definition.clone().or_else(|| self.definition(engine, host, &refused.obstacle));
        let node = engine.problem.machines[host].name.to_owned();
        let budget = match refused.obstacle.as_ref() {
            NodeObstacle::Budget(spent) => Some(spent.for_plan()),
            _ => None,
        };
        HeldBack {
            node,
            code: refused.obstacle.code(),
            text: refused.to_string(),
            kind: refused.kind(),
            budget,
            definition,
        }
    }

    /// Where the definition of its pool has what keeps a node.
    fn definition(&self, engine: &Engine<'_, '_>, host: HostIndex, obstacle: &NodeObstacle) -> Option<DefinitionPlace> {
        use NotConsolidatable::{Never, NotQuiet, OnlyWhenEmpty, StaticPool};
        let pool = engine.problem.machines[host].node_pool()?;
        let limit;
        let pointer = match obstacle {
            NodeObstacle::NoPlace { nearest, .. } => return nearest.as_ref()?.definition.clone(),
            NodeObstacle::Budget(spent) => return spent.definition.clone(),
            NodeObstacle::Static(StaticObstacle::Limit { scope: LimitScope::NodePool, resource }) => {
                limit = field_of("/spec/limits", resource);
                limit.as_str()
            }
            NodeObstacle::NotSaved(NotSaved::Limit(limit)) => {
                let of_pool = limit.scope == LimitScope::NodePool;
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

    pub(super) fn open<'c>(&self, candidates: &'c [Candidate]) -> Vec<&'c Candidate> {
        candidates.iter().filter(|candidate| !self.done.contains(&candidate.host)).collect()
    }

    /// A node of a static pool is replaced by another of it.
    pub(super) fn renew(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: &RemovalCause,
        budget: Option<DisruptionReason>,
    ) {
        if candidate.is_static {
            self.replace_static(engine, candidate, cause, budget);
        } else {
            self.replace(engine, candidate, cause, budget);
        }
    }

    /// Finds a place for every pod, on new nodes if need be, whatever they cost; whether the node goes.
    pub(super) fn replace(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: &RemovalCause,
        budget: Option<DisruptionReason>,
    ) -> bool {
        if let Err(refused) = self.may_go_now(candidate, cause, budget) {
            self.leave_over(candidate, refused.although(cause));
            return false;
        }
        let mark = engine.mark();
        let rehomed = rehome::rehome(engine, &[candidate], &self.targets, self.inputs);
        let replaced = rehomed.and_then(|rehoming| self.take(engine, candidate, cause, budget, rehoming));
        if let Err(obstacle) = replaced {
            engine.revert(mark);
            return match self.go_for_own_place(engine, candidate, cause, obstacle) {
                Ok(()) => true,
                Err(refused) => {
                    // Karpenter would drain it all the same, and leave its pods pending.
                    let goes_when_placed = candidate.is_expired();
                    self.leave_over(candidate, Refused { goes_when_placed, ..refused }.although(cause));
                    false
                }
            };
        }
        true
    }

    /// A node that expired goes before what replaces it is there, if only what it takes itself is in the way.
    pub(super) fn go_for_own_place(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: &RemovalCause,
        obstacle: NodeObstacle,
    ) -> Result<(), Refused> {
        let own_place = self.own_place(engine, candidate, &obstacle);
        if !matches!(cause, RemovalCause::Expired(_)) {
            return Err(Refused { own_place, ..obstacle.into() });
        }
        let Some(own) = own_place.filter(|_| self.has_its_turn(engine, candidate)) else { return Err(obstacle.into()) };
        if let Some(refused) = self.refused_without(engine, candidate, &own, obstacle) {
            return Err(refused);
        }
        self.go_first(engine, candidate, cause, own);
        Ok(())
    }

    /// A node whose pods have other places goes, if what replaces it may be launched now.
    pub(super) fn take(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: &RemovalCause,
        budget: Option<DisruptionReason>,
        rehoming: Rehoming,
    ) -> Result<(), NodeObstacle> {
        self.launch(engine, candidate, cause, &rehoming)?;
        self.spend(engine, candidate, budget);
        self.remove(engine, &[candidate], cause.clone(), rehoming);
        Ok(())
    }

    /// Whether anything but its pods keeps a node from going for this reason.
    pub(super) fn may_go_now(
        &self,
        candidate: &Candidate,
        cause: &RemovalCause,
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

    pub(super) fn may_go_as_empty(&self, candidate: &Candidate) -> Result<(), Refused> {
        candidate.consolidatable_at(self.inputs.now)?;
        self.is_not_receiving(candidate)?;
        self.disruption.budgets.check(&candidate.pool, DisruptionReason::Empty, candidate.price_counted())
    }

    /// What gets pods by this plan gives none away: no pod moves twice.
    pub(super) fn is_not_receiving(&self, candidate: &Candidate) -> Result<(), Refused> {
        if self.targets[candidate.host].receives {
            return Err(NotSaved::Receives.into());
        }
        Ok(())
    }

    /// Takes a node off the budgets, which were asked about it where it goes for a reason that asks any.
    pub(super) fn spend(&mut self, engine: &Engine<'_, '_>, candidate: &Candidate, budget: Option<DisruptionReason>) {
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
    fn rollout_obstacle(&self, candidate: &Candidate, cause: &RemovalCause) -> Option<RolloutObstacle> {
        let waits = cause.is_rollout() && (candidate.is_static || !candidate.is_empty());
        if waits { self.rollouts.obstacle(&candidate.pool) } else { None }
    }

    /// Whether what replaces a node may be launched now.
    fn launch(
        &mut self,
        engine: &Engine<'_, '_>,
        candidate: &Candidate,
        cause: &RemovalCause,
        rehoming: &Rehoming,
    ) -> Result<(), NodeObstacle> {
        if !cause.is_rollout() {
            return Ok(());
        }
        let templates = &engine.problem.templates;
        let pools = rehoming.purchases.iter().map(|purchase| templates[purchase.template].name.as_str());
        Ok(self.rollouts.launch(pools, &candidate.name, &candidate.pool)?)
    }

    pub(super) fn remove(
        &mut self,
        engine: &mut Engine<'_, '_>,
        going: &[&Candidate],
        cause: RemovalCause,
        rehoming: Rehoming,
    ) {
        self.remove_as(RemovalMode::Graceful, engine, going, cause, rehoming);
    }

    /// Whatever budgets allow, with new places for its pods as far as there are any.
    pub(super) fn remove_without_waiting(
        &mut self,
        mode: RemovalMode,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: RemovalCause,
    ) {
        let mark = engine.mark();
        let (cause, rehoming) = match rehome::rehome(engine, &[candidate], &self.targets, self.inputs) {
            Ok(rehoming) => (cause, rehoming),
            Err(obstacle) => {
                engine.revert(mark);
                let (cause, obstacle) = (Box::new(cause), Box::new(obstacle));
                (RemovalCause::WithoutPlaces { cause, obstacle }, Rehoming::default())
            }
        };
        self.spend(engine, candidate, None);
        self.remove_as(mode, engine, &[candidate], cause, rehoming);
    }

    fn remove_as(
        &mut self,
        mode: RemovalMode,
        engine: &mut Engine<'_, '_>,
        going: &[&Candidate],
        cause: RemovalCause,
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
            cause,
            mode,
            purchases: rehoming.purchases,
            placements: rehoming.placements,
            balances: Vec::new(),
        });
    }
}
