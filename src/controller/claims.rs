//! Carries out what the life cycle of each NodeClaim asks for.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::core::catalog::Catalog;
use crate::core::catalog::node_class::for_node_class;
use crate::core::lifecycle::claims::{LaunchedInstance, launch_failed, launched};
use crate::core::lifecycle::{self, Effect, Milestone, Observation};
use crate::core::model::Resources;
use crate::core::offer::{REFUSED_SECONDS, RefusedOffering};
use crate::core::snapshot::Pod;
use crate::ports::{Cloud, Cluster, Instance, LaunchRequest, PortError, PortErrorKind};

use super::events::Event;
use super::journal::Journal;
use super::marks;
use super::opening::{Nominations, Opening};
use super::view::{View, label, name_of, node_name, provider_id};

/// What is remembered between two looks. All of it may be lost: it saves work and repeated messages, and decides nothing.
#[derive(Debug, Default)]
pub struct Claims {
    /// Pods of each claim's node, to notice that one came or went.
    pods_seen: BTreeMap<String, BTreeSet<(String, bool)>>,
    /// Provider IDs that EC2 said are gone.
    gone: BTreeSet<String>,
    /// Pods whose eviction a budget forbade, so that it is said once.
    blocked: BTreeSet<String>,
    /// What EC2 had no capacity for, while that counts.
    refused: Vec<RefusedOffering>,
    nominations: Nominations,
}

/// What came of looking at every claim.
#[derive(Debug, Default)]
pub struct Progress {
    pub look_again_at: Option<Timestamp>,
    /// A node became a candidate for consolidation: worth planning at once.
    pub plan_now: bool,
    /// An object was written: what was seen is no longer how it is.
    pub wrote: bool,
    /// EC2 ran out of something: the catalog changed.
    pub catalog_changed: bool,
}

/// The ports and facts that effects are carried out with.
pub struct Surroundings<'a, K, E> {
    pub cluster: &'a K,
    pub cloud: &'a E,
    pub catalog: &'a Catalog,
    pub node_pools: &'a [NodePool],
    pub node_classes: &'a [EC2NodeClass],
    pub now: Timestamp,
}

impl Claims {
    /// What launches were lately refused.
    pub fn refused(&self) -> &[RefusedOffering] {
        &self.refused
    }

    /// Looks at every claim and does what it needs. Stops at the first call that fails; what was not done is asked for again.
    pub async fn advance<K: Cluster, E: Cloud>(
        &mut self,
        view: &View<'_>,
        around: &Surroundings<'_, K, E>,
        journal: &mut Journal,
    ) -> Result<Progress, PortError> {
        let mut progress = Progress::default();
        self.forget(view);
        self.refused.retain(|refused| around.now.duration_since(refused.at).as_secs() < REFUSED_SECONDS);
        let opening = Opening::new(view, around.now);
        for claim in &view.snapshot.node_claims {
            if self.note_pod_events(view, claim, around).await? {
                // What else the claim needs is seen at the next look.
                progress.wrote = true;
                continue;
            }
            let node = view.node_of(claim);
            if let Some(node) = node {
                // Before its start-up taint goes: from then on kube-scheduler takes it for any pod.
                self.nominations.renew(around.cluster, &opening, claim, node_name(node)).await?;
                if let Some(moment) = opening.waits_for_others(claim, node) {
                    progress.look_again(Some(moment));
                    continue;
                }
            }
            let reaction = lifecycle::react(&Observation {
                claim,
                node,
                pods: view.pods_on(node),
                instance_gone: provider_id(claim).is_some_and(|id| self.gone.contains(id)),
                consolidate_after_seconds: consolidate_after(claim, around.node_pools),
                now: around.now,
            });
            progress.look_again(reaction.look_again_at);
            for effect in reaction.effects {
                self.carry_out(effect, claim, node, around, journal, &mut progress).await?;
            }
        }
        Ok(progress)
    }

    fn forget(&mut self, view: &View<'_>) {
        let names: BTreeSet<&str> = view.snapshot.node_claims.iter().map(name_of).collect();
        self.pods_seen.retain(|name, _| names.contains(name.as_str()));
        let ids: BTreeSet<&str> = view.snapshot.node_claims.iter().filter_map(provider_id).collect();
        self.gone.retain(|id| ids.contains(id.as_str()));
        let pods: BTreeSet<String> = view.snapshot.pods.iter().map(Pod::key).collect();
        self.blocked.retain(|pod| pods.contains(pod));
        self.nominations.forget(&pods);
    }

