//! The Kubernetes API of the embedded world.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_plan::NodePlan;
use crate::core::snapshot::kinds::Stored;
use crate::core::snapshot::nodes::other_lists_replaced;
use crate::core::snapshot::{Pod, Snapshot};
use crate::ports::{Cluster, PortError, PortErrorKind, SeenDefinition};

use super::EmbeddedWorld;
use super::budgets::Eviction;
use super::merge::merge;
use super::names::name_of;
use super::state::World;

/// One client of the API: it remembers what it observed last. Clones remember on their own.
#[derive(Clone)]
pub struct EmbeddedCluster {
    world: EmbeddedWorld,
    observed_generation: Cell<u64>,
}

impl EmbeddedCluster {
    pub(super) fn new(world: EmbeddedWorld) -> Self {
        Self { world, observed_generation: Cell::new(0) }
    }
}

impl Cluster for EmbeddedCluster {
    async fn observe(&self) -> Result<Arc<Snapshot>, PortError> {
        Ok(Arc::new(self.world.with(|world| {
            self.observed_generation.set(world.generation);
            let mut snapshot = world.snapshot();
            world.visibility.blur(&mut snapshot);
            snapshot
        })))
    }

    /// Sleeps from event to event until one changes an object.
    async fn changed(&self) {
        loop {
            let (generation, next) = self.world.with(|world| (world.generation, world.next_event()));
            if generation != self.observed_generation.get() {
                return;
            }
            match next {
                Some(moment) => tokio::time::sleep_until(self.world.clock.instant_of(moment)).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Nobody else writes here, so what can be applied is found out by applying it.
    async fn rehearse(&self, _object: &Value) -> Result<(), PortError> {
        Ok(())
    }

    async fn apply(&self, object: &Value) -> Result<(), PortError> {
        self.world.act(|world| world.apply(object))
    }

    async fn write_status(&self, object: &Value) -> Result<(), PortError> {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let operation = format!("write the status of {kind} {name}");
        let patch = serde_json::json!({ "status": object.get("status") });
        self.world.act(|world| match kind {
            "NodePool" => patch_in(&mut world.node_pools, name, &patch, &operation),
            "EC2NodeClass" => patch_in(&mut world.node_classes, name, &patch, &operation),
            "NodePlan" => world.enter_unreadable(name, &patch),
            _ => Err(failure(format!("{operation}: no such kind"), PortErrorKind::Permanent)),
        })
    }

    async fn patch_node_pool(&self, name: &str, patch: &Value) -> Result<(), PortError> {
        let operation = format!("patch NodePool/{name}");
        self.world.act(|world| {
            patch_in(&mut world.node_pools, name, patch, &operation)?;
            world.touch();
            Ok(())
        })
    }

    async fn prune(&self, definition: &SeenDefinition) -> Result<(), PortError> {
        let SeenDefinition { kind, name, .. } = definition;
        self.world.act(|world| {
            let pruned = match *kind {
                "NodePool" => prune_from(&mut world.node_pools, definition),
                "EC2NodeClass" => prune_from(&mut world.node_classes, definition),
                "NodeOverlay" => prune_from(&mut world.node_overlays, definition),
                "CapacityBuffer" => prune_from(&mut world.capacity_buffers, definition),
                "PodTemplate" => prune_from(&mut world.pod_templates, definition),
                "DisruptionBudget" => prune_from(&mut world.disruption_budgets, definition),
                _ => return Err(failure(format!("prune {kind}/{name}: no such kind"), PortErrorKind::Permanent)),
            };
            if pruned? {
                world.touch();
            }
            Ok(())
        })
    }

    async fn create_node_claim(&self, claim: &NodeClaim) -> Result<NodeClaim, PortError> {
        self.world.act(|world| {
            let name = name_of(&claim.metadata);
            if world.node_claims.contains_key(&name) {
                return Err(failure(format!("create NodeClaim/{name}: it exists"), PortErrorKind::Conflict));
            }
            let mut claim = claim.clone();
            world.complete("NodeClaim", &mut claim.metadata);
            world.node_claims.insert(name, claim.clone());
            world.touch();
            Ok(claim)
        })
    }

    async fn update_node_claim(&self, claim: &NodeClaim) -> Result<(), PortError> {
        self.world.act(|world| world.update_node_claim(claim))
    }

    async fn delete_node_claim(&self, name: &str, uid: &str) -> Result<(), PortError> {
        self.world.act(|world| {
            let now = world.now;
            let Some(claim) = world.node_claims.get_mut(name) else { return Err(missing("NodeClaim", name)) };
            is_meant(&claim.metadata, uid, "NodeClaim")?;
            if claim.metadata.deletion_timestamp.is_some() {
                return Ok(());
            }
            claim.metadata.deletion_timestamp = Some(Time(now));
            if claim.metadata.finalizers.as_deref().unwrap_or_default().is_empty() {
                world.node_claims.remove(name);
            }
            world.touch_nodes();
            Ok(())
        })
    }

    async fn patch_node(&self, node: &Node, patch: &Value) -> Result<(), PortError> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.world.act(|world| {
            let before = node;
            let Some(node) = world.nodes.get(name) else { return Err(missing("Node", name)) };
            if other_lists_replaced(before, node, patch) {
                return Err(failure(format!("patch Node/{name}: it changed meanwhile"), PortErrorKind::Conflict));
            }
            let patched = patched(node, patch, &format!("patch Node/{name}"))?;
            if patched == *node {
                return Ok(());
            }
            let gone = patched.metadata.deletion_timestamp.is_some()
                && patched.metadata.finalizers.as_deref().unwrap_or_default().is_empty();
            // A move taints its nodes one by one, and the pods that wait need not be tried again after each of them.
            let lets_nobody_in = adds_only_taints(node, &patched) && !world.pods_spread_by_taints();
            if gone {
                world.nodes.remove(name);
            } else {
                world.nodes.insert(name.to_owned(), patched);
            }
            if lets_nobody_in {
                world.touch();
            } else {
                world.touch_nodes();
            }
            Ok(())
        })
    }

    async fn delete_node(&self, name: &str, uid: &str) -> Result<(), PortError> {
        self.world.act(|world| {
            let now = world.now;
            let Some(node) = world.nodes.get_mut(name) else { return Err(missing("Node", name)) };
            is_meant(&node.metadata, uid, "Node")?;
            if node.metadata.deletion_timestamp.is_some() {
                return Ok(());
            }
            node.metadata.deletion_timestamp = Some(Time(now));
            if node.metadata.finalizers.as_deref().unwrap_or_default().is_empty() {
                world.nodes.remove(name);
            }
            world.touch_nodes();
            Ok(())
        })
    }

    async fn pods_on_now(&self, node: &str) -> Result<Vec<Pod>, PortError> {
        Ok(self.world.with(|world| {
            let keys = world.pods.on(node);
            keys.iter().filter_map(|key| world.pods.get(key)).cloned().collect()
        }))
    }

    async fn nodes_now(&self) -> Result<Vec<Node>, PortError> {
        Ok(self.world.with(|world| world.nodes.shared().iter().cloned().collect()))
    }

    async fn node_claims_now(&self) -> Result<Vec<NodeClaim>, PortError> {
        Ok(self.world.with(|world| world.node_claims.shared().iter().cloned().collect()))
    }

    async fn node_now(&self, name: &str) -> Result<Option<Node>, PortError> {
        Ok(self.world.with(|world| world.nodes.get(name).cloned()))
    }

    async fn node_claim_now(&self, name: &str) -> Result<Option<NodeClaim>, PortError> {
        Ok(self.world.with(|world| world.node_claims.get(name).cloned()))
    }

    async fn evict(&self, namespace: &str, name: &str, uid: &str) -> Result<(), PortError> {
        let key = format!("{namespace}/{name}");
        self.world.act(|world| if world.is_pod(&key, uid) { world.evict(&key) } else { Err(missing("Pod", &key)) })
    }

    async fn delete_pod(&self, namespace: &str, name: &str, uid: &str, grace_seconds: u64) -> Result<(), PortError> {
        let key = format!("{namespace}/{name}");
        self.world.act(|world| {
            let is_it = world.is_pod(&key, uid);
            let Some(pod) = world.pods.get(&key).filter(|_| is_it) else { return Err(missing("Pod", &key)) };
            world.evicted += usize::from(!pod.is_terminating() && !pod.is_owned_by("DaemonSet"));
            world.delete_pod(&key, i64::try_from(grace_seconds).ok());
            Ok(())
        })
    }

    async fn nominate(&self, namespace: &str, pod: &str, node: &str) -> Result<(), PortError> {
        self.world.act(|world| {
            world.nominations.insert(format!("{namespace}/{pod}"), node.to_owned());
        });
        Ok(())
    }

    async fn record_plan(&self, plan: &NodePlan) -> Result<(), PortError> {
        self.world.act(|world| {
            let name = name_of(&plan.metadata);
            match world.node_plans.get_mut(&name) {
                Some(recorded) => recorded.status.clone_from(&plan.status),
                None => {
                    let mut plan = plan.clone();
                    plan.metadata.creation_timestamp = Some(Time(world.now));
                    world.node_plans.insert(name, plan);
                }
            }
        });
        Ok(())
    }

    async fn forget_plan(&self, name: &str, uid: &str) -> Result<(), PortError> {
        self.world.act(|world| {
            let Some(plan) = world.node_plans.get(name) else { return Ok(()) };
            is_meant(&plan.metadata, uid, "NodePlan")?;
            world.node_plans.remove(name);
            Ok(())
        })
    }
}

impl World {
    /// Whether a pod of this name is the one that is meant; an empty UID means whichever has it.
    fn is_pod(&self, key: &str, uid: &str) -> bool {
        self.pods.get(key).is_some_and(|pod| uid.is_empty() || pod.metadata.uid == uid)
    }

    fn evict(&mut self, key: &str) -> Result<(), PortError> {
        match self.try_evict(key) {
            Eviction::Accepted => Ok(()),
            Eviction::NotFound => Err(missing("Pod", key)),
            Eviction::Forbidden(budget) => {
                let operation = format!("evict {key}: PodDisruptionBudget {budget} allows no disruption now");
                Err(failure(operation, PortErrorKind::Conflict))
            }
            Eviction::TooManyBudgets => {
                let operation = format!("evict {key}: more than one PodDisruptionBudget covers it");
                Err(failure(operation, PortErrorKind::Conflict))
            }
        }
    }

    fn apply(&mut self, object: &Value) -> Result<(), PortError> {
        let mut admitted = object.clone();
        if let Some(webhook) = self.webhook {
            webhook(&mut admitted);
        }
        let object = &admitted;
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let own_name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = match kind {
            "CapacityBuffer" | "PodTemplate" => {
                let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
                format!("{namespace}/{own_name}")
            }
            _ => own_name.clone(),
        };
        let applied = match kind {
            "NodePool" => applied(&self.node_pools, &name, object)?.map(|value| {
                self.node_pools.insert(name.clone(), value);
            }),
            "EC2NodeClass" => applied(&self.node_classes, &name, object)?.map(|mut value| {
                forget_what_was_found(&mut value, self.node_classes.get(&name));
                self.node_classes.insert(name.clone(), value);
            }),
            "NodeOverlay" => applied(&self.node_overlays, &name, object)?.map(|value| {
                self.node_overlays.insert(name.clone(), value);
            }),
            "CapacityBuffer" => applied(&self.capacity_buffers, &name, object)?.map(|value| {
                self.capacity_buffers.insert(name.clone(), value);
            }),
            "PodTemplate" => applied(&self.pod_templates, &name, object)?.map(|value| {
                self.pod_templates.insert(name.clone(), value);
            }),
            "DisruptionBudget" => applied(&self.disruption_budgets, &name, object)?.map(|value| {
                self.disruption_budgets.insert(name.clone(), value);
            }),
            _ => return Err(failure(format!("apply {kind}/{name}: no such kind"), PortErrorKind::Permanent)),
        };
        if applied.is_none() {
            return Ok(());
        }
        // An API server fills in what the new object lacks.
        let mut metadata = ObjectMeta { name: Some(own_name), ..ObjectMeta::default() };
        self.complete(kind, &mut metadata);
        let complete = |own: &mut ObjectMeta| {
            own.uid.get_or_insert(metadata.uid.clone().unwrap_or_default());
            own.creation_timestamp.get_or_insert(Time(self.now));
        };
        match kind {
            "NodePool" => self.node_pools.get_mut(&name).map(|object| complete(&mut object.metadata)),
            "EC2NodeClass" => self.node_classes.get_mut(&name).map(|object| complete(&mut object.metadata)),
            "NodeOverlay" => self.node_overlays.get_mut(&name).map(|object| complete(&mut object.metadata)),
            "CapacityBuffer" => self.capacity_buffers.get_mut(&name).map(|object| complete(&mut object.metadata)),
            "PodTemplate" => self.pod_templates.get_mut(&name).map(|object| complete(&mut object.metadata)),
            _ => self.disruption_budgets.get_mut(&name).map(|object| complete(&mut object.metadata)),
        };
        self.touch();
        Ok(())
    }

    fn update_node_claim(&mut self, claim: &NodeClaim) -> Result<(), PortError> {
        let name = name_of(&claim.metadata);
        let next_version = (self.generation + 1).to_string();
        let Some(existing) = self.node_claims.get_mut(&name) else { return Err(missing("NodeClaim", &name)) };
        if claim.metadata.resource_version != existing.metadata.resource_version {
            return Err(failure(format!("update NodeClaim/{name}: it changed meanwhile"), PortErrorKind::Conflict));
        }
        if existing == claim {
            return Ok(());
        }
        let mut claim = claim.clone();
        claim.metadata.resource_version = Some(next_version);
        // Deletion is the API server's to say.
        claim.metadata.deletion_timestamp.clone_from(&existing.metadata.deletion_timestamp);
        let gone = claim.metadata.deletion_timestamp.is_some()
            && claim.metadata.finalizers.as_deref().unwrap_or_default().is_empty();
        if gone {
            self.node_claims.remove(&name);
        } else {
            *existing = claim;
        }
        self.touch();
        Ok(())
    }
}

/// The object after server-side apply with the one field manager there is: metadata is merged, `spec` replaced. `None` when
/// that changes nothing.
fn applied<T: Serialize + DeserializeOwned + PartialEq>(
    existing: &BTreeMap<String, T>,
    name: &str,
    object: &Value,
) -> Result<Option<T>, PortError> {
    let operation = format!("apply {name} as {}", keys::FIELD_MANAGER);
    let Some(before) = existing.get(name) else {
        let mut object = object.clone();
        merge(&mut object, &serde_json::json!({ "metadata": { "generation": 1 } }));
        return read(object, &operation).map(Some);
    };
    let before_value = written(before, &operation)?;
    let mut value = before_value.clone();
    merge(&mut value, &serde_json::json!({ "metadata": object.get("metadata") }));
    // A PodTemplate has its template where others have their spec.
    let mut changes_spec = false;
    for field in ["spec", "template"] {
        changes_spec |= value.get(field) != object.get(field);
        if let (Some(fields), Some(content)) = (value.as_object_mut(), object.get(field)) {
            fields.insert(field.to_owned(), content.clone());
        }
    }
    let after: T = read(value.clone(), &operation)?;
    if after == *before {
        return Ok(None);
    }
    if changes_spec {
        let generation = before_value.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(1) + 1;
        merge(&mut value, &serde_json::json!({ "metadata": { "generation": generation } }));
    }
    read(value, &operation).map(Some)
}

/// Nobody looks up here what other selectors find.
fn forget_what_was_found(class: &mut EC2NodeClass, before: Option<&EC2NodeClass>) {
    let (Some(before), Some(status)) = (before, &mut class.status) else { return };
    let (spec, old) = (&class.spec, &before.spec);
    if spec.ami_selector_terms != old.ami_selector_terms {
        status.amis.clear();
    }
    if spec.security_group_selector_terms != old.security_group_selector_terms {
        status.security_groups.clear();
    }
    if spec.subnet_selector_terms != old.subnet_selector_terms {
        status.subnets.clear();
    }
    if spec.capacity_reservation_selector_terms != old.capacity_reservation_selector_terms {
        status.capacity_reservations.clear();
    }
}

/// Statuses wake nobody: whoever writes one has nothing to learn from it.
fn patch_in<T: Serialize + DeserializeOwned>(
    objects: &mut BTreeMap<String, T>,
    name: &str,
    patch: &Value,
    operation: &str,
) -> Result<(), PortError> {
    let Some(object) = objects.get_mut(name) else {
        return Err(failure(operation.to_owned(), PortErrorKind::NotFound));
    };
    *object = patched(object, patch, operation)?;
    Ok(())
}

fn adds_only_taints(before: &Node, after: &Node) -> bool {
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    let (old, new) = (taints(before), taints(after).unwrap_or_default());
    let keeps_all = old.iter().flatten().all(|taint| new.contains(taint));
    let mut otherwise = after.clone();
    otherwise.spec.get_or_insert_default().taints = old;
    keeps_all && otherwise == *before
}

fn patched<T: Serialize + DeserializeOwned>(object: &T, patch: &Value, operation: &str) -> Result<T, PortError> {
    let mut value = written(object, operation)?;
    merge(&mut value, patch);
    read(value, operation)
}

fn written<T: Serialize>(object: &T, operation: &str) -> Result<Value, PortError> {
    serde_json::to_value(object).map_err(|error| invalid(operation, error))
}

fn read<T: DeserializeOwned>(value: Value, operation: &str) -> Result<T, PortError> {
    serde_json::from_value(value).map_err(|error| invalid(operation, error))
}

fn invalid(operation: &str, error: serde_json::Error) -> PortError {
    PortError { operation: operation.to_owned(), kind: PortErrorKind::Permanent, source: Some(Box::new(error)) }
}

fn missing(kind: &str, name: &str) -> PortError {
    failure(format!("{kind}/{name} is not there"), PortErrorKind::NotFound)
}

fn failure(operation: String, kind: PortErrorKind) -> PortError {
    PortError { operation, kind, source: None }
}

/// Whether there was one to remove.
fn prune_from<T: Stored>(objects: &mut BTreeMap<String, T>, definition: &SeenDefinition) -> Result<bool, PortError> {
    let SeenDefinition { kind, name, uid, resource_version } = definition;
    let Some(object) = objects.get(name) else { return Ok(false) };
    let is_other = |seen: &str, now: &str| !seen.is_empty() && seen != now;
    if is_other(uid, object.key().2) || is_other(resource_version, object.resource_version()) {
        return Err(failure(format!("prune {kind}/{name}: it changed meanwhile"), PortErrorKind::Conflict));
    }
    Ok(objects.remove(name).is_some())
}

/// Another object may have the name by now.
fn is_meant(metadata: &ObjectMeta, uid: &str, kind: &str) -> Result<(), PortError> {
    if uid.is_empty() || metadata.uid.as_deref() == Some(uid) {
        return Ok(());
    }
    let name = metadata.name.as_deref().unwrap_or_default();
    Err(failure(format!("delete {kind}/{name}: another one has its name"), PortErrorKind::Conflict))
}
