//! Nodes that are not as the definitions want them, and nodes of pools that left the definitions.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::pass::Pass;
use crate::disrupt::removal_cause::RemovalCause;
use crate::inputs::Inputs;
use crate::scheduler::Engine;
use cutlist_api::node_pool::DisruptionReason;

/// Empty ones first, then the one that drifted first.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    let mut drifted: Vec<&Candidate> = pass.open(candidates);
    drifted.retain(|candidate| candidate.removal_cause.is_some() && !candidate.is_expired());
    drifted.sort_by_key(|candidate| (!candidate.is_empty(), candidate.drifted_since.clone(), candidate.name.clone()));
    for candidate in drifted {
        let Some(cause) = candidate.removal_cause.clone() else { continue };
        if matches!(cause, RemovalCause::PoolRemoved { .. }) && must_be_confirmed(pass.inputs) {
            pass.done.insert(candidate.host);
            pass.disruption.holds.push((candidate.host, RemovalCause::Unconfirmed(Box::new(cause))));
            continue;
        }
        pass.renew(engine, candidate, &cause, Some(DisruptionReason::Drifted));
    }
}

/// No pool is left: more likely a mistake than a wish.
fn must_be_confirmed(inputs: &Inputs<'_>) -> bool {
    inputs.node_pools.is_empty() && !inputs.policy.removal_confirmed
}
