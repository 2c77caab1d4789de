//! Nodes that go with the base as well, and by the change for another reason: budgets may be for one of the two only, and what is approved
//! is another plan.

use std::collections::BTreeMap;

use crate::plan::{Plan, Reason, Step, StepKind};

/// The plan, where a node that goes anyway for another reason has both in one sentence.
#[must_use]
pub fn with_reasons_of_base(mut plan: Plan, base: &Plan) -> Plan {
    let before = reasons_of_removals(base);
    for step in plan.steps.iter_mut().filter(|step| step.also_in_base == Some(true) && goes(step)) {
        let Some(before) = before.get(step.node_claim.as_str()).filter(|before| !step.reason.is_like(before)) else {
            continue;
        };
        step.reason.text = format!("{} (without this change: {})", step.reason.text, before.text);
    }
    plan
}

/// How many nodes go for another reason, by that of the base and that of the head. Figures in the sentences are no other reason.
/// O(steps x log steps).
pub fn other_reasons(plan: &Plan, base: &Plan) -> BTreeMap<(String, String), usize> {
    let before = reasons_of_removals(base);
    let mut other = BTreeMap::new();
    for step in plan.steps.iter().filter(|step| goes(step)) {
        let Some(before) = before.get(step.node_claim.as_str()) else { continue };
        let (before, now) = (before.name(), step.reason.name());
        if before != now {
            *other.entry((before, now)).or_default() += 1;
        }
    }
    other
}

fn goes(step: &Step) -> bool {
    step.kind == StepKind::Remove && !step.node_claim.is_empty()
}

fn reasons_of_removals(plan: &Plan) -> BTreeMap<&str, &Reason> {
    let removals = plan.steps.iter().filter(|step| goes(step));
    removals.map(|step| (step.node_claim.as_str(), &step.reason)).collect()
}
