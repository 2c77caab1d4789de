//! Pods that must be together on one node, and of which a PodDisruptionBudget lets only some go at a time.
//!
//! kube-scheduler sends a pod with an affinity to itself where the others run. Those are on the node that goes, where it may not be: who left
//! first waits for them, and they wait for it.

use std::fmt;

use crate::lifecycle::drain::is_evicted;
use crate::lifecycle::pod_disruption_budgets::PodDisruptionBudgets;
use crate::scheduler::topology::{GroupIndex, GroupKind};
use crate::scheduler::{ClassIndex, HostIndex, Problem};

/// Such pods of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// The first of them.
    pub pod: String,
    pub pods: usize,
    /// `namespace/name`
    pub budget: String,
    /// So many may be gone while all others are ready.
    pub at_a_time: usize,
}

impl Together {
    /// Those of a node. O(pods on it), and O(pods) where some of them have such an affinity and a budget.
    pub fn on(problem: &Problem<'_>, budgets: &PodDisruptionBudgets<'_>, host: HostIndex) -> Option<Self> {
        let node = &problem.nodes[host];
        node.pods.iter().find_map(|(position, class)| {
            let group = affinity_to_itself(problem, *class)?;
            let pod = &problem.snapshot.pods[*position];
            let covering = budgets.covering(pod);
            let [budget] = covering.as_slice() else { return None };
            if pod.is_terminating() || !is_evicted(pod) || budget.lets_go_anyway(pod) {
                return None;
            }
            let (pods, at_a_time) = (counted(problem, host, group), budget.at_a_time());
            if at_a_time >= pods || runs_elsewhere(problem, host, group) {
                return None;
            }
            Some(Self { pod: pod.key(), pods, budget: budget.key(), at_a_time })
        })
    }
}

impl fmt::Display for Together {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, pods, budget, at_a_time } = self;
        write!(
            out,
            "its {pods} pods such as {pod} must be on one node, and PodDisruptionBudget {budget} lets {at_a_time} go at a time: who left \
             would wait for the others"
        )
    }
}

/// A required affinity over hosts that counts the pods that have it.
fn affinity_to_itself(problem: &Problem<'_>, class: ClassIndex) -> Option<GroupIndex> {
    let pods = &problem.classes[class];
    let required = &problem.variants[*pods.variants.last()?].constraints;
    required.iter().copied().find(|group| {
        let compiled = &problem.groups[*group];
        matches!(compiled.kind, GroupKind::Affinity)
            && problem.domains.is_hostname(compiled.key)
            && pods.counted_in.contains(group)
    })
}

fn counted(problem: &Problem<'_>, host: HostIndex, group: GroupIndex) -> usize {
    let counts = |class: ClassIndex| problem.classes[class].counted_in.contains(&group);
    problem.nodes[host].pods.iter().filter(|(_, class)| counts(*class)).count()
}

/// Whether others are where those that leave could join them.
fn runs_elsewhere(problem: &Problem<'_>, host: HostIndex, group: GroupIndex) -> bool {
    let others = problem.nodes.enumerated().filter(|(other, node)| *other != host && !node.being_removed);
    others.map(|(other, _)| other).any(|other| counted(problem, other, group) > 0)
}
