//! `Scenario` (cutlist.dev/v1alpha1): what happens to the embedded cluster, step by step. Only the embedded world reads it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::NillableDuration;

/// The file name looked for beside `cutlist.yaml`.
pub const FILE_NAME: &str = "scenario.yaml";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScenarioDocument {
    pub api_version: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
    pub spec: Scenario,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// Files beside the scenario with plain Kubernetes objects that exist from the start: namespaces, Deployments, DaemonSets, budgets.
    #[serde(default)]
    pub objects: Vec<String>,
    pub steps: Vec<ScenarioStep>,
}

/// One step. It begins when the world has settled after the one before, and `wait` has passed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScenarioStep {
    /// Said before the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<NillableDuration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Files beside the scenario with plain Kubernetes objects that are created, or replaced where they exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<String>,
    /// How many spot instances EC2 takes back, two minutes after it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scale {
    /// `namespace/name` of a Deployment.
    pub deployment: String,
    pub replicas: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Commit {
    pub message: String,
    /// Files to write: path in the repository, and the file beside the scenario that holds its new content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Files that the commit deletes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete: Vec<String>,
}
