//! What the controller notes on NodeClaims, so that a restart knows what the last process was about.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::controller::events::refusal::MoveRefusal;
use crate::core::lifecycle::launches::launch_id;
use crate::core::plan::{Alternative, Plan, Step, StepKind, buffer_of};

/// An annotation may hold 256 KiB; EC2 takes no more overrides in one request than this.
const ALTERNATIVES_MAX: usize = 60;

/// The NodeClaim of a creation as it is written: the plan's, with finalizer and notes.
pub fn planned_claim(plan: &Plan, step: &Step) -> Result<NodeClaim, MoveRefusal> {
    let unreadable = || MoveRefusal::NodeClaimUnreadable { name: step.node_claim.clone() };
    let launch = step.launch.as_ref().ok_or_else(unreadable)?;
    let mut claim: NodeClaim = serde_json::from_value(launch.node_claim.clone()).map_err(|_| unreadable())?;
    claim.metadata.name = Some(step.node_claim.clone());
    let finalizers = claim.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == keys::TERMINATION_FINALIZER) {
        finalizers.push(keys::TERMINATION_FINALIZER.to_owned());
    }
    let labels = claim.metadata.labels.get_or_insert_default();
    labels.insert(keys::NODE_POOL.to_owned(), step.node_pool.clone());
    let alternatives: Vec<&Alternative> = launch.alternatives.iter().take(ALTERNATIVES_MAX).collect();
    let alternatives = serde_json::to_string(&alternatives).map_err(|_| unreadable())?;
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::PLAN.to_owned(), plan.id.clone());
    annotations.insert(keys::MOVE.to_owned(), step.move_number.to_string());
    annotations.insert(keys::LAUNCH_ALTERNATIVES.to_owned(), alternatives);
    // Room for pods of a buffer is for nobody yet.
    let pods: Vec<&str> = step.pods.iter().filter(|pod| buffer_of(pod).is_none()).map(String::as_str).collect();
    if !pods.is_empty() {
        annotations.insert(keys::PODS.to_owned(), pods.join(","));
    }
    let first = plan.pods_to_bind_first();
    let first: Vec<&str> = pods.into_iter().filter(|pod| first.contains(pod)).collect();
    if !first.is_empty() {
        annotations.insert(keys::PODS_FIRST.to_owned(), first.join(","));
    }
    Ok(claim)
}

/// The claim with the note of who makes it.
pub fn of_installation(mut claim: NodeClaim, installation: &str) -> NodeClaim {
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::INSTALLATION.to_owned(), installation.to_owned());
    claim
}

/// The claim with the note of the launch that it is part of.
pub fn of_launch(mut claim: NodeClaim, plan: &Plan, carried_out_at: Timestamp) -> NodeClaim {
    let offerings = claim.annotation(keys::LAUNCH_ALTERNATIVES).unwrap_or_default();
    let id = launch_id(&plan.id, carried_out_at, &claim, offerings);
    claim.metadata.annotations.get_or_insert_default().insert(keys::LAUNCH.to_owned(), id);
    claim
}

/// What to ask EC2 for; `None` for a claim that no plan made.
pub fn alternatives(claim: &NodeClaim) -> Option<Vec<Alternative>> {
    let value: Value = serde_json::from_str(claim.annotation(keys::LAUNCH_ALTERNATIVES)?).ok()?;
    serde_json::from_value(value).ok()
}

/// The pods that a claim was created for, and those that later plans put on its node while it was on its way, as `namespace/name`.
pub fn pods(claim: &NodeClaim) -> impl Iterator<Item = &str> {
    claim.listed(keys::PODS)
}

/// Those of them that find their places only if kube-scheduler takes them before others.
pub fn first_pods(claim: &NodeClaim) -> impl Iterator<Item = &str> {
    claim.listed(keys::PODS_FIRST)
}

/// The claim with pods noted that a later plan puts on its node; of all pods, those that are to be bound `first`.
pub fn with_further_pods(claim: &NodeClaim, pods: &[&str], first: &BTreeSet<&str>) -> NodeClaim {
    let all: Vec<&str> = self::pods(claim).chain(pods.iter().copied()).collect();
    let further = pods.iter().copied().filter(|pod| first.contains(pod));
    let first: Vec<&str> = first_pods(claim).chain(further).collect();
    let mut claim = claim.clone();
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::PODS.to_owned(), all.join(","));
    if !first.is_empty() {
        annotations.insert(keys::PODS_FIRST.to_owned(), first.join(","));
    }
    claim
}

