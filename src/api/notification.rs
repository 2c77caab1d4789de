//! A notification: what people elsewhere are told of a cluster. What webhooks get as JSON, and what templates read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of this form.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// The version of this form: 1.
    pub version: u32,
    pub kind: NotificationKind,
    /// Notifications of the same thing have the same key. A receiver may get one twice, where the process ended before it noted the
    /// first.
    pub key: String,
    /// The name of the installation of Cutlist that sends it.
    pub installation: String,
    /// The name of the cluster in `cutlist.yaml`.
    pub cluster: String,
    /// When it happened, as far as this process knows, in RFC 3339.
    pub at: String,
    /// The notification in one line.
    pub title: String,
    /// The notification in full sentences.
    pub text: String,
    /// The name of the NodePlan that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_pool: Option<String>,
    /// The name of the disruption budget that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// The revision of the definitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Names and figures to show below the text, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<NotificationDetail>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationDetail {
    pub name: String,
    pub value: String,
}

impl NotificationDetail {
    pub fn new(name: &str, value: impl ToString) -> Self {
        Self { name: name.to_owned(), value: value.to_string() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotificationKind {
    /// A plan, or some of it, is carried out only when somebody approves it.
    PlanWaits,
    /// So many new nodes of a pool did not become ready that no more of its nodes are replaced.
    RolloutHalted,
    /// A node stays because a budget's `moneyPerHour` has not enough left for it.
    BudgetReached,
    /// What a plan was to do is done.
    PlanApplied,
    /// A plan was stopped on its way.
    PlanFailed,
}

impl NotificationKind {
    pub const ALL: [Self; 5] =
        [Self::PlanWaits, Self::RolloutHalted, Self::BudgetReached, Self::PlanApplied, Self::PlanFailed];
    /// The kinds that ask somebody to act. They are told where the operator names no others.
    pub const USUAL: [Self; 3] = [Self::PlanWaits, Self::RolloutHalted, Self::BudgetReached];

    pub const fn word(self) -> &'static str {
        match self {
            Self::PlanWaits => "plan-waits",
            Self::RolloutHalted => "rollout-halted",
            Self::BudgetReached => "budget-reached",
            Self::PlanApplied => "plan-applied",
            Self::PlanFailed => "plan-failed",
        }
    }
}

impl Notification {
    /// A notification of this kind with every field that one of the kind may have, to try templates with.
    pub fn example(kind: NotificationKind) -> Self {
        let is_of_plan =
            matches!(kind, NotificationKind::PlanWaits | NotificationKind::PlanApplied | NotificationKind::PlanFailed);
        let only = |is_there: bool, text: &str| is_there.then(|| text.to_owned());
        Self {
            version: VERSION,
            kind,
            key: format!("{}/example", kind.word()),
            installation: "example".to_owned(),
            cluster: "example".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            title: "An example".to_owned(),
            text: "Nothing has happened.".to_owned(),
            plan: only(is_of_plan, "0123456789ab"),
            node_pool: only(kind == NotificationKind::RolloutHalted, "example"),
            budget: only(kind == NotificationKind::BudgetReached, "example"),
            revision: only(kind != NotificationKind::BudgetReached, "0123456789abcdef0123456789abcdef01234567"),
            details: vec![NotificationDetail::new("Price change", "+$0.0000/h")],
        }
    }
}
