//! kube-scheduler's filters on one pod and one node: may it run there, and if not, why.
//! The judge of plans and the embedded cluster's scheduler both use this room; the planner's own rules are in `scheduler`.
//! Source: `k8s.io/kubernetes/pkg/scheduler/framework/plugins`, release 1.34, default plugins and configuration.
//!
//! To add a filter: a file with its function, a variant of [`Filter`], and a line in [`Examination::refusal`].

mod context;
mod devices;
mod host_ports;
mod labelled;
mod node_affinity;
mod nominations;
mod objects;
mod pod_affinity;
mod resources;
mod selectors;
mod taints;
mod topology_spread;
mod volumes;

#[cfg(test)]
mod tests;

use std::fmt;

use k8s_openapi::api::core::v1::Node;

use crate::snapshot::Pod;

pub use context::FilterContext;
pub use nominations::void_nominations;
pub use objects::repels;
pub(crate) use selectors::matches as label_selector_matches;
pub use topology_spread::may_be_in_the_way;

/// A filter, by the name that kube-scheduler gives its plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filter {
    SchedulingGates,
    NodeUnschedulable,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
}

/// Which filter said no, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRefusal {
    pub filter: Filter,
    pub text: String,
}

impl FilterRefusal {
    fn new(filter: Filter, text: impl Into<String>) -> Self {
        Self { filter, text: text.into() }
    }
}

impl fmt::Display for FilterRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.filter, self.text)
    }
}

/// Why `pod` may not run on `node` beside the pods that `context` has on its nodes; `None` when it may.
/// To ask the same about many nodes, use [`FilterContext::examine`] once: what depends on the pod alone is then counted once.
pub fn refusal(pod: &Pod, node: &Node, context: &FilterContext<'_>) -> Option<FilterRefusal> {
    context.examine(pod).refusal(node)
}

/// One pod against one state of the cluster. Costs O(pods) where the pod has affinity or spread constraints, or O(nodes + pods that have a
/// label its terms ask for) where [`FilterContext::find_by_labels`] was asked for; O(pods with anti-affinity) where there are such
/// pods; else O(1).
pub struct Examination<'c, 'a> {
    context: &'c FilterContext<'a>,
    pod: &'c Pod,
    requests: resources::Requests,
    affinity: pod_affinity::Counts,
    spread: Vec<topology_spread::Counts<'a>>,
}

impl<'a> FilterContext<'a> {
    pub fn examine<'c>(&'c self, pod: &'c Pod) -> Examination<'c, 'a> {
        Examination {
            context: self,
            pod,
            requests: resources::Requests::of(pod),
            affinity: pod_affinity::Counts::new(pod, self),
            spread: topology_spread::count(pod, self),
        }
    }
}

impl Examination<'_, '_> {
    /// The first refusal in kube-scheduler's order of plugins; costs O(pods on the node).
    pub fn refusal(&self, node: &Node) -> Option<FilterRefusal> {
        let (pod, context) = (self.pod, self.context);
        context.count_looks(1);
        gates(pod)
            .or_else(|| taints::unschedulable(pod, node))
            .or_else(|| taints::untolerated(pod, node))
            .or_else(|| node_affinity::refusal(pod, node))
            .or_else(|| host_ports::refusal(pod, node, context))
            .or_else(|| self.requests.refusal(node, context))
            .or_else(|| volumes::refusal(pod, node, context))
            .or_else(|| devices::refusal(pod, node, context))
            .or_else(|| topology_spread::refusal(&self.spread, node))
            .or_else(|| self.affinity.refusal(node))
    }

    /// How many taints of the node ask the pod to go elsewhere if it can.
    pub fn discouraging(&self, node: &Node) -> usize {
        taints::discouraging(self.pod, node)
    }
}

fn gates(pod: &Pod) -> Option<FilterRefusal> {
    if !pod.spec.scheduling_gates.is_empty() {
        let names: Vec<&str> = pod.spec.scheduling_gates.iter().map(|gate| gate.name.as_str()).collect();
        return Some(FilterRefusal::new(Filter::SchedulingGates, format!("waits for gates: {}", names.join(", "))));
    }
    None
}
