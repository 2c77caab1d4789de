//! PodDisruptionBudgets: whether the eviction API would let a pod go, now or ever.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::snapshot::selector::SelectorIndex;
use crate::snapshot::{Pod, Snapshot};

pub struct PodDisruptionBudgets<'a> {
    guards: Vec<Guard<'a>>,
    index: Rc<Index<'a>>,
}

/// Which budgets cover which pods.
struct Index<'a> {
    snapshot: &'a Snapshot,
    selectors: SelectorIndex<'a>,
    /// By budget, pods that have not ended; counted together when one of them is asked for.
    covered: OnceCell<Vec<usize>>,
}

/// One budget, and what it comes to.
pub struct Guard<'a> {
    budget: &'a PodDisruptionBudget,
    position: usize,
    index: Rc<Index<'a>>,
}

/// Why no eviction of a pod will ever be allowed.
pub enum Never<'b> {
    /// Its budget asks for all pods at any time.
    AllIsAskedFor(&'b Guard<'b>),
    /// The eviction API refuses pods that more than one budget covers.
    TwoBudgets(&'b Guard<'b>, &'b Guard<'b>),
}

/// Why a pod can not be evicted now; of each its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictionObstacle {
    Never { budget: String, pod: String },
    NotNow { budget: String, pod: String },
    TwoBudgets { budgets: [String; 2], pod: String },
}

impl fmt::Display for EvictionObstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never { budget, pod } => {
                write!(out, "PodDisruptionBudget {budget} never allows an eviction of pod {pod}")
            }
            Self::NotNow { budget, pod } => {
                write!(out, "PodDisruptionBudget {budget} allows no eviction of pod {pod} now")
            }
            Self::TwoBudgets { budgets: [one, two], pod } => {
                write!(out, "pod {pod} is covered by two PodDisruptionBudgets, {one} and {two}")
            }
        }
    }
}

impl Guard<'_> {
    pub fn name(&self) -> &str {
        self.budget.metadata.name.as_deref().unwrap_or_default()
    }

    /// `namespace/name`
    pub fn key(&self) -> String {
        format!("{}/{}", self.budget.metadata.namespace.as_deref().unwrap_or_default(), self.name())
    }

    /// How many of its pods may be gone at a time when all others are ready. O(pods) once for all budgets, where nobody counted
    /// `expectedPods`.
    pub fn at_a_time(&self) -> usize {
        at_a_time(self.budget, || self.index.covered(self.position))
    }

    fn never_allows(&self, pod: &Pod) -> bool {
        self.at_a_time() == 0 && !unhealthy_may_go(self.budget, pod)
    }

    /// How many pods may be evicted, by the status of the budget. One that was not looked at yet allows none.
    pub fn allowed_now(&self) -> usize {
        self.budget.status.as_ref().map_or(0, |status| usize::try_from(status.disruptions_allowed).unwrap_or(0))
    }

    /// The resource version of the budget; empty where it has none.
    pub fn version(&self) -> &str {
        self.budget.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// Whether the eviction API lets the pod go whatever the budget allows. Source: `canIgnorePDB` and the unhealthy pod eviction
    /// policies of the API server's eviction handler.
    pub fn lets_go_anyway(&self, pod: &Pod) -> bool {
        let is_enough = |status: &PodDisruptionBudgetStatus| {
            status.desired_healthy > 0 && status.current_healthy >= status.desired_healthy
        };
        pod.status.phase.as_deref() == Some("Pending")
            || unhealthy_may_go(self.budget, pod)
            || (is_unready(pod) && self.budget.status.as_ref().is_some_and(is_enough))
    }
}

impl<'a> PodDisruptionBudgets<'a> {
    /// O(budgets)
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let budgets = snapshot.pod_disruption_budgets.iter();
        let selectors = SelectorIndex::new(budgets.clone().map(|budget| {
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            budget.metadata.namespace.as_deref().map_or(("", None), |namespace| (namespace, selector))
        }));
        let index = Rc::new(Index { snapshot, selectors, covered: OnceCell::new() });
        let guard = |(position, budget)| Guard { budget, position, index: Rc::clone(&index) };
        Self { guards: budgets.enumerate().map(guard).collect(), index }
    }

    /// The budgets that cover a pod. O(labels of the pod + budgets that share one)
    pub fn covering(&self, pod: &Pod) -> Vec<&Guard<'a>> {
        self.index.covering(pod).into_iter().map(|position| &self.guards[position]).collect()
    }

    /// Why the pod can not be evicted, however long one waits; `None` where that is a question of time.
    pub fn never(&self, pod: &Pod) -> Option<Never<'_>> {
        match self.covering(pod).as_slice() {
            [] => None,
            [guard] => guard.never_allows(pod).then_some(Never::AllIsAskedFor(guard)),
            [one, two, ..] => Some(Never::TwoBudgets(one, two)),
        }
    }

    /// The budget of a pod that was looked at, and allows no eviction now, but will when others of its pods are ready.
    pub fn blocks_now(&self, pod: &Pod) -> Option<String> {
        let covering = self.covering(pod);
        let [guard] = covering.as_slice() else { return None };
        let is_counted = guard.budget.status.is_some();
        let blocks = is_counted && guard.allowed_now() == 0 && !unhealthy_may_go(guard.budget, pod);
        (blocks && !guard.never_allows(pod)).then(|| guard.key())
    }

    /// Whether the eviction API lets the pod go whatever its budget allows.
    pub fn lets_go_anyway(&self, pod: &Pod) -> bool {
        matches!(self.covering(pod).as_slice(), [guard] if guard.lets_go_anyway(pod))
    }

    /// Why the pod can not be evicted now: its budget allows none, or two budgets cover it, which the API refuses. A budget
    /// that was not looked at yet allows none.
    pub fn obstacle(&self, pod: &Pod) -> Option<EvictionObstacle> {
        match self.covering(pod).as_slice() {
            [] => None,
            [guard] => {
                let blocks = guard.allowed_now() == 0 && !unhealthy_may_go(guard.budget, pod);
                let (budget, pod_key) = (guard.key(), pod.key());
                blocks.then(|| match guard.never_allows(pod) {
                    true => EvictionObstacle::Never { budget, pod: pod_key },
                    false => EvictionObstacle::NotNow { budget, pod: pod_key },
                })
            }
            [one, two, ..] => Some(EvictionObstacle::TwoBudgets { pod: pod.key(), budgets: [one.key(), two.key()] }),
        }
    }
}

