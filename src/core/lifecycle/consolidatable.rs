//! A node becomes a candidate for consolidation when no pod came or went for `consolidateAfter`. Meanwhile it is seen to that it is
//! as large as its claim says.

use std::borrow::Cow;

use cutlist_api::node_claim::NodeClaim;
use jiff::Timestamp;

use super::{Effect, Milestone, Observation, Reaction, conditions, consistency, seconds_after};

pub(super) fn react(observation: &Observation<'_>) -> Reaction {
    let claim = observation.claim;
    let due = observation
        .consolidate_after_seconds
        .and_then(|seconds| Some(seconds_after(quiet_since(observation.claim)?, seconds)));
    let is_due = due.is_some_and(|due| observation.now >= due);
    let is_marked = claim.is_true(conditions::CONSOLIDATABLE);
    // Every claim comes here at every look, and hardly any of them is written.
    let mut written = Cow::Borrowed(claim);
    let mut reached = Vec::new();
    match (is_due, is_marked) {
        (true, false) => {
            let type_ = conditions::CONSOLIDATABLE;
            conditions::set(written.to_mut(), type_, "True", type_, "", observation.now);
            reached.push(Effect::Reached(Milestone::Consolidatable));
        }
        (false, true) => {
            conditions::remove(written.to_mut(), conditions::CONSOLIDATABLE);
        }
        _ => {}
    }
    let fault = observation.node.and_then(|node| consistency::note(&mut written, node, observation.now));
    reached.extend(fault.map(|fault| Effect::Reached(Milestone::Inconsistent { fault })));
    let mut effects = Vec::new();
    if let Cow::Owned(written) = written
        && written != *claim
    {
        effects.push(Effect::WriteClaim(Box::new(written)));
    }
    effects.append(&mut reached);
    Reaction { effects, look_again_at: due.filter(|_| !is_due) }
}

/// When the last pod came or went; before the first one, when the node was initialized.
pub fn quiet_since(claim: &NodeClaim) -> Option<Timestamp> {
    claim.last_pod_event().or(conditions::transition(claim, conditions::INITIALIZED))
}
