//! The pods that need a place.
//! Which ones count: reference, section 3.2.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::plan::ReasonCode;
use crate::core::scheduler::{ClassIndex, Problem};
use crate::core::snapshot::Pod;

/// Pods waiting for a place, and pods that are waiting for something else.
#[derive(Debug, Default)]
pub struct Backlog {
    /// By class: positions of its pods in the snapshot, oldest first.
    pub waiting: BTreeMap<ClassIndex, Vec<usize>>,
    /// Those of them that run on a node that is being removed, and have to move.
    pub displaced: BTreeSet<usize>,
    /// Pods that no node can help: position, reason.
    pub not_schedulable: Vec<(usize, ReasonCode, String)>,
}

impl Backlog {
    /// O(pods).
    pub fn new(problem: &Problem<'_>) -> Self {
        let mut backlog = Self::default();
        for (position, pod) in problem.snapshot.pods.iter().enumerate() {
            if !is_waiting(pod) {
                continue;
            }
            if let Some((code, text)) = obstacle(pod, problem.invalid_pods.get(&position)) {
                backlog.not_schedulable.push((position, code, text));
            } else if let Some(class) = problem.class_of_pod[position] {
                backlog.waiting.entry(class).or_default().push(position);
            }
        }
        for node in problem.nodes.iter().filter(|node| node.being_removed) {
            for (pod, class) in node.pods.iter().filter(|(pod, _)| is_reschedulable(&problem.snapshot.pods[*pod])) {
                backlog.waiting.entry(*class).or_default().push(*pod);
                backlog.displaced.insert(*pod);
            }
        }
        for pods in backlog.waiting.values_mut() {
            pods.sort_by_key(|position| age_order(&problem.snapshot.pods[*position]));
        }
        backlog
    }

    /// Classes in the reference's order: CPU, then memory, descending; then age, then name of the oldest pod.
    pub fn by_size(&self, problem: &Problem<'_>) -> Vec<ClassIndex> {
        let mut classes: Vec<ClassIndex> = self.waiting.keys().copied().collect();
        classes.sort_by_cached_key(|class| {
            let request = &problem.classes[*class].request;
            let oldest = self.waiting[class].first().map(|position| age_order(&problem.snapshot.pods[*position]));
            let sizes = (
                request[crate::core::scheduler::vectors::CPU_DIMENSION],
                request[crate::core::scheduler::vectors::MEMORY_DIMENSION],
            );
            (std::cmp::Reverse(sizes), oldest)
        });
        classes
    }
}

/// Creation time, then UID, then name: the order in which pods of a class are served.
pub fn age_order(pod: &Pod) -> (Option<String>, String, String) {
    (pod.metadata.creation_timestamp.clone(), pod.metadata.uid.clone(), pod.key())
}

/// Not bound, not over, and nobody's daemon.
fn is_waiting(pod: &Pod) -> bool {
    let unbound = pod.spec.node_name.as_deref().is_none_or(str::is_empty);
    unbound && !pod.is_terminal() && !pod.is_terminating() && !pod.is_owned_by("DaemonSet") && !pod.is_owned_by("Node")
}

/// Whether a running pod must get a new place when its node goes: not a daemon, not a mirror of a file on the node, not
/// on its way out (except of a StatefulSet, which waits for its successor).
pub fn is_reschedulable(pod: &Pod) -> bool {
    !pod.is_terminal()
        && !pod.is_owned_by("DaemonSet")
        && !pod.is_owned_by("Node")
        && (!pod.is_terminating() || pod.is_owned_by("StatefulSet"))
}

fn obstacle(pod: &Pod, invalid: Option<&String>) -> Option<(ReasonCode, String)> {
    if let Some(gate) = pod.spec.scheduling_gates.first() {
        return Some((ReasonCode::SchedulingGated, format!("waits for scheduling gate {}", gate.name)));
    }
    if !pod.spec.resource_claims.is_empty() {
        let text = "asks for devices through resource claims, which are not planned for (the reference ignores such pods too by default)";
        return Some((ReasonCode::NotSupported, text.to_owned()));
    }
    invalid.map(|reason| (ReasonCode::InvalidPod, reason.clone()))
}
