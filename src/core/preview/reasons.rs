//! Nodes that go with the base as well, and by the change for another reason: budgets may be for one of the two only, and what is approved
//! is another plan.

use std::collections::BTreeMap;

use crate::plan::{Plan, Reason, Step, StepKind};

/// How many nodes go for another reason, by that of the base and that of the head. Figures in the sentences are no other reason.
/// O(steps x log steps).
pub fn other_reasons(plan: &Plan, base: &Plan) -> BTreeMap<(String, String), usize> {
    let goes = |step: &&Step| step.kind == StepKind::Remove && !step.node_claim.is_empty();
    let before: BTreeMap<&str, &Reason> =
        base.steps.iter().filter(goes).map(|step| (step.node_claim.as_str(), &step.reason)).collect();
    let mut other = BTreeMap::new();
    for step in plan.steps.iter().filter(goes) {
        let Some(before) = before.get(step.node_claim.as_str()) else { continue };
        let (before, now) = (before.name(), step.reason.name());
        if before != now {
            *other.entry((before, now)).or_default() += 1;
        }
    }
    other
}
