//! Nodes to go: may they, now, for the reason that is given, and may their pods be evicted.

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::kube_scheduler::label_selector_matches;
use crate::model::HourlyPrice;
use crate::plan::{Plan, ReasonCode, Step, StepKind};
use crate::snapshot::Pod;
use crate::snapshot::requests::effective_requests;
use cutlist_api::duration::go_nanoseconds;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::{ConsolidationPolicy, NodePool};

use super::known::{Existing, Known, is_mirror, must_move};
use super::repairs;
use super::steps::{removed_node, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// What a step may do for its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rights {
    /// Pods of the node need not have another place.
    pub leaves_pods_without_place: bool,
    pub loses_disks: LosesDisks,
    /// It follows a change of definitions, so that a canary comes first.
    pub is_rollout: bool,
    /// A static pool gets a node for it.
    pub adds_to_static_pool: bool,
}

/// Whether data on disks of the node may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LosesDisks {
    No,
    /// Where the node has a `terminationGracePeriod`.
    ByDeadline,
    Yes,
}

impl Rights {
    pub(super) fn of(code: ReasonCode) -> Self {
        use ReasonCode::{Drifted, Empty, Expired, Interrupted, NodePoolRemoved, StaticCapacity, Unhealthy};
        Self {
            leaves_pods_without_place: matches!(code, Empty | Expired | Interrupted | StaticCapacity | Unhealthy),
            loses_disks: match code {
                Expired | Interrupted | NodePoolRemoved | Unhealthy => LosesDisks::Yes,
                Drifted => LosesDisks::ByDeadline,
                _ => LosesDisks::No,
            },
            is_rollout: matches!(code, Drifted | NodePoolRemoved),
            adds_to_static_pool: matches!(code, Drifted | Expired | StaticCapacity),
        }
    }
}

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    for step in steps(plan, StepKind::Remove) {
        let Some(existing) = known.nodes.get(removed_node(step)) else { continue };
        if existing.going {
            findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), "is being removed already");
        }
        prices(step, known, existing, findings);
        pods_are_named(step, known, findings);
        match step.reason.code {
            // The end of its life comes whoever is on it.
            ReasonCode::Expired => expired(step, known, existing, findings),
            ReasonCode::Unhealthy => repairs::check(step, known, existing, findings),
            ReasonCode::Interrupted => interrupted(step, known, existing, findings),
            ReasonCode::Empty => {
                graceful(step, known, existing, findings);
                empty(step, known, findings);
                consolidation(step, known, existing, findings);
            }
            ReasonCode::Underutilized => {
                graceful(step, known, existing, findings);
                consolidation(step, known, existing, findings);
            }
            ReasonCode::Drifted | ReasonCode::NodePoolRemoved | ReasonCode::StaticCapacity => {
                graceful(step, known, existing, findings);
            }
            code => {
                let text = format!("{code:?} is no reason for a removal");
                findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), text);
            }
        }
    }
}

/// A removal shows what the node costs now, by its labels.
fn prices(step: &Step, known: &Known<'_>, existing: &Existing<'_>, findings: &mut Findings) {
    let labels = existing.node.metadata.labels.clone().unwrap_or_default();
    for (key, shown) in [
        (keys::INSTANCE_TYPE, &step.instance_type),
        (keys::ZONE, &step.zone),
        (keys::CAPACITY_TYPE, &step.capacity_type),
    ] {
        let actual = labels.get(key).cloned().unwrap_or_default();
        if actual != *shown {
            findings.add(
                ViolationCode::NotRemovable,
                ViolationPlace::step(step),
                format!("{key} of the node is {actual}, not {shown}"),
            );
        }
    }
    let price = known.price(&step.node_pool, &step.instance_type, &step.zone, &step.capacity_type);
    let price = price.unwrap_or(HourlyPrice::ZERO);
    if price != step.price_per_hour {
        let text = format!("the node costs {price}, not {}", step.price_per_hour);
        findings.add(ViolationCode::WrongPrice, ViolationPlace::step(step), text);
    }
}

/// The step names just the pods that have to move.
fn pods_are_named(step: &Step, known: &Known<'_>, findings: &mut Findings) {
    let mut actual: Vec<String> =
        known.pods_on(removed_node(step)).filter(|pod| must_move(pod)).map(Pod::key).collect();
    let mut named = step.pods.clone();
    actual.sort();
    named.sort();
    if actual != named {
        let text = format!("names pods [{}], on the node are [{}]", named.join(", "), actual.join(", "));
        findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), text);
    }
}

