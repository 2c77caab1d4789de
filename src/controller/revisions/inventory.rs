//! Definitions on their way into the cluster, and out of it when they leave Git.
//!
//! The inventory is the cluster itself: every definition that was applied carries the label `managed-by: cutlist`.

use std::collections::{BTreeMap, BTreeSet};

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
use crate::controller::observed::others::key_of;
use crate::controller::observed::view::label;
use crate::controller::set_aside::{Left, SetAside};
use crate::core::snapshot::{Objects, Snapshot};
use crate::definitions::Definitions;
use crate::ports::{Cluster, PortError, PortErrorKind, SeenDefinition};

use super::kinds::{Applied, ForEachKind, for_each_kind};

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
        objects.push((NODE_CLASS, key_of(&applied), &class.file, written(&applied)?));
    }
    for pool in &definitions.node_pools {
        let object = of_definitions::of_pool(&pool.value, written(&pool.value)?);
        objects.push((NODE_POOL, key_of(&pool.value), &pool.file, object));
    }
    for overlay in &definitions.node_overlays {
        objects.push((NODE_OVERLAY, key_of(&overlay.value), &overlay.file, written(&overlay.value)?));
    }
    // Templates before the buffers that name them.
    for template in &definitions.pod_templates {
        objects.push((POD_TEMPLATE, key_of(&template.value), &template.file, written(&template.value)?));
    }
    for buffer in &definitions.capacity_buffers {
        objects.push((CAPACITY_BUFFER, key_of(&buffer.value), &buffer.file, written(&buffer.value)?));
    }
    for budget in &definitions.disruption_budgets {
        objects.push((DISRUPTION_BUDGET, key_of(&budget.value), &budget.file, written(&budget.value)?));
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
        if before != spec_of(&object) {
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
fn specs(snapshot: &Snapshot) -> Result<Specs, PortError> {
    struct Reading<'s>(&'s Snapshot, Result<Specs, PortError>);
    impl ForEachKind for Reading<'_> {
        fn kind<T: Applied>(&mut self) {
            for object in T::all(self.0) {
                match (written(object), &mut self.1) {
                    (Ok(written), Ok(specs)) => {
                        specs.extend(spec_of(&written).map(|spec| ((T::KIND, key_of(object)), spec.clone())));
                    }
                    (Err(error), specs) => *specs = Err(error),
                    (Ok(_), Err(_)) => {}
                }
            }
        }
    }
    let mut reading = Reading(snapshot, Ok(Specs::new()));
    for_each_kind(&mut reading);
    reading.1
}

/// By kind and name.
type Specs = BTreeMap<(&'static str, String), Value>;

/// A template has its own word for it.
fn spec_of(object: &Value) -> Option<&Value> {
    object.get("spec").or_else(|| object.get("template"))
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
    if !snapshot.doubts.leave_all_known() {
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
    let mut leaving = Leaving { definitions, snapshot, left: Vec::new() };
    for_each_kind(&mut leaving);
    leaving.left
}

struct Leaving<'a> {
    definitions: &'a Definitions,
    snapshot: &'a Snapshot,
    left: Vec<LeftOver>,
}

impl ForEachKind for Leaving<'_> {
    fn kind<T: Applied>(&mut self) {
        let defined: BTreeSet<String> = T::of(self.definitions).iter().map(|it| key_of(&it.value)).collect();
        for definition in managed(T::all(self.snapshot)).filter(|it| !defined.contains(&it.name)) {
            let nodes = match T::KIND {
                NODE_POOL => self.nodes_of_pool(&definition.name),
                // A class that a pool still names stays: its nodes would go without it.
                NODE_CLASS if self.is_named(&definition.name) => continue,
                NODE_CLASS => self.nodes_of_class(&definition.name),
                _ => 0,
            };
            self.left.push(LeftOver { definition, nodes });
        }
    }
}

impl Leaving<'_> {
    fn nodes_of_pool(&self, name: &str) -> usize {
        let claims = self.snapshot.node_claims.iter().filter(|claim| is_of_pool(claim, name)).count();
        // One whose claim was given to another pool, and the node not yet.
        let is_of_pool = |labels: &BTreeMap<String, String>| labels.get(keys::NODE_POOL).is_some_and(|its| its == name);
        let nodes = self.snapshot.nodes.iter().filter(|node| node.metadata.labels.as_ref().is_some_and(is_of_pool));
        claims.max(nodes.count())
    }

    fn nodes_of_class(&self, name: &str) -> usize {
        self.snapshot.node_claims.iter().filter(|claim| claim.spec.node_class_ref.name == name).count()
    }

    fn is_named(&self, class: &str) -> bool {
        self.definitions.node_pools.iter().any(|pool| pool.value.spec.template.spec.node_class_ref.name == class)
    }
}

/// Whether the end of a pool would be the end of the claim: it says that it is of the pool, or the API server removes it with its owner,
/// whatever its labels say by now.
fn is_of_pool(claim: &NodeClaim, pool: &str) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    label(claim, keys::NODE_POOL) == pool || owners.any(|owner| owner.kind == NODE_POOL && owner.name == pool)
}

/// Names of the pools that Cutlist applied.
pub fn managed_pools(snapshot: &Snapshot) -> Vec<String> {
    managed(&snapshot.node_pools).map(|pool| pool.name).collect()
}

/// Definitions of a kind that Cutlist applied, as they were seen.
fn managed<T: Applied>(objects: &Objects<T>) -> impl Iterator<Item = SeenDefinition> + '_ {
    objects.iter().filter(|object| is_managed(object.metadata())).map(|object| {
        let (_, _, uid) = object.key();
        let resource_version = object.resource_version().to_owned();
        SeenDefinition { kind: T::KIND, name: key_of(object), uid: uid.to_owned(), resource_version }
    })
}

fn is_managed(metadata: &ObjectMeta) -> bool {
    let owner = metadata.labels.as_ref().and_then(|labels| labels.get(keys::MANAGED_BY));
    owner.is_some_and(|owner| owner == keys::FIELD_MANAGER)
}

fn written(value: &impl Serialize) -> Result<Value, PortError> {
    serde_json::to_value(value).map_err(|error| PortError {
        operation: "write a definition as JSON".to_owned(),
        kind: PortErrorKind::Permanent,
        source: Some(Box::new(error)),
    })
}
