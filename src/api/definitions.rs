//! The custom resource definitions of all kinds that Cutlist reads from a cluster or keeps there: Karpenter's, where they
//! have the reference's names and validation, and our own.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::capacity_buffer::CapacityBuffer;
use super::disruption_budget::DisruptionBudget;
use super::ec2_node_class::EC2NodeClass;
use super::node_claim::NodeClaim;
use super::node_overlay::NodeOverlay;
use super::node_plan::NodePlan;
use super::node_pool::NodePool;

/// One definition for each kind, by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        CapacityBuffer::crd(),
        DisruptionBudget::crd(),
        EC2NodeClass::crd(),
        NodeClaim::crd(),
        NodeOverlay::crd(),
        NodePlan::crd(),
        NodePool::crd(),
    ];
    all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    all
}

/// `GROUP_PLURAL.yaml`, as generators of Kubernetes name the files of definitions.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
}
