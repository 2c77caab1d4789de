//! Steps that are one thing: one way to tell for what compares plans, counts nodes and shows steps.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::{Step, StepKind};

/// The steps in the order of their moves: those of a replacement together, each other step by itself.
pub fn blocks<S: Deref<Target = Step>>(steps: impl IntoIterator<Item = S>) -> Vec<Vec<S>> {
    let mut moves: BTreeMap<u32, Vec<S>> = BTreeMap::new();
    for step in steps {
        moves.entry(step.move_number).or_default().push(step);
    }
    let mut blocks = Vec::new();
    for steps in moves.into_values() {
        let has = |kind| steps.iter().any(|step| step.kind == kind);
        let replaces = has(StepKind::Create) && has(StepKind::Remove);
        let is_of_it = |step: &S| replaces && matches!(step.kind, StepKind::Create | StepKind::Remove);
        let (replacement, others): (Vec<S>, Vec<S>) = steps.into_iter().partition(is_of_it);
        if !replacement.is_empty() {
            blocks.push(replacement);
        }
        blocks.extend(others.into_iter().map(|step| vec![step]));
    }
    blocks
}
