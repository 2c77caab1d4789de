//! `NodeOverlay` (karpenter.sh/v1alpha1): other prices, or more resources, than those of the cloud.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node_pool::{IntOrString, NodeSelectorRequirement, Operator};
use super::validation::{forms, node_overlay as rules, node_pool};

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    shortname = "overlays",
    category = "karpenter",
    status = "NodeOverlayStatus",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Weight","type":"integer","jsonPath":".spec.weight","priority":1}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::SPEC))]
pub struct NodeOverlaySpec {
    /// What it is for: labels of instance types, offerings, and templates of pools.
    #[schemars(length(max = 100))]
    pub requirements: Vec<OverlayRequirement>,
    /// US dollars per hour, instead of what the cloud asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::PRICE.pattern))]
    pub price: Option<String>,
    /// With a sign: dollars per hour, or a share of the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::PRICE_ADJUSTMENT.pattern))]
    pub price_adjustment: Option<String>,
    /// Resources that nodes will have beside those of their instance type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-validations" = rules::CAPACITY))]
    pub capacity: BTreeMap<String, IntOrString>,
    /// Of several overlays the one of the highest weight counts; unset is lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub weight: Option<i32>,
}

/// A requirement as NodePools have it, without `minValues`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::REQUIREMENT))]
pub struct OverlayRequirement {
    #[schemars(length(max = 316), extend("pattern" = forms::QUALIFIED_NAME.pattern, "x-kubernetes-validations" = rules::REQUIREMENT_KEY))]
    pub key: String,
    pub operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = node_pool::label_value()))]
    pub values: Vec<String>,
}

impl From<&OverlayRequirement> for NodeSelectorRequirement {
    fn from(requirement: &OverlayRequirement) -> Self {
        let OverlayRequirement { key, operator, values } = requirement.clone();
        Self { key, operator, values, min_values: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlayStatus {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
