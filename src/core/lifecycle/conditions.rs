//! Conditions of a NodeClaim.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::node_claim::NodeClaim;

pub const LAUNCHED: &str = "Launched";
pub const REGISTERED: &str = "Registered";
pub const INITIALIZED: &str = "Initialized";
pub const READY: &str = "Ready";
pub const CONSOLIDATABLE: &str = "Consolidatable";
pub const DRAINED: &str = "Drained";
pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
pub const DISRUPTION_REASON: &str = "DisruptionReason";

/// Sets a condition; the time of transition stays when the status does. `Ready` follows the three stages.
pub fn set(claim: &mut NodeClaim, type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    write(claim, type_, status, reason, message, now);
    if [LAUNCHED, REGISTERED, INITIALIZED].contains(&type_) {
        let ready = [LAUNCHED, REGISTERED, INITIALIZED].into_iter().all(|stage| claim.is_true(stage));
        let (status, reason) = if ready { ("True", "Ready") } else { ("Unknown", "ReconcilingDependents") };
        write(claim, READY, status, reason, "", now);
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

fn write(claim: &mut NodeClaim, type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    let observed_generation = claim.metadata.generation;
    let conditions = &mut claim.status.get_or_insert_default().conditions;
    let new = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(now),
        observed_generation,
    };
    match conditions.iter_mut().find(|condition| condition.type_ == type_) {
        Some(existing) if existing.status == status => {
            *existing = Condition { last_transition_time: existing.last_transition_time.clone(), ..new };
        }
        Some(existing) => *existing = new,
        None => conditions.push(new),
    }
}
