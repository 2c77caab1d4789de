//! Which pods the eviction API is asked to evict now: no more than their PodDisruptionBudgets allow, and nothing again and again
//! that it refused. The API server decides; this only spares it questions whose answer is known.
//!
//! A budget that the watch shows to allow nothing is asked about all the same now and then, since a watch may be late, and a pod
//! that was refused for a reason nobody knows is tried again: after ten seconds, then ever less often, and few at a time.
//! What is remembered may be lost: then each is asked about once more.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::snapshot::Pod;

use crate::lifecycle::pod_disruption_budgets::PodDisruptionBudgets;

/// After how long something that was refused is tried for the first time again.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(10);
/// How long that gets at most, as it doubles.
const LAST_RETRY: SignedDuration = SignedDuration::from_mins(1);
/// Of all that is tried again, one at a time and so far apart: twelve calls a minute, however many budgets allow nothing.
const RETRIES_APART: SignedDuration = SignedDuration::from_secs(5);

/// What refuses the eviction of a pod: the one budget that covers it, or else the pod itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refuser {
    /// `namespace/name` of a PodDisruptionBudget.
    Budget(String),
    /// The UID of a pod that no budget covers, that may go whatever its budget says, or that two budgets cover.
    Pod(String),
}

/// What was refused lately, by what refused it.
#[derive(Debug, Default)]
pub struct Refusals {
    by_refuser: BTreeMap<Refuser, RefusedEviction>,
    retried_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct RefusedEviction {
    asked_at: Timestamp,
    retry_after: SignedDuration,
    /// The version of the budget with which the API refused although the budget seemed to allow it. Another version may differ.
    version: Option<String>,
}

/// What is known of an eviction before it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Nothing speaks against it.
    Granted,
    /// It was refused, and is tried again.
    Retry,
    /// It would be refused.
    Refused,
}

/// What may be asked at one look. Positions are those of the pods that it was made for.
#[derive(Debug)]
pub struct Allowances {
    /// By pod: what would refuse, and its version.
    refusers: Vec<(Refuser, String)>,
    left: BTreeMap<Refuser, Left>,
}

/// How many more pods may be asked for.
#[derive(Clone, Copy, Debug)]
struct Left {
    pods: usize,
    is_retry: bool,
}

impl Refusals {
    /// How many of `pods` may be asked for now. Forgets what concerns none of them. O(pods x budgets)
    pub fn allowances(&mut self, pods: &[&Pod], budgets: &PodDisruptionBudgets<'_>, now: Timestamp) -> Allowances {
        let mut allowances = Allowances { refusers: Vec::with_capacity(pods.len()), left: BTreeMap::new() };
        let mut kept = BTreeMap::new();
        for pod in pods {
            let (refuser, version, allowed) = refuser(pod, budgets);
            if !allowances.left.contains_key(&refuser) {
                let refusal = self.by_refuser.remove(&refuser);
                let (left, refusal) = self.left(refusal, &version, allowed, now);
                allowances.left.insert(refuser.clone(), left);
                kept.extend(refusal.map(|refusal| (refuser.clone(), refusal)));
            }
            allowances.refusers.push((refuser, version));
        }
        self.by_refuser = kept;
        allowances
    }

    /// How many pods may be asked for, and what is still remembered.
    fn left(
        &mut self,
        refusal: Option<RefusedEviction>,
        version: &str,
        allowed: usize,
        now: Timestamp,
    ) -> (Left, Option<RefusedEviction>) {
        let granted = Left { pods: allowed, is_retry: false };
        let Some(refusal) = refusal else {
            let asked_now = RefusedEviction { asked_at: now, retry_after: FIRST_RETRY, version: None };
            return (granted, (allowed == 0).then_some(asked_now));
        };
        if allowed > 0 && refusal.version.as_deref() != Some(version) {
            return (granted, None);
        }
        // A clock that was set back makes nothing wait longer.
        let is_due = now >= refusal.retry_at() || now < refusal.asked_at;
        let is_first =
            self.retried_at.is_none_or(|at| now < at || now >= at.saturating_add(RETRIES_APART).unwrap_or(at));
        if !(is_due && is_first) {
            return (Left { pods: 0, is_retry: true }, Some(refusal));
        }
        self.retried_at = Some(now);
        let retry_after = refusal.retry_after.saturating_mul(2).min(LAST_RETRY);
        (Left { pods: 1, is_retry: true }, Some(RefusedEviction { asked_at: now, retry_after, ..refusal }))
    }

