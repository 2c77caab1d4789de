//! Nodes whose instance EC2 takes away: they go at once, whatever budgets allow, with new places for their pods in the same plan.
//! Behaviour: reference, section 6.9. Pods are evicted and not deleted, and protected ones stay until the instance ends.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::pass::Pass;
use crate::disrupt::removal_cause::RemovalCause;
use crate::lifecycle::interruption;
use crate::plan::RemovalMode;
use crate::scheduler::Engine;

/// Before anything else is looked at.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    let announced = |candidate: &Candidate| {
        let claim = engine.problem.machines[candidate.host].claim?;
        interruption::announced(claim, pass.inputs)
    };
    let interrupted: Vec<(&Candidate, (String, String))> =
        candidates.iter().filter_map(|candidate| Some((candidate, announced(candidate)?))).collect();
    for (candidate, _) in &interrupted {
        pass.targets[candidate.host].leaving = true;
    }
    for (candidate, (reason, message)) in interrupted {
        let mode = RemovalMode::AtOnce { announced: reason.clone() };
        let cause = RemovalCause::Interrupted { reason, message };
        pass.remove_without_waiting(mode, engine, candidate, cause);
    }
}