    /// Notes on a claim when a pod of its node came, ended or went. `true` when something was written.
    async fn note_pod_events<K: Cluster, E: Cloud>(
        &mut self,
        view: &View<'_>,
        claim: &NodeClaim,
        around: &Surroundings<'_, K, E>,
    ) -> Result<bool, PortError> {
        let counted = |pod: &&&Pod| !pod.is_owned_by("DaemonSet") && !pod.is_owned_by("Node");
        let state = |pod: &&Pod| (pod.metadata.uid.clone(), pod.is_terminal() || pod.is_terminating());
        let pods: BTreeSet<_> = view.pods_on(view.node_of(claim)).iter().filter(counted).map(state).collect();
        let before = self.pods_seen.insert(name_of(claim).to_owned(), pods.clone());
        if before.is_none_or(|before| before == pods) || claim.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        let mut claim = claim.clone();
        claim.status.get_or_insert_default().last_pod_event_time = Some(around.now.to_string());
        around.cluster.update_node_claim(&claim).await?;
        Ok(true)
    }

    async fn carry_out<K: Cluster, E: Cloud>(
        &mut self,
        effect: Effect,
        claim: &NodeClaim,
        node: Option<&Node>,
        around: &Surroundings<'_, K, E>,
        journal: &mut Journal,
        progress: &mut Progress,
    ) -> Result<(), PortError> {
        let name = name_of(claim);
        match effect {
            Effect::Launch => launch(claim, around, journal, progress, &mut self.refused).await?,
            Effect::WriteClaim(written) => {
                progress.unless_overtaken(around.cluster.update_node_claim(&written).await, around.now)?;
            }
            Effect::PatchNode { node, patch } => {
                let patched = unless_gone(around.cluster.patch_node(&node, &patch).await);
                progress.unless_overtaken(patched, around.now)?;
            }
            Effect::DeleteClaim(cause) => {
                around.cluster.delete_node_claim(name).await?;
                progress.wrote = true;
                journal.say(around.now, &Event::GaveUp { node_claim: name.to_owned(), cause });
            }
            Effect::DeleteNode { node } => {
                unless_gone(around.cluster.delete_node(&node).await)?;
                progress.wrote = true;
            }
            Effect::Evict { namespace, name } => {
                let result = around.cluster.evict(&namespace, &name).await;
                progress.wrote |= result.is_ok();
                self.evicted(result, format!("{namespace}/{name}"), node, around.now, journal)?;
            }
            Effect::DeletePod { namespace, name, grace_seconds } => {
                unless_gone(around.cluster.delete_pod(&namespace, &name, grace_seconds).await)?;
                progress.wrote = true;
            }
            Effect::TerminateInstance { provider_id } => match around.cloud.terminate(&provider_id).await {
                Err(error) if error.kind == PortErrorKind::NotFound => {
                    self.gone.insert(provider_id);
                    progress.look_again(Some(around.now));
                }
                result => result?,
            },
            Effect::Reached(milestone) => {
                progress.plan_now |= milestone == Milestone::Consolidatable;
                if let Some(event) = milestone_event(milestone, claim, node) {
                    journal.say(around.now, &event);
                }
            }
        }
        Ok(())
    }

    /// A budget that forbids an eviction is said once; the eviction is tried again later.
    fn evicted(
        &mut self,
        result: Result<(), PortError>,
        pod: String,
        node: Option<&Node>,
        now: Timestamp,
        journal: &mut Journal,
    ) -> Result<(), PortError> {
        match result {
            Err(error) if error.kind == PortErrorKind::Conflict => {
                if self.blocked.insert(pod.clone()) {
                    let node = node.and_then(|node| node.metadata.name.clone()).unwrap_or_default();
                    journal.say(now, &Event::EvictionBlocked { pod, node, error: error.to_string() });
                }
                Ok(())
            }
            result => unless_gone(result),
        }
    }
}

impl Progress {
    /// Somebody changed the object meanwhile: what is to be done follows from how it is now.
    fn unless_overtaken(&mut self, result: Result<(), PortError>, now: Timestamp) -> Result<(), PortError> {
        self.wrote = true;
        match result {
            Err(error) if error.kind == PortErrorKind::Conflict => {
                self.look_again(now.checked_add(super::RETRY).ok());
                Ok(())
            }
            result => result,
        }
    }

    fn look_again(&mut self, moment: Option<Timestamp>) {
        self.look_again_at = [self.look_again_at, moment].into_iter().flatten().min();
    }
}

