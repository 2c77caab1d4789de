//! PodTopologySpread: constraints that must hold (`DoNotSchedule`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::snapshot::Pod;

use super::context::FilterContext;
use super::objects::node_labels;
use super::{Filter, FilterRefusal, node_affinity, selectors, taints};

/// One constraint with the number of matching pods in each domain that counts.
pub(super) struct Counts<'a> {
    topology_key: String,
    max_skew: i64,
    /// 1 when the pod itself matches the selector.
    own: i64,
    domains: BTreeMap<&'a str, i64>,
    /// Pods of the domain with the fewest. `None`: no domain counts, so there is nothing to be out of balance with.
    least: Option<i64>,
}

pub(super) fn count<'a>(pod: &Pod, context: &FilterContext<'a>) -> Vec<Counts<'a>> {
    let constraints: Vec<&TopologySpreadConstraint> = must_hold(pod).collect();
    // A node that lacks the key of one constraint counts for none.
    let has_every_key = |node: &Node| constraints.iter().all(|it| node_labels(node).contains_key(&it.topology_key));
    constraints
        .iter()
        .map(|constraint| {
            let selector = selectors::with_label_keys(
                constraint.label_selector.as_ref(),
                &pod.metadata.labels,
                constraint.match_label_keys.as_deref(),
                None,
            );
            let domain_of = |node: &'a Node| {
                let counts = has_every_key(node) && node_counts(constraint, pod, node);
                node_labels(node).get(&constraint.topology_key).filter(|_| counts).map(String::as_str)
            };
            context.count_looks(context.nodes.len());
            let nodes = context.nodes.values().map(|state| state.node);
            let mut domains: BTreeMap<&'a str, i64> = nodes.filter_map(domain_of).map(|domain| (domain, 0)).collect();
            let near = context.near(selector.as_ref(), |namespace| namespace == pod.metadata.namespace);
            for (node, _) in near.filter(|(_, other)| pod_counts(other, pod, selector.as_ref())) {
                if let Some(domain) = context.node(node).and_then(domain_of) {
                    *domains.entry(domain).or_default() += 1;
                }
            }
            let min_domains = constraint.min_domains.and_then(|it| usize::try_from(it).ok()).unwrap_or(1);
            let has_too_few = domains.len() < min_domains;
            Counts {
                topology_key: constraint.topology_key.clone(),
                // No API server keeps less; a file may say so, and the planner takes it for this as well.
                max_skew: i64::from(constraint.max_skew).max(1),
                least: if has_too_few { Some(0) } else { domains.values().min().copied() },
                own: i64::from(selectors::matches(selector.as_ref(), &pod.metadata.labels)),
                domains,
            }
        })
        .collect()
}

/// By default nodes that the pod's own affinity rules out do not count, and nodes with taints do.
fn node_counts(constraint: &TopologySpreadConstraint, pod: &Pod, node: &Node) -> bool {
    let honours_affinity = constraint.node_affinity_policy.as_deref() != Some("Ignore");
    let honours_taints = constraint.node_taints_policy.as_deref() == Some("Honor");
    (!honours_affinity || node_affinity::matches(pod, node))
        && (!honours_taints || taints::untolerated_taint(pod, node).is_none())
}

/// Pods on their way out do not count.
fn pod_counts(other: &Pod, pod: &Pod, selector: Option<&LabelSelector>) -> bool {
    other.metadata.namespace == pod.metadata.namespace
        && !other.is_terminating()
        && selectors::matches(selector, &other.metadata.labels)
}

/// Whether the pod must spread over a key of which both are in one domain, and counts the other one, which has no such constraint itself:
/// bound before the pod, it may be in its way.
pub fn may_be_in_the_way(pod: &Pod, other: &Pod, share_a_domain: impl Fn(&str) -> bool) -> bool {
    let selector_of = |pod: &Pod, constraint: &TopologySpreadConstraint| {
        let keys = constraint.match_label_keys.as_deref();
        selectors::with_label_keys(constraint.label_selector.as_ref(), &pod.metadata.labels, keys, None)
    };
    must_hold(pod).filter(|constraint| share_a_domain(&constraint.topology_key)).any(|constraint| {
        let selector = selector_of(pod, constraint);
        let mut theirs = must_hold(other).filter(|theirs| theirs.topology_key == constraint.topology_key);
        pod_counts(other, pod, selector.as_ref()) && !theirs.any(|theirs| selector_of(other, theirs) == selector)
    })
}

fn must_hold(pod: &Pod) -> impl Iterator<Item = &TopologySpreadConstraint> {
    pod.spec.topology_spread_constraints.iter().filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
}

pub(super) fn refusal(constraints: &[Counts<'_>], node: &Node) -> Option<FilterRefusal> {
    constraints.iter().find_map(|constraint| {
        let key = &constraint.topology_key;
        let Some(value) = node_labels(node).get(key) else {
            return Some(FilterRefusal::new(Filter::PodTopologySpread, format!("the node has no label {key}")));
        };
        let skew = constraint.domains.get(value.as_str()).unwrap_or(&0) + constraint.own - constraint.least?;
        (skew > constraint.max_skew).then(|| {
            let text =
                format!("skew over {key} would be {skew} in {value}, at most {} is allowed", constraint.max_skew);
            FilterRefusal::new(Filter::PodTopologySpread, text)
        })
    })
}
