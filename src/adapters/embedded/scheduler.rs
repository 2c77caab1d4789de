//! Binding pods to nodes, as kube-scheduler would: the nominated node first, then every node that passes the filters: of those
//! with the fewest taints that discourage the pod the least allocated one, ties by name. The filters are those of
//! `core::kube_scheduler`, by which the judge of plans (`core::check`) looks at them as well: a mistake in that room shows in neither.
//! Its own tests hold it to kube-scheduler, and so do those on a real control plane.
//!
//! Filters look at a part of the cluster: every node, and of the pods those that decide about others by more than their size.
//! What the rest takes is known for each node as a sum.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint, TopologySpreadConstraint};

use crate::api::keys;
use crate::core::kube_scheduler::{Examination, FilterContext};
use crate::core::model::Resources;
use crate::core::model::resources::{CPU, MEMORY};
use crate::core::snapshot::requests::effective_requests;
use crate::core::snapshot::{Objects, Pod, Snapshot, nodes};

use super::kubelet::set_condition;
use super::machines::NOT_READY_TAINT;
use super::selection::selects;
use super::state::{Allocatable, World};

/// What one node has, and what is taken of it.
pub(super) struct NodeRoom {
    allocatable: Arc<Resources>,
    /// Whether a taint asks pods to go elsewhere if they can.
    discourages: bool,
    taken: Resources,
}

impl NodeRoom {
    pub(super) fn take(&mut self, requests: &Resources) {
        self.taken.add(requests);
    }

    pub(super) fn has_room_for(&self, requests: &Resources) -> bool {
        requests.iter().all(|(name, amount)| amount <= 0 || amount <= self.free(name))
    }

    fn free(&self, name: &str) -> i64 {
        self.allocatable.get(name).saturating_sub(self.taken.get(name))
    }

    /// The share of cpu and memory that would stay free, in thousandths, averaged: kube-scheduler's LeastAllocated.
    fn score(&self, requests: &Resources) -> i64 {
        let share = |name: &str| {
            let total = i128::from(self.allocatable.get(name));
            let left = i128::from(self.free(name)) - i128::from(requests.get(name));
            i64::try_from(left * 1000 / total.max(1)).unwrap_or(0)
        };
        (share(CPU) + share(MEMORY)) / 2
    }
}

/// Free room by node.
pub(super) type Rooms = BTreeMap<String, NodeRoom>;

impl World {
    /// Tries every pod that waits for a node: the most important first, of these those that are nominated to a node that is open, since
    /// kube-scheduler counts them there for all others; then those that a node was made for, then the oldest.
    pub(super) fn schedule(&mut self) {
        let state = (self.nodes_generation, self.pods.room_changes());
        if self.scheduled_at == state || self.pods.waiting().is_empty() {
            return;
        }
        let mut waiting: Vec<Pod> = self.pods.waiting().keys().filter_map(|key| self.pods.get(key).cloned()).collect();
        // Why their scheduler holds them back nobody here knows.
        waiting.retain(|pod| !pod.is_left_to_its_scheduler());
        waiting.sort_by_cached_key(|pod| {
            let is_expected = self.nominations.contains_key(&pod.key());
            let is_held_for = is_expected && self.nominated_node(&pod.key()).is_some_and(|node| self.is_open(&node));
            let priority = -i64::from(pod.spec.priority.unwrap_or(0));
            (
                priority,
                !is_held_for,
                !is_expected,
                pod.metadata.creation_timestamp.clone(),
                self.pods.waiting().get(&pod.key()).copied(),
            )
        });
        let snapshot = self.visible_to(&waiting);
        let mut context = FilterContext::new(&snapshot);
        let mut rooms = self.rooms();
        let mut refused = UnplacedPods::default();
        for pod in &waiting {
            let requests = effective_requests(pod).unwrap_or_default();
            let is_hopeless = refused.has_one_like(pod);
            match (!is_hopeless).then(|| self.choose(pod, &requests, &rooms, &context)).flatten() {
                Some(node) => {
                    context.place(pod, &node);
                    if let Some(room) = rooms.get_mut(&node) {
                        room.take(&requests);
                    }
                    self.bind(&pod.key(), node);
                    refused.forget_those_who_wait_for(pod);
                }
                None => {
                    let is_gated = !pod.spec.scheduling_gates.is_empty();
                    self.refuse(&pod.key(), if is_gated { "SchedulingGated" } else { "Unschedulable" });
                    self.quote_plugin(&pod.key());
                    if !is_hopeless {
                        refused.add(pod);
                    }
                }
            }
        }
        self.scheduled_at = (self.nodes_generation, self.pods.room_changes());
    }

