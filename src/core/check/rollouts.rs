//! Changes of definitions: one new node of a pool shows that they become ready before more nodes go for them, and none goes
//! while they do not.

use std::collections::{BTreeMap, BTreeSet};

use crate::lifecycle::rollout_failures::Failures;
use crate::model::static_hash::{HASH_VERSION, node_pool_hash};
use crate::plan::{Plan, StepKind};
use cutlist_api::keys;
use cutlist_api::settings::Packing;

use super::known::{Existing, Known};
use super::removals::Rights;
use super::steps::steps;
use super::violation::{Findings, ViolationCode, ViolationPlace};

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let removals = steps(plan, StepKind::Remove);
    let changed = removals.filter(|step| Rights::of(step.reason.code).is_rollout);
    let moves: BTreeSet<u32> = changed.map(|step| step.move_number).collect();
    let mut launched: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for step in steps(plan, StepKind::Create).filter(|step| moves.contains(&step.move_number)) {
        launched.entry(&step.node_pool).or_default().insert(step.move_number);
    }
    let rollout = &known.inputs.policy.disruption.rollout;
    let has_canary = rollout.canary.unwrap_or(known.inputs.policy.packing == Packing::Cheapest);
    for (pool, moves) in launched {
        let failed = failures(pool, known);
        if rollout.halt_after_failures > 0 && failed >= rollout.halt_after_failures as usize {
            let text =
                format!("{failed} of its new nodes did not become ready, and more are launched in place of others");
            findings.add(ViolationCode::RolloutHalted, ViolationPlace::pool(pool), text);
        }
        let under_way = of_pool(pool, known).filter(|existing| !existing.initialized && !existing.going).count();
        if has_canary && !of_pool(pool, known).any(is_ready) && moves.len() + under_way > 1 {
            let text = format!(
                "no node of it as it is now is ready, {under_way} are on their way, and {} moves replace nodes by more",
                moves.len()
            );
            findings.add(ViolationCode::NoCanary, ViolationPlace::pool(pool), text);
        }
    }
}

/// Nodes that were made from the pool's template as it is now. A hash of another version tells nothing of that.
fn of_pool<'k>(pool: &'k str, known: &'k Known<'_>) -> impl Iterator<Item = &'k Existing<'k>> {
    let hash = known.pools.get(pool).map(|pool| node_pool_hash(pool));
    known.nodes.values().filter(move |existing| {
        let comparable =
            existing.claim.filter(|claim| claim.annotation(keys::NODE_POOL_HASH_VERSION) == Some(HASH_VERSION));
        let of_claim = comparable.and_then(|claim| claim.annotation(keys::NODE_POOL_HASH));
        existing.pool.as_deref() == Some(pool) && (of_claim.is_none() || of_claim == hash.as_deref())
    })
}

fn is_ready(existing: &Existing<'_>) -> bool {
    let conditions = existing.node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    existing.initialized
        && !existing.going
        && conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// New nodes in a row, of the pool and class as they are defined now, that did not become ready: as the pool in the cluster says.
fn failures(pool: &str, known: &Known<'_>) -> usize {
    let mut applied = known.inputs.snapshot.node_pools.iter();
    let applied = applied.find(|it| it.metadata.name.as_deref() == Some(pool));
    let Some((applied, pool)) = applied.zip(known.pools.get(pool)) else { return 0 };
    let class = known.classes.get(pool.spec.template.spec.node_class_ref.name.as_str()).copied();
    Failures::noted_on(applied).filter(|failures| failures.are_of(pool, class)).map_or(0, |failures| failures.count())
}