async fn launch<K: Cluster, E: Cloud>(
    claim: &NodeClaim,
    around: &Surroundings<'_, K, E>,
    journal: &mut Journal,
    progress: &mut Progress,
    refused: &mut Vec<RefusedOffering>,
) -> Result<(), PortError> {
    let name = name_of(claim);
    let Some(alternatives) = marks::alternatives(claim) else {
        // Nobody planned for it. It stays as it is until its time is over, and says why.
        let message = "the NodeClaim was not made by a plan of Cutlist";
        let written = launch_failed(claim, "NotPlanned", message, around.now);
        if written != *claim {
            around.cluster.update_node_claim(&written).await?;
            progress.wrote = true;
        }
        return Ok(());
    };
    let request = LaunchRequest {
        token: claim.metadata.uid.clone().unwrap_or_default(),
        node_claim: name.to_owned(),
        node_pool: label(claim, keys::NODE_POOL).to_owned(),
        node_class: claim.spec.node_class_ref.name.clone(),
        alternatives,
    };
    match around.cloud.launch(&request).await {
        Ok(instance) => {
            progress.wrote = true;
            launched_instance(claim, instance, around, journal).await
        }
        Err(error) if error.kind == PortErrorKind::InsufficientCapacity => {
            progress.catalog_changed = true;
            // It was asked for any of them, so it has none.
            refused.extend(request.alternatives.iter().map(|alternative| RefusedOffering {
                instance_type: alternative.instance_type.clone(),
                zone: alternative.zone.clone(),
                capacity_type: alternative.capacity_type.clone(),
                at: around.now,
            }));
            progress.wrote = true;
            around.cluster.delete_node_claim(name).await?;
            let event = Event::InsufficientCapacity { node_claim: name.to_owned(), error: error.to_string() };
            journal.say(around.now, &event);
            Ok(())
        }
        Err(error) if error.kind == PortErrorKind::Permanent => {
            let text = error.to_string();
            let written = launch_failed(claim, "LaunchFailed", &text, around.now);
            if written != *claim {
                around.cluster.update_node_claim(&written).await?;
                progress.wrote = true;
                journal.say(around.now, &Event::LaunchFailed { node_claim: name.to_owned(), error: text });
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

async fn launched_instance<K: Cluster, E: Cloud>(
    claim: &NodeClaim,
    instance: Instance,
    around: &Surroundings<'_, K, E>,
    journal: &mut Journal,
) -> Result<(), PortError> {
    let types = &around.catalog.instance_types;
    let instance_type = types.iter().find(|instance_type| instance_type.name == instance.instance_type);
    let class_name = claim.spec.node_class_ref.name.as_str();
    let class = around.node_classes.iter().find(|class| class.metadata.name.as_deref() == Some(class_name));
    // The class may change what a node of the type can hold: its kubelet settings, its disks.
    let adjusted = instance_type.zip(class).map(|(instance_type, class)| for_node_class(instance_type, &class.spec));
    let instance_type = adjusted.as_ref().or(instance_type);
    let facts = LaunchedInstance {
        provider_id: instance.provider_id.clone(),
        image_id: instance.image_id,
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        capacity_type: instance.capacity_type.clone(),
        region: around.catalog.region.clone(),
    };
    let written = launched(claim, &facts, instance_type, around.now);
    around.cluster.update_node_claim(&written).await?;
    let event = Event::LaunchedNodeClaim {
        node_claim: name_of(claim).to_owned(),
        provider_id: instance.provider_id,
        instance_type: instance.instance_type,
        zone: instance.zone,
        capacity_type: instance.capacity_type,
        allocatable: allocatable(&written),
    };
    journal.say(around.now, &event);
    Ok(())
}

/// What was to be changed is gone: that is as good.
fn unless_gone(result: Result<(), PortError>) -> Result<(), PortError> {
    match result {
        Err(error) if error.kind == PortErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn consolidate_after(claim: &NodeClaim, node_pools: &[NodePool]) -> Option<u64> {
    let name = label(claim, keys::NODE_POOL);
    let pool = node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(name))?;
    pool.spec.disruption.consolidate_after.seconds()
}

pub fn allocatable(claim: &NodeClaim) -> Resources {
    let quantities = claim.status.iter().flat_map(|status| &status.allocatable);
    Resources::parse(quantities.map(|(name, quantity)| (name.as_str(), quantity.to_string()))).unwrap_or_default()
}

fn milestone_event(milestone: Milestone, claim: &NodeClaim, node: Option<&Node>) -> Option<Event> {
    let node_claim = name_of(claim).to_owned();
    let provider_id = provider_id(claim).unwrap_or_default().to_owned();
    Some(match milestone {
        Milestone::Registered { node } => Event::RegisteredNodeClaim { node_claim, provider_id, node },
        Milestone::Initialized { node } => {
            Event::InitializedNodeClaim { node_claim, provider_id, node, allocatable: allocatable(claim) }
        }
        Milestone::Tainted { node } => Event::TaintedNode { node, node_claim },
        Milestone::NodeDeleted { node } => Event::DeletedNode { node, node_claim },
        Milestone::ClaimDeleted => {
            let known = claim.status.as_ref().and_then(|status| status.node_name.clone());
            let node = node.and_then(|node| node.metadata.name.clone()).or(known).unwrap_or_default();
            Event::DeletedNodeClaim { node_claim, provider_id, node }
        }
        Milestone::Consolidatable => return None,
    })
}