    /// The part of the cluster that filters have to see to judge these pods; what the other pods take is in [`World::rooms`].
    pub(super) fn visible_to(&self, pods: &[Pod]) -> Snapshot {
        let looks_at_others =
            |pod: &Pod| pod.spec.affinity.is_some() || !pod.spec.topology_spread_constraints.is_empty();
        let shown = if pods.iter().any(looks_at_others) {
            self.pods.all()
        } else {
            Objects::sharing(self.pods.special().iter().filter_map(|key| self.pods.shared(key)))
        };
        Snapshot { nodes: self.nodes.shared(), pods: shown, ..self.others.clone() }
    }

    /// Few nodes change between two rounds of scheduling, so what those say that did not is not read again.
    pub(super) fn rooms(&mut self) -> Rooms {
        let mut known = std::mem::take(&mut self.allocatable);
        let mut rooms = Rooms::new();
        for (name, node) in self.nodes.keys().zip(self.nodes.shared().shared()) {
            let read = known.remove(name).filter(|known| Arc::ptr_eq(&known.node, node));
            let read = read.unwrap_or_else(|| Allocatable {
                node: Arc::clone(node),
                discourages: discourages(node),
                amounts: Arc::new(nodes::allocatable(node)),
            });
            let room = NodeRoom {
                allocatable: Arc::clone(&read.amounts),
                discourages: read.discourages,
                taken: self.pods.requested_on(name),
            };
            rooms.insert(name.clone(), room);
            self.allocatable.insert(name.clone(), read);
        }
        rooms
    }

    fn choose(&self, pod: &Pod, requests: &Resources, rooms: &Rooms, context: &FilterContext<'_>) -> Option<String> {
        let examination = context.examine(pod);
        let has_room = |name: &str| rooms.get(name).is_some_and(|room| room.has_room_for(requests));
        if let Some(node) =
            self.nominated_node(&pod.key()).filter(|name| has_room(name)).and_then(|it| context.node(&it))
            && !self.refuses_by_plugin(node)
            && examination.refusal(node).is_none()
        {
            return node.metadata.name.clone();
        }
        let accepts = |node: &Node| !self.refuses_by_plugin(node) && examination.refusal(node).is_none();
        best_node(&examination, &accepts, requests, rooms, context)
    }

    /// Whether a pod waits that spreads only over nodes whose taints it tolerates: one that is tainted may let it in elsewhere.
    pub(super) fn pods_spread_by_taints(&self) -> bool {
        let waiting = self.pods.waiting().keys().filter_map(|key| self.pods.get(key));
        let mut constraints = waiting.flat_map(|pod| &pod.spec.topology_spread_constraints);
        constraints.any(|constraint| constraint.node_taints_policy.as_deref() == Some("Honor"))
    }

    fn bind(&mut self, key: &str, node: String) {
        self.nominations.remove(key);
        self.pods.change(key, |pod| pod.spec.node_name = Some(node));
        self.bound(key);
    }

    fn refuse(&mut self, key: &str, reason: &str) {
        let is_known =
            |pod: &Pod| pod.scheduling_refused().is_some_and(|refused| refused.reason.as_deref() == Some(reason));
        if self.pods.get(key).is_none_or(is_known) {
            return;
        }
        self.pods.change(key, |pod| set_condition(pod, "PodScheduled", "False", Some(reason)));
        self.touch();
    }

