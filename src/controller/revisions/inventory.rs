//! Definitions on their way into the cluster, and out of it when they leave Git.
//!
//! The inventory is the cluster itself: every definition that was applied carries the label `managed-by: cutlist`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_definitions;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::others::{self, Others};
use crate::controller::observed::view::label;
use crate::core::snapshot::Snapshot;
use crate::definitions::Definitions;
use crate::ports::{Cluster, PortError, PortErrorKind};

const NODE_POOL: &str = "NodePool";
const NODE_CLASS: &str = "EC2NodeClass";
const NODE_OVERLAY: &str = "NodeOverlay";
const CAPACITY_BUFFER: &str = "CapacityBuffer";
const POD_TEMPLATE: &str = "PodTemplate";
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

/// Applies every definition of a revision; says which are new and which changed.
pub async fn apply<K: Cluster>(
    cluster: &K,
    definitions: &Definitions,
    origin: of_definitions::Origin<'_>,
    others: &Others,
    snapshot: &Snapshot,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<(), PortError> {
    // Classes first: a pool that names one should find it.
    let mut objects: Vec<(&'static str, String, &str, Value)> = Vec::new();
    for class in &definitions.node_classes {
        // What was found for a class is written by those who look it up.
        let applied = EC2NodeClass { status: None, ..class.value.clone() };
        objects.push((NODE_CLASS, name_of(&applied.metadata), &class.file, written(&applied)?));
    }
    for pool in &definitions.node_pools {
        let object = of_definitions::of_pool(&pool.value, written(&pool.value)?);
        objects.push((NODE_POOL, name_of(&pool.value.metadata), &pool.file, object));
    }
    for overlay in &definitions.node_overlays {
        objects.push((NODE_OVERLAY, name_of(&overlay.value.metadata), &overlay.file, written(&overlay.value)?));
    }
    // Templates before the buffers that name them.
    for template in &definitions.pod_templates {
        objects.push((POD_TEMPLATE, key_of(&template.value.metadata), &template.file, written(&template.value)?));
    }
    for buffer in &definitions.capacity_buffers {
        objects.push((CAPACITY_BUFFER, key_of(&buffer.value.metadata), &buffer.file, written(&buffer.value)?));
    }
    for budget in &definitions.disruption_budgets {
        objects.push((DISRUPTION_BUDGET, name_of(&budget.value.metadata), &budget.file, written(&budget.value)?));
    }
    let objects: Vec<_> = objects
        .into_iter()
        .map(|(kind, name, file, object)| (kind, name, of_definitions::stamped(object, file, origin)))
        .collect();
    for (kind, name, _) in &objects {
        others::conflict(others, kind, name, origin.installation)?;
    }
    // All of a revision or nothing of it, as far as that can be known before.
    for (_, _, object) in &objects {
        cluster.rehearse(object).await?;
    }
    let existing = specs(snapshot)?;
    for (kind, name, object) in objects {
        cluster.apply(&object).await?;
        let before = existing.get(&(kind, name.clone()));
        if before != object.get("spec").or_else(|| object.get("template")) {
            journal.say(now, &Event::DefinitionApplied { kind, name, is_new: before.is_none() });
        }
    }
    Ok(())
}

/// Specs of the definitions that are in the cluster.
fn specs(snapshot: &Snapshot) -> Result<BTreeMap<(&'static str, String), Value>, PortError> {
    let mut specs = BTreeMap::new();
    for pool in &snapshot.node_pools {
        specs.insert((NODE_POOL, name_of(&pool.metadata)), written(&pool.spec)?);
    }
    for class in &snapshot.node_classes {
        specs.insert((NODE_CLASS, name_of(&class.metadata)), written(&class.spec)?);
    }
    for overlay in &snapshot.node_overlays {
        specs.insert((NODE_OVERLAY, name_of(&overlay.metadata)), written(&overlay.spec)?);
    }
    for buffer in &snapshot.capacity_buffers {
        specs.insert((CAPACITY_BUFFER, key_of(&buffer.metadata)), written(&buffer.spec)?);
    }
    for template in &snapshot.pod_templates {
        specs.insert((POD_TEMPLATE, key_of(&template.metadata)), written(&template.template)?);
    }
    for budget in &snapshot.disruption_budgets {
        specs.insert((DISRUPTION_BUDGET, name_of(&budget.metadata)), written(&budget.spec)?);
    }
    Ok(specs)
}

/// Removes what was applied before and is not among the definitions any more. A pool waits for its nodes to be gone, a
/// class for the claims that name it: they go by plan, not by surprise. Gives the first that somebody forbids to remove: the others go.
pub async fn prune<K: Cluster>(
    cluster: &K,
    definitions: &Definitions,
    snapshot: &Snapshot,
    said: &mut Vec<(&'static str, String)>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<Option<PortError>, PortError> {
    let mut left = left_over(definitions, snapshot);
    // Not everything that counts its nodes may be seen.
    if !snapshot.doubts.is_empty() {
        return Ok(None);
    }
    // The end of a pool would be the end of its claims: they are counted once more where there seem to be none.
    let ends_others = left.iter().any(|(kind, _, nodes)| *nodes == 0 && [NODE_POOL, NODE_CLASS].contains(kind));
    if ends_others {
        let claims = cluster.node_claims_now().await?;
        for (kind, name, nodes) in left.iter_mut().filter(|(.., nodes)| *nodes == 0) {
            let is_its = |claim: &&NodeClaim| match *kind {
                NODE_POOL => label(claim, keys::NODE_POOL) == name.as_str(),
                NODE_CLASS => claim.spec.node_class_ref.name == *name,
                _ => false,
            };
            *nodes = claims.iter().filter(is_its).count();
        }
    }
    let mut forbidden = None;
    said.retain(|(kind, name)| left.iter().any(|(other, left, _)| (other, left) == (kind, name)));
    for (kind, name, nodes) in left {
        if nodes > 0 {
            if !said.contains(&(kind, name.clone())) {
                said.push((kind, name.clone()));
                journal.say(now, &Event::PruneWaits { kind, name, nodes });
            }
            continue;
        }
        match cluster.prune(kind, &name).await {
            Ok(()) => journal.say(now, &Event::DefinitionPruned { kind, name }),
            Err(error) if error.is_refused() => drop(forbidden.get_or_insert(error)),
            Err(error) => return Err(error),
        }
    }
    Ok(forbidden)
}

/// What was applied before and is not among the definitions any more, with how many nodes there are of it.
fn left_over(definitions: &Definitions, snapshot: &Snapshot) -> Vec<(&'static str, String, usize)> {
    let pools = definitions.node_pools.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let classes = definitions.node_classes.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let budgets = definitions.disruption_budgets.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let overlays = definitions.node_overlays.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let nodes_of_pool = |name: &str| {
        let claims = snapshot.node_claims.iter().filter(|claim| label(claim, keys::NODE_POOL) == name).count();
        // One whose claim was given to another pool, and the node not yet.
        let is_of_pool = |labels: &BTreeMap<String, String>| labels.get(keys::NODE_POOL).is_some_and(|its| its == name);
        let nodes = snapshot.nodes.iter().filter(|node| node.metadata.labels.as_ref().is_some_and(is_of_pool)).count();
        claims.max(nodes)
    };
    let nodes_of_class =
        |name: &str| snapshot.node_claims.iter().filter(|claim| claim.spec.node_class_ref.name == name).count();
    let mut left: Vec<(&'static str, String, usize)> = Vec::new();
    for pool in managed(snapshot.node_pools.iter().map(|it| &it.metadata)).filter(|name| !pools.contains(name)) {
        left.push((NODE_POOL, pool.clone(), nodes_of_pool(&pool)));
    }
    // A class that a pool still names stays: its nodes would go without it.
    let is_named = |name: &String| {
        definitions.node_pools.iter().any(|pool| pool.value.spec.template.spec.node_class_ref.name == *name)
    };
    let gone = |name: &String| !classes.contains(name) && !is_named(name);
    for class in managed(snapshot.node_classes.iter().map(|it| &it.metadata)).filter(gone) {
        left.push((NODE_CLASS, class.clone(), nodes_of_class(&class)));
    }
    let overlaid = snapshot.node_overlays.iter().map(|it| &it.metadata);
    for overlay in managed(overlaid).filter(|name| !overlays.contains(name)) {
        left.push((NODE_OVERLAY, overlay, 0));
    }
    let buffers = definitions.capacity_buffers.iter().map(|it| key_of(&it.value.metadata)).collect::<Vec<_>>();
    for buffer in managed_in_namespaces(snapshot.capacity_buffers.iter().map(|it| &it.metadata)) {
        if !buffers.contains(&buffer) {
            left.push((CAPACITY_BUFFER, buffer, 0));
        }
    }
    let templates = definitions.pod_templates.iter().map(|it| key_of(&it.value.metadata)).collect::<Vec<_>>();
    for template in managed_in_namespaces(snapshot.pod_templates.iter().map(|it| &it.metadata)) {
        if !templates.contains(&template) {
            left.push((POD_TEMPLATE, template, 0));
        }
    }
    let others = snapshot.disruption_budgets.iter().map(|it| &it.metadata);
    for budget in managed(others).filter(|name| !budgets.contains(name)) {
        left.push((DISRUPTION_BUDGET, budget, 0));
    }
    left
}

/// Names of the pools that Cutlist applied.
pub fn managed_pools(snapshot: &Snapshot) -> Vec<String> {
    managed(snapshot.node_pools.iter().map(|pool| &pool.metadata)).collect()
}

fn managed<'a>(objects: impl Iterator<Item = &'a ObjectMeta>) -> impl Iterator<Item = String> {
    objects.filter(|metadata| is_managed(metadata)).map(name_of)
}

/// As `namespace/name`.
fn managed_in_namespaces<'a>(objects: impl Iterator<Item = &'a ObjectMeta>) -> impl Iterator<Item = String> {
    objects.filter(|metadata| is_managed(metadata)).map(key_of)
}

fn is_managed(metadata: &ObjectMeta) -> bool {
    let owner = metadata.labels.as_ref().and_then(|labels| labels.get(keys::MANAGED_BY));
    owner.is_some_and(|owner| owner == keys::FIELD_MANAGER)
}

/// `namespace/name`
fn key_of(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.namespace.as_deref().unwrap_or("default"), name_of(metadata))
}

fn name_of(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

fn written(value: &impl Serialize) -> Result<Value, PortError> {
    serde_json::to_value(value).map_err(|error| PortError {
        operation: "write a definition as JSON".to_owned(),
        kind: PortErrorKind::Permanent,
        source: Some(Box::new(error)),
    })
}
