//! When a node is too old, or of another make than its pool.

use std::fmt;

use jiff::Timestamp;

use crate::inputs::Inputs;
use crate::model::static_hash::{HASH_VERSION, node_pool_hash};
use crate::model::time::{duration_text, seconds_between};
use crate::snapshot::nodes::Machine;
use cutlist_api::duration::NillableDuration;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::NodePool;

/// That a node is older than its `expireAfter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// As exactly as it is said: nodes of one scale-up are of one age.
    age: String,
    after: Option<NillableDuration>,
}

impl fmt::Display for Expiry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = self.after.as_ref().map(ToString::to_string).unwrap_or_default();
        write!(out, "Expired: {} old, expireAfter {after}", self.age)
    }
}

/// Whether it is older than its `expireAfter`.
pub fn expired(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<Expiry> {
    let claim = machine.claim?;
    expired_for_seconds(claim, inputs.now)?;
    let age = seconds_between(claim.metadata.creation_timestamp.as_ref()?.0, inputs.now);
    Some(Expiry { age: duration_text(age), after: claim.spec.expire_after.clone() })
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
