//! The smallest change that would let a pending pod in.
//!
//! Nothing is advised that was not tried: a change is made to copies of the objects, which are compiled and planned for
//! anew. Where nothing but the pod and the pools decides, the pod is tried alone, on top of what the plan takes of the
//! limits; where other pods have a say, the whole cluster is.

mod propose;
mod trial;

use crate::inputs::Inputs;
use crate::plan::Change;
use crate::scheduler::topology::{GroupIndex, GroupKind};
use crate::scheduler::{ClassIndex, Engine};
use crate::snapshot::PodIndex;

use propose::{Side, at_least};
use trial::{Outcome, Refused, TrialScope, Trials, used, used_of};

/// More changes than this together are no advice.
const CHANGES_MAX: usize = 4;

/// Pools that are looked at, nearest first.
const POOLS_MAX: usize = 6;

/// Trials of a single pod in one plan. Each compiles the pools anew, some milliseconds for a whole region.
const TRIALS_MAX: u32 = 40;

/// Pods that are compiled and placed anew in all trials of the whole cluster that are made for one plan.
const PODS_TRIED_MAX: usize = 5_000;

/// For one question the whole cluster may be tried so often, however large it is.
const TRIALS_OF_CLUSTER: usize = 16;

/// A pod that is waiting counts as so many: it has to be placed, not only to be compiled.
const WEIGHT_OF_WAITING: usize = 20;

/// Looks for changes, with a limit on the work.
pub struct Adviser<'e, 'a> {
    trials: Trials<'e, 'a>,
    limited_pools: Vec<String>,
}

impl<'e, 'a> Adviser<'e, 'a> {
    /// For all pending pods of a plan: `engine` holds what provisioning came to, which looked at so many pods.
    pub fn new(engine: &Engine<'e, 'a>, inputs: &'e Inputs<'a>, waiting: usize) -> Self {
        Self::with_work(engine, inputs, waiting, |_| PODS_TRIED_MAX)
    }

    /// For one pod.
    pub fn for_one_pod(engine: &Engine<'e, 'a>, inputs: &'e Inputs<'a>, waiting: usize) -> Self {
        Self::with_work(engine, inputs, waiting, |cost| PODS_TRIED_MAX.max(TRIALS_OF_CLUSTER * cost))
    }

    fn with_work(
        engine: &Engine<'e, 'a>,
        inputs: &'e Inputs<'a>,
        waiting: usize,
        pods_tried: impl Fn(usize) -> usize,
    ) -> Self {
        let cost = inputs.snapshot.pods.len() + WEIGHT_OF_WAITING * waiting;
        let limited = engine.problem.templates.iter().filter(|template| template.is_limited());
        Self {
            limited_pools: limited.map(|template| template.name.clone()).collect(),
            trials: Trials::new((inputs, engine.problem), used(engine), TRIALS_MAX, pods_tried(cost), cost),
        }
    }

    /// Whether there is work left for a trial of a single pod.
    pub fn is_spent(&self) -> bool {
        self.trials.is_spent()
    }

    /// The fewest changes that let in one of these pods of a class; of as few, those of the nearest pool. Changes of pods
    /// are made to all of them. `None` when none was found, or the work is used up.
    pub fn advise(&mut self, engine: &Engine<'_, '_>, class: ClassIndex, pods: &[PodIndex]) -> Option<Vec<Change>> {
        let scope = if is_alone(engine, class) { TrialScope::OnePod } else { TrialScope::Cluster };
        let Outcome::Refused(nearest) = self.trials.run(&[], pods, scope)? else { return None };
        let mut best: Option<Vec<Change>> = None;
        for refused in nearest.iter().take(POOLS_MAX) {
            for side in [Side::Pool, Side::Pod] {
                let most = best.as_ref().map_or(CHANGES_MAX, |best| best.len() - 1);
                // No pod is told to do with less where its pool can have what it needs.
                let found = self.enough_for(pods, refused, side, scope, most);
                best = found.filter(|found| best.is_none() || !found.iter().any(Change::lowers)).or(best);
            }
            if best.as_ref().is_some_and(|best| best.len() == 1) {
                break;
            }
        }
        best
    }

