//! Nodes whose instance EC2 takes away: they go at once, whatever budgets allow, with new places for their pods in the same plan.
//! Behaviour: reference, section 6.9. Pods are evicted and not deleted, and protected ones stay until the instance ends.

use crate::core::lifecycle::interruption;
use crate::core::plan::Reason;
use crate::core::scheduler::Engine;

use super::Pass;
use super::candidate::Candidate;

impl Pass<'_, '_> {
    /// Before anything else is looked at.
    pub(super) fn replace_interrupted(&mut self, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
        let cause = |candidate: &Candidate| interruption::cause(engine.problem.machines[candidate.host].claim?);
        let interrupted: Vec<(&Candidate, Reason)> =
            candidates.iter().filter_map(|candidate| Some((candidate, cause(candidate)?))).collect();
        for (candidate, _) in &interrupted {
            self.targets[candidate.host].doomed = true;
        }
        for (candidate, reason) in interrupted {
            self.remove_at_once(engine, candidate, reason);
        }
    }
}
