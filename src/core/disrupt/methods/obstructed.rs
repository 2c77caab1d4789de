//! Nodes that something keeps: what runs on them, an annotation, or that they have not initialized.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::pass::Pass;
use crate::disrupt::refused::{Cause, Refused};
use crate::scheduler::Engine;

/// What no further method may touch.
pub(super) fn look(pass: &mut Pass<'_, '_>, _engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    for candidate in pass.open(candidates) {
        if let Some(obstacle) = candidate.obstacle.clone() {
            let cause = candidate.removal_cause.as_ref().map(Cause::from);
            pass.hold_back(candidate.host, Refused { cause, ..obstacle.into() });
        }
    }
}
