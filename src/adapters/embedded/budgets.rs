//! PodDisruptionBudgets: how many pods may go now, and evictions that ask first.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::core::snapshot::Pod;

use super::objects::key_of;
use super::world::World;

/// What came of asking to evict a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    Accepted,
    NotFound,
    /// A budget forbids it now: its name.
    Forbidden(String),
    /// More than one budget covers the pod, which the API refuses.
    TooManyBudgets,
}

impl World {
    /// Recomputes the status of each budget.
    pub(super) fn reconcile_budgets(&mut self) {
        let mut changed = false;
        for key in self.pod_disruption_budgets.keys().cloned().collect::<Vec<_>>() {
            let Some(budget) = self.pod_disruption_budgets.get(&key) else { continue };
            let (expected, healthy, desired) = self.budget_counts(budget);
            let allowed = (healthy - desired).max(0);
            let Some(budget) = self.pod_disruption_budgets.get_mut(&key) else { continue };
            let status = budget.status.get_or_insert_default();
            changed |= (status.disruptions_allowed, status.current_healthy, status.expected_pods)
                != (allowed, healthy, expected);
            status.disruptions_allowed = allowed;
            status.current_healthy = healthy;
            status.desired_healthy = desired;
            status.expected_pods = expected;
        }
        if changed {
            self.touch();
        }
    }

    /// Pods that should be there, that are healthy, and that must stay healthy.
    fn budget_counts(&self, budget: &PodDisruptionBudget) -> (i32, i32, i32) {
        let covered: Vec<_> = self.pods.values().filter(|pod| covers(budget, pod)).collect();
        let healthy = covered.iter().filter(|pod| !pod.is_terminating() && is_healthy(pod)).count();
        let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
        let expected = i32::try_from(covered.iter().filter(|pod| !pod.is_terminating()).count()).unwrap_or(i32::MAX);
        let Some(spec) = &budget.spec else { return (expected, healthy, 0) };
        let desired = match (&spec.min_available, &spec.max_unavailable) {
            (Some(minimum), _) => part_of(minimum, expected),
            (None, Some(maximum)) => expected - part_of(maximum, expected),
            (None, None) => 0,
        };
        (expected, healthy, desired)
    }

    /// Evicts a pod if its budget allows; the budget is charged at once.
    pub(super) fn try_evict(&mut self, key: &str) -> Eviction {
        let Some(pod) = self.pods.get(key) else { return Eviction::NotFound };
        if pod.is_terminating() {
            return Eviction::Accepted;
        }
        let covering: Vec<_> = self.pod_disruption_budgets.values().filter(|budget| covers(budget, pod)).collect();
        match covering.as_slice() {
            [] => {}
            [budget] => {
                let always = budget.spec.as_ref().and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
                let waived = !is_healthy(pod) && always == Some("AlwaysAllow");
                let allowed = budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
                if allowed < 1 && !waived {
                    return Eviction::Forbidden(key_of(&budget.metadata));
                }
            }
            _ => return Eviction::TooManyBudgets,
        }
        self.delete_pod(key, None);
        self.reconcile_budgets();
        Eviction::Accepted
    }
}

fn is_healthy(pod: &Pod) -> bool {
    pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    budget.metadata.namespace.as_deref().unwrap_or("default") == pod.metadata.namespace
        && !pod.is_terminal()
        && budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()).is_some_and(|selector| selects(selector, pod))
}

/// Whether labels satisfy a selector; an empty one selects everything.
fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    let labels = &pod.metadata.labels;
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    equal
        && selector.match_expressions.iter().flatten().all(|expression| {
            let value = labels.get(&expression.key);
            let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
            match expression.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// A count, or a percentage of `total` rounded up.
fn part_of(amount: &IntOrString, total: i32) -> i32 {
    match amount {
        IntOrString::Int(count) => *count,
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<i32>().ok()).unwrap_or(100);
            total.saturating_mul(percent).saturating_add(99) / 100
        }
    }
}