fn graceful(step: &Step, known: &Known<'_>, existing: &Existing<'_>, findings: &mut Findings) {
    if !existing.initialized {
        findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), "the node has not initialized");
    }
    // A static pool keeps to its replicas all the same.
    let is_surplus = step.reason.code == ReasonCode::StaticCapacity;
    let annotations = existing.node.metadata.annotations.iter().flatten().filter(|_| !is_surplus);
    if annotations.into_iter().any(|(key, value)| key == keys::DO_NOT_DISRUPT && value == "true") {
        findings.add(ViolationCode::DoNotDisrupt, ViolationPlace::step(step), "the node is annotated do-not-disrupt");
    }
    // Drift goes on at last when the claim has a time after which pods are deleted.
    let has_deadline = existing.claim.is_some_and(|claim| claim.spec.termination_grace_period.is_some());
    if has_deadline && matches!(step.reason.code, ReasonCode::Drifted | ReasonCode::StaticCapacity) {
        return;
    }
    let now = known.inputs.now;
    for pod in known.pods_on(removed_node(step)).filter(|pod| !pod.is_terminating()) {
        if !is_surplus && is_protected(pod, now) {
            findings.add(
                ViolationCode::DoNotDisrupt,
                ViolationPlace::step(step),
                format!("pod {} is annotated do-not-disrupt", pod.key()),
            );
        }
        if let Some(text) = eviction_refusal(pod, known) {
            findings.add(
                ViolationCode::PodDisruptionBudget,
                ViolationPlace::step(step),
                format!("pod {}: {text}", pod.key()),
            );
        }
    }
}

/// `true`, or a duration since the pod started; unknown start counts as just now.
fn is_protected(pod: &Pod, now: Timestamp) -> bool {
    let Some(value) = pod.metadata.annotations.get(keys::DO_NOT_DISRUPT) else { return false };
    if value == "true" {
        return true;
    }
    let Some(protected) = go_nanoseconds(value).filter(|nanoseconds| *nanoseconds > 0) else { return false };
    let start = pod.status.start_time.as_deref().and_then(|start| start.parse::<Timestamp>().ok());
    start.is_none_or(|start| now.as_nanosecond() - start.as_nanosecond() < i128::from(protected))
}

/// Why the eviction API would refuse this pod now.
fn eviction_refusal(pod: &Pod, known: &Known<'_>) -> Option<String> {
    if is_mirror(pod) || stays_till_the_end(pod) {
        return None;
    }
    let covering: Vec<&PodDisruptionBudget> = known
        .budgets_near(pod)
        .into_iter()
        .filter(|budget| {
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            label_selector_matches(selector, &pod.metadata.labels)
        })
        .collect();
    let budget = match covering.as_slice() {
        [] => return None,
        [budget] => budget,
        _ => return Some("more than one PodDisruptionBudget covers it, which the eviction API refuses".to_owned()),
    };
    let ready = pod.status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let policy = budget.spec.as_ref().and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
    let allowed = budget.status.as_ref().map_or(0, |status| status.disruptions_allowed);
    let name = budget.metadata.name.as_deref().unwrap_or_default();
    (allowed < 1 && (ready || policy != Some("AlwaysAllow")))
        .then(|| format!("PodDisruptionBudget {name} allows no disruption"))
}

/// Pods that tolerate the taint of a node that goes are not evicted.
fn stays_till_the_end(pod: &Pod) -> bool {
    pod.spec.tolerations.iter().any(|toleration| {
        let exists = toleration.operator.as_deref() == Some("Exists");
        let key = match toleration.key.as_deref().filter(|key| !key.is_empty()) {
            None => exists,
            Some(key) => {
                key == keys::DISRUPTED_TAINT && (exists || toleration.value.as_deref().unwrap_or_default().is_empty())
            }
        };
        key && toleration.effect.as_deref().is_none_or(|effect| effect.is_empty() || effect == "NoSchedule")
    })
}

fn interrupted(step: &Step, known: &Known<'_>, existing: &Existing<'_>, findings: &mut Findings) {
    let condition = existing.claim.and_then(|claim| claim.condition("Interrupted"));
    let is_noted = condition.is_some_and(|condition| condition.status == "True");
    if !is_noted && !is_in_ending_block(existing, known) {
        findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), "EC2 does not take its instance away");
    }
}

/// Whether the node runs in a capacity block that ends within 40 minutes.
fn is_in_ending_block(existing: &Existing<'_>, known: &Known<'_>) -> bool {
    let labels = existing.claim.and_then(|claim| claim.metadata.labels.as_ref());
    let Some(id) = labels.and_then(|labels| labels.get(keys::CAPACITY_RESERVATION_ID)) else { return false };
    let statuses = known.inputs.snapshot.node_classes.iter().filter_map(|class| class.status.as_ref());
    let mut blocks = statuses.flat_map(|status| &status.capacity_reservations).filter(|block| block.id == *id);
    blocks.any(|block| {
        let left = block.end_time.as_ref().map(|end| end.0.duration_since(known.inputs.now).as_secs());
        block.state.as_deref() == Some("expiring") || left.is_some_and(|left| left <= 40 * 60)
    })
}