    /// Takes note that the API refused to evict the pod at `position`.
    pub fn refused(&mut self, allowances: &Allowances, position: usize, now: Timestamp) {
        let Some((refuser, version)) = allowances.refusers.get(position) else { return };
        let first = RefusedEviction { asked_at: now, retry_after: FIRST_RETRY, version: None };
        let refusal = self.by_refuser.entry(refuser.clone()).or_insert(first);
        refusal.version = Some(version.clone());
    }

    /// Takes note that the pod at `position` goes: what refused it does so no more.
    pub fn accepted(&mut self, allowances: &Allowances, position: usize) {
        if let Some((refuser, _)) = allowances.refusers.get(position) {
            self.by_refuser.remove(refuser);
        }
    }

    /// When something that was refused is tried again.
    pub fn retry_at(&self) -> Option<Timestamp> {
        let due = self.by_refuser.values().map(RefusedEviction::retry_at).min()?;
        let apart = self.retried_at.and_then(|at| at.saturating_add(RETRIES_APART).ok());
        Some(apart.map_or(due, |apart| due.max(apart)))
    }
}

impl RefusedEviction {
    fn retry_at(&self) -> Timestamp {
        self.asked_at.saturating_add(self.retry_after).unwrap_or(Timestamp::MAX)
    }
}

impl Allowances {
    /// Whether the pod may be asked for, were it alone.
    pub fn permission(&self, position: usize) -> Permission {
        match self.refusers.get(position).and_then(|(refuser, _)| self.left.get(refuser)) {
            Some(Left { pods: 1.., is_retry: false }) => Permission::Granted,
            Some(Left { pods: 1.., is_retry: true }) => Permission::Retry,
            _ => Permission::Refused,
        }
    }

    /// Whether the pod may be asked for beside those for which this was called before.
    pub fn take(&mut self, position: usize) -> bool {
        let refuser = self.refusers.get(position).map(|(refuser, _)| refuser);
        let Some(left) = refuser.and_then(|refuser| self.left.get_mut(refuser)).filter(|left| left.pods > 0) else {
            return false;
        };
        left.pods -= 1;
        true
    }
}

