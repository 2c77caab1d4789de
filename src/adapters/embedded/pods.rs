//! The pods of the world, and what is asked about them again and again: by owner, by node, by disruption budget, and who
//! waits. A world with thousands of pods changes one of them at a time; whoever acts on pods looks at what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::core::model::Resources;
use crate::core::snapshot::requests::effective_requests;
use crate::core::snapshot::{Objects, Pod};

use super::names::key_of;
use super::selection::{covers, is_healthy};

/// Pods by `namespace/name`. Every change goes through [`Pods::change`], so that what is kept beside them stays true.
#[derive(Default)]
pub(super) struct Pods {
    all: BTreeMap<String, Arc<Pod>>,
    by_owner: BTreeMap<String, BTreeSet<String>>,
    by_node: BTreeMap<String, OnNode>,
    /// Those that have no node yet, by when they came: kube-scheduler takes them in this order.
    waiting: BTreeMap<String, u64>,
    arrivals: u64,
    /// Pods that decide about others not by their size alone: they hold ports, volumes or devices, or keep others away.
    special: BTreeSet<String>,
    budgets: BTreeMap<String, Arc<PodDisruptionBudget>>,
    budgets_by_pod: BTreeMap<String, Vec<String>>,
    counts_by_budget: BTreeMap<String, Counts>,
    changed_owners: BTreeSet<String>,
    changed_budgets: BTreeSet<String>,
    /// Goes up whenever a pod that waited in vain may find room, or another one waits.
    room_changes: u64,
}

/// What is on one node.
#[derive(Default)]
struct OnNode {
    pods: BTreeSet<String>,
    /// What those that still run, or may, ask for together.
    requested: Resources,
}

/// Pods that a budget counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) expected: i32,
    pub(super) healthy: i32,
}

impl Pods {
    pub(super) fn get(&self, key: &str) -> Option<&Pod> {
        self.all.get(key).map(Arc::as_ref)
    }

    pub(super) fn shared(&self, key: &str) -> Option<&Arc<Pod>> {
        self.all.get(key)
    }

    pub(super) fn contains_key(&self, key: &str) -> bool {
        self.all.contains_key(key)
    }

    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &Pod> {
        self.all.values().map(Arc::as_ref)
    }

    /// All pods, in the order of namespace and name.
    pub(super) fn all(&self) -> Objects<Pod> {
        Objects::sharing(self.all.values())
    }

    /// Adds a pod; one of that name is replaced.
    pub(super) fn insert(&mut self, pod: Pod) {
        let key = pod.key();
        self.remove(&key);
        let covering: Vec<String> = self
            .budgets
            .values()
            .filter(|budget| covers(budget, &pod))
            .map(|budget| key_of(&budget.metadata))
            .collect();
        if !covering.is_empty() {
            self.budgets_by_pod.insert(key.clone(), covering);
        }
        if is_special(&pod) {
            self.special.insert(key.clone());
        }
        self.note(&key, &pod, 1);
        self.all.insert(key, Arc::new(pod));
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Pod>> {
        let pod = self.all.remove(key)?;
        self.note(key, &pod, -1);
        self.budgets_by_pod.remove(key);
        self.special.remove(key);
        Some(pod)
    }

    /// Changes one pod, and what is kept about it. `None` when there is no such pod.
    pub(super) fn change<R>(&mut self, key: &str, change: impl FnOnce(&mut Pod) -> R) -> Option<R> {
        let mut pod = self.all.remove(key)?;
        let arrival = self.waiting.get(key).copied();
        self.note(key, &pod, -1);
        let result = change(Arc::make_mut(&mut pod));
        self.note(key, &pod, 1);
        if let Some((waiting, arrival)) = self.waiting.get_mut(key).zip(arrival) {
            *waiting = arrival;
        }
        self.all.insert(key.to_owned(), pod);
        Some(result)
    }

    /// Enters a pod everywhere (`sign` 1) or takes it out everywhere (-1).
    fn note(&mut self, key: &str, pod: &Pod, sign: i32) {
        let is_over = pod.is_terminal();
        let goes_on = !is_over && !pod.is_terminating();
        if let Some(owner) = pod.controller() {
            let pods = self.by_owner.entry(owner.uid.clone()).or_default();
            set(pods, key, sign > 0);
            self.changed_owners.insert(owner.uid.clone());
        }
        if let Some(node) = pod.spec.node_name.as_ref().filter(|_| !is_over) {
            let on_node = self.by_node.entry(node.clone()).or_default();
            set(&mut on_node.pods, key, sign > 0);
            let requests = effective_requests(pod).unwrap_or_default();
            if sign > 0 {
                on_node.requested.add(&requests);
            } else {
                on_node.requested.subtract(&requests);
                self.room_changes += 1;
            }
        }
        let waits = pod.spec.node_name.is_none() && goes_on;
        if waits && sign > 0 {
            self.arrivals += 1;
            self.room_changes += 1;
            self.waiting.insert(key.to_owned(), self.arrivals);
        } else if waits {
            self.waiting.remove(key);
        }
        if !goes_on {
            return;
        }
        for budget in self.budgets_by_pod.get(key).into_iter().flatten() {
            let counts = self.counts_by_budget.entry(budget.clone()).or_default();
            counts.expected += sign;
            counts.healthy += sign * i32::from(is_healthy(pod));
            self.changed_budgets.insert(budget.clone());
        }
    }

    /// Keys of the pods of an owner that are neither ending nor ended.
    pub(super) fn going_on_of(&self, owner: &str) -> Vec<String> {
        let keys = self.by_owner.get(owner).into_iter().flatten();
        let goes_on = |key: &&String| self.get(key).is_some_and(|pod| !pod.is_terminating() && !pod.is_terminal());
        keys.filter(goes_on).cloned().collect()
    }

    /// Keys of all pods of an owner.
    pub(super) fn of(&self, owner: &str) -> Vec<String> {
        self.by_owner.get(owner).into_iter().flatten().cloned().collect()
    }

    /// Whether a pod of this owner is on the node.
    pub(super) fn has_on(&self, node: &str, owner: &str) -> bool {
        let on_node = self.by_node.get(node).map(|on_node| &on_node.pods);
        let of_owner = self.by_owner.get(owner);
        match (on_node, of_owner) {
            (Some(on_node), Some(of_owner)) => on_node.iter().any(|key| of_owner.contains(key)),
            _ => false,
        }
    }

    /// Names of the nodes that pods are on.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &String> {
        self.by_node.iter().filter(|(_, on_node)| !on_node.pods.is_empty()).map(|(node, _)| node)
    }

