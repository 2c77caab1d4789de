//! Nodes that stay because it is not known what would end with them.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::obstacle::NodeObstacle;
use crate::disrupt::pass::Pass;
use crate::scheduler::Engine;
use crate::snapshot::doubts::Subject;

/// Holds nodes back that an object speaks for which nobody could read, or which another one contradicts.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    let snapshot = pass.inputs.snapshot;
    if snapshot.doubts.is_empty() {
        return;
    }
    for candidate in pass.open(candidates) {
        let machine = &engine.problem.machines[candidate.host];
        let node = machine.node.and_then(|node| node.metadata.name.as_deref());
        let node_class = machine.claim.map_or("", |claim| claim.spec.node_class_ref.name.as_str());
        let subject = Subject { node, node_pool: &candidate.pool, node_class };
        if let Some(doubt) = snapshot.doubts.about(&subject, &snapshot.pods) {
            pass.hold_back(candidate.host, NodeObstacle::InDoubt(doubt));
        }
    }
}
