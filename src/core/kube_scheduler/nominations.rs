//! Nominations of which nothing comes any more.
//!
//! kube-scheduler takes the name of the nominated node away when it tries the pod and the node has no room for it. But it tries a pod
//! again only when something happened that may help it, else after five minutes: a pod whose place others took keeps the name for as
//! long, and nobody looks for another place.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::snapshot::nodes::machines;
use crate::snapshot::{Pod, PodIndex, Snapshot};

use super::FilterContext;

/// How long after its node opened a nomination holds in any case: as long as kube-scheduler may take to come to the pod.
const SETTLES_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// Positions of pods that are nominated for a node which refuses them, and on which nobody makes room for them: no pod there ends, and
/// none has a lower priority. O(pods); where there are such pods O(pods log pods), and what the filters take.
pub fn void_nominations(snapshot: &Snapshot, now: Timestamp) -> BTreeSet<PodIndex> {
    let mut nominated: BTreeMap<&str, Vec<PodIndex>> = BTreeMap::new();
    for (position, pod) in snapshot.pods.enumerated() {
        if let Some(node) = pod.preempting_on() {
            nominated.entry(node).or_default().push(position);
        }
    }
    if nominated.is_empty() {
        return BTreeSet::new();
    }
    let machines = machines(snapshot);
    let open = machines.iter().filter(|machine| machine.has_been_open_for(SETTLES_WITHIN, now));
    let open: BTreeSet<&str> = open.map(|machine| machine.name).collect();
    nominated.retain(|node, _| open.contains(node));
    for pod in snapshot.pods.iter().filter(|pod| !pod.is_terminal()) {
        let here = pod.spec.node_name.as_deref().and_then(|node| nominated.get_mut(node));
        let gives_way =
            |position: &PodIndex| pod.is_terminating() || priority(pod) < priority(&snapshot.pods[*position]);
        here.into_iter().for_each(|positions| positions.retain(|position| !gives_way(position)));
    }
    nominated.retain(|_, positions| !positions.is_empty());
    if nominated.is_empty() {
        return BTreeSet::new();
    }
    let mut context = FilterContext::new(snapshot);
    context.judge_devices(snapshot);
    let mut void = BTreeSet::new();
    for (name, positions) in nominated {
        let Some(node) = context.node(name) else { continue };
        for position in positions {
            let pod: &Pod = &snapshot.pods[position];
            if context.examine(pod).refusal(node).is_some() {
                void.insert(position);
            } else {
                // The next one must have room beside it.
                context.place(pod, name);
            }
        }
    }
    void
}

fn priority(pod: &Pod) -> i32 {
    pod.spec.priority.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{BuildPod, Merge, pod};

    const OPENED: &str = "2026-11-20T09:00:00Z";

    /// Names of the pods whose nomination is void so many seconds after the node with 2 CPU opened.
    fn void(pods: Vec<Pod>, seconds: i64) -> Vec<String> {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "default-1" },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
            },
            "status": { "nodeName": "node", "providerID": "aws:///us-east-1a/i-1", "conditions": [{
                "type": "Initialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": OPENED,
            }] },
        });
        let node = json!({
            "metadata": { "name": "node", "labels": { "karpenter.sh/initialized": "true", "kubernetes.io/hostname": "node" } },
            "spec": { "providerID": "aws:///us-east-1a/i-1" },
            "status": { "allocatable": { "cpu": "2", "memory": "8Gi", "pods": "10" } },
        });
        let snapshot = Snapshot {
            pods: pods.into(),
            nodes: vec![serde_json::from_value(node).unwrap()].into(),
            node_claims: vec![serde_json::from_value(claim).unwrap()].into(),
            ..Snapshot::default()
        };
        let now = OPENED.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds);
        let void = void_nominations(&snapshot, now);
        void.into_iter().map(|position| snapshot.pods[position].metadata.name.clone()).collect()
    }

    fn nominated(name: &str, cpu: &str) -> Pod {
        pod(name).cpu(cpu).merge(json!({ "status": { "nominatedNodeName": "node" } }))
    }

    fn bound(name: &str, cpu: &str, more: Value) -> Pod {
        pod(name).cpu(cpu).merge(json!({ "spec": { "nodeName": "node" } })).merge(more)
    }

    #[test]
    fn a_nomination_for_a_node_that_others_filled_is_void_once_kube_scheduler_had_its_time() {
        let pods = || vec![bound("other", "1500m", json!({})), nominated("web", "1")];
        assert_eq!(void(pods(), 11), ["web"]);
        assert!(void(pods(), 9).is_empty(), "kube-scheduler has yet to come to it");
        assert!(void(vec![bound("other", "1", json!({})), nominated("web", "1")], 600).is_empty(), "it fits");
    }

    #[test]
    fn room_is_given_once() {
        assert_eq!(void(vec![nominated("a", "1"), nominated("b", "1"), nominated("c", "1")], 60), ["c"]);
    }

    #[test]
    fn who_is_made_room_for_is_waited_for() {
        let ends = json!({ "metadata": { "deletionTimestamp": OPENED } });
        assert!(void(vec![bound("other", "2", ends), nominated("web", "1")], 600).is_empty());
        let matters_more = nominated("web", "1").merge(json!({ "spec": { "priority": 1000 } }));
        assert!(
            void(vec![bound("other", "2", json!({})), matters_more], 600).is_empty(),
            "others can be evicted for it"
        );
        let matters_more = bound("other", "2", json!({ "spec": { "priority": 1000 } }));
        assert_eq!(void(vec![matters_more, nominated("web", "1")], 600), ["web"]);
    }

    #[test]
    fn a_spread_that_others_broke_is_a_refusal_too() {
        let apart = json!({ "spec": { "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "web" } } },
        ] } } } });
        let labelled = json!({ "metadata": { "labels": { "app": "web" } } });
        let node = bound("other", "1", labelled);
        assert!(void(vec![node.clone(), nominated("web", "1")], 60).is_empty());
        assert_eq!(void(vec![node, nominated("web", "1").merge(apart)], 60), ["web"]);
    }
}
