//! Pods that are told their node only when others are bound.
//!
//! A spread is looked at when a pod that has it is bound. kube-scheduler then counts those that are nominated to the node as if they were
//! there. So a pod that finds its place only before others whom its spread counts is refused while these are told a node of the same
//! domain, even where it is taken first. The plan names such pods; while one of them is on no node, those others are not told theirs.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::Node;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::controller::observed::view::{name_of, node_name};
use crate::core::kube_scheduler::may_be_in_the_way;
use crate::core::snapshot::Pod;

/// A pod on no node, and where it is to go: a claim, its node, or both.
#[derive(Clone, Copy)]
pub(super) struct Expected<'a> {
    pub pod: &'a Pod,
    pub claim: Option<&'a NodeClaim>,
    pub node: Option<&'a Node>,
}

impl<'a> Expected<'a> {
    fn domain(&self, key: &str) -> Option<&'a str> {
        let of_node = self.node.and_then(|node| node.metadata.labels.as_ref()?.get(key));
        let label = of_node.or_else(|| self.claim.and_then(|claim| claim.metadata.labels.as_ref()?.get(key)));
        let name = || self.node.map(node_name).or_else(|| self.claim.map(name_of)).filter(|_| key == keys::HOSTNAME);
        label.map(String::as_str).or_else(name)
    }

    /// Whether this one finds its place only while the other one is not there.
    fn comes_before(&self, other: &Self) -> bool {
        // A domain that is not known may be the same.
        let share_a_domain = |key: &str| match (self.domain(key), other.domain(key)) {
            (Some(own), Some(others)) => own == others,
            _ => true,
        };
        may_be_in_the_way(self.pod, other.pod, share_a_domain)
    }

    /// Whether whoever waits for this one waits for the other one, too.
    fn is_like(&self, other: &Self) -> bool {
        let (own, others) = (&self.pod, &other.pod);
        let spreads = &own.spec.topology_spread_constraints;
        own.metadata.namespace == others.metadata.namespace
            && own.metadata.labels == others.metadata.labels
            && *spreads == others.spec.topology_spread_constraints
            && spreads.iter().all(|it| self.domain(&it.topology_key) == other.domain(&it.topology_key))
    }
}

/// UIDs of the pods that wait for others to be bound. Where two are to be first of each other nobody waits for either.
/// O(pods x different pods that are to be first).
pub(super) fn told_later<'a>(expected: &[Expected<'a>], is_first: impl Fn(&Pod) -> bool) -> HashSet<&'a str> {
    let mut first: Vec<&Expected<'a>> = Vec::new();
    for pod in expected.iter().filter(|pod| is_first(pod.pod)) {
        if !first.iter().any(|other| other.is_like(pod)) {
            first.push(pod);
        }
    }
    let waits = |pod: &&Expected<'a>| {
        let is_first = is_first(pod.pod);
        first.iter().any(|other| other.comes_before(pod) && !(is_first && pod.comes_before(other)))
    };
    let later: HashSet<&str> = expected.iter().filter(waits).map(|pod| pod.pod.metadata.uid.as_str()).collect();
    match first.iter().all(|pod| later.contains(pod.pod.metadata.uid.as_str())) {
        // Each waits for another one.
        true => HashSet::new(),
        false => later,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    const ZONE: &str = "topology.kubernetes.io/zone";

    /// A pod with a label, and with a spread over a key that counts pods with another label.
    fn pod(name: &str, label: &str, spread: Option<(&str, &str)>) -> Pod {
        let constraint = |(key, label): (&str, &str)| {
            json!({
                "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": { "matchLabels": { "app": label } },
            })
        };
        let pod = json!({
            "metadata": { "name": name, "namespace": "shop", "uid": name, "labels": { "app": label } },
            "spec": { "containers": [], "topologySpreadConstraints": spread.map(constraint).into_iter().collect::<Vec<Value>>() },
        });
        serde_json::from_value(pod).unwrap()
    }

    fn node(name: &str, zone: &str) -> Node {
        let labels = json!({ ZONE: zone, keys::HOSTNAME: name });
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap()
    }

    /// Who waits, of pods that go to nodes; those with a `!` are to be first.
    fn later(places: &[(&Pod, &Node)]) -> BTreeSet<String> {
        let expected: Vec<Expected<'_>> =
            places.iter().map(|(pod, node)| Expected { pod, claim: None, node: Some(node) }).collect();
        let is_first = |pod: &Pod| pod.metadata.name.ends_with('!');
        told_later(&expected, is_first).into_iter().map(str::to_owned).collect()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn who_a_spread_counts_in_the_same_domain_waits_for_who_has_it() {
        let (one, two, far) = (node("n1", "a"), node("n2", "a"), node("n3", "b"));
        let over_hosts = pod("first!", "web", Some((keys::HOSTNAME, "job")));
        let over_zones = pod("first!", "web", Some((ZONE, "job")));
        let (job, other) = (pod("job", "job", None), pod("other", "other", None));
        assert_eq!(later(&[(&over_hosts, &one), (&job, &one), (&other, &one)]), names(&["job"]));
        assert_eq!(later(&[(&over_hosts, &one), (&job, &two)]), names(&[]), "another domain");
        assert_eq!(later(&[(&over_zones, &one), (&job, &two)]), names(&["job"]));
        assert_eq!(later(&[(&over_zones, &one), (&job, &far)]), names(&[]));
        let unnamed = pod("web", "web", Some((keys::HOSTNAME, "job")));
        assert_eq!(later(&[(&unnamed, &one), (&job, &one)]), names(&[]), "it holds in any order");
    }

    #[test]
    fn pods_with_one_spread_do_not_wait_for_each_other() {
        let one = node("n1", "a");
        let spread = Some((keys::HOSTNAME, "web"));
        let (first, second) = (pod("first!", "web", spread), pod("second!", "web", spread));
        assert_eq!(later(&[(&first, &one), (&second, &one)]), names(&[]));
    }

    #[test]
    fn they_come_one_after_the_other_and_in_a_circle_nobody_waits() {
        let one = node("n1", "a");
        let first = pod("first!", "web", Some((keys::HOSTNAME, "job")));
        let second = pod("second!", "job", Some((keys::HOSTNAME, "batch")));
        let third = pod("third", "batch", None);
        let places = [(&first, &one), (&second, &one), (&third, &one)];
        assert_eq!(later(&places), names(&["second!", "third"]));
        assert_eq!(later(&places[1..]), names(&["third"]), "the first one is bound");
        let of_each_other = pod("other!", "job", Some((keys::HOSTNAME, "web")));
        assert_eq!(later(&[(&first, &one), (&of_each_other, &one)]), names(&[]));
        let last = pod("last!", "batch", Some((keys::HOSTNAME, "web")));
        assert_eq!(later(&[(&first, &one), (&second, &one), (&last, &one)]), names(&[]), "each waits for another one");
    }
}
