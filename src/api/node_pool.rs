//! `NodePool` (karpenter.sh/v1): which nodes may exist, and how they may go.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::NillableDuration;
use super::validation::{forms, node_pool as rules};

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    printcolumn = r#"{"name":"NodeClass","type":"string","jsonPath":".spec.template.spec.nodeClassRef.name"}"#,
    printcolumn = r#"{"name":"Nodes","type":"string","jsonPath":".status.resources.nodes"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Weight","type":"integer","jsonPath":".spec.weight","priority":1}"#,
    printcolumn = r#"{"name":"CPU","type":"string","jsonPath":".status.resources.cpu","priority":1}"#,
    printcolumn = r#"{"name":"Memory","type":"string","jsonPath":".status.resources.memory","priority":1}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::NODE_POOL_SPEC))]
pub struct NodePoolSpec {
    /// What each node of the pool is like.
    pub template: NodeClaimTemplate,
    /// When nodes go that work, and how many at once.
    #[serde(default)]
    pub disruption: Disruption,
    /// Resource name to quantity; also `nodes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, IntOrString>,
    /// 1 to 100; unset behaves as 0; higher is tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// Present on static pools only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub replicas: Option<i64>,
}

/// A quantity as YAML gives it: `10`, `1.5`, `"10"`, `10Gi`. The API server takes whole numbers and text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrString {
    Int(i64),
    Float(f64),
    String(String),
}

impl JsonSchema for IntOrString {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IntOrString".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        forms::quantity()
    }
}

impl IntOrString {
    /// The quantity as it is written.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::String(value) => value.into(),
            Self::Int(value) => value.to_string().into(),
            Self::Float(value) => value.to_string().into(),
        }
    }
}

impl std::fmt::Display for IntOrString {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.text())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClaimTemplate {
    /// Labels and annotations of the nodes.
    #[serde(default)]
    pub metadata: TemplateMetadata,
    /// Which machines there may be, and what is on them.
    pub spec: NodeClaimTemplateSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// Every node has them. Pods may ask for them, and requirements of the pool count together with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100, "additionalProperties" = rules::label_value(), "x-kubernetes-validations" = rules::LABELS))]
    pub labels: BTreeMap<String, String>,
    /// Every node has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// How instances are launched: images, subnets, security groups, disks.
    pub node_class_ref: NodeClassReference,
    /// Which instance types, zones and capacity types nodes may have, and which labels. All of them must hold.
    #[schemars(length(max = 100), extend("x-kubernetes-validations" = rules::POOL_REQUIREMENTS))]
    pub requirements: Vec<NodeSelectorRequirement>,
    /// Only pods that tolerate them run on the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Taints that something else takes away when the node is ready, such as a network plugin. Pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub startup_taints: Vec<Taint>,
    /// The age at which a node goes, whatever budgets say. `Never`: none does.
    #[serde(default = "default_expire_after")]
    pub expire_after: Option<NillableDuration>,
    /// How long a node waits for its pods when it goes. After that they are ended, also against their disruption budgets. Without it a pod may
    /// hold its node for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::DURATION.pattern))]
    pub termination_grace_period: Option<NillableDuration>,
}

