//! Conditions: of any object, and those of a NodeClaim.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::node_claim::NodeClaim;

pub const LAUNCHED: &str = "Launched";
pub const REGISTERED: &str = "Registered";
pub const INITIALIZED: &str = "Initialized";
pub const READY: &str = "Ready";
pub const CONSOLIDATABLE: &str = "Consolidatable";
pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
pub const DRAINED: &str = "Drained";
pub const VOLUMES_DETACHED: &str = "VolumesDetached";
pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
pub const DISRUPTION_REASON: &str = "DisruptionReason";
pub const DRIFTED: &str = "Drifted";

/// The reason of `Registered` where the instance ended before its node joined.
pub const INSTANCE_ENDED: &str = "InstanceEnded";

/// Sets a condition; the time of transition stays when the status does. `Ready` follows the three stages.
pub fn set(claim: &mut NodeClaim, type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    let generation = claim.metadata.generation;
    let conditions = &mut claim.status.get_or_insert_default().conditions;
    write(conditions, type_, status, reason, message, generation, now);
    if [LAUNCHED, REGISTERED, INITIALIZED].contains(&type_) {
        let is_true = |stage: &str| conditions.iter().any(|one| one.type_ == stage && one.status == "True");
        let ready = [LAUNCHED, REGISTERED, INITIALIZED].into_iter().all(is_true);
        let (status, reason) = if ready { ("True", "Ready") } else { ("Unknown", "ReconcilingDependents") };
        write(conditions, READY, status, reason, "", generation, now);
    }
}

/// Takes a condition away. `true` when it was there.
pub fn remove(claim: &mut NodeClaim, type_: &str) -> bool {
    let Some(status) = &mut claim.status else { return false };
    let before = status.conditions.len();
    status.conditions.retain(|condition| condition.type_ != type_);
    status.conditions.len() != before
}

/// When a condition got the status it has.
pub fn transition(claim: &NodeClaim, type_: &str) -> Option<Timestamp> {
    claim.condition(type_).map(|condition| condition.last_transition_time.0)
}

/// Sets a condition of an object of that generation; the time of transition stays when the status does.
pub fn write(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: &str,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) {
    let existing = conditions.iter_mut().find(|condition| condition.type_ == type_);
    let since = existing.as_ref().filter(|condition| condition.status == status);
    let condition = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: since.map_or(Time(now), |condition| condition.last_transition_time.clone()),
    };
    match existing {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
}
