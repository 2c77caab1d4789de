//! `cutlist.yaml`: the settings of a repository of definitions, kind `Settings` (cutlist.dev/v1alpha1).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::NillableDuration;
use super::lint_settings::LintSettings;
use super::node_pool::IntOrString;
use super::validation::forms;

/// The file name looked for at the root of a repository of definitions (or of its sub-path).
pub const FILE_NAME: &str = "cutlist.yaml";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingsDocument {
    pub api_version: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
    #[serde(default)]
    pub spec: Settings,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// The name of the cluster in plans and in their JSON. The controller does not use a revision that names another cluster than
    /// `--cluster-name` does.
    pub cluster_name: String,
    /// The EC2 region of the built-in catalog. Unset: the region of the nodes, else that of the zones that NodePools name, else
    /// us-east-1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Values for `${NAME}` in definitions.
    pub variables: BTreeMap<String, String>,
    /// Folders and files of the repository that hold definitions. Empty: the whole repository.
    pub paths: Vec<String>,
    /// How nodes are chosen for pods: the cheapest fleet that is found, or as Karpenter would. Plans of either are judged
    /// before they are shown or carried out; of what Karpenter would do all but affinity between pods, which it does not look at in all
    /// cases.
    pub packing: Packing,
    /// What `packing: cheapest` counts beside the price of nodes.
    pub penalties: Penalties,
    /// How long `packing: cheapest` searches, in looks at what a node could hold. More looks take more time and may save money. The
    /// default takes about a second.
    #[schemars(range(min = 0, max = 1_000_000_000_000_u64))]
    pub search_work: u64,
    pub scheduling: Scheduling,
    /// Hard limits on the nodes of all pools together, by resource (`cpu`, `memory`, `nodes`, any other).
    pub limits: BTreeMap<String, IntOrString>,
    pub feature_gates: FeatureGates,
    pub approval: Approval,
    pub images: ImageSettings,
    pub disruption: DisruptionSettings,
    pub batch: Batch,
    /// Which findings of `cutlist lint` count. Plans and the controller ignore it.
    #[serde(skip_serializing_if = "LintSettings::is_default")]
    pub lint: LintSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cluster_name: "default".to_owned(),
            region: None,
            variables: BTreeMap::new(),
            paths: Vec::new(),
            packing: Packing::default(),
            penalties: Penalties::default(),
            search_work: DEFAULT_SEARCH_WORK,
            scheduling: Scheduling::default(),
            limits: BTreeMap::new(),
            feature_gates: FeatureGates::default(),
            approval: Approval::default(),
            images: ImageSettings::default(),
            disruption: DisruptionSettings::default(),
            batch: Batch::default(),
            lint: LintSettings::default(),
        }
    }
}

/// Work that takes one to two seconds on one core in a release build.
pub const DEFAULT_SEARCH_WORK: u64 = 20_000_000;

/// Dollars per hour for every node unless the settings say otherwise.
pub const DEFAULT_PER_NODE_PER_HOUR: f64 = 0.02;

/// Costs that no price list has. They decide which nodes are bought, which are worth keeping, and which pods share them; the price of
/// a plan is without them. No running pod is moved to lower a concentration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Penalties {
    /// US dollars for every hour of every node, beside its instance, volumes, public address and detailed monitoring, which are counted
    /// as the EC2NodeClass says. It stands for agents that are licensed by the host (monitoring of infrastructure is commonly listed at
    /// about $15 a host and month, $0.0205 an hour), and for what each node more costs the API server, the address space and the people
    /// who look after it. 0 counts nothing, and plans may then split pods over very many very small nodes.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub per_node_per_hour: f64,
    /// Pods of one workload on one node, which are gone together when it fails.
    pub blast_radius: ConcentrationPenalty,
    /// Pods of one workload on spot nodes of one instance type in one zone, which EC2 takes back together.
    pub spot_concentration: ConcentrationPenalty,
}

impl Default for Penalties {
    fn default() -> Self {
        Self {
            per_node_per_hour: DEFAULT_PER_NODE_PER_HOUR,
            blast_radius: ConcentrationPenalty::default(),
            spot_concentration: ConcentrationPenalty::default(),
        }
    }
}

/// What plans count where too many pods of a workload would be gone together. A workload is what made the pods (a ReplicaSet, a
/// StatefulSet, a Job ...), but no DaemonSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConcentrationPenalty {
    /// US dollars for every hour of every pod beyond the share; 0 counts nothing.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub per_pod_per_hour: f64,
    /// The part of a workload's replicas that may be together for nothing, rounded down. One pod always may.
    #[schemars(range(min = 1, max = 100))]
    pub max_share_percent: u32,
}