/// The plan that created a claim.
pub fn plan(claim: &NodeClaim) -> Option<&str> {
    claim.annotation(keys::PLAN)
}

/// Whether a plan removes the claim.
pub fn goes(claim: &NodeClaim) -> bool {
    claim.annotation(keys::REPLACED_BY).is_some()
}

/// The claims that have to be up before this one may go; `None` when no plan removes it.
pub fn replacements(claim: &NodeClaim) -> Option<Vec<String>> {
    claim.annotation(keys::REPLACED_BY)?;
    Some(claim.listed(keys::REPLACED_BY).map(str::to_owned).collect())
}

/// The claim with the note that `replacements` take its place.
pub fn marked(claim: &NodeClaim, plan: &Plan, step: &Step, replacements: &[String]) -> NodeClaim {
    let mut claim = claim.clone();
    let annotations = claim.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::REPLACED_BY.to_owned(), replacements.join(","));
    annotations.insert(keys::DESTINATIONS.to_owned(), destinations(plan, step));
    annotations.insert(keys::PLAN.to_owned(), plan.id.clone());
    annotations.insert(keys::MOVE.to_owned(), step.move_number.to_string());
    if let Some(wave) = step.wave {
        annotations.insert(keys::WAVE.to_owned(), wave.to_string());
    }
    claim
}

/// Where the pods of a node go that a plan removes, as `namespace/name=node`, with commas.
fn destinations(plan: &Plan, step: &Step) -> String {
    let moved: BTreeSet<&str> = step.pods.iter().map(String::as_str).collect();
    let entries = targets(plan).filter(|(pod, _)| moved.contains(pod)).map(|(pod, node)| format!("{pod}={node}"));
    entries.collect::<Vec<_>>().join(",")
}

/// Where a plan sends pods: `namespace/name`, and a node that exists or the NodeClaim of a new one.
pub fn targets(plan: &Plan) -> impl Iterator<Item = (&str, &str)> {
    let creations = plan.steps.iter().filter(|other| other.kind == StepKind::Create);
    let to_new = creations.flat_map(|other| other.pods.iter().map(|pod| (pod.as_str(), other.node_claim.as_str())));
    let to_existing = plan.placements.iter().map(|placement| (placement.pod.as_str(), placement.node.as_str()));
    to_existing.chain(to_new)
}

/// The claim with the places noted that a later plan has for the pods of its node; `None` where that is what is noted. `pods` are those
/// on the node.
pub fn with_other_destinations(claim: &NodeClaim, pods: &[&str], targets: &BTreeMap<&str, &str>) -> Option<NodeClaim> {
    let noted: BTreeMap<&str, &str> =
        claim.listed(keys::DESTINATIONS).filter_map(|entry| entry.split_once('=')).collect();
    let is_other = |pod: &&str| targets.get(pod).is_some_and(|target| noted.get(pod) != Some(target));
    if !pods.iter().any(is_other) {
        return None;
    }
    let place = |pod: &&str| Some(format!("{pod}={}", targets.get(pod).or_else(|| noted.get(pod))?));
    let entries: Vec<String> = pods.iter().filter_map(place).collect();
    let mut claim = claim.clone();
    claim.metadata.annotations.get_or_insert_default().insert(keys::DESTINATIONS.to_owned(), entries.join(","));
    Some(claim)
}

/// In which wave of its plan a claim goes; the first where there is but one.
pub fn wave(claim: &NodeClaim) -> u32 {
    claim.annotation(keys::WAVE).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Since when a claim waits for the pods of earlier waves, where it does.
pub fn wave_waits_since(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotation(keys::WAVE_WAITS_SINCE)?.parse().ok()
}

/// The claim with the note that it waits for them from now on.
pub fn waiting_for_pods(claim: &NodeClaim, now: Timestamp) -> NodeClaim {
    let mut claim = claim.clone();
    claim.metadata.annotations.get_or_insert_default().insert(keys::WAVE_WAITS_SINCE.to_owned(), now.to_string());
    claim
}

/// The claim without the notes of a removal.
pub fn unmarked(claim: &NodeClaim) -> NodeClaim {
    let mut claim = claim.clone();
    if let Some(annotations) = &mut claim.metadata.annotations {
        annotations.remove(keys::REPLACED_BY);
        annotations.remove(keys::DESTINATIONS);
        annotations.remove(keys::WAVE);
        annotations.remove(keys::WAVE_WAITS_SINCE);
    }
    claim
}
