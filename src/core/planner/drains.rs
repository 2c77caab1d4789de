//! How long it may take until the nodes of a plan are drained.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::disrupt::together::Together;
use crate::lifecycle::do_not_disrupt::{Protection, is_protected, protection};
use crate::lifecycle::drain::is_evicted;
use crate::lifecycle::pod_disruption_budgets::Never;
use crate::model::time::duration_text;
use crate::plan::{LongestDrain, Step, StepKind};
use crate::scheduler::Problem;
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

use super::disturbed::Disturbed;
use super::risks::DEFAULT_GRACE_SECONDS;

/// Pods of one wave that wait for one budget.
#[derive(Default)]
struct Queue {
    pods: usize,
    longest_seconds: u64,
}

/// By wave and budget.
type Queues = BTreeMap<(u32, String), Queue>;

/// Of a plan that moves no pod: none. What goes by force is not waited for. O(moved pods x budgets).
pub(super) fn longest_drain(
    steps: &[Step],
    snapshot: &Snapshot,
    disturbed: &Disturbed<'_>,
    together: &BTreeMap<&str, Together>,
    now: Timestamp,
) -> Option<LongestDrain> {
    let drained: Vec<&Step> = drained(steps).filter(|step| disturbed.evicted_by(step).next().is_some()).collect();
    let queues = queues(&drained, disturbed);
    let limits = limits(&drained, snapshot);
    let protected = protected(&drained, snapshot, &limits, now);
    let drains = drained.into_iter().map(|step| {
        let kept = step.node.as_deref().and_then(|node| protected.get(node));
        let limit = step.node.as_deref().and_then(|node| limits.get(node)).copied();
        let together = step.node.as_deref().and_then(|node| together.get(node));
        let expected = match (kept, together) {
            (Some(kept), _) => drain_of_kept(kept, now),
            (None, Some(together)) => (None, together.to_string()),
            (None, None) => expected(step, disturbed, &queues, limit),
        };
        let (seconds, text) = bounded(step, disturbed, limit, expected);
        LongestDrain { node: step.node.clone().unwrap_or_else(|| step.node_claim.clone()), seconds, text }
    });
    // Of those that take as long the first.
    drains.reduce(|longest, drain| if length(drain.seconds) > length(longest.seconds) { drain } else { longest })
}

/// Removals that wait until pods have left.
fn drained(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| step.kind == StepKind::Remove && !step.mode.waits_for_nothing())
}

/// By node that is drained, its pods of which each waits for the others. O(nodes + pods on those that are drained)
pub(super) fn together<'p>(
    steps: &[Step],
    problem: &'p Problem<'_>,
    disturbed: &Disturbed<'_>,
) -> BTreeMap<&'p str, Together> {
    let nodes: BTreeSet<&str> = drained(steps).filter_map(|step| step.node.as_deref()).collect();
    let drained = problem.machines.enumerated().filter(|(_, machine)| nodes.contains(machine.name));
    drained
        .filter_map(|(host, machine)| Some((machine.name, Together::on(problem, &disturbed.budgets, host)?)))
        .collect()
}

fn length(seconds: Option<u64>) -> u64 {
    seconds.unwrap_or(u64::MAX)
}

fn grace_seconds(pod: &Pod) -> u64 {
    u64::try_from(pod.spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS)).unwrap_or(0)
}

/// By node, the seconds after which its drain ends whatever stands in its way. O(claims + steps).
fn limits<'s>(steps: &[&'s Step], snapshot: &Snapshot) -> BTreeMap<&'s str, u64> {
    let seconds = |claim: &NodeClaim| {
        Some((claim.metadata.name.clone()?, claim.spec.termination_grace_period.as_ref()?.seconds()?))
    };
    let of_claims: BTreeMap<String, u64> = snapshot.node_claims.iter().filter_map(seconds).collect();
    let of_step = |step: &&'s Step| Some((step.node.as_deref()?, *of_claims.get(&step.node_claim)?));
    steps.iter().filter_map(of_step).collect()
}

/// Whether a pod is deleted as soon as its node goes, whatever protects it: it has its own time to end before the drain does.
fn is_deleted_at_once(pod: &Pod, limit: Option<u64>) -> bool {
    limit.is_some_and(|limit| grace_seconds(pod) >= limit)
}

