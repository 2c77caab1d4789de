//! Definitions that a change is about, and that no plan is made with: that no node changes says nothing of them.

use crate::core::plan::{Note, NoteCode, Plan};
use crate::definitions::changes::{Change, ChangeKind};
use crate::definitions::{Masks, OpenDefinition};

/// Codes of notes that say so of the object that they are about.
const LEFT_OUT: [NoteCode; 6] = [
    NoteCode::LeftOut,
    NoteCode::NodePoolOfAutoMode,
    NoteCode::NodePoolOfAnotherProvider,
    NoteCode::NodeClassMissing,
    NoteCode::NodeClassNotReady,
    NoteCode::FeatureGateOff,
];

/// `NodePool default is left out: there is no value for cpu_limit in spec.limits.cpu`. `open`: definitions with variables, as they were
/// settled beside the cluster.
pub fn sentence(changes: &[Change], plan: &Plan, open: &[OpenDefinition], hidden: &Masks) -> Option<String> {
    let of_variables = |change: &Change| {
        let settled = open.iter().find(|open| open.kind == change.kind && open.name == change.name)?;
        settled.unplanned.as_deref().map(|text| hidden.text(text))
    };
    let mut texts = changes
        .iter()
        .filter_map(|change| note_of(change, plan).map(|note| note.text.clone()).or_else(|| of_variables(change)));
    let first = texts.next()?;
    Some(match texts.count() {
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
    plan.notes.iter().find(|note| {
        let is_about_it = note.about.as_ref().is_some_and(|about| about.kind == *kind && about.name == *name);
        is_about_it && LEFT_OUT.contains(&note.code)
    })
}
