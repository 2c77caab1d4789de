//! What pools and classes say of themselves: conditions that `kubectl wait`, kstatus, Argo CD and Flux read, and how far a
//! rollout has come.
//!
//! Progress stands in the message of `Reconciling`, since the kinds are Karpenter's and have no field for it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::ec2_node_class::{EC2NodeClass, EC2NodeClassStatus};
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::{IntOrString, NodePool, NodePoolStatus};
use crate::controller::observed::others::is_disowned;
use crate::controller::observed::view::{label, name_of};
use crate::controller::set_aside::SetAside;
use crate::core::lifecycle::conditions;
use crate::core::lifecycle::rollout_failures::Failures;
use crate::core::lifecycle::selectors::Selectors;
use crate::core::model::Resources;
use crate::core::model::resources::format_amount;
use crate::core::model::static_hash::node_pool_hash;
use crate::core::plan::Plan;
use crate::core::snapshot::Snapshot;
use crate::ports::{ClassCondition, ClassFacts, Cluster, PortError, PortErrorKind};

use super::InForce;

/// Writes the status of each class and pool where it changed. One that somebody else changed or removed meanwhile is looked at
/// next time. `facts`: what the cloud said of a class, by its name. `just_applied`: the definitions were applied after the snapshot was
/// taken.
pub async fn write<'f, K: Cluster>(
    cluster: &K,
    snapshot: &Snapshot,
    plan: &Plan,
    in_force: &InForce,
    facts: impl Fn(&str) -> Option<&'f ClassFacts>,
    aside: &mut SetAside,
    (now, just_applied): (Timestamp, bool),
) -> Result<(), PortError> {
    let mut statuses = aside.purpose();
    for class in snapshot.node_classes.iter().filter(|class| !is_disowned(&class.metadata)) {
        // What its status says was found by other terms than those that were just applied: written again, it would be taken for what
        // the new ones find, and nodes with the old images for what they should be.
        if just_applied && selects_otherwise(class, in_force) {
            continue;
        }
        let Some(facts) = class.metadata.name.as_deref().and_then(&facts) else { continue };
        let status = status_of_class(class, facts, now);
        if class.status.as_ref() != Some(&status) {
            let object = object("karpenter.k8s.aws/v1", "EC2NodeClass", &class.metadata.name, &json!(status));
            let name = class.metadata.name.as_deref().unwrap_or_default();
            let written = async { unless_changed(cluster.write_status(&object).await) };
            statuses.attempt(&format!("status of EC2NodeClass {name}"), now, written).await?;
        }
    }
    for pool in snapshot.node_pools.iter().filter(|pool| !is_disowned(&pool.metadata)) {
        let status = status_of_pool(pool, snapshot, plan, in_force, now);
        if pool.status.as_ref() != Some(&status) {
            let object = object("karpenter.sh/v1", "NodePool", &pool.metadata.name, &json!(status));
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            let written = async { unless_changed(cluster.write_status(&object).await) };
            statuses.attempt(&format!("status of NodePool {name}"), now, written).await?;
        }
    }
    statuses.told(())
}

/// Classes with the statuses that [`write()`] would give them, of those of which the cloud found out something. `asked`: as they are defined;
/// `snapshot`: as they are in the cluster.
pub fn answered<'f>(
    asked: &[EC2NodeClass],
    snapshot: &Snapshot,
    facts: impl Fn(&str) -> Option<&'f ClassFacts>,
    now: Timestamp,
) -> Vec<EC2NodeClass> {
    let answer = |class: &EC2NodeClass| {
        let facts = facts(class.metadata.name.as_deref()?).filter(|facts| facts.found.is_some())?;
        let mut applied = snapshot.node_classes.iter().filter(|it| it.metadata.name == class.metadata.name);
        let mut status = status_of_class(applied.next().unwrap_or(class), facts, now);
        // What nobody could find out keeps nobody from planning.
        if facts.conditions.iter().all(|condition| condition.status != Some(false)) {
            status.conditions.retain(|condition| condition.type_ != "Ready" || condition.status == "True");
        }
        Some(EC2NodeClass { status: Some(status), ..class.clone() })
    };
    asked.iter().filter_map(answer).collect()
}

