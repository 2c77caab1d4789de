//! Pods of nodes that are not there. The garbage collector of Kubernetes removes them after a minute, and whoever made them makes others.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::snapshot::nodes::{Machine, machines};
use crate::snapshot::pod::PodStatus;
use crate::snapshot::{Pod, Snapshot};

/// Lets pods of nodes that are gone, by what their NodeClaims say, wait for another node, as those that are made in their stead will. What
/// belongs to a node ends with it. A snapshot without any node was taken without them. O((nodes + claims) log nodes + pods).
pub fn come_back(snapshot: &mut Snapshot) {
    if snapshot.nodes.is_empty() {
        return;
    }
    let lost: BTreeSet<String> =
        machines(snapshot).iter().filter(|machine| machine.has_lost_its_node()).filter_map(node_of).collect();
    if lost.is_empty() {
        return;
    }
    let ran_there =
        |pod: &Pod| !pod.is_terminal() && pod.spec.node_name.as_ref().is_some_and(|node| lost.contains(node));
    snapshot.pods.retain(|pod| !ran_there(pod) || !ends_with_node(pod));
    for pod in snapshot.pods.shared_mut().iter_mut().filter(|pod| ran_there(pod) && pod.workload().is_some()) {
        let pod = Arc::make_mut(pod);
        pod.spec.node_name = None;
        pod.metadata.deletion_timestamp = None;
        pod.status = PodStatus { phase: Some("Pending".to_owned()), ..PodStatus::default() };
    }
}

fn node_of(machine: &Machine<'_>) -> Option<String> {
    machine.claim?.status.as_ref()?.node_name.clone()
}

/// Whether nothing comes in its stead, or something has come already.
fn ends_with_node(pod: &Pod) -> bool {
    let is_of_node = pod.is_owned_by("DaemonSet") || pod.is_owned_by("Node");
    is_of_node || pod.is_terminating() && !pod.is_owned_by("StatefulSet")
}

/// Pods of nodes that are not among the machines of the snapshot. O(machines log machines + pods).
pub fn pods_of_missing_nodes<'m>(
    snapshot: &Snapshot,
    machines: impl IntoIterator<Item = &'m Machine<'m>>,
) -> impl Iterator<Item = &Pod> {
    let names: BTreeSet<&str> = machines.into_iter().map(|machine| machine.name).collect();
    snapshot.pods.iter().filter(move |pod| is_of_none(pod, &names))
}

fn is_of_none(pod: &Pod, names: &BTreeSet<&str>) -> bool {
    !pod.is_terminal() && pod.spec.node_name.as_deref().is_some_and(|node| !names.contains(node))
}

/// The snapshot without these, of which a plan says no more than that they are left out.
pub fn without_pods_of_missing_nodes(snapshot: &Snapshot) -> Snapshot {
    let names: BTreeSet<&str> = machines(snapshot).iter().map(|machine| machine.name).collect();
    let mut left = snapshot.clone();
    left.pods.retain(|pod| !is_of_none(pod, &names));
    left
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{self, BuildPod, Merge, node, object, pod};
    use cutlist_api::node_claim::NodeClaim;

    /// Node `there`, and the NodeClaim of a node `gone` that is not there any more.
    fn snapshot(pods: Vec<Pod>) -> Snapshot {
        let condition = json!({
            "type": "Registered", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-11-20T09:00:00Z",
        });
        let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
        let claim: NodeClaim = object(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "default-1" },
            "spec": { "requirements": [], "nodeClassRef": class },
            "status": { "providerID": "i-1", "nodeName": "gone", "conditions": [condition] },
        }));
        Snapshot { node_claims: vec![claim].into(), ..testing::snapshot([node("there")], pods) }
    }

    fn owned(name: &str, kind: &str) -> Pod {
        pod(name).on("gone").owned_by(kind, "owner")
    }

    #[test]
    fn what_is_made_again_waits_and_what_belongs_to_the_node_ends_with_it() {
        let leaving = json!({ "metadata": { "deletionTimestamp": "2026-11-20T09:00:00Z" } });
        let pods = vec![
            owned("web", "ReplicaSet"),
            owned("web-before", "ReplicaSet").merge(leaving.clone()),
            owned("db-0", "StatefulSet").merge(leaving),
            owned("agent", "DaemonSet"),
            pod("alone").on("gone"),
            pod("here").on("there"),
            pod("unknown").on("nowhere"),
        ];
        let mut snapshot = snapshot(pods);
        come_back(&mut snapshot);
        let places = snapshot.pods.iter().map(|pod| (pod.metadata.name.as_str(), pod.spec.node_name.as_deref()));
        let expected = [
            ("web", None),
            ("db-0", None),
            ("alone", Some("gone")),
            ("here", Some("there")),
            ("unknown", Some("nowhere")),
        ];
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert!(snapshot.pods.iter().all(|pod| !pod.is_terminating()));
        let missing: Vec<String> =
            pods_of_missing_nodes(&snapshot, &machines(&snapshot)).map(|pod| pod.metadata.name.clone()).collect();
        assert_eq!(missing, ["alone", "unknown"]);
        assert_eq!(without_pods_of_missing_nodes(&snapshot).pods.len(), 3);
    }

    #[test]
    fn a_snapshot_that_was_taken_without_nodes_moves_nothing() {
        let mut without = snapshot(vec![owned("web", "ReplicaSet")]);
        without.nodes.clear();
        let before = without.clone();
        come_back(&mut without);
        assert_eq!(without, before);
    }
}
