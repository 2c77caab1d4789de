//! Pods, trimmed to what scheduling and disruption can see.
//!
//! The types of `k8s-openapi` hold a whole pod: several kilobytes, most of them never looked at. A cluster has thirty
//! pods for each node, so pods alone decide how much memory a snapshot takes; they are the one kind that is trimmed
//! while it is read. Names and nesting are those of the Kubernetes API, so that writing a pod gives a valid object.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Affinity, PodOS, PodSchedulingGate, Toleration, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::index::index;
use crate::model::shared::Shared;
use cutlist_api::node_pool::IntOrString;

use super::resource_version::version_number;

index! {
    /// Position of a pod in [`super::Snapshot::pods`].
    pub struct PodIndex;
}

/// Stands before the name of a CapacityBuffer in the names of its pods. No pod of Kubernetes has a colon in its name.
pub const BUFFER_POD_PREFIX: &str = "buffer:";

/// Whether nobody runs this pod: it stands for room.
pub fn is_of_buffer(pod: &Pod) -> bool {
    pod.metadata.name.starts_with(BUFFER_POD_PREFIX)
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenPod")]
pub struct Pod {
    pub metadata: PodMetadata,
    pub spec: PodSpec,
    pub status: PodStatus,
}

/// As the API server has it: of any size. What is made of it keeps within [`super::limits`].
#[derive(Deserialize)]
pub(super) struct WrittenPod {
    #[serde(default, deserialize_with = "null_is_absent")]
    pub metadata: PodMetadata,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub spec: PodSpec,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub status: PodStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMetadata {
    #[serde(default, deserialize_with = "null_is_absent")]
    pub name: String,
    #[serde(default = "default_namespace", deserialize_with = "namespace_or_default")]
    pub namespace: String,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Of the API server's, while the pod has no node; not written to a snapshot.
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing)]
    pub resource_version: String,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: Shared<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Shared<BTreeMap<String, String>>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Shared<Vec<OwnerReference>>,
    /// RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
}

impl PodMetadata {
    /// Zero where there is none.
    pub fn version(&self) -> u64 {
        version_number(&self.resource_version)
    }
}

fn default_namespace() -> String {
    "default".to_owned()
}

fn namespace_or_default<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(default_namespace))
}

/// The API server takes a null for a field that is not there, and hand-written YAML has many of them.
fn null_is_absent<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// As the API server has it: a pod without a node has an empty name there.
fn empty_is_absent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.filter(|text: &String| !text.is_empty()))
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    #[serde(default, deserialize_with = "empty_is_absent", skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: Shared<BTreeMap<String, String>>,
    /// Which kubelet runs it; kube-scheduler does not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<Box<PodOS>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Box<Affinity>>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Shared<Vec<Toleration>>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Shared<Vec<TopologySpreadConstraint>>,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub containers: Shared<Vec<Container>>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Shared<Vec<Container>>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub overhead: Shared<BTreeMap<String, IntOrString>>,
    /// Requests and limits of the pod as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub scheduling_gates: Vec<PodSchedulingGate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "std::ops::Not::not")]
    pub host_network: bool,
    /// Dynamic resource allocation.
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub resource_claims: Vec<PodResourceClaim>,
}

/// A claim of the namespace, or the template that one is made from for this pod alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodResourceClaim {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_claim_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_claim_template_name: Option<String>,
}

/// The claim that was made from a template; none where Kubernetes found that none is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodResourceClaimStatus {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_claim_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    #[serde(default, deserialize_with = "null_is_absent")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent")]
    pub resources: ContainerResources,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ContainerPort>,
    /// `Always` makes an init container a sidecar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerResources {
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, IntOrString>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, IntOrString>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPort {
    #[serde(default, deserialize_with = "null_is_absent")]
    pub container_port: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_port: Option<i32>,
    #[serde(default, rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// Only volumes that can restrict where a pod goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    #[serde(default, deserialize_with = "null_is_absent")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<EphemeralSource>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    pub claim_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EphemeralSource {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_claim_template: Option<serde_json::Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Shared<Vec<PodCondition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nominated_node_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub container_statuses: Vec<ContainerStatus>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// How a resize stands, before Kubernetes 1.33; since then a condition says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resize: Option<String>,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "Vec::is_empty")]
    pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
}

/// What a container has, where that is not what its spec says: while it is resized in place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerStatus {
    #[serde(default, deserialize_with = "null_is_absent")]
    pub name: String,
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub allocated_resources: BTreeMap<String, IntOrString>,
    /// What it runs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenCondition")]
