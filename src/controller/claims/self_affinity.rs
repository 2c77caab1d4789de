//! Pods that must be near pods like themselves, while none of them runs.
//!
//! Where kube-scheduler binds the first of them, the others have to go. Bound to a node that was bought for other pods, it takes all of them
//! there, where there may be no room, and nobody can run them any more. So a node that could take such a pod stays closed until their own
//! node opens with it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, PodAffinityTerm};

use crate::api::node_claim::NodeClaim;
use crate::controller::observed::view::{View, name_of};
use crate::core::kube_scheduler::FilterContext;
use crate::core::lifecycle::registered_taints;
use crate::core::snapshot::{Objects, Pod, Snapshot, selector};

/// A claim whose node is closed, with the pods that wait for it.
pub(super) struct ClosedNode<'a, 'b> {
    pub claim: &'a NodeClaim,
    /// None where it has not joined.
    pub node: Option<&'a Node>,
    /// Whether nothing but its being closed keeps pods away.
    pub is_ready: bool,
    pub pods: &'b [&'a Pod],
}

/// Names of claims whose nodes have started, and would take a pod of others that must be near pods like itself, while none of those runs and
/// no node of theirs can open as well. O(closed nodes x groups of such pods), and one pass over all pods where there are any.
pub(super) fn would_take_first<'a>(view: &View<'a>, closed: &[ClosedNode<'a, '_>]) -> BTreeSet<&'a str> {
    let groups = groups(view, closed);
    if groups.is_empty() {
        return BTreeSet::new();
    }
    let takes = takes(view, closed, &groups);
    // Nodes that may open together: each group that one of them could take has a node of its own among them.
    let mut opening: BTreeSet<usize> = (0..closed.len()).filter(|position| closed[*position].is_ready).collect();
    let mut waiting = BTreeSet::new();
    loop {
        let has_home = |group: &usize| !groups[*group].homes.is_disjoint(&opening);
        let (stays, leaves): (BTreeSet<usize>, BTreeSet<usize>) =
            opening.iter().partition(|position| takes[**position].iter().all(has_home));
        if leaves.is_empty() {
            return waiting;
        }
        waiting.extend(leaves.into_iter().map(|position| name_of(closed[position].claim)));
        opening = stays;
    }
}

/// Pods of one namespace with the same required affinity, which selects themselves.
struct Group<'a> {
    namespace: &'a str,
    terms: &'a [PodAffinityTerm],
    pods: Vec<&'a Pod>,
    /// Positions of the closed nodes that were bought for one of them.
    homes: BTreeSet<usize>,
}

impl Group<'_> {
    fn selects(&self, pod: &Pod) -> bool {
        let in_namespace = |term: &PodAffinityTerm| {
            let namespaces = term.namespaces.as_deref().unwrap_or_default();
            let is_own = namespaces.is_empty() && pod.metadata.namespace == self.namespace;
            is_own || namespaces.contains(&pod.metadata.namespace) || term.namespace_selector.is_some()
        };
        let selects = |term: &PodAffinityTerm| selector::matches(term.label_selector.as_ref(), &pod.metadata.labels);
        self.terms.iter().all(|term| in_namespace(term) && selects(term))
    }
}

/// Those of which no pod is on a node.
fn groups<'a>(view: &View<'a>, closed: &[ClosedNode<'a, '_>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (position, node) in closed.iter().enumerate() {
        for &pod in node.pods {
            let terms = required_affinity(pod);
            let is_of = |group: &&mut Group<'a>| group.namespace == pod.metadata.namespace && group.terms == terms;
            if let Some(group) = groups.iter_mut().find(is_of) {
                group.homes.insert(position);
                group.pods.push(pod);
                continue;
            }
            let homes = BTreeSet::from([position]);
            let group = Group { namespace: &pod.metadata.namespace, terms, pods: vec![pod], homes };
            if !terms.is_empty() && group.selects(pod) {
                groups.push(group);
            }
        }
    }
    if !groups.is_empty() {
        let runs = |pod: &&Pod| pod.spec.node_name.is_some() && !pod.is_terminal();
        let bound: Vec<&Pod> = view.snapshot.pods.iter().filter(runs).collect();
        groups.retain(|group| !bound.iter().any(|pod| group.selects(pod)));
    }
    groups
}

fn required_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    let near = pod.spec.affinity.as_ref().and_then(|affinity| affinity.pod_affinity.as_ref());
    near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

/// By position of a closed node: the groups, none of whose pods it was bought for, of which it would take one as soon as it opens. Its own
/// pods do not count: kube-scheduler may have forgotten that they are nominated to it.
fn takes(view: &View<'_>, closed: &[ClosedNode<'_, '_>], groups: &[Group<'_>]) -> Vec<BTreeSet<usize>> {
    let opened: Vec<Option<Node>> = closed.iter().map(opened).collect();
    let nodes = opened.iter().flatten().cloned().collect();
    let snapshot = Snapshot { nodes, pods: Objects::default(), ..view.snapshot.clone() };
    let context = FilterContext::new(&snapshot);
    let mut takes = vec![BTreeSet::new(); closed.len()];
    for (index, group) in groups.iter().enumerate() {
        let others = || opened.iter().enumerate().filter(|(position, _)| !group.homes.contains(position));
        for pod in different(&group.pods) {
            let examination = context.examine(pod);
            let accepts = |node: &Option<Node>| node.as_ref().is_some_and(|node| examination.refusal(node).is_none());
            for (position, _) in others().filter(|(_, node)| accepts(node)) {
                takes[position].insert(index);
            }
        }
    }
    takes
}