/// The cluster with what the cloud said last of capacity reservations: what was launched since a status was written is taken already.
/// `None` where the statuses say it.
pub fn counted<'f>(snapshot: &Snapshot, facts: impl Fn(&str) -> Option<&'f ClassFacts>) -> Option<Snapshot> {
    let mut counted: Option<Snapshot> = None;
    for (position, class) in snapshot.node_classes.iter().enumerate() {
        let found = class.metadata.name.as_deref().and_then(&facts).and_then(|facts| facts.found.as_ref());
        let Some((found, status)) = found.zip(class.status.as_ref()) else { continue };
        let mut said = status.capacity_reservations.clone();
        for reservation in &mut said {
            let now = found.capacity_reservations.iter().find(|it| it.id == reservation.id);
            let left = now.and_then(|now| now.available_instance_count);
            reservation.available_instance_count = left.or(reservation.available_instance_count);
        }
        if said != status.capacity_reservations {
            let classes = &mut counted.get_or_insert_with(|| snapshot.clone()).node_classes;
            let status = classes.iter_mut().nth(position).and_then(|class| class.status.as_mut());
            status.into_iter().for_each(|status| status.capacity_reservations.clone_from(&said));
        }
    }
    counted
}

/// Claims that were launched into capacity reservations, by UID: with each that comes or goes, another number is left.
pub fn launched_into_reservations(snapshot: &Snapshot) -> BTreeSet<String> {
    let is_reserved = |claim: &&NodeClaim| {
        !label(claim, keys::CAPACITY_RESERVATION_ID).is_empty() && claim.is_true(conditions::LAUNCHED)
    };
    snapshot.node_claims.iter().filter(is_reserved).filter_map(|claim| claim.metadata.uid.clone()).collect()
}

/// Whether the definitions look for other images, subnets, security groups or reservations than this class.
fn selects_otherwise(class: &EC2NodeClass, in_force: &InForce) -> bool {
    let mut defined = in_force.definitions.node_classes.iter();
    let defined = defined.find(|defined| defined.value.metadata.name == class.metadata.name);
    defined.is_some_and(|defined| Selectors::of(&defined.value.spec) != Selectors::of(&class.spec))
}

fn object(api_version: &str, kind: &str, name: &Option<String>, status: &Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "status": status })
}

fn unless_changed(result: Result<(), PortError>) -> Result<(), PortError> {
    match result {
        Err(error) if matches!(error.kind, PortErrorKind::NotFound | PortErrorKind::Conflict) => Ok(()),
        result => result,
    }
}

/// What was found, and the conditions; `Ready` is true where all others are. One of which nothing could be found out stays as it is.
fn status_of_class(class: &EC2NodeClass, facts: &ClassFacts, now: Timestamp) -> EC2NodeClassStatus {
    let before = class.status.clone().unwrap_or_default();
    let generation = Some(class.metadata.generation.unwrap_or(1));
    let mut conditions = before.conditions.clone();
    let mut failed: Vec<&ClassCondition> = Vec::new();
    for condition in &facts.conditions {
        let ClassCondition { type_, status, reason, message } = condition;
        let written = match (status, conditions.iter().find(|it| it.type_ == *type_)) {
            (Some(true), _) => "True",
            (Some(false), _) => "False",
            (None, Some(known)) => {
                if known.status != "True" {
                    failed.push(condition);
                }
                continue;
            }
            (None, None) => "Unknown",
        };
        if written != "True" {
            failed.push(condition);
        }
        conditions::write(&mut conditions, type_, written, reason, message, generation, now);
    }
    let (status, reason, message) = match failed.as_slice() {
        [] => ("True", "Ready", String::new()),
        [only] => ("False", only.reason.as_str(), only.message.clone()),
        [first, ..] => {
            let types: Vec<&str> = failed.iter().map(|condition| condition.type_.as_str()).collect();
            ("False", first.reason.as_str(), format!("not true: {}", types.join(", ")))
        }
    };
    conditions::write(&mut conditions, "Ready", status, reason, &message, generation, now);
    let found = facts.found.clone().unwrap_or(EC2NodeClassStatus { conditions: Vec::new(), ..before });
    EC2NodeClassStatus { conditions, ..found }
}

