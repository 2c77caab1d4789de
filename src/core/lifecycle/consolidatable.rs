//! A node becomes a candidate for consolidation when no pod came or went for `consolidateAfter`.

use jiff::Timestamp;

use super::{Effect, Milestone, Observation, Reaction, conditions, seconds_after};

pub(super) fn react(observation: &Observation<'_>) -> Reaction {
    let claim = observation.claim;
    let due =
        observation.consolidate_after_seconds.and_then(|seconds| Some(seconds_after(since(observation)?, seconds)));
    let is_due = due.is_some_and(|due| observation.now >= due);
    let is_marked = claim.is_true(conditions::CONSOLIDATABLE);
    let mut written = claim.clone();
    let effects = match (is_due, is_marked) {
        (true, false) => {
            let type_ = conditions::CONSOLIDATABLE;
            conditions::set(&mut written, type_, "True", type_, "", observation.now);
            vec![Effect::WriteClaim(Box::new(written)), Effect::Reached(Milestone::Consolidatable)]
        }
        (false, true) => {
            conditions::remove(&mut written, conditions::CONSOLIDATABLE);
            vec![Effect::WriteClaim(Box::new(written))]
        }
        _ => Vec::new(),
    };
    Reaction { effects, look_again_at: due.filter(|_| !is_due) }
}

/// When the last pod came or went; before the first one, when the node was initialized.
fn since(observation: &Observation<'_>) -> Option<Timestamp> {
    let last_pod_event = observation.claim.status.as_ref()?.last_pod_event_time.as_ref();
    let initialized = conditions::transition(observation.claim, conditions::INITIALIZED);
    last_pod_event.and_then(|text| text.parse().ok()).or(initialized)
}
