//! The objects of a cluster, trimmed to what planning can see.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, PodTemplate, ReplicationController, Service,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};

use cutlist_api::capacity_buffer::CapacityBuffer;
use cutlist_api::disruption_budget::DisruptionBudget;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_plan::NodePlan;
use cutlist_api::node_pool::NodePool;

use super::doubts::Doubts;
use super::list::Objects;
use super::pod::Pod;

/// A cluster at one moment. Its file form is plain Kubernetes objects, as `kubectl get -o json` prints them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    pub nodes: Objects<Node>,
    pub node_claims: Objects<NodeClaim>,
    /// The pools and classes that are applied now; what should be applied comes from the definitions.
    pub node_pools: Objects<NodePool>,
    pub node_classes: Objects<EC2NodeClass>,
    pub node_overlays: Objects<NodeOverlay>,
    /// Plans that were posted before, and what became of them.
    pub node_plans: Objects<NodePlan>,
    pub disruption_budgets: Objects<DisruptionBudget>,
    pub capacity_buffers: Objects<CapacityBuffer>,
    pub pod_templates: Objects<PodTemplate>,
    pub pods: Objects<Pod>,
    pub resource_claims: Objects<ResourceClaim>,
    pub resource_claim_templates: Objects<ResourceClaimTemplate>,
    pub device_classes: Objects<DeviceClass>,
    pub resource_slices: Objects<ResourceSlice>,
    pub namespaces: Objects<Namespace>,
    pub daemon_sets: Objects<DaemonSet>,
    pub deployments: Objects<Deployment>,
    pub replica_sets: Objects<ReplicaSet>,
    pub stateful_sets: Objects<StatefulSet>,
    pub jobs: Objects<Job>,
    pub replication_controllers: Objects<ReplicationController>,
    pub services: Objects<Service>,
    pub pod_disruption_budgets: Objects<PodDisruptionBudget>,
    pub persistent_volumes: Objects<PersistentVolume>,
    pub persistent_volume_claims: Objects<PersistentVolumeClaim>,
    pub storage_classes: Objects<StorageClass>,
    pub csi_nodes: Objects<CSINode>,
    /// Volumes at nodes: an instance is not ended before they are let go.
    pub volume_attachments: Objects<VolumeAttachment>,
    pub limit_ranges: Objects<LimitRange>,
    pub priority_classes: Objects<PriorityClass>,
    /// What pods that name one are admitted with.
    pub runtime_classes: Objects<RuntimeClass>,
    /// Kinds that planning does not use, with how many there were: `v1/ConfigMap` to 12.
    pub ignored: BTreeMap<String, usize>,
    /// What of all this is not to be relied on. Not part of the file: what a file shows is what there was.
    pub doubts: Doubts,
}
