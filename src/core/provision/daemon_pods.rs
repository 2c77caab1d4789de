//! Pods of DaemonSets that wait: each is meant for one node, and no other is bought for it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeSelectorTerm;

use crate::scheduler::taints::repelling;
use crate::scheduler::{HostIndex, Problem};
use crate::snapshot::{Pod, PodIndex};

use super::obstacle::{DaemonObstacle, PodObstacle, Shortage};

/// Whether a pod of a DaemonSet waits for a node.
pub fn is_waiting_daemon(pod: &Pod) -> bool {
    pod.spec.node_name.is_none() && !pod.is_terminal() && !pod.is_terminating() && pod.is_owned_by("DaemonSet")
}

/// The node that the DaemonSet controller means a pod for.
pub fn meant_for(pod: &Pod) -> Option<&str> {
    let affinity = pod.spec.affinity.as_deref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let named = |term: &'_ NodeSelectorTerm| {
        let mut fields = term.match_fields.iter().flatten();
        fields.position(|field| field.key == "metadata.name" && field.operator == "In")
    };
    let (term, position) = terms.iter().find_map(|term| Some((term, named(term)?)))?;
    term.match_fields.as_ref()?.get(position)?.values.as_ref()?.first().map(String::as_str)
}

/// Why a pod of a DaemonSet waits, as kube-scheduler sees it; `None` where nothing keeps it from its node, or the node only starts.
/// O(pods on the node)
pub fn why_it_waits(
    problem: &Problem<'_>,
    hosts: &BTreeMap<&str, HostIndex>,
    position: PodIndex,
) -> Option<PodObstacle> {
    let pod = &problem.snapshot.pods[position];
    let name = meant_for(pod)?;
    let because = match hosts.get(name) {
        None => DaemonObstacle::NodeIsNotThere,
        Some(host) if problem.nodes[*host].being_removed || !problem.machines[*host].is_initialized() => return None,
        Some(host) => obstacle(problem, *host, position)?,
    };
    Some(PodObstacle::MeantForNode { node: name.to_owned(), because })
}

/// The first of kube-scheduler's filters that refuses it: taints, host ports, resources.
fn obstacle(problem: &Problem<'_>, host: HostIndex, position: PodIndex) -> Option<DaemonObstacle> {
    let (pod, node) = (&problem.snapshot.pods[position], &problem.nodes[host]);
    if let Some(taint) = repelling(&node.taints, &pod.spec.tolerations, false) {
        return Some(DaemonObstacle::Taint(taint.clone()));
    }
    let class = &problem.classes[problem.class_of_pod[position]?];
    let there = || node.pods.iter().chain(&node.nominated).map(|(_, class)| &problem.classes[*class]);
    let taken = class
        .host_ports
        .iter()
        .find(|port| there().flat_map(|other| &other.host_ports).any(|other| port.conflicts_with(other)));
    if taken.is_some() {
        return Some(DaemonObstacle::HostPort);
    }
    let mut free = problem.machines[host].allocatable();
    there().for_each(|other| free.subtract(&other.requests));
    let short = class.requests.iter().filter(|(name, requested)| *requested > 0 && *requested > free.get(name));
    let short: Vec<Shortage> = short
        .map(|(name, requested)| Shortage { resource: name.to_owned(), free: free.get(name).max(0), requested })
        .collect();
    (!short.is_empty()).then_some(DaemonObstacle::Resources(short))
}
