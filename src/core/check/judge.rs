//! The judge at work: [`super`], which shares nothing with the planner but the record of failed rollouts, holds every plan against the
//! rules before it is shown or carried out. Pods that wait, and that a plan would send where they can not run, wait on, and the plan is
//! made again without them. A plan that breaks another rule says so itself (`BreaksRule`), and nothing of it is done. A wrong figure in
//! its account of itself stops nothing: tests look for those. Plans of `packing: karpenter` foretell what the reference does: of these it
//! is not judged whom affinity between pods keeps away.

use std::collections::{BTreeMap, BTreeSet};

use crate::inputs::{Inputs, Policy};
use crate::kube_scheduler::Filter;
use crate::plan::{Note, NoteCode, Plan};
use crate::snapshot::Pod;
use cutlist_api::settings::Packing;

use super::placements::{LooksMax, Untried};
use super::plan::{Judgement, check_within};
use super::{Violation, ViolationCode, ViolationPlace};

/// Each pod of the cluster costs a plan two looks or more by itself, and each that gets a place some hundreds.
pub(super) const LOOKS_MAX: LooksMax =
    LooksMax { of_any_plan: 2_000_000, of_each_pod: 2, of_each_pod_that_gets_a_place: 1_000 };
/// Rules that one note names; the others are counted.
const RULES_NAMED_MAX: usize = 3;
/// So often a plan is made again without pods whose places were wrong.
const AGAIN_MAX: usize = 3;

/// What a planner plans, judged. A mistake in the places of some pods is no reason to leave all others without one: those that wait are
/// withheld with what the judge says, and all else is planned anew. What is wrong beside that stays for all to see. The notes say what
/// the judge found, and the ID covers them. Where nothing is wrong this is one plan, else it is up to [`AGAIN_MAX`] more.
pub fn judged(inputs: &Inputs<'_>, mut planner: impl FnMut(&Inputs<'_>) -> Plan) -> Plan {
    let plan = planner(inputs);
    let Judgement { violations, untried } = judgement(&plan, inputs);
    let plan = with_notes(plan, note_of_untried(untried));
    if violations.is_empty() {
        return plan;
    }
    let mut withheld: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = wrong_places(&plan, &violations, inputs);
    for _ in 0..AGAIN_MAX {
        let Some(more) = wrong else { break };
        withheld.extend(more);
        let policy = Policy { withheld: withheld.clone(), ..inputs.policy.clone() };
        let without = Inputs { policy, ..inputs.clone() };
        let others = planner(&without);
        let found = judgement(&others, &without);
        if found.violations.is_empty() {
            let notes = note_of_untried(found.untried).into_iter();
            return with_notes(others, notes.chain([note_of_withheld(&withheld)]));
        }
        wrong = wrong_places(&others, &found.violations, inputs);
    }
    with_notes(plan, [note(&violations)])
}

fn judgement(plan: &Plan, inputs: &Inputs<'_>) -> Judgement {
    // What does nothing breaks nothing.
    let does_nothing = plan.steps.is_empty() && plan.placements.is_empty();
    if does_nothing {
        return Judgement::default();
    }
    let mut judgement = check_within(plan, inputs, LOOKS_MAX);
    let packing = inputs.policy.packing;
    judgement.violations.retain(|it| !it.code.is_of_the_account() && !is_of_the_reference(it, packing));
    judgement
}

/// Whether the reference would do that as well: it does not know whom the pods of DaemonSets keep away from a node that is to come.
fn is_of_the_reference(violation: &Violation, packing: Packing) -> bool {
    packing == Packing::Karpenter && violation.filter == Some(Filter::InterPodAffinity)
}

/// The pods that are refused where the plan sends them, each with why; `None` where something else is wrong as well, or one of them
/// runs somewhere and would have to stay there. O(pods).
fn wrong_places(plan: &Plan, violations: &[Violation], inputs: &Inputs<'_>) -> Option<BTreeMap<String, String>> {
    let mut wrong = BTreeMap::new();
    for violation in violations {
        let pods = match &violation.place {
            _ if violation.code != ViolationCode::Refused => return None,
            ViolationPlace::Pod(pod) => vec![pod.clone()],
            ViolationPlace::Step(claim) => plan.steps.iter().find(|step| step.node_claim == *claim)?.pods.clone(),
            _ => return None,
        };
        for pod in pods {
            wrong.entry(pod).or_insert_with(|| violation.text.clone());
        }
    }
    let pods = inputs.snapshot.pods.iter().filter(|pod| pod.spec.node_name.is_none());
    let waiting: BTreeSet<String> = pods.map(Pod::key).collect();
    (!wrong.is_empty() && wrong.keys().all(|pod| waiting.contains(pod))).then_some(wrong)
}

fn with_notes(mut plan: Plan, notes: impl IntoIterator<Item = Note>) -> Plan {
    let before = plan.notes.len();
    plan.notes.extend(notes);
    if plan.notes.len() > before {
        plan.notes.sort();
        plan.id = plan.content_hash();
    }
    plan
}

fn note_of_untried(untried: Untried) -> Option<Note> {
    let counted = [
        (untried.places, "places of pods"),
        (untried.alternatives, "other instance types and zones that may be launched"),
        (untried.pending, "pods that stay pending"),
    ];
    let named: Vec<String> =
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let text = || format!("not judged, because it would take too long: {}; all else was", named.join(", "));
    (!named.is_empty()).then(|| Note::new(NoteCode::PlacesNotJudged, text()))
}

fn note(violations: &[Violation]) -> Note {
    let text = format!("this plan is wrong, and nothing of it is done: {}. {REPORT}", named(violations));
    Note::new(NoteCode::BreaksRule, text)
}

fn note_of_withheld(withheld: &BTreeMap<String, String>) -> Note {
    let pods: Vec<String> = withheld.iter().map(|(pod, why)| format!("pod {pod} {why}")).collect();
    let text =
        format!("places that would be wrong are given to nobody, and all else is planned: {}. {REPORT}", named(&pods));
    Note::new(NoteCode::PlaceWithheld, text)
}

const REPORT: &str = "This is a mistake in cutlist: please report it with `cutlist snapshot` and the definitions";

fn named(all: &[impl ToString]) -> String {
    let named: Vec<String> = all.iter().take(RULES_NAMED_MAX).map(ToString::to_string).collect();
    let more = match all.len().saturating_sub(RULES_NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", named.join("; "))
}

impl Plan {
    /// Whether the judge found nothing that is wrong with it.
    pub fn is_sound(&self) -> bool {
        self.notes.iter().all(|note| note.code != NoteCode::BreaksRule)
    }
}