    /// Whether a node is up and has been registered.
    fn is_open(&self, node: &str) -> bool {
        let starts = |taint: &Taint| matches!(taint.key.as_str(), NOT_READY_TAINT | keys::UNREGISTERED_TAINT);
        self.nodes.get(node).is_some_and(|node| !nodes::taints(node).iter().any(starts))
    }

    /// A nomination names a node, or the claim of a node that is not there yet.
    fn nominated_node(&self, pod: &str) -> Option<String> {
        let name = self.nominations.get(pod)?;
        if self.nodes.contains_key(name) {
            return Some(name.clone());
        }
        self.node_claims.get(name)?.status.as_ref()?.node_name.clone()
    }
}

/// Pods that no node takes now. Hundreds of replicas may wait for the same nodes, and one answer does for all of them.
#[derive(Default)]
struct UnplacedPods<'a>(BTreeMap<&'a str, Vec<&'a Pod>>);

impl<'a> UnplacedPods<'a> {
    /// Whether no filter could tell this pod from one that was refused. Volumes and devices belong to one pod by its name.
    fn has_one_like(&self, pod: &Pod) -> bool {
        let is_like = |other: &&Pod| {
            other.metadata.namespace == pod.metadata.namespace
                && other.metadata.labels == pod.metadata.labels
                && other.spec == pod.spec
        };
        let of_owner = pod.controller().and_then(|owner| self.0.get(owner.uid.as_str()));
        of_owner.is_some_and(|others| others.iter().any(is_like))
    }

    fn add(&mut self, pod: &'a Pod) {
        let has_own = !pod.spec.volumes.is_empty() || !pod.spec.resource_claims.is_empty();
        if let Some(owner) = pod.controller().filter(|_| !has_own) {
            self.0.entry(&owner.uid).or_default().push(pod);
        }
    }

    /// A pod was bound. That takes room, and ports; but it may be one that others want beside them, or spread from.
    fn forget_those_who_wait_for(&mut self, bound: &Pod) {
        self.0.values_mut().for_each(|pods| pods.retain(|pod| !may_wait_for(pod, bound)));
    }
}

/// Whether a pod that no node took may find one because `bound` runs.
fn may_wait_for(pod: &Pod, bound: &Pod) -> bool {
    let wants_company = pod.spec.affinity.as_ref().is_some_and(|affinity| affinity.pod_affinity.is_some());
    let spreads_from = |constraint: &TopologySpreadConstraint| {
        let selector = constraint.label_selector.as_ref();
        pod.metadata.namespace == bound.metadata.namespace && selector.is_some_and(|selector| selects(selector, bound))
    };
    wants_company || pod.spec.topology_spread_constraints.iter().any(spreads_from)
}

/// The nodes are asked from the best one down, so most pods ask one. Fewer taints that discourage count for more than free room: three
/// times as much.
fn best_node(
    examination: &Examination<'_, '_>,
    accepts: &dyn Fn(&Node) -> bool,
    requests: &Resources,
    rooms: &Rooms,
    context: &FilterContext<'_>,
) -> Option<String> {
    let fitting = rooms.iter().filter(|(_, room)| room.has_room_for(requests));
    let taints = |name: &str, room: &NodeRoom| {
        let node = context.node(name).filter(|_| room.discourages);
        node.map_or(0, |node| examination.discouraging(node))
    };
    let mut fitting: Vec<(usize, i64, &String)> =
        fitting.map(|(name, room)| (taints(name, room), -room.score(requests), name)).collect();
    fitting.sort_unstable();
    let accepts = |name: &str| context.node(name).is_some_and(accepts);
    fitting.into_iter().map(|(.., name)| name).find(|name| accepts(name)).cloned()
}

fn discourages(node: &Node) -> bool {
    nodes::taints(node).iter().any(|taint| taint.effect == "PreferNoSchedule")
}