/// By node, the pod whose annotation keeps it for longest. O(pods)
fn protected<'s>(
    steps: &[&Step],
    snapshot: &'s Snapshot,
    limits: &BTreeMap<&str, u64>,
    now: Timestamp,
) -> BTreeMap<&'s str, &'s Pod> {
    let nodes: BTreeSet<&str> = steps.iter().filter_map(|step| step.node.as_deref()).collect();
    let until = |pod: &Pod| match protection(pod) {
        Protection::Until(end) => end,
        _ => Timestamp::MAX,
    };
    let mut protected: BTreeMap<&str, &Pod> = BTreeMap::new();
    for pod in &snapshot.pods {
        let Some(node) = pod.spec.node_name.as_deref().filter(|node| nodes.contains(node)) else { continue };
        let is_kept = is_evicted(pod) && is_protected(pod, now);
        let is_deleted = is_deleted_at_once(pod, limits.get(node).copied());
        if pod.is_terminal() || pod.is_terminating() || !is_kept || is_deleted {
            continue;
        }
        let kept = protected.entry(node).or_insert(pod);
        if (until(pod), Reverse(pod.key())) > (until(kept), Reverse(kept.key())) {
            *kept = pod;
        }
    }
    protected
}

/// Of a pod that is not evicted while its annotation holds.
fn drain_of_kept(pod: &Pod, now: Timestamp) -> (Option<u64>, String) {
    let text = format!("annotation {} of {}", keys::DO_NOT_DISRUPT, pod.key());
    match protection(pod) {
        Protection::Until(end) => {
            let left = u64::try_from(end.duration_since(now).as_secs()).unwrap_or(0);
            (Some(left.saturating_add(grace_seconds(pod))), format!("{text}, which holds until {end}"))
        }
        _ => (None, text),
    }
}

fn queues(steps: &[&Step], disturbed: &Disturbed<'_>) -> Queues {
    let mut queues = Queues::new();
    for step in steps {
        for pod in disturbed.evicted_by(step) {
            for guard in disturbed.budgets.covering(pod) {
                let queue = queues.entry((step.wave.unwrap_or(1), guard.key())).or_default();
                queue.pods += 1;
                queue.longest_seconds = queue.longest_seconds.max(grace_seconds(pod));
            }
        }
    }
    queues
}

/// Without the end that the node's own grace period puts to it.
fn expected(step: &Step, disturbed: &Disturbed<'_>, queues: &Queues, limit: Option<u64>) -> (Option<u64>, String) {
    let budgets = &disturbed.budgets;
    let pods: Vec<&Pod> = disturbed.evicted_by(step).collect();
    let mut waiting = pods.iter().filter(|pod| !is_deleted_at_once(pod, limit));
    let never = waiting.find_map(|pod| Some((pod, budgets.never(pod)?)));
    match never {
        Some((_, Never::AllIsAskedFor(budget))) => {
            return (None, format!("PodDisruptionBudget {} never allows an eviction", budget.key()));
        }
        Some((pod, Never::TwoBudgets(..))) => {
            return (None, format!("two PodDisruptionBudgets cover pod {}", pod.key()));
        }
        None => {}
    }
    let slowest = pods.iter().max_by_key(|pod| (grace_seconds(pod), Reverse(pod.key())));
    let mut longest = slowest.map_or((0, String::new()), |slowest| {
        let are_alike = pods.iter().all(|pod| grace_seconds(pod) == grace_seconds(slowest));
        let who = match pods.len() {
            1 => "its pod".to_owned(),
            _ if are_alike => "its pods".to_owned(),
            _ => format!("pod {}", slowest.key()),
        };
        let how = if grace_seconds(slowest) == 0 { "may end at once" } else { "may take so long" };
        (grace_seconds(slowest), format!("{who} {how}"))
    });
    let mut seen = BTreeSet::new();
    for guard in pods.iter().flat_map(|pod| budgets.covering(pod)) {
        let key = guard.key();
        let Some(queue) = queues.get(&(step.wave.unwrap_or(1), key.clone())) else { continue };
        if guard.at_a_time() == 0 || !seen.insert(key.clone()) {
            continue;
        }
        let rounds = u64::try_from(queue.pods.div_ceil(guard.at_a_time())).unwrap_or(u64::MAX);
        let seconds = rounds.saturating_mul(queue.longest_seconds);
        if rounds > 1 && seconds > longest.0 {
            let each = duration_text(i64::try_from(queue.longest_seconds).unwrap_or(i64::MAX));
            let text = format!(
                "{} pods behind PodDisruptionBudget {key} go {} at a time, up to {each} each",
                queue.pods,
                guard.at_a_time()
            );
            longest = (seconds, text);
        }
    }
    (Some(longest.0), longest.1)
}

