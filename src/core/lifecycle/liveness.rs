//! A claim that does not get on within its time is given up, so that another one can be tried.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use cutlist_api::node_claim::NodeClaim;

use super::{DeletionCause, conditions, seconds_after};

const LAUNCH_TTL_SECONDS: u64 = 5 * 60;
const REGISTRATION_TTL_SECONDS: u64 = 15 * 60;
const INITIALIZATION_TTL_SECONDS: u64 = 15 * 60;
/// A claim whose instance has ended stays so long with what EC2 said, for those who look.
const ENDED_TTL_SECONDS: u64 = 30;

/// Why a claim is given up now: its time is over, or somebody deleted its node. One that has registered may take as long as it
/// wants, unless a node waits for it: that one stays, and another replacement may be tried.
pub fn given_up(claim: &NodeClaim, node: Option<&Node>, is_awaited: bool, now: Timestamp) -> Option<DeletionCause> {
    if claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let late = |deadline: Option<Timestamp>| deadline.is_some_and(|deadline| now >= deadline);
    if !claim.is_true(conditions::LAUNCHED) && late(launch_deadline(claim)) {
        Some(DeletionCause::LaunchTimeout)
    } else if !claim.is_true(conditions::REGISTERED) && late(registration_deadline(claim)) {
        Some(if instance_has_ended(claim) { DeletionCause::InstanceEnded } else { DeletionCause::RegistrationTimeout })
    } else if node.is_some_and(|node| node.metadata.deletion_timestamp.is_some()) {
        Some(DeletionCause::NodeDeleted)
    } else if is_awaited && late(initialization_deadline(claim)) {
        Some(DeletionCause::InitializationTimeout)
    } else {
        None
    }
}

/// When a claim without an instance is given up.
pub(super) fn launch_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let since = conditions::transition(claim, conditions::LAUNCHED).or_else(|| created(claim))?;
    Some(seconds_after(since, LAUNCH_TTL_SECONDS))
}

/// When a claim whose node does not join is given up.
pub(super) fn registration_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let since = conditions::transition(claim, conditions::REGISTERED).or_else(|| created(claim))?;
    let seconds = if instance_has_ended(claim) { ENDED_TTL_SECONDS } else { REGISTRATION_TTL_SECONDS };
    Some(seconds_after(since, seconds))
}

/// Whether it was noted that the instance of a claim ended before its node joined.
pub fn instance_has_ended(claim: &NodeClaim) -> bool {
    let condition = claim.condition(conditions::REGISTERED);
    condition.is_some_and(|it| it.status == "False" && it.reason == conditions::INSTANCE_ENDED)
}

/// When a replacement whose node has joined and does not become ready is given up.
pub(super) fn initialization_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    if !claim.is_true(conditions::REGISTERED) || claim.is_true(conditions::INITIALIZED) {
        return None;
    }
    Some(seconds_after(conditions::transition(claim, conditions::REGISTERED)?, INITIALIZATION_TTL_SECONDS))
}

fn created(claim: &NodeClaim) -> Option<Timestamp> {
    claim.metadata.creation_timestamp.as_ref().map(|time| time.0)
}