fn status_of_pool(
    pool: &NodePool,
    snapshot: &Snapshot,
    plan: &Plan,
    in_force: &InForce,
    now: Timestamp,
) -> NodePoolStatus {
    let mut status = pool.status.clone().unwrap_or_default();
    let generation = Some(pool.metadata.generation.unwrap_or(1));
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let claims: Vec<&NodeClaim> =
        snapshot.node_claims.iter().filter(|claim| label(claim, keys::NODE_POOL) == name).collect();
    status.nodes = i64::try_from(claims.len()).ok();
    status.resources = resources_of(&claims);
    let class_name = &pool.spec.template.spec.node_class_ref.name;
    let class = snapshot.node_classes.iter().find(|class| class.metadata.name.as_ref() == Some(class_name));
    status.node_class_observed_generation = class.and_then(|class| class.metadata.generation);
    let (class_ready, reason, message) = match class {
        Some(_) => ("True", "NodeClassReady", String::new()),
        None => ("False", "NodeClassNotFound", format!("there is no EC2NodeClass {class_name}")),
    };
    let rollout = Rollout::of(pool, &claims, plan);
    let failures = failures(pool, snapshot, in_force);
    let halted =
        failures.as_ref().filter(|_| class.is_some()).filter(|failures| failures.halt).map(|it| it.text.clone());
    // No rollout goes on, and none is mended, by definitions that are not applied.
    let refused = in_force.refused.as_ref().map(|why| format!("{} is not applied: {why}", in_force.revision.id));
    let (stalled, why_stalled, stalled_message) = match (refused, halted) {
        (Some(because), _) => (true, "DefinitionsRefused", because),
        (None, Some(because)) => (true, "RolloutHalted", because),
        (None, None) => (class.is_none(), reason, message.clone()),
    };
    let (healthy, why_healthy, health_message) = health(failures.as_ref(), rollout.ready_and_updated);
    let is = |yes: bool| if yes { "True" } else { "False" };
    for (type_, value, reason, message) in [
        ("ValidationSucceeded", "True", "ValidationSucceeded", ""),
        ("NodeClassReady", class_ready, reason, message.as_str()),
        ("Ready", class_ready, reason, message.as_str()),
        ("Reconciling", is(rollout.is_under_way()), rollout.reason(), rollout.text().as_str()),
        ("Stalled", is(stalled), why_stalled, stalled_message.as_str()),
        ("NodeRegistrationHealthy", healthy, why_healthy, health_message.as_str()),
    ] {
        conditions::write(&mut status.conditions, type_, value, reason, message, generation, now);
    }
    status
}

/// New nodes of a pool that did not become ready.
struct Failing {
    count: usize,
    text: String,
    halt: bool,
}

fn failures(applied: &NodePool, snapshot: &Snapshot, in_force: &InForce) -> Option<Failing> {
    let definitions = &in_force.definitions;
    let mut pools = definitions.node_pools.iter().map(|it| &it.value);
    let pool = pools.find(|pool| pool.metadata.name == applied.metadata.name)?;
    let class = in_force.class_of(pool, snapshot);
    let most = definitions.settings.disruption.rollout.halt_after_failures;
    let halt = Failures::halting(applied, pool, class, most).is_some();
    let failures = Failures::noted_on(applied).filter(|failures| failures.are_of(pool, class))?;
    Some(Failing { count: failures.count(), text: failures.text(), halt })
}

