//! The custom resource definitions of all kinds that Cutlist reads from a cluster or keeps there: Karpenter's, where they
//! have the reference's names and validation, and our own.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_core::CustomResourceExt;

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
        of::<CapacityBuffer>(),
        of::<DisruptionBudget>(),
        of::<EC2NodeClass>(),
        of::<NodeClaim>(),
        of::<NodeOverlay>(),
        of::<NodePlan>(),
        of::<NodePool>(),
    ];
    all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    all
}

/// The definition of one kind. It makes no field `nullable`, as the reference does not: the API server then takes a
/// null out of an object, and puts in the default where there is one. A `nullable` field would keep the null, and be
/// refused where only certain words are allowed.
pub fn of<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut definition = K::crd();
    let schemas = definition.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut()).for_each(without_null);
    definition
}

fn without_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.enum_.iter_mut().for_each(|words| words.retain(|word| !word.0.is_null()));
    schema.properties.iter_mut().flat_map(|members| members.values_mut()).for_each(without_null);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        without_null(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(any)) = &mut schema.additional_properties {
        without_null(any);
    }
}

/// `GROUP_PLURAL.yaml`, as generators of Kubernetes name the files of definitions.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
}
