//! When time alone may change what a plan says: a window opens or closes, a node expires or has been quiet for long enough, a pod's
//! protection ends.

use std::ops::Bound;

use jiff::{SignedDuration, Timestamp};

use crate::disrupt::budgets::allowed_at;
use crate::disrupt::windows::Period;
use crate::lifecycle::consolidatable::quiet_since;
use crate::lifecycle::do_not_disrupt::{Protection, protection};
use crate::lifecycle::interruption::ends_of_blocks;
use crate::lifecycle::termination::TERMINATION_TIMESTAMP;
use crate::lifecycle::{conditions, drain};
use crate::snapshot::nodes::{Machine, machines};
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::disruption_budget::DisruptionBudget;
use cutlist_api::duration::NillableDuration;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::NodePool;

use super::calendar::{counted, edges, written};

/// A moment that nobody thought of is seen this late at most.
const AHEAD_MAX: SignedDuration = SignedDuration::from_hours(6);

/// Nodes on their way out for which no time comes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Somebody waits for them to give up.
    Count,
    /// They stay as they are until something else changes, and nothing does: a budget that never allows an eviction, a finalizer, or the
    /// waves behind such nodes.
    Stay,
}

/// Nothing but time passes in a cluster until this moment, in which no node comes, and none goes but such that wait for the end of
/// their grace period; `None` where nodes are on their way, or one is not ready, whose repair would be due some time. O(claims + pods, and budgets for each time that one of their windows opens or closes).
pub fn next_moment(
    pools: &[NodePool],
    budgets: &[DisruptionBudget],
    snapshot: &Snapshot,
    now: Timestamp,
    stuck: Stuck,
) -> Option<Timestamp> {
    let is_sound = machines(snapshot).iter().all(Machine::is_ready);
    let moving = || snapshot.node_claims.iter().filter(|claim| !is_at_rest(claim));
    let drains: Vec<Timestamp> = moving().filter_map(|claim| next_of_drain(claim, snapshot, now)).collect();
    let are_stuck = || stuck == Stuck::Stay && moving().all(is_leaving);
    if !is_sound || drains.len() < moving().count() && !are_stuck() {
        return None;
    }
    let latest = drains.into_iter().fold(later(now, AHEAD_MAX), Timestamp::min);
    let of_claims = snapshot.node_claims.iter().flat_map(|claim| of_claim(claim, pools));
    let of_pods = snapshot.pods.iter().filter_map(|pod| protection_ends(pod, now));
    let of_blocks = ends_of_blocks(&snapshot.node_classes);
    let soonest = of_claims.chain(of_pods).chain(of_blocks).filter(|moment| *moment > now).fold(latest, Timestamp::min);
    Some(edge(pools, budgets, snapshot, now, soonest))
}

fn later(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn after(moment: Timestamp, seconds: u64) -> Timestamp {
    later(moment, SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)))
}

fn is_at_rest(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none()
        && claim.is_true(conditions::INITIALIZED)
        && claim.annotation(keys::REPLACED_BY).is_none()
}

/// Drained, or waiting for its turn behind a wave that is; not for pods of such a wave, which has an end.
fn is_leaving(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some()
        || claim.annotation(keys::REPLACED_BY).is_some()
            && claim.is_true(conditions::INITIALIZED)
            && claim.annotation(keys::WAVE_WAITS_SINCE).is_none()
}

/// When the next pod of a node that goes may be evicted or is deleted, or its grace period ends; `None` where nothing of that is to
/// come.
fn next_of_drain(claim: &NodeClaim, snapshot: &Snapshot, now: Timestamp) -> Option<Timestamp> {
    claim.metadata.deletion_timestamp.as_ref()?;
    let deadline = deadline(claim);
    let node = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
    let pods = snapshot.pods.iter().filter(|pod| node.is_some() && pod.spec.node_name.as_deref() == node);
    let pods: Vec<&Pod> = pods.collect();
    let of_pods = drain::next(&pods, deadline, now).next_deadline;
    let protections = pods.iter().filter_map(|pod| protection_ends(pod, now));
    of_pods.into_iter().chain(deadline).chain(protections).filter(|moment| *moment > now).min()
}

/// When the grace period of a node that goes ends.
fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let written = claim.annotation(TERMINATION_TIMESTAMP).and_then(|text| text.parse().ok());
    let since = claim.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let period = claim.spec.termination_grace_period.as_ref().and_then(NillableDuration::seconds);
    written.or_else(|| Some(after(since?, period?)))
}

/// How long a cluster may have to wait for what is known to end some time: grace periods of nodes and of pods, and protections.
pub fn longest_wait(pools: &[NodePool], snapshot: &Snapshot, now: Timestamp) -> SignedDuration {
    let seconds = |period: &Option<NillableDuration>| period.as_ref().and_then(NillableDuration::seconds).unwrap_or(0);
    let of_pools = pools.iter().map(|pool| seconds(&pool.spec.template.spec.termination_grace_period));
    let of_claims = snapshot.node_claims.iter().map(|claim| seconds(&claim.spec.termination_grace_period));
    let of_nodes = of_pools.chain(of_claims).max().unwrap_or(0);
    let grace = |pod: &Pod| u64::try_from(pod.spec.termination_grace_period_seconds.unwrap_or(0)).unwrap_or(0);
    let of_pods = snapshot.pods.iter().map(grace).max().unwrap_or(0);
    let protected = snapshot.pods.iter().filter_map(|pod| protection_ends(pod, now)).max();
    let protected = protected.map_or(SignedDuration::ZERO, |end| end.duration_since(now));
    let grace = i64::try_from(of_nodes.saturating_add(of_pods)).unwrap_or(i64::MAX);
    protected.saturating_add(SignedDuration::from_secs(grace))
}