/// With `terminationGracePeriod` nothing takes longer.
fn bounded(
    step: &Step,
    disturbed: &Disturbed<'_>,
    limit: Option<u64>,
    drain: (Option<u64>, String),
) -> (Option<u64>, String) {
    match (drain, limit) {
        ((seconds, text), Some(limit)) if limit < length(seconds) => {
            (Some(limit), format!("{text}, ended by terminationGracePeriod"))
        }
        // Nobody knows when the others of its pods will be ready.
        ((seconds, text), Some(limit)) => {
            match disturbed.evicted_by(step).find_map(|pod| disturbed.budgets.blocks_now(pod)) {
                Some(budget) => {
                    let text = format!("PodDisruptionBudget {budget} allows no eviction now");
                    (Some(limit), format!("{text}, ended by terminationGracePeriod"))
                }
                None => (seconds, text),
            }
        }
        (drain, None) => drain,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildPod, object, pod};

    /// Nodes `a` and `b` with three pods each, of which a budget lets so many go.
    fn drain(max_unavailable: u32, grace_period: Option<&str>, wave_of_b: Option<u32>) -> Option<LongestDrain> {
        let names = |node: &str| (0..3).map(|number| format!("web-{node}-{number}")).collect::<Vec<_>>();
        let pods = ["a", "b"].iter().flat_map(|node| names(node).into_iter().map(move |name| (*node, name)));
        let pods: Vec<Pod> = pods.map(|(node, name)| pod(&name).label("app", "web").on(node)).collect();
        let budget = object(json!({
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "maxUnavailable": max_unavailable, "selector": { "matchLabels": { "app": "web" } } },
        }));
        let claim = |name: &str| {
            let mut claim = json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": name },
                "spec": {
                    "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                    "requirements": [],
                },
            });
            if let Some(period) = grace_period {
                claim["spec"]["terminationGracePeriod"] = json!(period);
            }
            object(claim)
        };
        let snapshot = Snapshot {
            pods: pods.into(),
            pod_disruption_budgets: vec![budget].into(),
            node_claims: vec![claim("a"), claim("b")].into(),
            ..Snapshot::default()
        };
        let step = |node: &str, wave: Option<u32>| -> Step {
            let pods: Vec<String> = names(node).into_iter().map(|name| format!("default/{name}")).collect();
            object(json!({
                "kind": "remove", "move": 1, "nodePool": "default", "nodeClaim": node, "node": node, "wave": wave,
                "instanceType": "", "zone": "", "capacityType": "", "pricePerHour": 0, "pods": pods,
                "reason": { "code": "Expired", "text": "" }, "preconditions": [], "allocatable": {}, "requested": {},
            }))
        };
        let steps = [step("a", wave_of_b.map(|_| 1)), step("b", wave_of_b)];
        longest_drain(&steps, &snapshot, &Disturbed::new(&steps, &snapshot), &BTreeMap::new(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn pods_behind_one_budget_go_in_rounds() {
        let drain = |max_unavailable, grace, wave| drain(max_unavailable, grace, wave).unwrap();
        assert_eq!(drain(6, None, None).seconds, Some(30));
        assert_eq!(drain(1, None, None).seconds, Some(180), "both nodes wait for one budget");
        assert_eq!(drain(1, None, Some(2)).seconds, Some(90), "they wait one after the other");
        assert_eq!(drain(4, None, None).seconds, Some(60));
        assert_eq!(drain(0, None, None).seconds, None);
        assert_eq!(drain(0, Some("10m"), None).seconds, Some(600));
        assert_eq!(drain(1, Some("1m"), None).seconds, Some(60));
        assert_eq!(drain(6, Some("1m"), None).seconds, Some(30));
    }
}