    /// Keys of the pods on a node that are not over.
    pub(super) fn on(&self, node: &str) -> Vec<String> {
        self.by_node.get(node).map(|on_node| on_node.pods.iter().cloned().collect()).unwrap_or_default()
    }

    /// What the pods of a node ask for together.
    pub(super) fn requested_on(&self, node: &str) -> Resources {
        self.by_node.get(node).map(|on_node| on_node.requested.clone()).unwrap_or_default()
    }

    /// Keys of the pods that have no node yet, with the order in which they came.
    pub(super) fn waiting(&self) -> &BTreeMap<String, u64> {
        &self.waiting
    }

    /// Keys of the pods that matter to others by more than their size.
    pub(super) fn special(&self) -> &BTreeSet<String> {
        &self.special
    }

    pub(super) fn room_changes(&self) -> u64 {
        self.room_changes
    }

    /// Owners of pods that came, went or changed since this was asked last.
    pub(super) fn take_changed_owners(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.changed_owners)
    }

    /// Budgets whose counts may be others since this was asked last, with the counts.
    pub(super) fn take_changed_budgets(&mut self) -> Vec<(String, Counts)> {
        let changed = std::mem::take(&mut self.changed_budgets);
        let counts = |budget: &String| self.counts_by_budget.get(budget).copied().unwrap_or_default();
        changed
            .into_iter()
            .map(|budget| {
                let counts = counts(&budget);
                (budget, counts)
            })
            .collect()
    }

    /// Budgets that cover the pod.
    pub(super) fn budgets_of(&self, key: &str) -> &[String] {
        self.budgets_by_pod.get(key).map_or(&[], Vec::as_slice)
    }

    /// From now on these are the budgets. O(pods x budgets).
    pub(super) fn count_for(&mut self, budgets: Objects<PodDisruptionBudget>) {
        self.budgets = budgets.shared().iter().map(|budget| (key_of(&budget.metadata), budget.clone())).collect();
        self.budgets_by_pod.clear();
        self.counts_by_budget.clear();
        self.changed_budgets = self.budgets.keys().cloned().collect();
        for (key, pod) in &self.all {
            let covering = self.budgets.iter().filter(|(_, budget)| covers(budget, pod));
            let covering: Vec<String> = covering.map(|(name, _)| name.clone()).collect();
            for budget in covering.iter().filter(|_| !pod.is_terminal() && !pod.is_terminating()) {
                let counts = self.counts_by_budget.entry(budget.clone()).or_default();
                counts.expected += 1;
                counts.healthy += i32::from(is_healthy(pod));
            }
            if !covering.is_empty() {
                self.budgets_by_pod.insert(key.clone(), covering);
            }
        }
    }
}

fn set(keys: &mut BTreeSet<String>, key: &str, is_in: bool) {
    if is_in {
        keys.insert(key.to_owned());
    } else {
        keys.remove(key);
    }
}

/// Whether a pod on a node matters to another one by more than the room it takes.
fn is_special(pod: &Pod) -> bool {
    let anti_affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let mut containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    anti_affinity.is_some()
        || !pod.spec.volumes.is_empty()
        || !pod.spec.resource_claims.is_empty()
        || pod.spec.host_network
        || containers.any(|container| container.ports.iter().any(|port| port.host_port.is_some()))
}