fn expired(step: &Step, known: &Known<'_>, existing: &Existing<'_>, findings: &mut Findings) {
    if !is_expired(existing, known) {
        findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), "its expireAfter has not passed");
    }
}

fn is_expired(existing: &Existing<'_>, known: &Known<'_>) -> bool {
    let claim = existing.claim;
    let lifetime_seconds = claim.and_then(|claim| claim.spec.expire_after.as_ref()?.seconds());
    let born = claim.and_then(|claim| claim.metadata.creation_timestamp.as_ref());
    lifetime_seconds.zip(born).is_some_and(|(lifetime, born)| seconds_since(born.0, known) >= lifetime)
}

/// Whether a node expired, and its pool lets it go for that: it takes no pods, also while it has to stay.
pub(super) fn has_no_future(existing: &Existing<'_>, known: &Known<'_>) -> bool {
    let pool = existing.pool.as_deref().and_then(|pool| known.pools.get(pool));
    let gate = known.inputs.policy.feature_gates.static_capacity;
    pool.is_some_and(|pool| pool.spec.replicas.is_none() || gate) && is_expired(existing, known)
}

fn seconds_since(moment: Timestamp, known: &Known<'_>) -> u64 {
    u64::try_from(known.inputs.now.as_second().saturating_sub(moment.as_second())).unwrap_or(0)
}

/// Pods that cost nothing to evict do not keep a node.
fn empty(step: &Step, known: &Known<'_>, findings: &mut Findings) {
    for pod in known.pods_on(removed_node(step)).filter(|pod| must_move(pod) && eviction_cost(pod) > 0.0) {
        findings.add(ViolationCode::NotEmpty, ViolationPlace::step(step), format!("pod {} runs on it", pod.key()));
    }
}

pub(super) fn eviction_cost(pod: &Pod) -> f64 {
    let annotation = pod.metadata.annotations.get(DELETION_COST);
    let deletion_cost = annotation.and_then(|value| value.parse::<i32>().ok()).unwrap_or(0);
    let priority = pod.spec.priority.unwrap_or(0);
    1.0 + f64::from(deletion_cost) / 2_f64.powi(27) + f64::from(priority) / 2_f64.powi(25)
}

/// Emptiness and consolidation follow the pool's policy and its consolidateAfter.
fn consolidation(step: &Step, known: &Known<'_>, existing: &Existing<'_>, findings: &mut Findings) {
    let Some(pool) = known.pools.get(step.node_pool.as_str()) else { return };
    let refuse = |findings: &mut Findings, text: &str| {
        findings.add(ViolationCode::ConsolidationNotAllowed, ViolationPlace::step(step), text);
    };
    if pool.spec.replicas.is_some() {
        refuse(findings, "a static pool is not consolidated");
    }
    let only_empty = pool.spec.disruption.consolidation_policy == ConsolidationPolicy::WhenEmpty;
    if only_empty && step.reason.code == ReasonCode::Underutilized {
        refuse(findings, "consolidationPolicy is WhenEmpty");
    }
    let is_unreadable = |pod: &&Pod| must_move(pod) && effective_requests(pod).is_err();
    if step.reason.code == ReasonCode::Underutilized && known.pods_on(removed_node(step)).any(|pod| is_unreadable(&pod))
    {
        refuse(findings, "what one of its pods asks for can not be read");
    }
    match waited_long_enough(pool, existing.claim, known) {
        Some(true) => {}
        Some(false) => refuse(findings, "consolidateAfter has not passed since pods last came or went"),
        None => refuse(findings, "consolidateAfter is Never"),
    }
}

/// `None`: never.
fn waited_long_enough(pool: &NodePool, claim: Option<&NodeClaim>, known: &Known<'_>) -> Option<bool> {
    let wait_seconds = pool.spec.disruption.consolidate_after.seconds()?;
    let Some(claim) = claim else { return Some(false) };
    let last_event = claim.status.as_ref().and_then(|status| status.last_pod_event_time.as_deref()?.parse().ok());
    let initialized = claim.condition("Initialized").map(|condition| condition.last_transition_time.0);
    let since = last_event.or(initialized);
    Some(since.is_some_and(|moment| seconds_since(moment, known) >= wait_seconds))
}

/// Whether a node counts as being disrupted: on its way out, or not ready.
pub(super) fn is_disrupted(existing: &Existing<'_>) -> bool {
    let conditions = existing.node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    existing.going || ready.is_none_or(|condition| condition.status != "True")
}
