//! `DisruptionBudget` (cutlist.dev/v1alpha1): how many nodes may be disrupted over several pools at once.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::NillableDuration;
use super::node_pool::DisruptionReason;
use super::validation::{forms, node_pool as rules};

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "cutlist.dev",
    version = "v1alpha1",
    kind = "DisruptionBudget",
    plural = "disruptionbudgets",
    category = "cutlist",
    printcolumn = r#"{"name":"Nodes","type":"string","jsonPath":".spec.nodes"}"#,
    printcolumn = r#"{"name":"Schedule","type":"string","jsonPath":".spec.schedule"}"#,
    printcolumn = r#"{"name":"Duration","type":"string","jsonPath":".spec.duration"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::BUDGET))]
pub struct DisruptionBudgetSpec {
    /// Pools that count together; absent or empty: every pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_pool_selector: Option<NodePoolSelector>,
    /// A count or a percentage of the selected nodes, rounded up.
    #[serde(default = "all_nodes")]
    #[schemars(extend("pattern" = forms::BUDGET_NODES.pattern))]
    pub nodes: String,
    /// US dollars per hour that the nodes may cost together which are disrupted at one time, those on their way out before the
    /// plan included. A node that costs more than all of it never goes for these reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub money_per_hour: Option<f64>,
    /// Absent: every reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// When the budget is in force: from each moment that this names, for `duration`; absent: always. Five cron fields or
    /// `@daily` and its kin, by the wall clock of `timeZone`: a time of day that the clock leaps over strikes
    /// when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::SCHEDULE.pattern))]
    pub schedule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::WINDOW.pattern))]
    pub duration: Option<NillableDuration>,
    /// Nothing is disrupted outside of these; absent or empty: at any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub allow_windows: Vec<TimeWindow>,
    /// Nothing is disrupted inside of these, also where an allow window is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub deny_windows: Vec<TimeWindow>,
    /// IANA name, such as `Asia/Seoul`; absent: UTC. For `schedule` and for all windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

fn all_nodes() -> String {
    "100%".to_owned()
}

/// From each moment that a schedule names, for a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimeWindow {
    /// As `schedule` of the budget.
    #[schemars(extend("pattern" = forms::SCHEDULE.pattern))]
    pub schedule: String,
    /// By the clock that knows no summer time: two hours are two hours.
    #[schemars(extend("pattern" = forms::WINDOW.pattern))]
    pub duration: NillableDuration,
}

/// Selects pools by name or by the labels of the NodePool object; both must match when both are given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSelector {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}