/// Without those that differ from an earlier one in nothing that a filter looks at: most are replicas.
fn different<'a>(pods: &[&'a Pod]) -> Vec<&'a Pod> {
    let mut different: Vec<&Pod> = Vec::new();
    for pod in pods {
        if !different.iter().any(|other| other.metadata.labels == pod.metadata.labels && other.spec == pod.spec) {
            different.push(pod);
        }
    }
    different
}

/// The node as it will be when it is registered.
fn opened(closed: &ClosedNode<'_, '_>) -> Option<Node> {
    let joined = closed.node.filter(|_| closed.is_ready)?;
    let mut node = joined.clone();
    node.metadata.labels.get_or_insert_default().extend(closed.claim.metadata.labels.clone().unwrap_or_default());
    node.spec.get_or_insert_default().taints = Some(registered_taints(closed.claim, joined));
    Some(node)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(cpu: &str) -> Node {
        let node = json!({
            "metadata": { "name": "node-1" },
            "spec": { "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] },
            "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "10" } },
        });
        serde_json::from_value(node).unwrap()
    }

    fn claim(name: &str) -> NodeClaim {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": { "name": name, "labels": { "topology.kubernetes.io/zone": "us-east-1a" } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
                "resources": {},
            },
        });
        serde_json::from_value(claim).unwrap()
    }

    fn pod(app: &str, affinity: Value, on: Option<&str>) -> Pod {
        let pod = json!({
            "metadata": { "name": format!("{app}-1"), "namespace": "shop", "labels": { "app": app } },
            "spec": {
                "nodeName": on,
                "affinity": affinity,
                "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } }],
            },
        });
        serde_json::from_value(pod).unwrap()
    }

    /// A pod that must be in the zone of pods of `other`.
    fn near(app: &str, other: &str) -> Pod {
        let term = json!({
            "labelSelector": { "matchLabels": { "app": other } },
            "topologyKey": "topology.kubernetes.io/zone",
        });
        pod(app, json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } }), None)
    }

    /// Which claims wait, of some that are given with the processors of their nodes, if those have started, and with a pod that waits for each.
    fn waiting(given: &[(&str, Option<&str>, &Pod)], others: &[Pod]) -> Vec<String> {
        let snapshot = Snapshot { pods: others.iter().cloned().collect(), ..Snapshot::default() };
        let view = View::new(&snapshot);
        let claims: Vec<NodeClaim> = given.iter().map(|(name, ..)| claim(name)).collect();
        let nodes: Vec<Option<Node>> = given
            .iter()
            .map(|(name, cpu, _)| {
                let mut node = node((*cpu)?);
                node.metadata.name = Some((*name).to_owned());
                Some(node)
            })
            .collect();
        let pods: Vec<[&Pod; 1]> = given.iter().map(|(.., pod)| [*pod]).collect();
        let closed = claims.iter().zip(&nodes).zip(&pods);
        let closed: Vec<ClosedNode<'_, '_>> = closed
            .map(|((claim, node), pods)| ClosedNode { claim, node: node.as_ref(), is_ready: node.is_some(), pods })
            .collect();
        would_take_first(&view, &closed).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_node_waits_until_one_of_the_pods_that_it_could_take_runs() {
        let (plain, cache) = (pod("web", Value::Null, None), near("cache", "cache"));
        assert_eq!(waiting(&[("a", Some("4"), &plain), ("b", None, &cache)], &[]), ["a"]);
        assert!(waiting(&[("a", Some("4"), &plain), ("b", Some("4"), &cache)], &[]).is_empty(), "they open together");
        assert!(waiting(&[("a", Some("500m"), &plain), ("b", None, &cache)], &[]).is_empty(), "it has no room for one");
        let runs = pod("cache", Value::Null, Some("node-9"));
        assert!(waiting(&[("a", Some("4"), &plain), ("b", None, &cache)], &[runs]).is_empty(), "one runs");
    }

    #[test]
    fn pods_that_must_be_near_others_have_no_first_one() {
        let (plain, web) = (pod("cache", Value::Null, None), near("web", "cache"));
        assert!(waiting(&[("a", Some("4"), &plain), ("b", None, &web)], &[]).is_empty());
    }

    #[test]
    fn nodes_that_could_take_pods_of_each_other_open_together() {
        let (web, cache) = (near("web", "web"), near("cache", "cache"));
        assert_eq!(waiting(&[("a", Some("4"), &web), ("b", None, &cache)], &[]), ["a"]);
        assert!(waiting(&[("a", Some("4"), &web), ("b", Some("4"), &cache)], &[]).is_empty());
    }

    #[test]
    fn a_node_waits_for_one_that_waits() {
        let (web, cache, batch) = (near("web", "web"), near("cache", "cache"), near("batch", "batch"));
        let given = [("a", Some("4"), &web), ("b", Some("4"), &cache), ("c", None, &batch)];
        assert_eq!(waiting(&given, &[]), ["a", "b"]);
    }
}
