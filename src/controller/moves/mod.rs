//! Moves that are under way: what a plan replaces goes when its replacements are up, and stays when one of them never comes.
//!
//! Of a plan in waves, all replacements are launched and all nodes that go are marked at once: a restart finds the rest of the
//! plan in the cluster. What waits for its wave is the removal: until the nodes of the earlier waves are gone, and the pods that came
//! in place of theirs run.

pub mod abandoned;
pub mod apply;
pub mod gate;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_claims;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::{View, must_move, name_of, node_name, uid_of};
use crate::controller::set_aside::SetAside;
use crate::core::lifecycle::conditions;
use crate::core::lifecycle::interruption::INTERRUPTED;
use crate::core::lifecycle::termination::{TERMINATION_TIMESTAMP, undisrupted_taint_patch};
use crate::core::snapshot::Pod;
use crate::ports::{Cluster, PortError, PortErrorKind};

/// How long a wave waits for pods of the ones before it. Most start within a minute or two, new nodes included.
const WAVE_WAITS: SignedDuration = SignedDuration::from_mins(5);

/// Looks at every claim that a plan removes. `true` when something was written. `troubles`: what somebody forbids, or changed meanwhile, of
/// one claim or another, and what got no answer; the rest goes on.
pub async fn go_on<K: Cluster>(
    cluster: &K,
    view: &View<'_>,
    (now, journal): (Timestamp, &mut Journal),
    aside: &mut SetAside,
    troubles: &mut Vec<PortError>,
) -> bool {
    let mut wrote = false;
    let first_waves = first_waves(view);
    for claim in view.snapshot.node_claims.iter().filter(|claim| of_claims::goes(claim)) {
        let object = format!("removal of NodeClaim {}", name_of(claim));
        if !aside.may_try(&object, now) {
            continue;
        }
        match go_on_with(claim, cluster, view, &first_waves, now, journal).await {
            Ok(has_written) => wrote |= has_written,
            Err(error) => {
                if error.kind != PortErrorKind::Conflict {
                    aside.refused(&object, now);
                }
                troubles.push(error);
            }
        }
    }
    wrote
}

async fn go_on_with<K: Cluster>(
    claim: &NodeClaim,
    cluster: &K,
    view: &View<'_>,
    first_waves: &BTreeMap<&str, u32>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<bool, PortError> {
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(false);
    }
    let Some(replacements) = of_claims::replacements(claim) else { return Ok(false) };
    // What EC2 takes away ends in any case, and its pods had better leave.
    if !claim.is_true(INTERRUPTED) && view.doubt(claim).is_some() {
        return Ok(false);
    }
    let missing: Vec<String> = replacements.iter().filter(|name| !is_coming(view, claim, name)).cloned().collect();
    if !missing.is_empty() {
        roll_back(cluster, view, claim, missing, now, journal).await?;
        return Ok(true);
    }
    if !replacements.iter().all(|name| is_up(view, name)) || !has_its_wave_come(claim, first_waves) {
        return Ok(false);
    }
    match patience(claim, view, now) {
        Patience::Over => cluster.delete_node_claim(name_of(claim), uid_of(claim)).await?,
        Patience::Begins => {
            cluster.update_node_claim(&of_claims::waiting_for_pods(claim, now)).await?;
            return Ok(true);
        }
        Patience::GoesOn => return Ok(false),
    }
    let node = view.node_of(claim).map(|node| node_name(node).to_owned()).unwrap_or_default();
    let because = claim.condition(conditions::DISRUPTION_REASON);
    let (reason, text) = because.map(|it| (it.reason.clone(), it.message.clone())).unwrap_or_default();
    journal.say(now, &Event::TerminatingNode { node, node_claim: name_of(claim).to_owned(), reason, text });
    Ok(true)
}

/// Whether a claim whose turn has come waits for pods of the waves before it.
enum Patience {
    Begins,
    GoesOn,
    Over,
}