fn default_expire_after() -> Option<NillableDuration> {
    "720h".parse().ok()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NodeClassReference {
    /// The API group of the class: `karpenter.k8s.aws` for an EC2NodeClass.
    #[schemars(length(min = 1), extend("pattern" = forms::GROUP.pattern, "x-kubernetes-validations" = rules::UNCHANGING))]
    pub group: String,
    /// The kind of the class: `EC2NodeClass`.
    #[schemars(length(min = 1), extend("x-kubernetes-validations" = rules::UNCHANGING))]
    pub kind: String,
    /// The name of the class.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Whether the catalog has instances for classes of this kind. `None`: the catalog names no kind, and is for
    /// EC2NodeClasses.
    #[serde(skip)]
    pub is_sold: Option<bool>,
}

/// Group and kind of the classes of Karpenter's AWS provider.
pub const CLASS_GROUP: &str = "karpenter.k8s.aws";
pub const CLASS_KIND: &str = "EC2NodeClass";
/// Group and kind of the classes of EKS Auto Mode.
pub const AUTO_MODE_GROUP: &str = "eks.amazonaws.com";
pub const AUTO_MODE_KIND: &str = "NodeClass";

impl NodeClassReference {
    /// Whether EKS makes the nodes itself.
    pub fn is_of_auto_mode(&self) -> bool {
        self.group == AUTO_MODE_GROUP && self.kind == AUTO_MODE_KIND
    }

    /// Whether both name the same class.
    pub fn is_same_class(&self, other: &Self) -> bool {
        (&self.group, &self.kind, &self.name) == (&other.group, &other.kind, &other.name)
    }

    /// Whether another controller makes the nodes: EKS, or Karpenter with the provider of another cloud.
    pub fn is_of_others(&self) -> bool {
        let may_be_ours = self.group.is_empty() || self.group == CLASS_GROUP || self.kind == CLASS_KIND;
        self.is_of_auto_mode() || !self.is_sold.unwrap_or(may_be_ours)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::REQUIREMENT))]
pub struct NodeSelectorRequirement {
    /// The label that the requirement is about.
    #[schemars(length(max = 316), extend("pattern" = forms::QUALIFIED_NAME.pattern, "x-kubernetes-validations" = rules::REQUIREMENT_KEY))]
    pub key: String,
    /// How the label must stand to the values. `Gt`, `Gte`, `Lt` and `Lte` compare with one number.
    pub operator: Operator,
    /// Values of the label. `Exists` and `DoesNotExist` take none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("items" = rules::label_value()))]
    pub values: Vec<String>,
    /// How many different values the chosen instance types must have: 1 to 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    Gte,
    Lte,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What the taint is called.
    #[schemars(length(min = 1), extend("pattern" = forms::QUALIFIED_NAME.pattern))]
    pub key: String,
    /// What a toleration has to name as well, unless it says `Exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::TAINT_VALUE.pattern))]
    pub value: Option<String>,
    /// What becomes of pods that do not tolerate it: they are not put there, rather not put there, or evicted.
    pub effect: TaintEffect,
    /// When the taint was added. Kubernetes sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub time_added: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

impl TaintEffect {
    /// The word for the effect in the taints of nodes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    /// `None` when the effect is not one that Kubernetes knows.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute].into_iter().find(|effect| effect.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long nothing may have come to a node, or gone from it, before it is consolidated. `Never`: it is not.
    #[serde(default = "default_consolidate_after")]
    pub consolidate_after: NillableDuration,
    /// Which nodes are consolidated: empty ones; those whose pods fit elsewhere, or on something cheaper, as well; or of those only the ones for
    /// which what is saved is worth the disruption.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// An explicit empty list means unlimited.
    #[serde(default = "default_budgets")]
    #[schemars(length(max = 50))]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: default_consolidate_after(),
            consolidation_policy: ConsolidationPolicy::default(),
            budgets: default_budgets(),
        }
    }
}

fn default_consolidate_after() -> NillableDuration {
    NillableDuration::from_seconds(0)
}

fn default_budgets() -> Vec<Budget> {
    vec![Budget { nodes: "10%".to_owned(), reasons: None, schedule: None, duration: None }]
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    WhenEmpty,
    #[default]
    WhenEmptyOrUnderutilized,
    Balanced,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::BUDGET))]
pub struct Budget {
    /// A count or a percentage of the pool's nodes, rounded up.
    #[serde(default = "default_budget_nodes")]
    #[schemars(extend("pattern" = forms::BUDGET_NODES.pattern))]
    pub nodes: String,
    /// Absent: every reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// Five cron fields or `@daily` and its kin, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::SCHEDULE.pattern))]
    pub schedule: Option<String>,
    /// How long the budget is in force each time that the schedule begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::WINDOW.pattern))]
    pub duration: Option<NillableDuration>,
}

fn default_budget_nodes() -> String {
    "10%".to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionReason {
    Underutilized,
    Empty,
    Drifted,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, IntOrString>,
    #[serde(default)]
    pub nodes: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
