//! The custom resource definitions of every kind that Cutlist reads or writes.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::capacity_buffer::CapacityBuffer;
use super::disruption_budget::DisruptionBudget;
use super::ec2_node_class::EC2NodeClass;
use super::node_claim::NodeClaim;
use super::node_overlay::NodeOverlay;
use super::node_plan::NodePlan;
use super::node_pool::NodePool;

/// Karpenter's kinds first, then our own.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        NodePool::crd(),
        NodeClaim::crd(),
        EC2NodeClass::crd(),
        NodeOverlay::crd(),
        CapacityBuffer::crd(),
        DisruptionBudget::crd(),
        NodePlan::crd(),
    ]
}
