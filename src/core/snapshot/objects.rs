//! The objects of a cluster, trimmed to what planning can see.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, PodTemplate, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};

use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_plan::NodePlan;
use crate::api::node_pool::NodePool;

use super::pod::Pod;

/// A cluster at one moment. Its file form is plain Kubernetes objects, as `kubectl get -o json` prints them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    pub nodes: Vec<Node>,
    pub node_claims: Vec<NodeClaim>,
    /// The pools and classes that are applied now; what should be applied comes from the definitions.
    pub node_pools: Vec<NodePool>,
    pub node_classes: Vec<EC2NodeClass>,
    pub node_overlays: Vec<NodeOverlay>,
    /// Plans that were posted before, and what became of them.
    pub node_plans: Vec<NodePlan>,
    pub disruption_budgets: Vec<DisruptionBudget>,
    pub capacity_buffers: Vec<CapacityBuffer>,
    pub pod_templates: Vec<PodTemplate>,
    pub pods: Vec<Pod>,
    pub resource_claims: Vec<ResourceClaim>,
    pub resource_claim_templates: Vec<ResourceClaimTemplate>,
    pub device_classes: Vec<DeviceClass>,
    pub resource_slices: Vec<ResourceSlice>,
    pub namespaces: Vec<Namespace>,
    pub daemon_sets: Vec<DaemonSet>,
    pub deployments: Vec<Deployment>,
    pub replica_sets: Vec<ReplicaSet>,
    pub stateful_sets: Vec<StatefulSet>,
    pub jobs: Vec<Job>,
    pub replication_controllers: Vec<ReplicationController>,
    pub services: Vec<Service>,
    pub pod_disruption_budgets: Vec<PodDisruptionBudget>,
    pub persistent_volumes: Vec<PersistentVolume>,
    pub persistent_volume_claims: Vec<PersistentVolumeClaim>,
    pub storage_classes: Vec<StorageClass>,
    pub csi_nodes: Vec<CSINode>,
    pub limit_ranges: Vec<LimitRange>,
    pub priority_classes: Vec<PriorityClass>,
    /// Kinds that planning does not use, with how many there were: `v1/ConfigMap` to 12.
    pub ignored: BTreeMap<String, usize>,
}
