//! What is remembered of plans from one look to the next. All of it can be lost, as when a process ends.

use jiff::{SignedDuration, Timestamp};

use crate::api::approval_rules::ApprovalRules;
use crate::controller::pace::RETRY;

use super::approvals::{Approved, Waiting};
use super::batch::BatchWindow;
use super::fidelity::Expectations;
use super::inputs_seen::InputsSeen;
use super::records::Records;
use super::shown::Shown;

/// When the next plan is due, and what is known of those before.
pub struct PlanMemory {
    pub due_at: Option<Timestamp>,
    /// How long a plan that can not be carried out is left alone.
    pub again_in: SignedDuration,
    pub batch: BatchWindow,
    /// When the whole search for savings was made last.
    pub searched_at: Option<Timestamp>,
    /// Whether the search was due, and left to the plan that comes next for the sake of pods that wait.
    pub search_follows: bool,
    pub inputs_seen: InputsSeen,
    pub shown: Shown,
    pub records: Records,
    pub expectations: Expectations,
}

impl PlanMemory {
    pub fn of_installation(installation: &str) -> Self {
        Self {
            due_at: None,
            again_in: RETRY,
            batch: BatchWindow::default(),
            searched_at: None,
            search_follows: false,
            inputs_seen: InputsSeen::default(),
            shown: Shown::default(),
            records: Records::of_installation(installation),
            expectations: Expectations::default(),
        }
    }
}

/// What people are asked, by which rules, and what they answered.
#[derive(Default)]
pub struct ApprovalMemory {
    /// Plan whose gated moves wait for approval.
    pub waiting: Option<Waiting>,
    pub approved: Option<Approved>,
    /// Approvals that were refused, by plan and approver, so that each is said once.
    pub refused: Vec<(String, String)>,
    /// The rules that are in force.
    pub rules: Option<ApprovalRules>,
    /// Those that the revision asks for, where they are looser.
    pub looser_rules: Option<ApprovalRules>,
    /// Whether it was looked what people approved of the plans of the process before.
    pub heard_earlier_leader: bool,
}
