//! What is on its way out of the cluster, and what keeps it, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node, or a NodeClaim without one, that is being removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// The NodeClaim's name where there is no Node.
    pub node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<String>,
    /// RFC 3339: when its removal was asked for. Absent where it is only kept from new pods: its replacements, or the nodes of an
    /// earlier wave, come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What it waits for; empty where nothing stands in its way.
    pub waits_for: Vec<Obstacle>,
    /// Those of them that are not listed.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub further_obstacles: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Obstacle {
    pub kind: ObstacleKind,
    /// `namespace/name` of a pod, name of a persistent volume, or the finalizer.
    pub subject: String,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ObstacleKind {
    /// The eviction API lets the pod not go.
    PodDisruptionBudget,
    /// The pod asks not to be disturbed.
    DoNotDisrupt,
    /// The pod still runs, or ends.
    Pod,
    /// The volume is still attached.
    Volume,
    /// Somebody else has not let go of the Node or the NodeClaim.
    Finalizer,
}