/// A later wave makes replicas move of workloads that lost some in the one before: it waits until those run again. Not for ever:
/// some pod may never be ready.
fn patience(claim: &NodeClaim, view: &View<'_>, now: Timestamp) -> Patience {
    if of_claims::wave(claim) <= 1 || waits_for_nothing(claim) || !replicas_are_missing(claim, view) {
        return Patience::Over;
    }
    match of_claims::wave_waits_since(claim) {
        None => Patience::Begins,
        Some(since) if now.duration_since(since) < WAVE_WAITS => Patience::GoesOn,
        Some(_) => Patience::Over,
    }
}

/// Whether pods that were made after the plan was, for workloads of which the node holds replicas, do not run yet.
fn replicas_are_missing(claim: &NodeClaim, view: &View<'_>) -> bool {
    let Some(planned) = claim.condition(conditions::DISRUPTION_REASON) else { return false };
    let planned_at = planned.last_transition_time.0;
    let held = view.pods_on(view.node_of(claim)).iter().filter(|pod| must_move(pod));
    let workloads: BTreeSet<_> = held.filter_map(|pod| pod.workload()).collect();
    let is_new = |pod: &Pod| {
        let made_at = pod.metadata.creation_timestamp.as_ref().and_then(|text| text.parse::<Timestamp>().ok());
        made_at.is_some_and(|made_at| made_at >= planned_at)
    };
    view.snapshot.pods.iter().any(|pod| {
        must_move(pod)
            && is_new(pod)
            && !(pod.spec.node_name.is_some() && pod.is_ready())
            && pod.workload().is_some_and(|workload| workloads.contains(&workload))
    })
}

/// By plan, the first wave of which a node is still there. One that was rolled back does not go any more.
fn first_waves<'a>(view: &View<'a>) -> BTreeMap<&'a str, u32> {
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    for claim in view.snapshot.node_claims.iter().filter(|claim| of_claims::goes(claim)) {
        if let Some(plan) = of_claims::plan(claim) {
            let wave = of_claims::wave(claim);
            first.entry(plan).and_modify(|first| *first = wave.min(*first)).or_insert(wave);
        }
    }
    first
}

/// What goes by force has its deadline already, and so has what EC2 takes away. The claim says so and not the step's mode: EC2 may announce
/// the end of a node, and somebody may set it a deadline, after a plan had it go gracefully.
fn waits_for_nothing(claim: &NodeClaim) -> bool {
    claim.annotation(TERMINATION_TIMESTAMP).is_some() || claim.is_true(INTERRUPTED)
}

fn has_its_wave_come(claim: &NodeClaim, first_waves: &BTreeMap<&str, u32>) -> bool {
    if waits_for_nothing(claim) {
        return true;
    }
    let first = of_claims::plan(claim).and_then(|plan| first_waves.get(plan));
    first.is_none_or(|first| of_claims::wave(claim) <= *first)
}

fn is_coming(view: &View<'_>, replaced: &NodeClaim, name: &str) -> bool {
    view.claim(name).is_some_and(|claim| claim.metadata.deletion_timestamp.is_none() && replaces(claim, replaced))
}

/// Whether the plan that takes a claim away made the other one. A claim of another plan may have its name, which comes of pool and pods alone.
/// One that goes itself has the note of the plan that takes it away.
fn replaces(claim: &NodeClaim, replaced: &NodeClaim) -> bool {
    let plan = of_claims::plan(replaced);
    of_claims::goes(claim) || plan.is_none() || of_claims::plan(claim) == plan
}

fn is_up(view: &View<'_>, name: &str) -> bool {
    view.claim(name).is_some_and(|claim| claim.is_true(conditions::INITIALIZED))
}

