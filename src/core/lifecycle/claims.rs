//! What is written on a NodeClaim on its way.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::ec2_node_class::EC2NodeClassSpec;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::IntOrString;
use crate::core::catalog::InstanceType;
use crate::core::model::Resources;
use crate::core::model::resources::format_amount;

use super::conditions;
use super::selectors::Selectors;
use super::static_hash::ec2_node_class_hash;

/// The instance that the cloud gave for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchedInstance {
    pub provider_id: String,
    pub image_id: String,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub region: String,
}

/// The claim once its instance is known: labels of the instance type and of the offering, capacity, condition. `class`: what the
/// instance was launched with; it drifts when that changes.
pub fn launched(
    claim: &NodeClaim,
    instance: &LaunchedInstance,
    instance_type: Option<&InstanceType>,
    class: Option<&EC2NodeClassSpec>,
    now: Timestamp,
) -> NodeClaim {
    let mut claim = claim.clone();
    if let Some(class) = class {
        let annotations = claim.metadata.annotations.get_or_insert_default();
        annotations.insert(keys::LAUNCHED_CLASS_HASH.to_owned(), ec2_node_class_hash(class, None));
        annotations.insert(keys::LAUNCHED_SELECTORS.to_owned(), Selectors::of(class).to_text());
    }
    let labels = claim.metadata.labels.get_or_insert_default();
    if let Some(instance_type) = instance_type {
        for (key, values) in &instance_type.requirements {
            if let [value] = values.as_slice() {
                labels.insert(key.clone(), value.clone());
            }
        }
        let mut offerings = instance_type.offerings.iter();
        let zone_id = offerings.find(|offering| offering.zone == instance.zone).and_then(|it| it.zone_id.clone());
        if let Some(zone_id) = zone_id {
            labels.insert(keys::ZONE_ID.to_owned(), zone_id);
        }
    }
    labels.insert(keys::INSTANCE_TYPE.to_owned(), instance.instance_type.clone());
    labels.insert(keys::ZONE.to_owned(), instance.zone.clone());
    labels.insert(keys::REGION.to_owned(), instance.region.clone());
    labels.insert(keys::CAPACITY_TYPE.to_owned(), instance.capacity_type.clone());
    labels.insert(keys::EC2_NODE_CLASS.to_owned(), claim.spec.node_class_ref.name.clone());

    let status = claim.status.get_or_insert_default();
    status.provider_id = Some(instance.provider_id.clone());
    status.image_id = Some(instance.image_id.clone());
    if let Some(instance_type) = instance_type {
        status.capacity = quantities(&instance_type.capacity);
        status.allocatable = quantities(&instance_type.allocatable());
    }
    conditions::set(&mut claim, conditions::LAUNCHED, "True", "Launched", "", now);
    conditions::set(&mut claim, conditions::REGISTERED, "Unknown", "NodeNotFound", "the node has not joined", now);
    claim
}

/// The claim after the cloud refused, for a reason that may pass.
pub fn launch_failed(claim: &NodeClaim, reason: &str, message: &str, now: Timestamp) -> NodeClaim {
    const LONGEST_MESSAGE: usize = 300;
    let mut claim = claim.clone();
    let message: String = message.chars().take(LONGEST_MESSAGE).collect();
    conditions::set(&mut claim, conditions::LAUNCHED, "Unknown", reason, &message, now);
    claim
}

fn quantities(resources: &Resources) -> BTreeMap<String, IntOrString> {
    resources
        .iter()
        .filter(|(_, amount)| *amount != 0)
        .map(|(name, amount)| (name.to_owned(), IntOrString::String(format_amount(name, amount))))
        .collect()
}
