//! Drift and expiry: nodes that no longer are what the definitions say.
//! Behaviour: reference, section 5 (order of evaluation) and 4.8.

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::core::lifecycle::static_hash::{ec2_node_class_hash, node_pool_hash};
use crate::core::model::Requirements;
use crate::core::plan::{Inputs, Reason, ReasonCode};
use crate::core::snapshot::nodes::Machine;

use super::removed_pools::is_from_definitions;
use super::{duration_text, seconds_between};

/// The version of the hash that we compute; claims with another one can not be compared.
const HASH_VERSION: &str = "v3";

/// A type that EC2 stopped listing is believed gone only for claims older than this.
const INSTANCE_TYPE_GRACE_SECONDS: i64 = 3_600;

/// Why a machine has to go whether or not that saves money; `None` when it is what it should be.
pub fn removal_cause(inputs: &Inputs<'_>, machine: &Machine<'_>, pool: Option<&NodePool>) -> Option<Reason> {
    let Some(pool) = pool else { return pool_removed(inputs, machine) };
    // First: drift waits for a budget, and no budget holds back what has expired.
    expired(inputs, machine)
        .or_else(|| drift(inputs, machine, pool).map(|text| Reason { code: ReasonCode::Drifted, text }))
}

/// The pool was applied from the definitions and is not there any more.
fn pool_removed(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<Reason> {
    let name = machine.node_pool()?;
    let applied = inputs.snapshot.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(name));
    let owned = applied.is_some_and(is_from_definitions) || inputs.policy.owned_pools.contains(name);
    owned.then(|| Reason {
        code: ReasonCode::NodePoolRemoved,
        text: format!("NodePool {name} was removed from the definitions"),
    })
}

/// How a machine differs from what its pool wants, as far as anybody can see.
pub fn drift(inputs: &Inputs<'_>, machine: &Machine<'_>, pool: &NodePool) -> Option<String> {
    let claim = machine.claim?;
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    if is_of_other_template(claim, pool) {
        return Some(format!("NodePoolDrifted: the template of NodePool {name} has changed"));
    }
    let mut labels = machine.labels.clone();
    labels.extend(claim.metadata.labels.clone().unwrap_or_default());
    let requirements = Requirements::from_entries(&pool.spec.template.spec.requirements);
    let unmet = requirements.iter().find(|(key, requirement)| {
        let value = crate::core::model::requirements::label(&labels, key);
        !value.map_or(requirement.allows_absence(), |value| requirement.allows(value))
    });
    if let Some((key, _)) = unmet {
        return Some(match crate::core::model::requirements::label(&labels, key) {
            Some(value) => format!("RequirementsDrifted: NodePool {name} no longer allows {key} {value}"),
            None => format!("RequirementsDrifted: NodePool {name} now asks for {key}, which the node has not"),
        });
    }
    instance_type_gone(inputs, machine).or_else(|| class_drift(inputs, claim, pool)).or_else(|| reported(machine))
}

/// Whether a claim was made from another template than the pool has now.
pub fn is_of_other_template(claim: &NodeClaim, pool: &NodePool) -> bool {
    claim.annotation(keys::NODE_POOL_HASH_VERSION) == Some(HASH_VERSION)
        && claim.annotation(keys::NODE_POOL_HASH).is_some_and(|hash| hash != node_pool_hash(pool))
}

fn instance_type_gone(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<String> {
    let name = machine.label(keys::INSTANCE_TYPE)?;
    let created = machine.claim?.metadata.creation_timestamp.as_ref()?.0;
    let known = inputs.catalog.instance_types.iter().any(|instance_type| instance_type.name == name);
    let is_old = seconds_between(created, inputs.now) > INSTANCE_TYPE_GRACE_SECONDS;
    (!known && is_old).then(|| format!("InstanceTypeNotFound: the catalog has no instance type {name}"))
}

/// The class in the definitions differs, in a field that launches depend on, from the one that the instance was launched with:
/// where the claim does not say which that was, from the one applied.
fn class_drift(inputs: &Inputs<'_>, claim: &NodeClaim, pool: &NodePool) -> Option<String> {
    let name = pool.spec.template.spec.node_class_ref.name.as_str();
    let defined = inputs.node_classes.iter().find(|class| class.metadata.name.as_deref() == Some(name))?;
    // A variable that nobody has set yet makes the two differ, and says nothing of the class.
    let has_open_variable = serde_json::to_string(&defined.spec).is_ok_and(|text| text.contains("${"));
    if has_open_variable {
        return None;
    }
    // The bundle is part of the hash, but is the same on both sides, since it is the cluster's.
    let hash = |spec| ec2_node_class_hash(spec, None);
    let launched_with = claim.annotation(keys::LAUNCHED_CLASS_HASH).map(str::to_owned).or_else(|| {
        let mut applied = inputs.snapshot.node_classes.iter();
        applied.find(|class| class.metadata.name.as_deref() == Some(name)).map(|class| hash(&class.spec))
    })?;
    (hash(&defined.spec) != launched_with).then(|| format!("NodeClassDrift: EC2NodeClass {name} has changed"))
}

/// What only the cloud can see (image, subnet, security group), as the claim reports it.
fn reported(machine: &Machine<'_>) -> Option<String> {
    let condition = machine.claim?.condition("Drifted").filter(|condition| condition.status == "True")?;
    let seen_here = matches!(condition.reason.as_str(), "NodePoolDrifted" | "RequirementsDrifted" | "NodeClassDrift");
    (!seen_here).then(|| {
        format!(
            "{}: {}",
            condition.reason,
            if condition.message.is_empty() { "as the NodeClaim reports" } else { &condition.message }
        )
    })
}

/// Whether it is older than its `expireAfter`.
pub fn expired(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<Reason> {
    let claim = machine.claim?;
    let after = claim.spec.expire_after.as_ref()?.seconds().and_then(|seconds| i64::try_from(seconds).ok())?;
    let age = seconds_between(claim.metadata.creation_timestamp.as_ref()?.0, inputs.now);
    let text = || {
        format!(
            "Expired: {} old, expireAfter {}",
            duration_text(age),
            claim.spec.expire_after.as_ref().map(ToString::to_string).unwrap_or_default()
        )
    };
    (age >= after).then(|| Reason { code: ReasonCode::Expired, text: text() })
}
