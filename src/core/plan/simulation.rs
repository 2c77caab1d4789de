//! What a simulation came to: the published form of `cutlist simulate -o json` (`schemas/simulation.json`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::leaving::Leaving;
use super::{CostsPerHour, HeldBack, Note, Pending, Revision, Risk, Summary};
use crate::model::HourlyPrice;

/// The version of the form that this program writes.
pub const FORMAT_VERSION: u32 = 1;

/// A cluster that went on in memory, from one moment to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Simulation {
    pub version: u32,
    pub revision: Revision,
    pub cluster: String,
    /// RFC 3339; when the virtual clock started.
    pub began_at: String,
    pub catalog_date: String,
    pub seed: u64,
    pub packing: String,
    /// Whether nothing moved any more at the end, and nothing would have with time.
    pub settled: bool,
    pub summary: SimulationSummary,
    /// At the beginning, whenever something of it changed, and at the end; at most 4,096 points.
    pub series: Vec<Point>,
    /// Plans in the order in which they were posted.
    pub plans: Vec<PlanPosted>,
    /// What was at risk when the plans were carried out, as the first of them said it of each; at most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<Risk>,
    /// Nodes that the last plan would have liked to remove, and why it did not.
    pub held_back: Vec<HeldBack>,
    /// Nodes that are on their way out at the end, and what keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<Leaving>,
    /// Pods that have no place at the end.
    pub pending: Vec<Pending>,
    /// What the reader should know about the inputs.
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulationSummary {
    /// Of nodes that a NodeClaim stands behind.
    pub price_per_hour_start: HourlyPrice,
    pub price_per_hour_end: HourlyPrice,
    /// No fleet for the same pods can cost less; absent when it was not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound_price_per_hour_end: Option<HourlyPrice>,
    /// What the nodes cost at the end with all that they cost beside their instances; absent where only instances count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs_per_hour_end: Option<CostsPerHour>,
    pub nodes_start: usize,
    pub nodes_end: usize,
    pub nodes_at_most: usize,
    pub nodes_created: usize,
    pub nodes_removed: usize,
    pub pods_bound_start: usize,
    pub pods_bound_end: usize,
    pub pods_pending_end: usize,
    /// Evictions, without those of DaemonSets.
    pub pods_moved: usize,
    pub plans: usize,
    pub moves: usize,
    pub virtual_seconds: u64,
}

/// The cluster from this second on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Since the beginning.
    pub second: u64,
    pub price_per_hour: HourlyPrice,
    pub nodes: usize,
    pub pods_bound: usize,
    pub pods_pending: usize,
    /// Since the beginning.
    pub pods_moved: usize,
}

/// One plan, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanPosted {
    pub id: String,
    /// Since the beginning.
    pub second: u64,
    pub steps: usize,
    pub summary: Summary,
}
