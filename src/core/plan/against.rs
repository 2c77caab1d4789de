//! What a change of definitions does to the nodes: the plan of the head beside the plan of the base.

use super::{Against, Plan, Step, StepKind};

/// The plan of the head, with each step marked whether the base plans it too, and what the base alone plans.
/// Both must be made from the same snapshot, catalog, seed and moment.
pub fn compare(mut head: Plan, base: &Plan) -> Plan {
    let mut unmatched: Vec<&Step> = base.steps.iter().collect();
    for step in &mut head.steps {
        let same = unmatched.iter().position(|other| is_same(step, other));
        step.also_in_base = Some(same.is_some());
        if let Some(position) = same {
            unmatched.remove(position);
        }
    }
    head.against = Some(Against {
        revision: base.revision.clone(),
        plan_id: base.id.clone(),
        summary: base.summary.clone(),
        steps_no_longer_planned: unmatched.into_iter().cloned().collect(),
    });
    head.id = head.content_hash();
    head
}

/// A removal is the same when it is of the same node; a creation, when the same kind of node is bought for as many pods.
fn is_same(one: &Step, other: &Step) -> bool {
    let bought = |step: &Step| {
        (
            step.node_pool.clone(),
            step.instance_type.clone(),
            step.zone.clone(),
            step.capacity_type.clone(),
            step.pods.len(),
        )
    };
    one.kind == other.kind
        && match one.kind {
            StepKind::Create => bought(one) == bought(other),
            StepKind::Remove | StepKind::Adopt | StepKind::Hold => {
                one.node_claim == other.node_claim && one.node == other.node
            }
        }
}
