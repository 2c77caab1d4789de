//! Which pods leave a node next. Four tiers, each only when the one before is gone: ordinary pods, ordinary daemons,
//! critical pods, critical daemons.

use std::cmp::Reverse;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::model::Resources;
use crate::model::resources::{CPU, MEMORY};
use crate::snapshot::Pod;
use crate::snapshot::requests::effective_requests;
use cutlist_api::keys;

use super::do_not_disrupt::is_protected;
use super::seconds_after;

/// A pod that is this long past its deletion time is stuck, and not waited for.
const STUCK_AFTER_SECONDS: u64 = 60;
const DEFAULT_GRACE_SECONDS: u64 = 30;

/// The next thing to do about the pods of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// `(namespace, name)` of pods to evict.
    pub evict: Vec<(String, String)>,
    /// Pods that have to go past their budgets because the deadline is near, with the grace that is left in seconds.
    pub delete: Vec<(String, String, u64)>,
    /// Pods that have to be gone before the instance may end.
    pub waiting: usize,
    /// When the first pod that is left alone now would have to be deleted.
    pub next_deadline: Option<Timestamp>,
}

/// What to do about `pods` at `now`; `deadline` is the end of the termination grace period.
pub fn next(pods: &[&Pod], deadline: Option<Timestamp>, now: Timestamp) -> Drain {
    let mut waited: Vec<&Pod> = pods.iter().copied().filter(|pod| is_waited_for(pod, now)).collect();
    waited.sort_by_key(|pod| (tier(pod), pod.key()));
    let mut drain = Drain { waiting: waited.len(), ..Drain::default() };
    let first_tier = waited.first().map(|pod| tier(pod));
    for pod in waited {
        let (namespace, name) = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
        if let Some(deadline) = deadline {
            let delete_at = deleted_at(pod, deadline);
            if now >= delete_at {
                let left = u64::try_from(deadline.duration_since(now).as_secs()).unwrap_or(0).max(1);
                if !pod.is_terminating() {
                    drain.delete.push((namespace, name, left));
                }
                continue;
            }
            drain.next_deadline = Some(drain.next_deadline.map_or(delete_at, |next| next.min(delete_at)));
        }
        if Some(tier(pod)) == first_tier && !pod.is_terminating() && !is_protected(pod, now) {
            drain.evict.push((namespace, name));
        }
    }
    drain
}

/// When a pod is deleted that is still there then: it has its own time to end before the deadline.
pub fn deleted_at(pod: &Pod, deadline: Timestamp) -> Timestamp {
    let grace = pod.spec.termination_grace_period_seconds.and_then(|grace| u64::try_from(grace).ok());
    let grace = i64::try_from(grace.unwrap_or(DEFAULT_GRACE_SECONDS)).unwrap_or(i64::MAX);
    deadline.saturating_sub(jiff::SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MIN)
}

/// Pods are of similar size where one asks for less than 2 to this power times as much as the other.
const SIMILAR_BITS: u32 = 4;

/// In which order pods leave, so that kube-scheduler finds room for those that come in their place; gives positions. Larger pods leave
/// first, by the parts that they ask of the processors and of the memory which all of them ask for together. Pods of similar size are
/// shuffled: in strict order of size, those that ask for much memory would each go to another node, until the memory of all nodes is
/// taken and their processors are idle.
#[doc = include_str!("order_of_eviction.md")]
pub fn order_of_eviction(pods: &[&Pod]) -> Vec<usize> {
    let requests: Vec<Resources> = pods.iter().map(|pod| effective_requests(pod).unwrap_or_default()).collect();
    let total = |name: &str| requests.iter().map(|requests| i128::from(requests.get(name))).sum::<i128>().max(1);
    let totals = [CPU, MEMORY].map(|name| (name, total(name)));
    let size = |requests: &Resources| {
        let part = |(name, total): &(&str, i128)| i128::from(requests.get(name)) * 1_000_000_000_000 / total;
        totals.iter().map(part).sum::<i128>().max(1).ilog2() / SIMILAR_BITS
    };
    let mut order: Vec<usize> = (0..pods.len()).collect();
    // Of fewer pods the order is the same, so that it goes on as it began.
    order.sort_by_cached_key(|position| {
        let mixed = Sha256::digest(pods[*position].key());
        (Reverse(size(&requests[*position])), mixed)
    });
    order
}

fn tier(pod: &Pod) -> (bool, bool) {
    let class = pod.spec.priority_class_name.as_deref();
    let critical = matches!(class, Some("system-node-critical" | "system-cluster-critical"));
    (critical, pod.is_owned_by("DaemonSet"))
}

/// Whether the instance has to wait for this pod: not for those that ended.
fn is_waited_for(pod: &Pod, now: Timestamp) -> bool {
    !pod.is_terminal() && is_drainable(pod, now)
}

/// Whether the pod leaves with a drain: not those that are the node's own, that tolerate the removal, or that are stuck.
pub(super) fn is_drainable(pod: &Pod, now: Timestamp) -> bool {
    let stuck = pod.metadata.deletion_timestamp.as_ref().and_then(|text| text.parse::<Timestamp>().ok());
    let grace = pod.spec.termination_grace_period_seconds.and_then(|grace| u64::try_from(grace).ok());
    let limit = grace.unwrap_or(DEFAULT_GRACE_SECONDS).saturating_add(STUCK_AFTER_SECONDS);
    let stuck = stuck.is_some_and(|deleted| now > seconds_after(deleted, limit));
    is_evicted(pod) && !stuck
}

/// Whether a drain asks for the eviction of a pod that runs: not of the node's own, nor of those that tolerate the removal.
pub fn is_evicted(pod: &Pod) -> bool {
    !pod.is_owned_by("Node") && !tolerates_removal(pod)
}

fn tolerates_removal(pod: &Pod) -> bool {
    pod.spec.tolerations.iter().any(|toleration| {
        let key = toleration.key.as_deref().unwrap_or_default();
        let effect = toleration.effect.as_deref().unwrap_or_default();
        let value = toleration.value.as_deref().unwrap_or_default();
        let exists = toleration.operator.as_deref() == Some("Exists");
        (effect.is_empty() || effect == "NoSchedule")
            && ((key.is_empty() && exists) || (key == keys::DISRUPTED_TAINT && (exists || value.is_empty())))
    })
}
