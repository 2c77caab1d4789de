//! EC2NodeClasses of which the cluster says that no node can be made of them.
//! Source: reference, sections 3.3 ("ignoring nodepool, not ready") and 6.5.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::inputs::Inputs;
use crate::model::static_hash::class_hash;
use cutlist_api::ec2_node_class::EC2NodeClass;

use super::subnets::is_same;

/// What is true of a class whose parts all are.
const READY: &str = "Ready";

/// Why no node can be made of a class: a condition of the applied one that is false, and counts for the defined one.
#[derive(Debug)]
pub struct NotReady<'a> {
    class: &'a str,
    condition: &'a Condition,
}

impl<'a> NotReady<'a> {
    /// `None` also where nobody says: without a status, and where the definitions change what was found wanting. O(conditions).
    pub fn of(inputs: &Inputs<'a>, defined: &EC2NodeClass) -> Option<Self> {
        let mut applied = inputs.snapshot.node_classes.iter();
        let applied = applied.find(|it| it.metadata.name == defined.metadata.name)?;
        let conditions = &applied.status_now()?.conditions;
        let is_locked = inputs.policy.images.of_class(applied.metadata.name.as_deref()?).is_some();
        let failed = || conditions.iter().filter(|it| it.status == "False");
        let counts = |condition: &&Condition| match condition.type_.as_str() {
            "SubnetsReady" => is_same(&applied.spec.subnet_selector_terms, &defined.spec.subnet_selector_terms),
            "SecurityGroupsReady" => {
                is_same(&applied.spec.security_group_selector_terms, &defined.spec.security_group_selector_terms)
            }
            "AMIsReady" => !is_locked && is_same(&applied.spec.ami_selector_terms, &defined.spec.ami_selector_terms),
            "CapacityReservationsReady" if !inputs.policy.feature_gates.reserved_capacity => false,
            // It follows from the others.
            READY if failed().any(|it| it.type_ != READY) => false,
            _ => is_unchanged(applied, defined),
        };
        let condition = failed().find(counts)?;
        Some(Self { class: applied.metadata.name.as_deref()?, condition })
    }
}

/// Whether the definitions leave the class as it is. Fields that the API server fills in are the same either way.
fn is_unchanged(applied: &EC2NodeClass, defined: &EC2NodeClass) -> bool {
    let (one, other) = (&applied.spec, &defined.spec);
    class_hash(applied) == class_hash(defined)
        && is_same(&one.subnet_selector_terms, &other.subnet_selector_terms)
        && is_same(&one.security_group_selector_terms, &other.security_group_selector_terms)
        && is_same(&one.ami_selector_terms, &other.ami_selector_terms)
        && is_same(&one.capacity_reservation_selector_terms, &other.capacity_reservation_selector_terms)
}

impl fmt::Display for NotReady<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { type_, reason, message, .. } = self.condition;
        write!(out, "EC2NodeClass {} is not ready: {type_} is False ({reason})", self.class)?;
        if message.is_empty() { Ok(()) } else { write!(out, ": {message}") }
    }
}
