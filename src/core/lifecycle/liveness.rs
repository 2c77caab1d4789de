//! A claim that does not get on within its time is given up, so that another one can be tried.

use jiff::Timestamp;

use crate::api::node_claim::NodeClaim;

use super::{DeletionCause, Effect, Observation, Reaction, conditions, seconds_after};

const LAUNCH_TTL_SECONDS: u64 = 5 * 60;
const REGISTRATION_TTL_SECONDS: u64 = 15 * 60;

/// Gives up a claim whose time is over; a node that somebody deleted takes its claim with it.
pub(super) fn react(observation: &Observation<'_>) -> Option<Reaction> {
    let claim = observation.claim;
    let late = |deadline: Option<Timestamp>| deadline.is_some_and(|deadline| observation.now >= deadline);
    let cause = if !claim.is_true(conditions::LAUNCHED) && late(launch_deadline(claim)) {
        DeletionCause::LaunchTimeout
    } else if !claim.is_true(conditions::REGISTERED) && late(registration_deadline(claim)) {
        DeletionCause::RegistrationTimeout
    } else if observation.node.is_some_and(|node| node.metadata.deletion_timestamp.is_some()) {
        DeletionCause::NodeDeleted
    } else {
        return None;
    };
    Some(Reaction { effects: vec![Effect::DeleteClaim(cause)], look_again_at: None })
}

/// When a claim without an instance is given up.
pub(super) fn launch_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let since = conditions::transition(claim, conditions::LAUNCHED).or_else(|| created(claim))?;
    Some(seconds_after(since, LAUNCH_TTL_SECONDS))
}

/// When a claim whose node does not join is given up.
pub(super) fn registration_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let since = conditions::transition(claim, conditions::REGISTERED).or_else(|| created(claim))?;
    Some(seconds_after(since, REGISTRATION_TTL_SECONDS))
}

fn created(claim: &NodeClaim) -> Option<Timestamp> {
    claim.metadata.creation_timestamp.as_ref().map(|time| time.0)
}
