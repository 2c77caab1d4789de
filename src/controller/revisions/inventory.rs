//! Definitions on their way into the cluster, and out of it when they leave Git.
//!
//! The inventory is the cluster itself: every definition that was applied carries the label `managed-by: cutlist`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_definitions;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::label;
use crate::controller::set_aside::{Left, SetAside};
use crate::core::snapshot::kinds::Stored;
use crate::core::snapshot::{Objects, Snapshot};
use crate::definitions::Definitions;
use crate::ports::{Cluster, PortError, PortErrorKind, SeenDefinition};

const NODE_POOL: &str = "NodePool";
const NODE_CLASS: &str = "EC2NodeClass";
const NODE_OVERLAY: &str = "NodeOverlay";
const CAPACITY_BUFFER: &str = "CapacityBuffer";
const POD_TEMPLATE: &str = "PodTemplate";
const DISRUPTION_BUDGET: &str = "DisruptionBudget";

/// What the note of a removal begins with that was approved with a plan, whose name follows.
pub const CONFIRMED_BY_PLAN: &str = "plan ";

/// Applies every definition of a revision; says which are new and which changed.
pub async fn apply<K: Cluster>(
    cluster: &K,
    definitions: &Definitions,
    origin: of_definitions::Origin<'_>,
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
    // All of a revision or nothing of it, as far as that can be known before.
    for (_, _, object) in &objects {
        cluster.rehearse(object).await?;
    }
    let existing = specs(snapshot)?;
    for (kind, name, object) in objects {
        cluster.apply(&object).await?;
        if kind == NODE_POOL && is_confirmed_by_plan(snapshot, &name) {
            let patch = json!({ "metadata": { "annotations": { keys::REMOVAL_CONFIRMED: null } } });
            cluster.patch_node_pool(&name, &patch).await?;
        }
        let before = existing.get(&(kind, name.clone()));
        if before != object.get("spec").or_else(|| object.get("template")) {
            journal.say(now, &Event::DefinitionApplied { kind, name, is_new: before.is_none() });
        }
    }
    Ok(())
}

