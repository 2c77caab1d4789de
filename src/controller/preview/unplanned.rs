//! Definitions that a change is about, and that no plan is made with: that no node changes says nothing of them.

use crate::core::plan::{Note, NoteCode, Plan};
use crate::definitions::changes::{Change, ChangeKind};

/// Codes of notes that say so of the object that they are about.
const LEFT_OUT: [NoteCode; 6] = [
    NoteCode::LeftOut,
    NoteCode::NodePoolOfAutoMode,
    NoteCode::NodePoolOfAnotherProvider,
    NoteCode::NodeClassMissing,
    NoteCode::NodeClassNotReady,
    NoteCode::FeatureGateOff,
];

/// `NodePool default is left out: there is no value for cpu_limit in spec.limits.cpu`
pub fn sentence(changes: &[Change], plan: &Plan) -> Option<String> {
    let mut notes = changes.iter().filter_map(|change| note_of(change, plan));
    let first = notes.next()?.text.clone();
    Some(match notes.count() {
        0 => first,
        more => format!("{first}, and {more} more"),
    })
}

/// Whether it is in no file, and is not taken for removed.
pub fn is_out_of_sight(change: &Change, plan: &Plan) -> bool {
    change.what == ChangeKind::Removed && note_of(change, plan).is_some_and(|note| note.code == NoteCode::LeftOut)
}

fn note_of<'p>(change: &Change, plan: &'p Plan) -> Option<&'p Note> {
    let Change { kind, name, .. } = change;
    let says_so = |note: &&Note| match note.code {
        // They are about values, and say only in words what becomes of the object.
        NoteCode::Variables => ["is left out", "is planned for as in the cluster"]
            .iter()
            .any(|what| note.text.starts_with(&format!("{kind} {name} {what}"))),
        code => {
            let is_about_it = note.about.as_ref().is_some_and(|about| about.kind == *kind && about.name == *name);
            is_about_it && LEFT_OUT.contains(&code)
        }
    };
    plan.notes.iter().find(says_so)
}
