//! What budgets allow over the days to come, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::HourlyPrice;
use cutlist_api::node_pool::DisruptionReason;

/// Reasons in the order in which they are shown.
pub const REASONS: [DisruptionReason; 3] =
    [DisruptionReason::Underutilized, DisruptionReason::Empty, DisruptionReason::Drifted];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calendar {
    /// IANA name: whose days and hours these are.
    pub time_zone: String,
    /// RFC 3339.
    pub from: String,
    pub to: String,
    /// By all budgets together.
    pub node_pools: Vec<Schedule>,
    /// By each cluster-wide budget alone.
    pub disruption_budgets: Vec<Schedule>,
}

/// What may be disrupted of one pool, or by one budget, with the nodes that are there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub name: String,
    pub nodes: usize,
    pub days: Vec<Day>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    /// `2026-11-20`
    pub date: String,
    /// Without gaps.
    pub hours: Vec<Hours>,
}

/// A part of a day, by the clock on the wall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hours {
    /// `09:00`, or `02:30 CEST` where the clock shows this time twice on that day.
    pub from: String,
    /// In the same form; `24:00` at the end of a day.
    pub to: String,
    /// The moments that these are: RFC 3339, with the offset of the zone.
    pub starts_at: String,
    pub ends_at: String,
    /// In the order Underutilized, Empty, Drifted.
    pub allowed: Vec<Allowed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    pub reason: DisruptionReason,
    /// Nodes at one time; absent: no budget restricts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// Present where `nodes` is 0 only because no node is there now: the percentage that the budget has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<usize>,
    /// The NodePool or DisruptionBudget whose budget allows the fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What these nodes may cost together; absent: no budget says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_per_hour: Option<HourlyPrice>,
}
