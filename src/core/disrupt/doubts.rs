//! Nodes that stay because it is not known what would end with them.

use crate::plan::{Note, NoteCode};
use crate::scheduler::Engine;
use crate::snapshot::Snapshot;
use crate::snapshot::doubts::{Doubt, Subject};

use super::candidate::Candidate;
use super::obstacle::NodeObstacle;
use super::pass::Pass;

/// What of the cluster this plan does not rely on.
pub fn notes(snapshot: &Snapshot) -> Vec<Note> {
    let consequence = |doubt: &Doubt| match doubt {
        Doubt::Kind(_) => "no node is removed until it is",
        Doubt::Object(_) => "it is left out, and no node that it may speak for is removed",
        Doubt::Doubled(_) => "none of them is relied on, and no node of their pools is removed until only one has it",
    };
    let note = |doubt: Doubt| {
        Note::new(
            match doubt {
                Doubt::Kind(_) => NoteCode::SnapshotIncomplete,
                Doubt::Object(_) => NoteCode::ObjectUnreadable,
                Doubt::Doubled(_) => NoteCode::ProviderIdShared,
            },
            format!("{}; {}", doubt.text(), consequence(&doubt)),
        )
    };
    snapshot.doubts.sentences().map(note).collect()
}

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
