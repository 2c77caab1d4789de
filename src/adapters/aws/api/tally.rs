//! Calls by action and by what came of them, and which actions are denied at present. One tally for all who call in a process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Action, ApiError};
use crate::adapters::aws::failures::FailureClass;

/// What came of a call, after what the SDK tried again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallOutcome {
    /// Answered, also with a list of what there is no capacity for.
    Ok,
    Throttled,
    Denied,
    /// No answer in time, or a fault of AWS's own.
    Unanswered,
    /// Refused for another reason, such as that a thing is not there.
    Failed,
}

impl CallOutcome {
    /// As metrics have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Throttled => "throttled",
            Self::Denied => "denied",
            Self::Unanswered => "unanswered",
            Self::Failed => "failed",
        }
    }

    fn of(class: FailureClass) -> Self {
        match class {
            FailureClass::Throttled => Self::Throttled,
            FailureClass::Denied => Self::Denied,
            FailureClass::Server => Self::Unanswered,
            FailureClass::Capacity
            | FailureClass::Quota
            | FailureClass::Addresses
            | FailureClass::TemplateGone
            | FailureClass::NotYetKnown
            | FailureClass::TokenTaken
            | FailureClass::Conflict
            | FailureClass::NotFound
            | FailureClass::Invalid => Self::Failed,
        }
    }
}

/// Cheap to clone; all clones count together.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counted: Arc<Mutex<BTreeMap<Action, OfAction>>>,
}

#[derive(Debug, Default)]
struct OfAction {
    counts: BTreeMap<CallOutcome, u64>,
    /// The last refusal, until the action is allowed again.
    denial: Option<ApiError>,
}

impl Tally {
    /// Counts a call that came to this.
    pub fn count<T>(&self, action: Action, result: &Result<T, ApiError>) {
        let outcome = result.as_ref().err().map_or(CallOutcome::Ok, |error| CallOutcome::of(error.class));
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let of_action = counted.entry(action).or_default();
        *of_action.counts.entry(outcome).or_default() += 1;
        match result {
            Err(error) if error.class == FailureClass::Denied => of_action.denial = Some(error.clone()),
            // Who may not ask is not told that there is nothing.
            Err(error) if !matches!(error.class, FailureClass::NotFound | FailureClass::TemplateGone) => {}
            _ => of_action.denial = None,
        }
    }

    /// Calls since the start.
    pub fn counts(&self) -> Vec<(Action, CallOutcome, u64)> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let of_action = |(action, of_action): (&Action, &OfAction)| {
            let counts = of_action.counts.iter();
            counts.map(|(outcome, count)| (*action, *outcome, *count)).collect::<Vec<_>>()
        };
        counted.iter().flat_map(of_action).collect()
    }

    /// The refusals of the actions that were not allowed when they were tried last.
    pub fn denied(&self) -> Vec<ApiError> {
        let counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.values().filter_map(|of_action| of_action.denial.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: &str) -> Result<(), ApiError> {
        Err(ApiError::of(Action::CreateFleet, code, "as AWS says it"))
    }

    #[test]
    fn calls_are_counted_by_what_came_of_them() {
        let tally = Tally::default();
        let codes = [
            "RequestLimitExceeded",
            "Timeout",
            "UnauthorizedOperation",
            "InvalidAMIID.NotFound",
            "RequestLimitExceeded",
        ];
        tally.count(Action::CreateFleet, &Ok(()));
        codes.iter().for_each(|code| tally.clone().count(Action::CreateFleet, &failed(code)));
        tally.count(Action::DescribeSubnets, &Ok(()));
        let counts: Vec<(&str, &str, u64)> =
            tally.counts().into_iter().map(|(action, outcome, count)| (action.name(), outcome.name(), count)).collect();
        let expected = [
            ("ec2:DescribeSubnets", "ok", 1),
            ("ec2:CreateFleet", "ok", 1),
            ("ec2:CreateFleet", "throttled", 2),
            ("ec2:CreateFleet", "denied", 1),
            ("ec2:CreateFleet", "unanswered", 1),
            ("ec2:CreateFleet", "failed", 1),
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn an_action_is_denied_until_it_is_allowed() {
        let tally = Tally::default();
        let denied = || tally.denied().into_iter().map(|error| error.action).collect::<Vec<_>>();
        tally.count(Action::CreateFleet, &failed("UnauthorizedOperation"));
        tally.count(Action::CreateFleet, &failed("RequestLimitExceeded"));
        assert_eq!(denied(), [Action::CreateFleet], "being throttled says nothing of permissions");
        tally.count(Action::CreateFleet, &Ok(()));
        assert_eq!(denied(), []);
    }
}
