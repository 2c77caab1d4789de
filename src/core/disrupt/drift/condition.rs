//! Drift as NodeClaims say it: the condition `Drifted`, which Karpenter's controller writes and here nobody else does. Those that
//! drifted first go first, and the moment stands nowhere else.

use crate::inputs::Inputs;
use crate::lifecycle::conditions;
use crate::snapshot::nodes::machines;
use cutlist_api::node_claim::NodeClaim;

/// Claims whose condition `Drifted` is not what is seen of them, with the one that is. Those that go are left as they are.
pub fn to_mark(inputs: &Inputs<'_>) -> Vec<NodeClaim> {
    let all = machines(inputs.snapshot);
    let marked = all.iter().filter_map(|machine| {
        let claim = machine.claim.filter(|claim| claim.metadata.deletion_timestamp.is_none())?;
        let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == machine.node_pool())?;
        let is_launched = claim.is_true(conditions::LAUNCHED);
        let seen = is_launched.then(|| super::drift(inputs, machine, pool)).flatten();
        let marked = claim.condition(conditions::DRIFTED);
        let Some(drift) = seen else {
            let mut written = marked.is_some().then(|| claim.clone())?;
            conditions::remove(&mut written, conditions::DRIFTED);
            return Some(written);
        };
        let reason = drift.cause.reason();
        if marked.is_some_and(|it| it.status == "True" && it.reason == reason) {
            return None;
        }
        let mut written = claim.clone();
        conditions::set(&mut written, conditions::DRIFTED, "True", reason, &drift.message, inputs.now);
        Some(written)
    });
    marked.collect()
}
