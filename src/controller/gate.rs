//! Which moves may be carried out without asking.

use std::collections::BTreeSet;

use crate::api::settings::{Approval, ApprovalMode};
use crate::core::plan::{Plan, StepKind};

/// Move numbers of a plan by what the gate says, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gated {
    pub open: Vec<u32>,
    pub waiting: Vec<u32>,
}

/// Splits the moves: one that removes or takes over a node asks for `disrupt`, one that only creates for `provision`.
pub fn gate(plan: &Plan, approval: &Approval) -> Gated {
    let numbers: BTreeSet<u32> = plan.steps.iter().map(|step| step.move_number).collect();
    let mut gated = Gated::default();
    for number in numbers {
        let creates_only =
            plan.steps.iter().filter(|step| step.move_number == number).all(|step| step.kind == StepKind::Create);
        let mode = if creates_only { approval.provision } else { approval.disrupt };
        match mode {
            ApprovalMode::Automatic => gated.open.push(number),
            ApprovalMode::Manual => gated.waiting.push(number),
        }
    }
    gated
}