/// A replacement is gone: the node stays, and takes pods again.
async fn roll_back<K: Cluster>(
    cluster: &K,
    view: &View<'_>,
    claim: &NodeClaim,
    missing: Vec<String>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<(), PortError> {
    let node = view.node_of(claim);
    if let Some((node, patch)) = node.and_then(|node| Some((node, undisrupted_taint_patch(node)?))) {
        cluster.patch_node(node, &patch).await?;
    }
    // The note goes last: until it is gone, a restart rolls back again.
    let mut unmarked = of_claims::unmarked(claim);
    conditions::remove(&mut unmarked, conditions::DISRUPTION_REASON);
    cluster.update_node_claim(&unmarked).await?;
    let node = node.map(|node| node_name(node).to_owned()).unwrap_or_default();
    journal.say(now, &Event::CommandFailed { node, node_claim: name_of(claim).to_owned(), missing });
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::keys;
    use crate::core::snapshot::Snapshot;
    use crate::testing::{BuildPod, Merge, node, object, pod};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_795_165_200 + minute * 60).unwrap()
    }

    /// A claim of a wave whose node holds one of two replicas; its plan was made at minute 0.
    fn claim(wave: u32, waits_since: Option<i64>) -> NodeClaim {
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": "b", "annotations": {
                keys::REPLACED_BY: "", keys::PLAN: "plan", keys::WAVE: wave.to_string(),
            } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
            },
            "status": { "providerID": "aws:///b", "nodeName": "b", "conditions": [{
                "type": "DisruptionReason", "status": "True", "reason": "Drifted", "lastTransitionTime": at(0).to_string(),
            }] },
        });
        if let Some(minute) = waits_since {
            claim["metadata"]["annotations"][keys::WAVE_WAITS_SINCE] = json!(at(minute).to_string());
        }
        object(claim)
    }

    /// What becomes of it at minute 2, when the other replica was made at `made_at` and is or is not ready.
    fn patience_with(claim: &NodeClaim, made_at: i64, ready: bool) -> Patience {
        let replica = |name: &str, on: &str| pod(name).owned_by("ReplicaSet", "web").on(on);
        let status = if ready { "True" } else { "False" };
        let other = replica("other", "c").merge(json!({
            "metadata": { "creationTimestamp": at(made_at).to_string() },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        }));
        let snapshot = Snapshot {
            nodes: vec![node("b").merge(json!({ "spec": { "providerID": "aws:///b" } }))].into(),
            node_claims: vec![claim.clone()].into(),
            pods: vec![replica("here", "b"), other].into(),
            ..Snapshot::default()
        };
        patience(claim, &View::new(&snapshot), at(2))
    }

    #[test]
    fn a_claim_of_another_plan_replaces_nothing_whatever_its_name() {
        let named = |annotations: serde_json::Value| -> NodeClaim {
            object(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": { "name": "default-new", "annotations": annotations },
                "spec": {
                    "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                    "requirements": [],
                },
            }))
        };
        let counts = |annotations: serde_json::Value| {
            let snapshot = Snapshot { node_claims: vec![named(annotations)].into(), ..Snapshot::default() };
            is_coming(&View::new(&snapshot), &claim(1, None), "default-new")
        };
        assert!(counts(json!({ keys::PLAN: "plan" })));
        assert!(!counts(json!({ keys::PLAN: "the plan before" })));
        assert!(!counts(json!({})), "made by hand");
        assert!(counts(json!({ keys::PLAN: "the next plan", keys::REPLACED_BY: "" })));
    }

    #[test]
    fn a_later_wave_waits_a_while_for_replicas_of_its_workloads() {
        assert!(matches!(patience_with(&claim(2, None), 1, false), Patience::Begins));
        assert!(matches!(patience_with(&claim(2, Some(1)), 1, false), Patience::GoesOn));
        assert!(matches!(patience_with(&claim(2, Some(-3)), 1, false), Patience::Over), "five minutes are over");
        assert!(matches!(patience_with(&claim(2, None), 1, true), Patience::Over), "it runs");
        assert!(matches!(patience_with(&claim(2, None), -60, false), Patience::Over), "it did not before the plan");
        assert!(matches!(patience_with(&claim(1, None), 1, false), Patience::Over), "nothing went before");
        let mut interrupted = claim(2, None);
        conditions::set(&mut interrupted, INTERRUPTED, "True", "SpotInterrupted", "", at(1));
        assert!(matches!(patience_with(&interrupted, 1, false), Patience::Over), "EC2 does not wait");
    }
}
