//! Binding pods to nodes, as kube-scheduler would: the nominated node first, then every node that passes the filters, the
//! least allocated one of them, ties by name.

use k8s_openapi::api::core::v1::Node;

use crate::core::model::Resources;
use crate::core::model::resources::{CPU, MEMORY};
use crate::core::plan::check::filters::{Examination, FilterContext};
use crate::core::snapshot::requests::effective_requests;
use crate::core::snapshot::{Pod, Snapshot};

use super::kubelet::set_condition;
use super::world::World;

impl World {
    /// Tries every pod that waits for a node: the most important first, of these those that a node was made for, then the
    /// oldest.
    pub(super) fn schedule(&mut self) {
        let waits = |pod: &Pod| pod.spec.node_name.is_none() && !pod.is_terminating() && !pod.is_terminal();
        if self.scheduled_at_generation == self.generation || !self.pods.values().any(waits) {
            return;
        }
        let snapshot = self.snapshot();
        let mut context = FilterContext::new(&snapshot);
        let mut waiting: Vec<&Pod> = snapshot.pods.iter().filter(|pod| waits(pod)).collect();
        waiting.sort_by_cached_key(|pod| {
            let is_expected = self.nominations.contains_key(&pod.key());
            let priority = -i64::from(pod.spec.priority.unwrap_or(0));
            (priority, !is_expected, pod.metadata.creation_timestamp.clone(), pod.key())
        });
        for pod in waiting {
            match self.choose(pod, &snapshot, &context) {
                Some(node) => {
                    context.place(pod, &node);
                    self.bind(&pod.key(), node);
                }
                None if pod.spec.scheduling_gates.is_empty() => self.refuse(&pod.key(), "Unschedulable"),
                None => self.refuse(&pod.key(), "SchedulingGated"),
            }
        }
        self.scheduled_at_generation = self.generation;
    }

    fn choose(&self, pod: &Pod, snapshot: &Snapshot, context: &FilterContext<'_>) -> Option<String> {
        let examination = context.examine(pod);
        if let Some(node) = self.nominated_node(&pod.key()).and_then(|name| context.node(&name))
            && examination.refusal(node).is_none()
        {
            return node.metadata.name.clone();
        }
        let requests = effective_requests(pod).unwrap_or_default();
        best_node(&examination, &requests, snapshot, context)
    }

    fn bind(&mut self, key: &str, node: String) {
        self.nominations.remove(key);
        if let Some(pod) = self.pods.get_mut(key) {
            pod.spec.node_name = Some(node);
        }
        self.bound(key);
    }

    fn refuse(&mut self, key: &str, reason: &str) {
        let Some(pod) = self.pods.get_mut(key) else { return };
        if set_condition(pod, "PodScheduled", "False", Some(reason)) {
            self.touch();
        }
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

fn best_node(
    examination: &Examination<'_, '_>,
    requests: &Resources,
    snapshot: &Snapshot,
    context: &FilterContext<'_>,
) -> Option<String> {
    let fitting = snapshot.nodes.iter().filter(|node| examination.refusal(node).is_none());
    // max_by_key keeps the last of equals: from the back of the alphabet, that is the first name.
    let best = fitting.rev().max_by_key(|node| score(node, requests, context))?;
    best.metadata.name.clone()
}

/// The share of cpu and memory that would stay free, in thousandths, averaged: kube-scheduler's LeastAllocated.
fn score(node: &Node, requests: &Resources, context: &FilterContext<'_>) -> i64 {
    let allocatable = allocatable(node);
    let mut taken = context.requested_on(node.metadata.name.as_deref().unwrap_or_default());
    taken.add(requests);
    let share = |name: &str| {
        let total = i128::from(allocatable.get(name));
        let left = (total - i128::from(taken.get(name))) * 1000;
        i64::try_from(left / total.max(1)).unwrap_or(0)
    };
    (share(CPU) + share(MEMORY)) / 2
}

fn allocatable(node: &Node) -> Resources {
    let quantities = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let texts = quantities.into_iter().flatten().map(|(name, quantity)| (name.as_str(), quantity.0.clone()));
    Resources::parse(texts).unwrap_or_default()
}