/// What would refuse the eviction, its version, and how many pods it lets go now.
fn refuser(pod: &Pod, budgets: &PodDisruptionBudgets<'_>) -> (Refuser, String, usize) {
    let alone = || Refuser::Pod(pod.metadata.uid.clone());
    match budgets.covering(pod).as_slice() {
        [] => (alone(), String::new(), 1),
        [budget] if budget.lets_go_anyway(pod) => (alone(), String::new(), 1),
        [budget] => (Refuser::Budget(budget.key()), budget.version().to_owned(), budget.allowed_now()),
        // The API refuses until one of them is gone.
        [_, _, ..] => (alone(), String::new(), 0),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::policy::v1::PodDisruptionBudget;
    use serde_json::json;

    use super::*;
    use crate::snapshot::Snapshot;
    use crate::testing::{BuildPod, Merge, pod};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_165_200 + second).unwrap()
    }

    fn budget(name: &str, allowed: i32, version: &str) -> PodDisruptionBudget {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "default", "resourceVersion": version },
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } },
            "status": { "disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3 },
        }))
        .unwrap()
    }

    fn replicas() -> Vec<Pod> {
        let names = ["one", "two", "three"];
        names
            .map(|name| {
                pod(name)
                    .label("app", "web")
                    .merge(json!({ "metadata": { "uid": name }, "status": { "phase": "Running" } }))
            })
            .into()
    }

    /// Which of the pods may be asked for together.
    fn asked(refusals: &mut Refusals, pods: &[Pod], budgets: &[PodDisruptionBudget], now: Timestamp) -> Vec<usize> {
        let (mut allowances, _) = look(refusals, pods, budgets, now);
        (0..pods.len()).filter(|position| allowances.take(*position)).collect()
    }

    fn look(
        refusals: &mut Refusals,
        pods: &[Pod],
        budgets: &[PodDisruptionBudget],
        now: Timestamp,
    ) -> (Allowances, Option<Timestamp>) {
        let snapshot = Snapshot { pod_disruption_budgets: budgets.to_vec().into(), ..Snapshot::default() };
        let budgets = PodDisruptionBudgets::new(&snapshot);
        let allowances = refusals.allowances(&pods.iter().collect::<Vec<_>>(), &budgets, now);
        (allowances, refusals.retry_at())
    }

    #[test]
    fn as_many_are_asked_for_as_the_budget_allows() {
        let pods = replicas();
        let mut refusals = Refusals::default();
        assert_eq!(asked(&mut refusals, &pods, &[budget("all", 2, "1")], at(0)), [0, 1]);
        assert_eq!(asked(&mut refusals, &pods, &[], at(0)), [0, 1, 2]);
        assert_eq!(refusals.retry_at(), None);
    }

    #[test]
    fn a_budget_that_allows_nothing_is_asked_about_ever_less_often() {
        let pods = replicas();
        let mut refusals = Refusals::default();
        let exhausted = [budget("all", 0, "1")];
        let asks: Vec<i64> =
            (0..300).filter(|second| !asked(&mut refusals, &pods, &exhausted, at(*second)).is_empty()).collect();
        assert_eq!(asks, [10, 30, 70, 130, 190, 250]);
        assert_eq!(asked(&mut refusals, &pods, &[budget("all", 1, "2")], at(300)), [0], "it allows one");
        assert!(asked(&mut refusals, &pods, &exhausted, at(301)).is_empty());
        assert_eq!(asked(&mut refusals, &pods, &exhausted, at(-60)), [0], "a clock was set back: nothing waits longer");
        assert!(asked(&mut refusals, &pods, &exhausted, at(-59)).is_empty());
    }

    #[test]
    fn what_was_refused_although_the_budget_seemed_to_allow_it_waits_for_news_of_the_budget() {
        let pods = replicas();
        let mut refusals = Refusals::default();
        let late = [budget("all", 1, "1")];
        let (mut allowances, _) = look(&mut refusals, &pods, &late, at(0));
        assert!(allowances.take(0) && !allowances.take(1));
        refusals.refused(&allowances, 0, at(0));
        assert_eq!(refusals.retry_at(), Some(at(10)));
        assert!(asked(&mut refusals, &pods, &late, at(1)).is_empty());
        assert_eq!(asked(&mut refusals, &pods, &[budget("all", 1, "2")], at(2)), [0]);
    }

    #[test]
    fn many_that_wait_are_tried_again_one_at_a_time() {
        let pods: Vec<Pod> = (0..50)
            .map(|number| pod(&format!("p{number}")).merge(json!({ "metadata": { "uid": number.to_string() } })))
            .collect();
        let mut refusals = Refusals::default();
        let mut asks = 0;
        for second in 0..300 {
            let (mut allowances, _) = look(&mut refusals, &pods, &[], at(second));
            for position in 0..pods.len() {
                if allowances.take(position) {
                    asks += 1;
                    refusals.refused(&allowances, position, at(second));
                }
            }
        }
        assert_eq!(asks, 50 + 58, "each once, then one every five seconds");
    }

    #[test]
    fn a_pod_that_goes_takes_its_refusal_along() {
        let pods = replicas();
        let mut refusals = Refusals::default();
        let (allowances, _) = look(&mut refusals, &pods, &[], at(0));
        refusals.refused(&allowances, 0, at(0));
        refusals.refused(&allowances, 1, at(0));
        refusals.accepted(&allowances, 1);
        assert_eq!(asked(&mut refusals, &pods, &[], at(1)), [1, 2]);
        assert_eq!(asked(&mut refusals, &pods[1..], &[], at(1)), [0, 1]);
        assert_eq!(refusals.retry_at(), None);
    }

    #[test]
    fn pods_that_are_not_ready_go_where_the_api_lets_them() {
        let not_ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
        let pods: Vec<Pod> = replicas().into_iter().map(|pod| pod.merge(not_ready.clone())).collect();
        let mut refusals = Refusals::default();
        assert_eq!(asked(&mut refusals, &pods, &[budget("all", 0, "1")], at(0)), [0, 1, 2], "enough others are ready");
        let both = [budget("all", 1, "1"), budget("again", 1, "1")];
        assert!(asked(&mut refusals, &pods, &both, at(0)).is_empty(), "the API refuses pods of two budgets");
    }
}
