//! PodDisruptionBudgets: whether the eviction API would let a pod go now.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::core::scheduler::selector;
use crate::core::snapshot::{Pod, Snapshot};

pub struct PodDisruptionBudgets<'a> {
    budgets: Vec<&'a PodDisruptionBudget>,
}

impl<'a> PodDisruptionBudgets<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self { budgets: snapshot.pod_disruption_budgets.iter().collect() }
    }

    /// The budgets that cover a pod. O(budgets)
    pub fn covering(&self, pod: &Pod) -> Vec<&'a PodDisruptionBudget> {
        self.budgets.iter().copied().filter(|budget| covers(budget, pod)).collect()
    }

    /// Why the pod can not be evicted now: its budget allows none, or two budgets cover it, which the API refuses. A budget
    /// that was not looked at yet allows none.
    pub fn obstacle(&self, pod: &Pod) -> Option<String> {
        let covering = self.covering(pod);
        let name = |budget: &PodDisruptionBudget| {
            format!("{}/{}", pod.metadata.namespace, budget.metadata.name.as_deref().unwrap_or_default())
        };
        match covering.as_slice() {
            [] => None,
            [budget] => {
                let allowed = budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
                let blocks = allowed <= 0 && !unhealthy_may_go(budget, pod);
                blocks.then(|| {
                    format!("PodDisruptionBudget {} allows no eviction of pod {} now", name(budget), pod.key())
                })
            }
            [one, two, ..] => Some(format!(
                "pod {} is covered by two PodDisruptionBudgets, {} and {}",
                pod.key(),
                name(one),
                name(two)
            )),
        }
    }
}

fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    budget.metadata.namespace.as_deref() == Some(&pod.metadata.namespace)
        && selector::matches(selector, &pod.metadata.labels)
}

/// A pod that is not ready may go when the budget says so.
fn unhealthy_may_go(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let policy = budget.spec.as_ref().and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
    let not_ready =
        pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "False");
    policy == Some("AlwaysAllow") && not_ready
}