/// The reference's condition, by what is noted: two nodes in a row that did not become ready are too many.
fn health(failures: Option<&Failing>, ready: usize) -> (&'static str, &'static str, String) {
    match failures {
        Some(failures) if failures.count > 1 => ("False", "NodesNotReady", failures.text.clone()),
        _ if ready > 0 => ("True", "NodeRegistrationHealthy", String::new()),
        _ => ("Unknown", "AwaitingFirstNode", "no node of it as it is now has become ready yet".to_owned()),
    }
}

/// Capacity of all nodes of a pool, and their number, as limits count them.
fn resources_of(claims: &[&NodeClaim]) -> BTreeMap<String, IntOrString> {
    let mut total = Resources::new();
    for status in claims.iter().filter_map(|claim| claim.status.as_ref()) {
        total.add(&Resources::of(&status.capacity).unwrap_or_default());
    }
    let mut resources: BTreeMap<String, IntOrString> = total
        .iter()
        .map(|(name, amount)| (name.to_owned(), IntOrString::String(format_amount(name, amount))))
        .collect();
    resources.insert("nodes".to_owned(), IntOrString::String(claims.len().to_string()));
    resources
}

/// How many nodes of a pool are as it wants them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rollout {
    nodes: usize,
    updated: usize,
    ready: usize,
    ready_and_updated: usize,
    drifted: usize,
    /// Drifted, and held back by something.
    blocked: usize,
}

impl Rollout {
    fn of(pool: &NodePool, claims: &[&NodeClaim], plan: &Plan) -> Self {
        let hash = node_pool_hash(pool);
        let held: BTreeSet<&str> = plan.held_back.iter().map(|held| held.node.as_str()).collect();
        let mut rollout = Self { nodes: claims.len(), ..Self::default() };
        for claim in claims {
            let annotations = claim.metadata.annotations.as_ref();
            let is_old = annotations.and_then(|it| it.get(keys::NODE_POOL_HASH)).is_some_and(|its| *its != hash);
            let node = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
            rollout.updated += usize::from(!is_old);
            rollout.drifted += usize::from(is_old);
            rollout.ready_and_updated += usize::from(!is_old && claim.is_true(conditions::INITIALIZED));
            rollout.ready += usize::from(claim.is_true(conditions::INITIALIZED));
            rollout.blocked += usize::from(is_old && held.contains(node.unwrap_or_else(|| name_of(claim))));
        }
        rollout
    }

    fn is_under_way(&self) -> bool {
        self.drifted > 0 || self.ready < self.nodes
    }

    fn reason(&self) -> &'static str {
        match (self.drifted, self.is_under_way()) {
            (0, true) => "NodesStarting",
            (0, false) => "UpToDate",
            _ => "RollingOut",
        }
    }

    fn text(&self) -> String {
        let Self { nodes, updated, ready, drifted, blocked, .. } = self;
        format!("{nodes} nodes, {updated} updated, {ready} ready, {drifted} drifted, {blocked} blocked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cloud_said_last_of_reservations_counts() {
        let class = |left: i32| -> EC2NodeClass {
            let reservation = json!({ "id": "cr-1", "instanceType": "m5.large", "availabilityZone": "us-east-1a",
                "availableInstanceCount": left });
            serde_json::from_value(json!({
                "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
                "spec": { "role": "nodes", "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] },
                "status": { "capacityReservations": [reservation] },
            }))
            .unwrap()
        };
        let snapshot = Snapshot { node_classes: vec![class(2)].into(), ..Snapshot::default() };
        let facts = |left: i32| ClassFacts { found: class(left).status, ..ClassFacts::default() };
        let (as_written, since) = (facts(2), facts(1));
        assert!(counted(&snapshot, |_| Some(&as_written)).is_none(), "the status says it");
        assert!(counted(&snapshot, |_| None).is_none(), "nothing else is known");
        let counted = counted(&snapshot, |_| Some(&since)).unwrap();
        let left: Vec<Option<i32>> = counted
            .node_classes
            .iter()
            .flat_map(|class| &class.status.as_ref().unwrap().capacity_reservations)
            .map(|reservation| reservation.available_instance_count)
            .collect();
        assert_eq!(left, [Some(1)], "one was launched since it was written");
    }
}
