//! Nodes of an EC2NodeClass that can not be made of it, by what its status in the cluster says.

use std::collections::BTreeMap;

use crate::catalog::InstanceType;
use crate::catalog::node_class::{image_for, says_images_unknown};
use crate::plan::Step;
use cutlist_api::ec2_node_class::{Ami, EC2NodeClass};
use cutlist_api::node_pool::NodePool;

use super::known::Known;
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// Whether the class of a new node's pool is ready, where it is in the cluster as it is defined; and whether both stay.
pub(super) fn ready(step: &Step, pool: &NodePool, known: &Known<'_>, findings: &mut Findings) {
    let mut pools = known.inputs.snapshot.node_pools.iter().filter(|it| it.metadata.name == pool.metadata.name);
    if pools.any(|it| it.metadata.deletion_timestamp.is_some()) {
        findings.add(ViolationCode::ClassNotReady, ViolationPlace::step(step), "its pool is being deleted");
    }
    let Some((defined, applied)) = classes(pool, known) else { return };
    if applied.metadata.deletion_timestamp.is_some() {
        findings.add(ViolationCode::ClassNotReady, ViolationPlace::step(step), "its class is being deleted");
    }
    if serde_json::to_value(&defined.spec).ok() != serde_json::to_value(&applied.spec).ok() {
        return;
    }
    let is_locked = locked(pool, known).is_some();
    let is_failed = |type_: &str| type_ == "SubnetsReady" || (type_ == "AMIsReady" && !is_locked);
    let mut conditions = applied.status_now().into_iter().flat_map(|status| &status.conditions);
    let failed = conditions.find(|it| it.status == "False" && is_failed(&it.type_));
    if let Some(condition) = failed {
        let text = format!("{} of its class is False: {}", condition.type_, condition.reason);
        findings.add(ViolationCode::ClassNotReady, ViolationPlace::step(step), text);
    }
}

/// Whether the class of the pool has an image for the type, or nobody knows which it has.
pub(super) fn may_have_image(pool: &NodePool, instance_type: &InstanceType, known: &Known<'_>) -> bool {
    let has_one = |images: &[Ami]| image_for(instance_type, &BTreeMap::new(), images).is_some();
    if let Some(images) = locked(pool, known) {
        return has_one(images);
    }
    let Some((defined, applied)) = classes(pool, known) else { return true };
    if defined.spec.ami_selector_terms != applied.spec.ami_selector_terms {
        return true;
    }
    let Some(status) = applied.status_now() else { return true };
    let some_unknown = status.conditions.iter().any(says_images_unknown);
    some_unknown || status.amis.is_empty() || has_one(&status.amis)
}

/// The class of a pool as it is defined and as it is in the cluster.
fn classes<'k>(pool: &NodePool, known: &'k Known<'_>) -> Option<(&'k EC2NodeClass, &'k EC2NodeClass)> {
    let name = pool.spec.template.spec.node_class_ref.name.as_str();
    let mut applied = known.inputs.snapshot.node_classes.iter();
    Some((*known.classes.get(name)?, applied.find(|it| it.metadata.name.as_deref() == Some(name))?))
}

fn locked<'k>(pool: &NodePool, known: &'k Known<'_>) -> Option<&'k [Ami]> {
    known.inputs.policy.images.of_class(&pool.spec.template.spec.node_class_ref.name)
}
