//! What the steps of a plan say.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::plan::{Alternative, Plan, Step, StepKind};
use cutlist_api::node_claim::NodeClaim;

pub(super) fn steps(plan: &Plan, kind: StepKind) -> impl Iterator<Item = &Step> {
    plan.steps.iter().filter(move |step| step.kind == kind)
}

/// The moves that have steps of a kind, by their numbers.
pub(super) fn moves_with(plan: &Plan, kind: StepKind) -> BTreeSet<u32> {
    steps(plan, kind).map(|step| step.move_number).collect()
}

/// Names of the nodes that the plan removes.
pub(super) fn removed_nodes(plan: &Plan) -> BTreeSet<&str> {
    steps(plan, StepKind::Remove).map(removed_node).collect()
}

/// A claim that never became a node goes by its own name.
pub(super) fn removed_node(step: &Step) -> &str {
    step.node.as_deref().unwrap_or(&step.node_claim)
}

/// What may be launched; the shown one where the plan lists none.
pub(super) fn alternatives(step: &Step) -> Cow<'_, [Alternative]> {
    let listed = step.launch.as_ref().map(|launch| launch.alternatives.as_slice());
    listed.filter(|listed| !listed.is_empty()).map_or_else(|| Cow::Owned(vec![shown(step)]), Cow::Borrowed)
}

/// The first of them, which people see.
pub(super) fn shown(step: &Step) -> Alternative {
    Alternative {
        instance_type: step.instance_type.clone(),
        zone: step.zone.clone(),
        capacity_type: step.capacity_type.clone(),
        price_per_hour: step.price_per_hour,
    }
}

/// The NodeClaim to be written; `None` where it cannot be read.
pub(super) fn claim(step: &Step) -> Option<NodeClaim> {
    serde_json::from_value(step.launch.as_ref()?.node_claim.clone()).ok()
}
