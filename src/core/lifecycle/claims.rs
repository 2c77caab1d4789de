//! What is written on a NodeClaim on its way.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::catalog::InstanceType;
use crate::model::resources::format_amount;
use crate::model::static_hash::ec2_node_class_hash;
use crate::model::{Requirements, Resources};
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::IntOrString;

use super::conditions;
use super::selectors::Selectors;

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
    class: Option<&EC2NodeClass>,
    now: Timestamp,
) -> NodeClaim {
    let mut claim = claim.clone();
    let requirements = Requirements::from_entries(&claim.spec.requirements);
    if let Some(class) = class.map(|class| &class.spec) {
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
        let asked = requirements.get(keys::TENANCY);
        if let Some(tenancy) = instance_type.tenancy(|value| asked.is_none_or(|asked| asked.allows(value))) {
            labels.insert(keys::TENANCY.to_owned(), tenancy.to_owned());
        }
    }
    if let Some(zone_id) = zone_id(instance, instance_type, class) {
        labels.insert(keys::ZONE_ID.to_owned(), zone_id.to_owned());
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

/// As the subnets of the class say, since the ids of zones are each account's own; else as the catalog does.
fn zone_id<'i>(
    instance: &LaunchedInstance,
    instance_type: Option<&'i InstanceType>,
    class: Option<&'i EC2NodeClass>,
) -> Option<&'i str> {
    let subnets = class.and_then(|class| class.status.as_ref()).into_iter().flat_map(|status| &status.subnets);
    let of_class = subnets.filter(|subnet| subnet.zone == instance.zone).find_map(|subnet| subnet.zone_id.as_deref());
    of_class.or_else(|| {
        let mut offerings = instance_type?.offerings.iter();
        offerings.find(|offering| offering.zone == instance.zone)?.zone_id.as_deref()
    })
}

/// The claim after the cloud refused, for a reason that may pass.
pub fn launch_failed(claim: &NodeClaim, reason: &str, message: &str, now: Timestamp) -> NodeClaim {
    const MESSAGE_MAX: usize = 300;
    let mut claim = claim.clone();
    let message: String = message.chars().take(MESSAGE_MAX).collect();
    conditions::set(&mut claim, conditions::LAUNCHED, "Unknown", reason, &message, now);
    claim
}

/// The claim whose instance ended before its node joined. It is given up a moment later.
pub fn instance_ended(claim: &NodeClaim, message: &str, now: Timestamp) -> NodeClaim {
    let mut claim = claim.clone();
    conditions::set(&mut claim, conditions::REGISTERED, "False", conditions::INSTANCE_ENDED, message, now);
    claim
}

fn quantities(resources: &Resources) -> BTreeMap<String, IntOrString> {
    resources
        .iter()
        .filter(|(_, amount)| *amount != 0)
        .map(|(name, amount)| (name.to_owned(), IntOrString::String(format_amount(name, amount))))
        .collect()
}
