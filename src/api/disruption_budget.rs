//! `DisruptionBudget` (cutlist.dev/v1alpha1): how many nodes may be disrupted over several pools at once.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::NillableDuration;
use super::node_pool::DisruptionReason;
use super::validation::{forms, node_pool as rules};

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
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
    #[schemars(extend("pattern" = forms::BUDGET_NODES.pattern))]
    pub nodes: String,
    /// Absent: every reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// Five cron fields or `@daily` and its kin, in `timeZone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::SCHEDULE.pattern))]
    pub schedule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::WINDOW.pattern))]
    pub duration: Option<NillableDuration>,
    /// IANA name, such as `Asia/Seoul`; absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
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