    /// Does away with every refusal of one pool, and with those that then come up, until a pod gets in.
    fn enough_for(
        &mut self,
        pods: &[PodIndex],
        refused: &Refused,
        side: Side,
        scope: TrialScope,
        most: usize,
    ) -> Option<Vec<Change>> {
        let mut changes: Vec<Change> = Vec::new();
        let mut proposals = proposals_of(refused, side)?;
        loop {
            let before = changes.clone();
            proposals.into_iter().for_each(|change| include(&mut changes, change));
            if changes.len() > most {
                return None;
            }
            if changes == before {
                // What is enough for one more node may be taken by others.
                let raises =
                    |change: &Change| matches!(change, Change::RaiseLimit { .. } | Change::RaiseClusterLimit { .. });
                return if changes.iter().any(raises) { self.raised_to_what_is_used(changes, pods) } else { None };
            }
            match self.trials.run(&changes, pods, scope)? {
                Outcome::Placed(_) => break,
                Outcome::Refused(now) => {
                    proposals = proposals_of(now.iter().find(|it| it.pool == refused.pool)?, side)?;
                }
            }
        }
        if scope == TrialScope::OnePod && self.limited_pools.contains(&refused.pool) {
            return self.confirmed(changes, pods);
        }
        Some(changes)
    }

    /// Pods share limits: when there is more of them, the search may use it otherwise. So all are planned for anew, as
    /// far as the work allows; beyond, what was tried on top of this plan stands.
    fn confirmed(&mut self, changes: Vec<Change>, pods: &[PodIndex]) -> Option<Vec<Change>> {
        match self.trials.run(&changes, pods, TrialScope::Cluster) {
            None | Some(Outcome::Placed(_)) => Some(changes),
            Some(Outcome::Refused(_)) => self.raised_to_what_is_used(changes, pods),
        }
    }

    /// Without the limits, what do the pools come to use? That much is enough.
    fn raised_to_what_is_used(&mut self, mut changes: Vec<Change>, pods: &[PodIndex]) -> Option<Vec<Change>> {
        let mut without = changes.clone();
        for change in &mut without {
            if let Change::RaiseLimit { to, .. } | Change::RaiseClusterLimit { to, .. } = change {
                *to = i64::MAX.to_string();
            }
        }
        let Outcome::Placed(used) = self.trials.run(&without, pods, TrialScope::Cluster)? else { return None };
        for change in &mut changes {
            let (pool, resource, to) = match change {
                Change::RaiseLimit { node_pool, resource, to, .. } => (Some(node_pool.as_str()), resource, to),
                Change::RaiseClusterLimit { resource, to, .. } => (None, resource, to),
                _ => continue,
            };
            *to = at_least(resource, used_of(&used, pool)?.get(resource));
        }
        match self.trials.run(&changes, pods, TrialScope::Cluster)? {
            Outcome::Placed(_) => Some(changes),
            Outcome::Refused(_) => None,
        }
    }
}

/// Whether no other pod decides where this class may be.
fn is_alone(engine: &Engine<'_, '_>, class: ClassIndex) -> bool {
    let problem = engine.problem;
    let pods = &problem.classes[class];
    let is_anti_affinity = |group: &GroupIndex| matches!(problem.groups[*group].kind, GroupKind::AntiAffinity);
    pods.variants.iter().all(|variant| problem.variants[*variant].constraints.is_empty())
        && !pods.counted_in.iter().any(is_anti_affinity)
}

fn proposals_of(refused: &Refused, side: Side) -> Option<Vec<Change>> {
    match side {
        Side::Pool => refused.on_side_of_pool.clone(),
        Side::Pod => refused.on_side_of_pod.clone(),
    }
}

/// A second word on the same thing replaces the first, but what it was before stays what it was.
fn include(changes: &mut Vec<Change>, mut change: Change) {
    for other in changes.iter_mut() {
        match (&*other, &mut change) {
            (
                Change::RaiseLimit { node_pool: of, resource: one, .. },
                Change::RaiseLimit { node_pool, resource, .. },
            ) if of == node_pool && one == resource => {}
            (Change::RaiseClusterLimit { resource: one, .. }, Change::RaiseClusterLimit { resource, .. })
                if one == resource => {}
            (Change::LowerRequest { resource: one, from: first, .. }, Change::LowerRequest { resource, from, .. })
                if one == resource =>
            {
                from.clone_from(first);
            }
            (one, two) if *one == *two => return,
            _ => continue,
        }
        *other = change;
        return;
    }
    changes.push(change);
}