/// Whether the removal of a pool was approved with a plan. That is of one removal: where the pool is defined again, the next one is asked
/// about anew. What people wrote on the pool themselves is theirs.
fn is_confirmed_by_plan(snapshot: &Snapshot, pool: &str) -> bool {
    let applied = snapshot.node_pools.iter().find(|it| it.metadata.name.as_deref() == Some(pool));
    let value = applied.and_then(|it| it.metadata.annotations.as_ref()?.get(keys::REMOVAL_CONFIRMED));
    value.is_some_and(|value| value.starts_with(CONFIRMED_BY_PLAN))
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
/// class for the claims that name it: they go by plan, not by surprise. What somebody forbids to remove is left: the others go.
pub async fn prune<K: Cluster>(
    cluster: &K,
    definitions: &Definitions,
    snapshot: &Snapshot,
    (said, aside): (&mut Vec<(&'static str, String)>, &mut SetAside),
    now: Timestamp,
    journal: &mut Journal,
) -> Result<Left, PortError> {
    let mut left = left_over(definitions, snapshot);
    // Not everything that counts its nodes may be seen.
    if !snapshot.doubts.is_empty() {
        return Ok(Left::default());
    }
    // The end of a pool would be the end of its claims: they are counted once more where there seem to be none.
    let ends_others = left.iter().any(|it| it.nodes == 0 && [NODE_POOL, NODE_CLASS].contains(&it.definition.kind));
    if ends_others {
        let claims = cluster.node_claims_now().await?;
        for LeftOver { definition, nodes } in left.iter_mut().filter(|it| it.nodes == 0) {
            let is_its = |claim: &&NodeClaim| match definition.kind {
                NODE_POOL => is_of_pool(claim, &definition.name),
                NODE_CLASS => claim.spec.node_class_ref.name == definition.name,
                _ => false,
            };
            *nodes = claims.iter().filter(is_its).count();
        }
    }
    let mut ends = aside.purpose();
    said.retain(|(kind, name)| left.iter().any(|it| (&it.definition.kind, &it.definition.name) == (kind, name)));
    for LeftOver { definition, nodes } in left {
        let (kind, name) = (definition.kind, definition.name.clone());
        if nodes > 0 {
            if !said.contains(&(kind, name.clone())) {
                said.push((kind, name.clone()));
                journal.say(now, &Event::PruneWaits { kind, name, nodes });
            }
            continue;
        }
        match ends.attempt(&format!("end of {kind} {name}"), now, cluster.prune(&definition)).await {
            // Somebody made it anew, or changed it since: whether it goes is decided of what it is by then.
            Err(error) if error.kind == PortErrorKind::Conflict => {}
            Err(error) => return Err(error),
            Ok(None) => {}
            Ok(Some(())) => journal.say(now, &Event::DefinitionPruned { kind, name }),
        }
    }
    Ok(ends.left())
}

/// A definition that was applied before and is not among the definitions any more, with how many nodes there are of it.
struct LeftOver {
    definition: SeenDefinition,
    nodes: usize,
}

fn left_over(definitions: &Definitions, snapshot: &Snapshot) -> Vec<LeftOver> {
    let pools = definitions.node_pools.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let classes = definitions.node_classes.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let budgets = definitions.disruption_budgets.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let overlays = definitions.node_overlays.iter().map(|it| name_of(&it.value.metadata)).collect::<Vec<_>>();
    let buffers = definitions.capacity_buffers.iter().map(|it| key_of(&it.value.metadata)).collect::<Vec<_>>();
    let templates = definitions.pod_templates.iter().map(|it| key_of(&it.value.metadata)).collect::<Vec<_>>();
    let nodes_of_pool = |name: &str| {
        let claims = snapshot.node_claims.iter().filter(|claim| is_of_pool(claim, name)).count();
        // One whose claim was given to another pool, and the node not yet.
        let is_of_pool = |labels: &BTreeMap<String, String>| labels.get(keys::NODE_POOL).is_some_and(|its| its == name);
        let nodes = snapshot.nodes.iter().filter(|node| node.metadata.labels.as_ref().is_some_and(is_of_pool)).count();
        claims.max(nodes)
    };
    let nodes_of_class =
        |name: &str| snapshot.node_claims.iter().filter(|claim| claim.spec.node_class_ref.name == name).count();
    let mut left = Vec::new();
    for pool in managed(&snapshot.node_pools, |it| &it.metadata).filter(|it| !pools.contains(&it.name)) {
        left.push(LeftOver { nodes: nodes_of_pool(&pool.name), definition: pool });
    }
    // A class that a pool still names stays: its nodes would go without it.
    let is_named = |name: &String| {
        definitions.node_pools.iter().any(|pool| pool.value.spec.template.spec.node_class_ref.name == *name)
    };
    for class in managed(&snapshot.node_classes, |it| &it.metadata)
        .filter(|it| !classes.contains(&it.name) && !is_named(&it.name))
    {
        left.push(LeftOver { nodes: nodes_of_class(&class.name), definition: class });
    }
    let overlays = managed(&snapshot.node_overlays, |it| &it.metadata).filter(|it| !overlays.contains(&it.name));
    let buffers = managed(&snapshot.capacity_buffers, |it| &it.metadata).filter(|it| !buffers.contains(&it.name));
    let templates = managed(&snapshot.pod_templates, |it| &it.metadata).filter(|it| !templates.contains(&it.name));
    let budgets = managed(&snapshot.disruption_budgets, |it| &it.metadata).filter(|it| !budgets.contains(&it.name));
    let without_nodes = overlays.chain(buffers).chain(templates).chain(budgets);
    left.extend(without_nodes.map(|definition| LeftOver { definition, nodes: 0 }));
    left
}

/// Whether the end of a pool would be the end of the claim: it says that it is of the pool, or the API server removes it with its owner,
/// whatever its labels say by now.
fn is_of_pool(claim: &NodeClaim, pool: &str) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    label(claim, keys::NODE_POOL) == pool || owners.any(|owner| owner.kind == NODE_POOL && owner.name == pool)
}

/// Names of the pools that Cutlist applied.
pub fn managed_pools(snapshot: &Snapshot) -> Vec<String> {
    managed(&snapshot.node_pools, |it| &it.metadata).map(|pool| pool.name).collect()
}

/// Definitions of a kind that Cutlist applied, as they were seen.
fn managed<T: Stored>(
    objects: &Objects<T>,
    metadata: fn(&T) -> &ObjectMeta,
) -> impl Iterator<Item = SeenDefinition> + '_ {
    objects.iter().filter(move |object| is_managed(metadata(object))).map(move |object| {
        let (metadata, (_, _, uid)) = (metadata(object), object.key());
        let name = if T::NAMESPACED { key_of(metadata) } else { name_of(metadata) };
        let resource_version = object.resource_version().to_owned();
        SeenDefinition { kind: T::KIND, name, uid: uid.to_owned(), resource_version }
    })
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
