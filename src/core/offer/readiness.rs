//! NodePools of which no node can be made, since they or their EC2NodeClasses go away, or since the cluster says that a class is not ready.
//! Source: reference, sections 3.3 ("ignoring nodepool, not ready") and 6.5.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::inputs::Inputs;
use crate::model::shown_hash;
use crate::model::static_hash::class_hash;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::node_pool::NodePool;

use super::subnets::is_same;

/// What is true of a class whose parts all are.
const READY: &str = "Ready";

/// Why no node can be made of a pool.
#[derive(Debug)]
pub struct NotReady<'a> {
    class: &'a str,
    why: Why<'a>,
}

#[derive(Debug)]
enum Why<'a> {
    /// What is being deleted can not be kept: what the definitions hold is made anew when it is gone.
    PoolGoes(Timestamp),
    ClassGoes(Timestamp),
    /// One of the applied class that is false, and counts for the defined one.
    Condition(&'a Condition),
}

impl<'a> NotReady<'a> {
    /// O(pools + classes + conditions).
    pub fn of_pool(inputs: &Inputs<'a>, pool: &'a NodePool, class: &EC2NodeClass) -> Option<Self> {
        let mut applied = inputs.snapshot.node_pools.iter();
        let applied = applied.find(|it| it.metadata.name == pool.metadata.name);
        let since = applied.and_then(|applied| applied.metadata.deletion_timestamp.as_ref());
        let goes = since
            .map(|since| Self { class: &pool.spec.template.spec.node_class_ref.name, why: Why::PoolGoes(since.0) });
        goes.or_else(|| Self::of(inputs, class))
    }

    /// What is to be said of the class. `None` also where nobody says: without a status, and where the definitions change what was found
    /// wanting. O(classes + conditions).
    pub fn of(inputs: &Inputs<'a>, defined: &EC2NodeClass) -> Option<Self> {
        let mut applied = inputs.snapshot.node_classes.iter();
        let applied = applied.find(|it| it.metadata.name == defined.metadata.name)?;
        let class = applied.metadata.name.as_deref()?;
        if let Some(since) = &applied.metadata.deletion_timestamp {
            return Some(Self { class, why: Why::ClassGoes(since.0) });
        }
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
        Some(Self { class, why: Why::Condition(failed().find(counts)?) })
    }
}

/// Whether the definitions leave the class as it is. Fields that the API server fills in are the same either way.
fn is_unchanged(applied: &EC2NodeClass, defined: &EC2NodeClass) -> bool {
    let (one, other) = (&applied.spec, &defined.spec);
    shown_hash::is_same(&class_hash(applied), &class_hash(defined))
        && is_same(&one.subnet_selector_terms, &other.subnet_selector_terms)
        && is_same(&one.security_group_selector_terms, &other.security_group_selector_terms)
        && is_same(&one.ami_selector_terms, &other.ami_selector_terms)
        && is_same(&one.capacity_reservation_selector_terms, &other.capacity_reservation_selector_terms)
}

impl fmt::Display for NotReady<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = self.class;
        match &self.why {
            Why::PoolGoes(since) => {
                write!(out, "it is being deleted since {since}: what is in Git is made anew when it is gone")
            }
            Why::ClassGoes(since) => {
                write!(
                    out,
                    "its EC2NodeClass {class} is being deleted since {since}: what is in Git is made anew when it is gone"
                )
            }
            Why::Condition(Condition { type_, reason, message, .. }) => {
                write!(out, "its EC2NodeClass {class} is not ready: {type_} is False ({reason})")?;
                if message.is_empty() { Ok(()) } else { write!(out, ": {message}") }
            }
        }
    }
}