impl Default for ConcentrationPenalty {
    fn default() -> Self {
        Self { per_pod_per_hour: 0.0, max_share_percent: 50 }
    }
}

impl ConcentrationPenalty {
    /// How many pods of a workload with so many replicas count nothing.
    pub fn free_pods(&self, replicas: u32) -> u32 {
        let share = u64::from(replicas) * u64::from(self.max_share_percent) / 100;
        u32::try_from(share).unwrap_or(u32::MAX).max(1)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// The cheapest fleet that satisfies every constraint.
    #[default]
    Cheapest,
    /// The reference's order and choices, for previews of clusters that Karpenter runs.
    Karpenter,
}

/// How constraints and preferences of pods count. Karpenter has flags of its controller for this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Scheduling {
    pub preference_policy: PreferencePolicy,
    pub min_values_policy: MinValuesPolicy,
    /// Whether pods that ask for devices by ResourceClaims stay pending, which is what Karpenter's `--ignore-dra-requests`
    /// does by default. `false` plans their devices on the nodes that exist.
    pub ignore_dynamic_resource_allocation: bool,
    /// Constraints for pods that declare none, as in kube-scheduler's configuration (`defaultConstraints` with `defaultingType: List`).
    /// The Services that select a pod and its owner say which pods it is spread among.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub default_topology_spread_constraints: Vec<DefaultTopologySpreadConstraint>,
}

impl Default for Scheduling {
    fn default() -> Self {
        Self {
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            ignore_dynamic_resource_allocation: true,
            default_topology_spread_constraints: Vec::new(),
        }
    }
}

/// What becomes of a requirement's `minValues` where too few instance types are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MinValuesPolicy {
    /// The pod stays pending.
    #[default]
    Strict,
    /// A new node is opened with as many values as there are, and its NodeClaim says so. Never for a consolidation.
    BestEffort,
}

/// Features that may be turned off, by Karpenter's names. A gate that is off ignores its kind or capacity type, as the Karpenter that
/// is previewed does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase", deny_unknown_fields, default)]
pub struct FeatureGates {
    /// Whether NodeOverlays are applied.
    pub node_overlay: bool,
    /// Whether NodePools with `replicas` are planned for.
    pub static_capacity: bool,
    /// Whether room is kept for CapacityBuffers.
    pub capacity_buffer: bool,
    /// Whether capacity reservations that classes select are used.
    pub reserved_capacity: bool,
    /// Whether spot nodes are replaced by cheaper spot nodes. Unset: with `packing: cheapest`, where the move must repay itself, but
    /// not with `packing: karpenter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spot_to_spot_consolidation: Option<bool>,
    /// Whether nodes that stay broken are removed by force, whatever budgets and pods say.
    pub node_repair: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            node_overlay: true,
            static_capacity: true,
            capacity_buffer: true,
            reserved_capacity: true,
            spot_to_spot_consolidation: None,
            node_repair: false,
        }
    }
}