/// When a node expires, and when it has been quiet for as long as its pool asks.
fn of_claim(claim: &NodeClaim, pools: &[NodePool]) -> impl Iterator<Item = Timestamp> {
    let created = claim.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let lives = claim.spec.expire_after.as_ref().and_then(NillableDuration::seconds);
    let name = claim.metadata.labels.as_ref().and_then(|labels| labels.get(keys::NODE_POOL));
    let pool = pools.iter().find(|pool| pool.metadata.name.as_ref() == name);
    let waits = pool.and_then(|pool| pool.spec.disruption.consolidate_after.seconds());
    let moment = |since: Option<Timestamp>, seconds: Option<u64>| Some(after(since?, seconds?));
    moment(created, lives).into_iter().chain(moment(quiet_since(claim), waits))
}

fn protection_ends(pod: &Pod, now: Timestamp) -> Option<Timestamp> {
    match protection(pod) {
        Protection::Until(end) if now < end => Some(end),
        _ => None,
    }
}

/// The first whole minute at which budgets allow something else than now, or else the end.
fn edge(
    pools: &[NodePool],
    budgets: &[DisruptionBudget],
    snapshot: &Snapshot,
    now: Timestamp,
    end: Timestamp,
) -> Timestamp {
    let period = Period::new(written(pools, budgets), now, end);
    let edges = edges(pools, budgets, &period);
    if edges.is_empty() {
        return end;
    }
    let counted = counted(snapshot);
    let allowed = |moment: &Timestamp| allowed_at(pools, budgets, &counted, *moment);
    let state = allowed(&now);
    let later = edges.range((Bound::Excluded(now), Bound::Excluded(end)));
    later.copied().find(|edge| allowed(edge) != state).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildPod, Merge, node, object, pod, pool_with_budgets};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn claim(created: &str) -> NodeClaim {
        object(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": "a", "creationTimestamp": created, "labels": { keys::NODE_POOL: "a" } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [], "expireAfter": "24h",
            },
            "status": { "providerID": "aws:///a", "nodeName": "a", "conditions": [{
                "type": "Initialized", "status": "True", "reason": "Initialized", "lastTransitionTime": created,
            }] },
        }))
    }

    fn next(budgets: serde_json::Value, created: &str, pods: Vec<Pod>, ready: &str) -> Option<Timestamp> {
        let node = node("a").merge(json!({
            "spec": { "providerID": "aws:///a" },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }));
        let snapshot = Snapshot {
            nodes: vec![node].into(),
            node_claims: vec![claim(created)].into(),
            pods: pods.into(),
            ..Snapshot::default()
        };
        next_moment(&[pool_with_budgets(budgets)], &[], &snapshot, at("2026-11-20T09:00:10Z"), Stuck::Count)
    }

    #[test]
    fn what_is_stuck_stays_where_nobody_waits_for_it() {
        let next = |stuck, change: fn(&mut NodeClaim)| {
            let mut leaving = claim("2026-11-20T06:00:00Z");
            change(&mut leaving);
            let node = node("a").merge(json!({
                "spec": { "providerID": "aws:///a" },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
            }));
            let snapshot = Snapshot {
                nodes: vec![node].into(),
                node_claims: vec![leaving].into(),
                pods: vec![pod("kept").on("a")].into(),
                ..Snapshot::default()
            };
            next_moment(&[pool_with_budgets(json!([]))], &[], &snapshot, at("2026-11-20T09:00:10Z"), stuck)
        };
        let deleted = |claim: &mut NodeClaim| {
            let time = at("2026-11-20T09:00:00Z");
            claim.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
        };
        let latest = Some(at("2026-11-20T15:00:10Z"));
        assert_eq!((next(Stuck::Count, deleted), next(Stuck::Stay, deleted)), (None, latest), "a drain without an end");
        let marked = |claim: &mut NodeClaim| {
            claim.metadata.annotations.get_or_insert_default().insert(keys::REPLACED_BY.to_owned(), String::new());
        };
        assert_eq!((next(Stuck::Count, marked), next(Stuck::Stay, marked)), (None, latest), "a later wave");
        let waiting = |claim: &mut NodeClaim| {
            let annotations = claim.metadata.annotations.get_or_insert_default();
            annotations.insert(keys::REPLACED_BY.to_owned(), String::new());
            annotations.insert(keys::WAVE_WAITS_SINCE.to_owned(), "2026-11-20T09:00:00Z".to_owned());
        };
        assert_eq!(next(Stuck::Stay, waiting), None, "it goes in minutes");
    }

    #[test]
    fn time_alone_opens_windows_and_ends_lives_and_protections() {
        let nightly = json!([{ "nodes": "0", "schedule": "0 10 * * *", "duration": "8h" }]);
        let of_yesterday = "2026-11-19T12:00:00Z";
        assert_eq!(next(json!([]), of_yesterday, Vec::new(), "True"), Some(at("2026-11-20T12:00:00Z")), "it expires");
        assert_eq!(next(nightly.clone(), of_yesterday, Vec::new(), "True"), Some(at("2026-11-20T10:00:00Z")));
        let kept = pod("kept").on("a").annotation(keys::DO_NOT_DISRUPT, "30m");
        let kept = kept.merge(json!({ "status": { "startTime": "2026-11-20T09:00:00Z" } }));
        assert_eq!(next(nightly, of_yesterday, vec![kept], "True"), Some(at("2026-11-20T09:30:00Z")));
        assert_eq!(next(json!([]), "2026-11-20T06:00:00Z", Vec::new(), "True"), Some(at("2026-11-20T15:00:10Z")));
        assert_eq!(next(json!([]), of_yesterday, Vec::new(), "False"), None, "it is broken");
    }
}