pub struct PodCondition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Kept of `PodScheduled` `False` alone: which of its filters found no node, as kube-scheduler says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// As the API server has it.
#[derive(Deserialize)]
struct WrittenCondition {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default, deserialize_with = "null_is_absent")]
    status: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

impl From<WrittenCondition> for PodCondition {
    fn from(written: WrittenCondition) -> Self {
        const CHARACTERS_MAX: usize = 1000;
        let WrittenCondition { type_, status, reason, message } = written;
        let refused = type_ == "PodScheduled" && status == "False";
        let message = message.filter(|text| refused && !text.is_empty());
        Self { type_, status, reason, message: message.map(|text| text.chars().take(CHARACTERS_MAX).collect()) }
    }
}

/// What makes pods again when they go; shown as `namespace/Kind/name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Workload<'p> {
    pub namespace: &'p str,
    pub kind: &'p str,
    pub name: &'p str,
}

impl fmt::Display for Workload<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.namespace, self.kind, self.name)
    }
}

impl Pod {
    /// Keeps of another pod what is equal; worth trying with one of the same controller.
    pub fn share_with(&mut self, other: &Self) {
        let (metadata, spec, status) = (&other.metadata, &other.spec, &other.status);
        self.metadata.labels.share_with(&metadata.labels);
        self.metadata.annotations.share_with(&metadata.annotations);
        self.metadata.owner_references.share_with(&metadata.owner_references);
        self.spec.node_selector.share_with(&spec.node_selector);
        self.spec.tolerations.share_with(&spec.tolerations);
        self.spec.topology_spread_constraints.share_with(&spec.topology_spread_constraints);
        self.spec.containers.share_with(&spec.containers);
        self.spec.init_containers.share_with(&spec.init_containers);
        self.spec.overhead.share_with(&spec.overhead);
        self.status.conditions.share_with(&status.conditions);
    }

    /// `namespace/name`
    pub fn key(&self) -> String {
        format!("{}/{}", self.metadata.namespace, self.metadata.name)
    }

    /// The owner that keeps this pod alive, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// What made the pod, unless that makes one for each node.
    pub fn workload(&self) -> Option<Workload<'_>> {
        let owner = self.controller().filter(|owner| owner.kind != "DaemonSet" && owner.kind != "Node")?;
        Some(Workload { namespace: &self.metadata.namespace, kind: &owner.kind, name: &owner.name })
    }

    pub fn is_owned_by(&self, kind: &str) -> bool {
        self.metadata.owner_references.iter().any(|owner| owner.kind == kind)
    }

    /// Succeeded or failed: takes no room any more.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// Why kube-scheduler found no node for this pod, or did not look for one.
    pub fn scheduling_refused(&self) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
    }

    /// The scheduler that looks for a node for it, where that is not kube-scheduler under its own name.
    pub fn other_scheduler(&self) -> Option<&str> {
        self.spec.scheduler_name.as_deref().filter(|name| !matches!(*name, "" | "default-scheduler"))
    }

    /// Whether it waits for another scheduler that has not said that there is no node for it: it may hold it back for reasons of its
    /// own, such as a queue.
    pub fn is_left_to_its_scheduler(&self) -> bool {
        let is_refusal = |reason: Option<&str>| reason.is_none_or(|reason| reason == "Unschedulable");
        let is_refused = self.scheduling_refused().is_some_and(|refused| is_refusal(refused.reason.as_deref()));
        self.other_scheduler().is_some() && self.spec.node_name.is_none() && !is_refused
    }

    /// The node on which kube-scheduler is evicting others for this pod.
    pub fn preempting_on(&self) -> Option<&str> {
        let waits = self.spec.node_name.as_deref().is_none_or(str::is_empty) && !self.is_terminal();
        let node = self.status.nominated_node_name.as_deref().filter(|name| !name.is_empty());
        node.filter(|_| waits && !self.is_terminating())
    }

    /// Whether the kubelet will never do what a resize asks for: the spec then says what the pod does not get.
    pub fn resize_is_infeasible(&self) -> bool {
        let pending = self.status.conditions.iter().find(|condition| condition.type_ == "PodResizePending");
        let reason = pending.and_then(|condition| condition.reason.as_deref());
        reason.or(self.status.resize.as_deref()) == Some("Infeasible")
    }

    pub fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
