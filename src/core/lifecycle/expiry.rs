//! When a node is too old, or of another make than its pool.

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::core::inputs::Inputs;
use crate::core::model::static_hash::{HASH_VERSION, node_pool_hash};
use crate::core::model::time::{duration_text, seconds_between};
use crate::core::plan::{Reason, ReasonCode};
use crate::core::snapshot::nodes::Machine;

/// Whether it is older than its `expireAfter`.
pub fn expired(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<Reason> {
    let claim = machine.claim?;
    let after = claim.spec.expire_after.as_ref()?.seconds().and_then(|seconds| i64::try_from(seconds).ok())?;
    let age = seconds_between(claim.metadata.creation_timestamp.as_ref()?.0, inputs.now);
    let text = || {
        format!(
            "Expired: {} old, expireAfter {}",
            duration_text(age),
            claim.spec.expire_after.as_ref().map(ToString::to_string).unwrap_or_default()
        )
    };
    (age >= after).then(|| Reason { code: ReasonCode::Expired, text: text() })
}

/// Whether a claim was made from another template than the pool has now.
pub fn is_of_other_template(claim: &NodeClaim, pool: &NodePool) -> bool {
    claim.annotation(keys::NODE_POOL_HASH_VERSION) == Some(HASH_VERSION)
        && claim.annotation(keys::NODE_POOL_HASH).is_some_and(|hash| hash != node_pool_hash(pool))
}
