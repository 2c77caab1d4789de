//! The judge at work: [`super`], which shares nothing with the planner, holds every plan against the rules before it is shown or
//! carried out. A plan that breaks one says so itself (`BreaksRule`), and nothing of it is done. A wrong figure in its account of itself
//! stops nothing: tests look for those. Plans of `packing: karpenter` are not judged: they foretell what the reference does, which
//! counts on places that kube-scheduler refuses.

use crate::inputs::Inputs;
use crate::plan::{Note, NoteCode, Plan};
use cutlist_api::settings::Packing;

use super::{Violation, check_within};

/// Pods that may be looked at to judge placements: a tenth of what the smallest plans take that make as many looks.
const PODS_LOOKED_AT_MAX: u64 = 100_000;
/// Rules that one note names; the others are counted.
const RULES_NAMED: usize = 3;

/// The plan with what the judge found in its notes. The ID covers them.
pub fn judged(mut plan: Plan, inputs: &Inputs<'_>) -> Plan {
    // What does nothing breaks nothing.
    let does_nothing = plan.steps.is_empty() && plan.placements.is_empty();
    if does_nothing || inputs.policy.packing == Packing::Karpenter {
        return plan;
    }
    let mut violations = check_within(&plan, inputs, PODS_LOOKED_AT_MAX);
    violations.retain(|violation| !violation.code.is_of_the_account());
    if violations.is_empty() {
        return plan;
    }
    plan.notes.push(note(&violations));
    plan.notes.sort();
    plan.id = plan.content_hash();
    plan
}

fn note(violations: &[Violation]) -> Note {
    let named: Vec<String> = violations.iter().take(RULES_NAMED).map(ToString::to_string).collect();
    let more = match violations.len().saturating_sub(RULES_NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let text = format!(
        "this plan is wrong, and nothing of it is done: {}{more}. This is a mistake in cutlist: please report it with `cutlist snapshot` \
         and the definitions",
        named.join("; ")
    );
    Note::new(NoteCode::BreaksRule, text)
}

impl Plan {
    /// Whether the judge found nothing that is wrong with it.
    pub fn is_sound(&self) -> bool {
        self.notes.iter().all(|note| note.code != NoteCode::BreaksRule)
    }
}