/// A spread constraint without a selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DefaultTopologySpreadConstraint {
    #[schemars(range(min = 1))]
    pub max_skew: i32,
    #[schemars(extend("pattern" = forms::QUALIFIED_NAME.pattern))]
    pub topology_key: String,
    pub when_unsatisfiable: UnsatisfiableConstraintAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_domains: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<NodeInclusionPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<NodeInclusionPolicy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnsatisfiableConstraintAction {
    DoNotSchedule,
    ScheduleAnyway,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NodeInclusionPolicy {
    Honor,
    Ignore,
}

/// What becomes of preferred affinity and of spread constraints with `ScheduleAnyway`. `Respect`: kept like requirements,
/// and given up one by one where that leaves a pod without a place. `Ignore`: as if the pods did not have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreferencePolicy {
    #[default]
    Respect,
    Ignore,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Approval {
    /// Whether somebody must approve that nodes are created for pods.
    pub provision: ApprovalMode,
    /// Whether somebody must approve that nodes are replaced or removed.
    pub disrupt: ApprovalMode,
    /// Of NodePools that were removed from the definitions, so many nodes may go without a confirmation: a count, or a percentage of
    /// all nodes that Cutlist manages, rounded up. Beyond it their nodes stay until a plan that replaces them is approved, or the
    /// pool has the annotation `cutlist.dev/removal-confirmed`. Nodes that another pool takes over do not count.
    #[schemars(extend("pattern" = forms::BUDGET_NODES.pattern))]
    pub confirm_pool_removal_above: String,
    /// Whether somebody else than the author of the revision's commit must approve.
    pub two_people: bool,
}

impl Default for Approval {
    fn default() -> Self {
        Self {
            provision: ApprovalMode::default(),
            disrupt: ApprovalMode::default(),
            confirm_pool_removal_above: "50%".to_owned(),
            two_people: false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    #[default]
    Automatic,
    Manual,
}

/// Which images nodes are launched with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ImageSettings {
    /// Whether nodes are launched only with images that `cutlist.lock` has for their EC2NodeClass. A class that is not locked launches
    /// none, and none of its nodes is replaced because of its image.
    pub require_lock: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DisruptionSettings {
    /// The time within which a consolidation must repay its disruption. `Never`: any saving will do. Annotation `cutlist.dev/payback`
    /// of a NodePool overrides it for the nodes of the pool. Only `packing: cheapest` looks at it.
    pub payback: NillableDuration,
    /// What a disruption costs, which a consolidation must repay.
    pub costs: ConsolidationCosts,
    pub rollout: Rollout,
    /// Whether a node has drifted that has security groups beside those of its EC2NodeClass, as somebody attached them to its
    /// instance. A plan names them either way. With `packing: karpenter` such a node always has, as in Karpenter.
    pub extra_security_groups_drift: bool,
}

impl Default for DisruptionSettings {
    fn default() -> Self {
        Self {
            payback: NillableDuration::from_seconds(3600),
            costs: ConsolidationCosts::default(),
            rollout: Rollout::default(),
            extra_security_groups_drift: false,
        }
    }
}

/// How nodes are replaced that drifted, or whose pool was removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rollout {
    /// Whether one node is replaced alone while its new pool has no ready node that is as the definitions want it, and the
    /// others follow when it is ready, as many together as budgets allow. Unset: so with `packing: cheapest`, and not with
    /// `packing: karpenter`, which knows no canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<bool>,
    /// When so many new nodes of a pool in a row did not become ready, no more of its nodes are replaced, until the pool's
    /// template or its class changes, or somebody removes the annotation `cutlist.dev/rollout-failures` from the pool. 0: never.
    #[schemars(range(max = 100))]
    pub halt_after_failures: u32,
}

impl Default for Rollout {
    fn default() -> Self {
        Self { canary: None, halt_after_failures: 3 }
    }
}

impl Rollout {
    /// Whether a canary goes first.
    pub fn has_canary(&self, packing: Packing) -> bool {
        self.canary.unwrap_or(packing == Packing::Cheapest)
    }
}

/// What moving pods is taken to cost, in US dollars. What it costs to evict a pod (its deletion cost and priority, as
/// Karpenter weighs them) multiplies what is said per pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConsolidationCosts {
    /// How long a node and its replacement are both paid for.
    #[schemars(extend("pattern" = forms::DURATION.pattern))]
    pub node_overlap: NillableDuration,
    /// US dollars for the images that a pod pulls on another node.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub image_pull_per_pod: f64,
    /// US dollars for the time until a pod is as useful as it was before it moved.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub warm_up_per_pod: f64,
    /// How long a pod takes to be as useful as before it moved. For that time its part of its node's price is lost.
    #[schemars(extend("pattern" = forms::DURATION.pattern))]
    pub warm_up: NillableDuration,
    /// What it costs to disturb a pod, however small it is: what the cluster's average pod costs on new nodes in this time.
    #[schemars(extend("pattern" = forms::DURATION.pattern))]
    pub restart: NillableDuration,
    /// US dollars for the traffic of a pod that comes to another zone than it was in.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cross_zone_per_pod: f64,
}

impl Default for ConsolidationCosts {
    fn default() -> Self {
        Self {
            node_overlap: NillableDuration::from_seconds(180),
            image_pull_per_pod: 0.0001,
            warm_up_per_pod: 0.0001,
            warm_up: NillableDuration::from_seconds(60),
            restart: NillableDuration::from_seconds(720),
            cross_zone_per_pod: 0.0,
        }
    }
}

/// How long pending pods are collected before they are planned for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Batch {
    /// Pods are planned for when no further one came for so long.
    pub idle: NillableDuration,
    /// How long the first pod waits at most.
    pub max: NillableDuration,
}

impl Default for Batch {
    fn default() -> Self {
        Self { idle: NillableDuration::from_seconds(1), max: NillableDuration::from_seconds(10) }
    }
}