impl Index<'_> {
    fn covering(&self, pod: &Pod) -> Vec<usize> {
        self.selectors.selecting(&pod.metadata.namespace, &pod.metadata.labels)
    }

    fn covered(&self, budget: usize) -> usize {
        let count = || {
            let mut counts = vec![0; self.snapshot.pod_disruption_budgets.len()];
            for pod in self.snapshot.pods.iter().filter(|pod| !pod.is_terminal()) {
                self.covering(pod).into_iter().for_each(|position| counts[position] += 1);
            }
            counts
        };
        self.covered.get_or_init(count)[budget]
    }
}

/// A pod that is not ready may go when the budget says so.
fn unhealthy_may_go(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let policy = budget.spec.as_ref().and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
    policy == Some("AlwaysAllow") && is_unready(pod)
}

fn is_unready(pod: &Pod) -> bool {
    pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "False")
}

/// Of the pods that are expected, or else of those that are there: `covered`.
fn at_a_time(budget: &PodDisruptionBudget, covered: impl FnOnce() -> usize) -> usize {
    let counted = budget.status.as_ref().map_or(0, |status| i64::from(status.expected_pods));
    let expected = if counted > 0 { counted } else { i64::try_from(covered().max(1)).unwrap_or(i64::MAX) };
    let spec = budget.spec.as_ref();
    let minimum = spec.and_then(|spec| spec.min_available.as_ref()).and_then(|amount| part_of(amount, expected));
    let maximum = spec.and_then(|spec| spec.max_unavailable.as_ref()).and_then(|amount| part_of(amount, expected));
    let gone = maximum.or(minimum.map(|minimum| expected.saturating_sub(minimum))).unwrap_or(expected);
    usize::try_from(gone.max(0)).unwrap_or(usize::MAX)
}

/// A count, or a share of all pods that is rounded up; `None` where it can not be read.
fn part_of(amount: &IntOrString, all: i64) -> Option<i64> {
    match amount {
        IntOrString::Int(count) => Some(i64::from(*count)),
        IntOrString::String(text) => match text.strip_suffix('%') {
            Some(percent) => Some(all.saturating_mul(i64::from(percent.parse::<i32>().ok()?)).saturating_add(99) / 100),
            None => text.parse().ok(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildPod, pod};

    fn at_a_time_of(spec: serde_json::Value, expected: i32) -> usize {
        let pods = vec![pod("one"), pod("two"), pod("three")];
        let mut budget = json!({ "metadata": { "name": "all", "namespace": "default" }, "spec": spec });
        budget["spec"]["selector"] = json!({});
        budget["status"] = json!({
            "expectedPods": expected, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0
        });
        let budgets = vec![serde_json::from_value(budget).unwrap()].into();
        let snapshot = Snapshot { pods: pods.into(), pod_disruption_budgets: budgets, ..Snapshot::default() };
        PodDisruptionBudgets::new(&snapshot).guards[0].at_a_time()
    }

    #[test]
    fn shares_are_rounded_up_and_pods_are_counted_where_nobody_did() {
        assert_eq!(at_a_time_of(json!({ "maxUnavailable": 0 }), 4), 0);
        assert_eq!(at_a_time_of(json!({ "maxUnavailable": "0%" }), 4), 0);
        assert_eq!(at_a_time_of(json!({ "maxUnavailable": "1%" }), 4), 1);
        assert_eq!(at_a_time_of(json!({ "minAvailable": "101%" }), 4), 0);
        assert_eq!(at_a_time_of(json!({ "minAvailable": "99%" }), 4), 0, "99 % of four pods are four");
        assert_eq!(at_a_time_of(json!({ "minAvailable": "50%" }), 4), 2);
        assert_eq!(at_a_time_of(json!({ "minAvailable": 5 }), 4), 0);
        assert_eq!(at_a_time_of(json!({ "minAvailable": 3 }), 0), 0, "three are there");
        assert_eq!(at_a_time_of(json!({ "minAvailable": 2 }), 0), 1);
        assert_eq!(at_a_time_of(json!({}), 4), 4);
    }

    #[test]
    fn two_budgets_are_one_too_many() {
        let budget = |name: &str| {
            let budget = json!({
                "metadata": { "name": name, "namespace": "default" },
                "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } },
            });
            serde_json::from_value::<PodDisruptionBudget>(budget).unwrap()
        };
        let budgets = vec![budget("one"), budget("two")].into();
        let snapshot = Snapshot { pod_disruption_budgets: budgets, ..Snapshot::default() };
        let budgets = PodDisruptionBudgets::new(&snapshot);
        let covered = pod("web").label("app", "web");
        assert!(matches!(budgets.never(&covered), Some(Never::TwoBudgets(..))));
        assert!(budgets.never(&pod("other")).is_none());
    }
}
