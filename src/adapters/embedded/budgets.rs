//! PodDisruptionBudgets: how many pods may go now, and evictions that ask first.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::names::key_of;
use super::pods::Counts;
use super::selection::is_healthy;
use super::state::World;

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
        for (key, Counts { expected, healthy }) in self.pods.take_changed_budgets() {
            let Some(budget) = self.pod_disruption_budgets.get(&key) else { continue };
            let desired = desired(budget, expected);
            let allowed = (healthy - desired).max(0);
            let status = budget.status.clone().unwrap_or_default();
            let before = (status.disruptions_allowed, status.current_healthy, status.expected_pods);
            if budget.status.is_some() && before == (allowed, healthy, expected) && status.desired_healthy == desired {
                continue;
            }
            changed |= before != (allowed, healthy, expected);
            let Some(budget) = self.pod_disruption_budgets.get_mut(&key) else { continue };
            let status = budget.status.get_or_insert_default();
            status.disruptions_allowed = allowed;
            status.current_healthy = healthy;
            status.desired_healthy = desired;
            status.expected_pods = expected;
        }
        if changed {
            self.touch();
        }
    }

    /// Evicts a pod if its budget allows; the budget is charged at once.
    pub(super) fn try_evict(&mut self, key: &str) -> Eviction {
        let Some(pod) = self.pods.get(key) else { return Eviction::NotFound };
        if pod.is_terminating() {
            return Eviction::Accepted;
        }
        let covering = self.pods.budgets_of(key).iter().filter_map(|name| self.pod_disruption_budgets.get(name));
        match covering.collect::<Vec<_>>().as_slice() {
            [] => {}
            [budget] => {
                let policy = budget.spec.as_ref().and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
                let is_enough = budget.status.as_ref().is_some_and(|status| {
                    status.desired_healthy > 0 && status.current_healthy >= status.desired_healthy
                });
                let waived = !is_healthy(pod) && (policy == Some("AlwaysAllow") || is_enough);
                let allowed = budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
                if allowed < 1 && !waived {
                    return Eviction::Forbidden(key_of(&budget.metadata));
                }
            }
            _ => return Eviction::TooManyBudgets,
        }
        self.evicted += usize::from(!pod.is_owned_by("DaemonSet"));
        self.delete_pod(key, None);
        self.reconcile_budgets();
        Eviction::Accepted
    }
}

/// How many of `expected` pods must stay healthy.
fn desired(budget: &PodDisruptionBudget, expected: i32) -> i32 {
    let Some(spec) = &budget.spec else { return 0 };
    match (&spec.min_available, &spec.max_unavailable) {
        (Some(minimum), _) => part_of(minimum, expected),
        (None, Some(maximum)) => expected - part_of(maximum, expected),
        (None, None) => 0,
    }
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
