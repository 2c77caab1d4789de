//! When a node is too old, or of another make than its pool.

use jiff::Timestamp;

use crate::inputs::Inputs;
use crate::model::static_hash::{HASH_VERSION, node_pool_hash};
use crate::model::time::{duration_text, seconds_between};
use crate::plan::{Reason, ReasonCode};
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::NodePool;

/// Whether it is older than its `expireAfter`.
pub fn expired(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<Reason> {
    let claim = machine.claim?;
    expired_for_seconds(claim, inputs.now)?;
    let age = seconds_between(claim.metadata.creation_timestamp.as_ref()?.0, inputs.now);
    let text = format!(
        "Expired: {} old, expireAfter {}",
        duration_text(age),
        claim.spec.expire_after.as_ref().map(ToString::to_string).unwrap_or_default()
    );
    Some(Reason { code: ReasonCode::Expired, text })
}

/// For how long it has been older than its `expireAfter`; `None` where it is not.
pub fn expired_for_seconds(claim: &NodeClaim, now: Timestamp) -> Option<i64> {
    let after = i64::try_from(claim.spec.expire_after.as_ref()?.seconds()?).ok()?;
    let age = seconds_between(claim.metadata.creation_timestamp.as_ref()?.0, now);
    (age >= after).then_some(age - after)
}

/// Whether a claim was made from another template than the pool has now.
pub fn is_of_other_template(claim: &NodeClaim, pool: &NodePool) -> bool {
    claim.annotation(keys::NODE_POOL_HASH_VERSION) == Some(HASH_VERSION)
        && claim.annotation(keys::NODE_POOL_HASH).is_some_and(|hash| hash != node_pool_hash(pool))
}
