//! Pods that stay for long on a node that goes: what is bought for them would stand empty until they leave.

use jiff::{SignedDuration, Timestamp};

use crate::snapshot::Pod;
use cutlist_api::node_claim::NodeClaim;

use super::do_not_disrupt::{Protection, protection};
use super::drain::{deleted_at, is_evicted};
use super::interruption::INTERRUPTED;
use super::pod_disruption_budgets::PodDisruptionBudgets;
use super::termination;

/// So long before a pod leaves its next place is looked for: a node takes some minutes to come up.
const LOOKED_FOR_BEFORE: SignedDuration = SignedDuration::from_mins(10);

/// Whether its annotation, or a budget that never allows an eviction, keeps a pod for long on a node that goes, or would go now.
/// Source: reference, section 3.2: such pods are no demand.
pub fn stays_for_long(
    pod: &Pod,
    budgets: &PodDisruptionBudgets<'_>,
    claim: Option<&NodeClaim>,
    now: Timestamp,
) -> bool {
    // Its instance ends whatever anybody asks for.
    let is_interrupted = claim.is_some_and(|claim| claim.is_true(INTERRUPTED));
    if is_interrupted || pod.is_terminal() || pod.is_terminating() || !is_evicted(pod) {
        return false;
    }
    let Some(kept) = kept_until(pod, budgets) else { return false };
    let deadline = claim.and_then(|claim| termination::deadline_if_deleted(claim, now));
    let leaves = deadline.map_or(kept, |deadline| kept.min(deleted_at(pod, deadline)));
    leaves > now.saturating_add(LOOKED_FOR_BEFORE).unwrap_or(Timestamp::MAX)
}

/// Until when it is not evicted, whatever time its node has left; `None`: nothing keeps it but what may pass at any moment.
fn kept_until(pod: &Pod, budgets: &PodDisruptionBudgets<'_>) -> Option<Timestamp> {
    match protection(pod) {
        Protection::Lasting => Some(Timestamp::MAX),
        _ if budgets.never(pod).is_some() => Some(Timestamp::MAX),
        Protection::Until(end) => Some(end),
        Protection::Unasked | Protection::Unreadable => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use crate::testing::{BuildPod, Merge, object, pod};
    use cutlist_api::keys;

    fn claim(grace_period: Option<&str>, deleted: Option<&str>) -> NodeClaim {
        object(serde_json::json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": "a", "deletionTimestamp": deleted },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
                "terminationGracePeriod": grace_period,
            },
        }))
    }

    #[test]
    fn what_leaves_soon_is_looked_for_now() {
        let now: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
        let snapshot = Snapshot::default();
        let stays = |annotation: &str, grace_period: Option<&str>, deleted: Option<&str>| {
            let pod = pod("a").cpu("1").merge(serde_json::json!({
                "metadata": { "annotations": { keys::DO_NOT_DISRUPT: annotation } },
                "status": { "startTime": "2026-11-20T08:00:00Z" },
            }));
            let claim = claim(grace_period, deleted);
            stays_for_long(&pod, &PodDisruptionBudgets::new(&snapshot), Some(&claim), now)
        };
        for (annotation, grace_period, deleted, expected) in [
            ("true", None, None, true),
            ("false", None, None, false),
            ("2h", None, None, true),
            ("65m", None, None, false),
            ("30m", None, None, false),
            ("true", Some("1h"), None, true),
            ("true", Some("5m"), None, false),
            ("true", Some("1h"), Some("2026-11-20T08:05:00Z"), false),
            ("true", Some("1h"), Some("2026-11-20T08:30:00Z"), true),
        ] {
            assert_eq!(stays(annotation, grace_period, deleted), expected, "{annotation} {grace_period:?} {deleted:?}");
        }
    }

    #[test]
    fn what_a_budget_never_lets_go_stays_until_the_deadline() {
        let now: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
        let budget = |name: &str, most: i32| {
            object(serde_json::json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": { "name": name, "namespace": "default" },
                "spec": { "maxUnavailable": most, "selector": { "matchLabels": { "app": name } } },
            }))
        };
        let budgets = vec![budget("never", 0), budget("sometimes", 1)].into();
        let snapshot = Snapshot { pod_disruption_budgets: budgets, ..Snapshot::default() };
        let budgets = PodDisruptionBudgets::new(&snapshot);
        let stays = |app: &str, grace_period: Option<&str>| {
            stays_for_long(&pod("a").label("app", app), &budgets, Some(&claim(grace_period, None)), now)
        };
        assert!(stays("never", None) && stays("never", Some("1h")));
        assert!(!stays("never", Some("5m")), "it is deleted then");
        assert!(!stays("sometimes", None), "that is a question of time");
    }
}
