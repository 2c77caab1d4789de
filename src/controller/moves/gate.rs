//! Which moves may be carried out without asking.

use std::collections::BTreeSet;

use crate::api::approval_rules::ApprovalRules;
use crate::api::settings::ApprovalMode;
use crate::core::plan::{Plan, Precondition, RemovalMode, Step, StepKind};

use super::apply::steps_of;

/// Move numbers of a plan by what the gate says, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gated {
    pub open: Vec<u32>,
    pub waiting: Vec<u32>,
}

/// The removed pool whose nodes may go when this step is approved, if that is not known yet.
pub fn removal_to_confirm(step: &Step) -> Option<&str> {
    step.preconditions.iter().find_map(|precondition| match precondition {
        Precondition::RemovalConfirmed { node_pool } => Some(node_pool.as_str()),
        _ => None,
    })
}

/// Splits the moves: one that removes or takes over a node asks for `disrupt`, one that only creates, or replaces what EC2 takes away, for
/// `provision`. One that removes nodes of a pool whose removal must be confirmed waits in any case.
pub fn gate(plan: &Plan, approval: &ApprovalRules) -> Gated {
    let numbers: BTreeSet<u32> = plan.steps.iter().map(|step| step.move_number).collect();
    let mut gated = Gated::default();
    for number in numbers {
        let steps = steps_of(plan, number);
        // EC2 takes the node away whether or not somebody approves of it.
        let is_taken = |step: &Step| matches!(step.mode, RemovalMode::AtOnce { .. });
        let only_helps = steps.iter().all(|step| step.kind == StepKind::Create || is_taken(step));
        let mode = if only_helps { approval.provision } else { approval.disrupt };
        let asks = steps.into_iter().any(|step| removal_to_confirm(step).is_some());
        match mode {
            ApprovalMode::Automatic if !asks => gated.open.push(number),
            _ => gated.waiting.push(number),
        }
    }
    gated
}
