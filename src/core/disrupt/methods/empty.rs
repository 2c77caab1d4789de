//! Nodes on which nothing runs that would have to move. Source: reference, section 4.3.

use std::cmp::Reverse;

use crate::disrupt::candidate::Candidate;
use crate::disrupt::pass::Pass;
use crate::disrupt::refused::Refused;
use crate::disrupt::rehome::Rehoming;
use crate::scheduler::Engine;
use cutlist_api::node_pool::DisruptionReason;

/// Nodes without pods that would have to move, the dearest first: of budgets that do not do for all, the most is saved.
/// Nothing has to be placed, so each costs a comparison. Source: reference, section 4.3.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    let mut empty: Vec<&Candidate> = pass.open(candidates);
    empty.retain(|candidate| candidate.is_empty());
    empty.sort_by_key(|candidate| (Reverse(candidate.price_counted()), &candidate.name));
    for candidate in empty {
        match pass.take_empty(candidate) {
            Ok(()) => {
                let cause = candidate.emptiness(pass.inputs.now);
                pass.remove(engine, &[candidate], cause, Rehoming::default());
            }
            // What drifted may go for that reason, whatever the policy says of emptiness.
            Err(_) if candidate.removal_cause.is_some() => {}
            Err(refused) => pass.hold_back(candidate.host, refused),
        }
    }
}

impl Pass<'_, '_> {
    /// Takes a node without pods off the budgets, if it may go as one.
    fn take_empty(&mut self, candidate: &Candidate) -> Result<(), Refused> {
        self.may_go_as_empty(candidate)?;
        // Asked just now.
        let _ = self.disruption.budgets.take(&candidate.pool, DisruptionReason::Empty, candidate.price_counted());
        Ok(())
    }
}
