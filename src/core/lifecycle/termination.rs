//! The end of a node: taint, drain, wait for its volumes, terminate the instance, let the node go, let the claim go.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

use super::{Effect, Milestone, Observation, Reaction, conditions, drain, seconds_after, taint_patch};

/// Hard deadline of a termination, RFC 3339.
pub const TERMINATION_TIMESTAMP: &str = "karpenter.sh/nodeclaim-termination-timestamp";
/// Load balancers of Services stop sending to a node with this label.
const EXCLUDE_FROM_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// Load balancers need a moment to notice; a node is never ended faster.
const DRAIN_SECONDS_MIN: u64 = 5;
/// How often blocked evictions and instances that are ending are looked at again.
const RETRY_SECONDS: u64 = 5;
/// How often volumes that are still attached are looked at again, should no event come.
const DETACH_SECONDS: u64 = 1;

pub(super) fn react(observation: &Observation<'_>) -> Reaction {
    let claim = observation.claim;
    if let Some(stamped) = with_deadline(claim) {
        let termination_time = stamped.annotation(TERMINATION_TIMESTAMP).unwrap_or_default().to_owned();
        let reached = Effect::Reached(Milestone::DeadlineSet { termination_time });
        let effects = vec![Effect::WriteClaim(Box::new(stamped)), reached];
        return Reaction { effects, look_again_at: Some(observation.now) };
    }
    match observation.node {
        Some(node) => react_with_node(observation, node),
        None => react_without_node(observation),
    }
}

/// When the pods that are still on the node of a claim are deleted, where that is written.
pub fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotation(TERMINATION_TIMESTAMP)?.parse().ok()
}

/// The same where it is not written yet, of a claim that is deleted now if it was not before.
pub(super) fn deadline_if_deleted(claim: &NodeClaim, now: Timestamp) -> Option<Timestamp> {
    let deleted = claim.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let grace = || claim.spec.termination_grace_period.as_ref()?.seconds();
    deadline(claim).or_else(|| Some(seconds_after(deleted, grace()?)))
}

/// The claim with the deadline that its termination grace period gives it, when that is not written yet.
fn with_deadline(claim: &NodeClaim) -> Option<NodeClaim> {
    let grace = claim.spec.termination_grace_period.as_ref()?.seconds()?;
    let deleted = claim.metadata.deletion_timestamp.as_ref()?.0;
    if claim.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(TERMINATION_TIMESTAMP)) {
        return None;
    }
    let mut claim = claim.clone();
    let deadline = seconds_after(deleted, grace).to_string();
    claim.metadata.annotations.get_or_insert_default().insert(TERMINATION_TIMESTAMP.to_owned(), deadline);
    Some(claim)
}

fn react_with_node(observation: &Observation<'_>, node: &Node) -> Reaction {
    let name = node.metadata.name.clone().unwrap_or_default();
    let mut effects = Vec::new();
    if node.metadata.deletion_timestamp.is_none() {
        effects.push(Effect::DeleteNode { node: name.clone() });
    }
    if observation.instance_gone {
        effects.extend(release_node(node));
        return Reaction { effects, look_again_at: None };
    }
    if let Some(patch) = removal_patch(node) {
        effects.push(Effect::PatchNode(patch));
        if disrupted_taint_patch(node).is_some() {
            effects.push(Effect::Reached(Milestone::Tainted { node: name.clone() }));
        }
    }
    let deadline = deadline(observation.claim);
    let drain = drain::next(observation.pods, deadline, observation.now);
    let retry_at = seconds_after(observation.now, RETRY_SECONDS);
    if drain.waiting > 0 {
        effects.extend(drain.evict.into_iter().map(|(namespace, name)| Effect::Evict { namespace, name }));
        effects.extend(drain.delete.into_iter().map(|(namespace, name, grace_seconds)| {
            let pod = observation.pods.iter().find(|it| it.metadata.namespace == namespace && it.metadata.name == name);
            let own_grace_seconds = pod.and_then(|pod| pod.spec.termination_grace_period_seconds).unwrap_or(0);
            let uid = pod.map(|pod| pod.metadata.uid.clone()).unwrap_or_default();
            Effect::DeletePod { namespace, name, uid, grace_seconds, own_grace_seconds }
        }));
        let look_again_at = Some(drain.next_deadline.map_or(retry_at, |deadline| deadline.min(retry_at)));
        return Reaction { effects, look_again_at };
    }
    let began = observation.claim.metadata.deletion_timestamp.as_ref().map_or(observation.now, |time| time.0);
    let earliest = seconds_after(began, DRAIN_SECONDS_MIN);
    if observation.now < earliest {
        return Reaction { effects, look_again_at: Some(earliest) };
    }
    if !observation.claim.is_true(conditions::DRAINED) {
        let mut drained = observation.claim.clone();
        conditions::set(&mut drained, conditions::DRAINED, "True", "Drained", "", observation.now);
        if observation.attached_volumes.is_empty() {
            let type_ = conditions::VOLUMES_DETACHED;
            conditions::set(&mut drained, type_, "True", type_, "", observation.now);
        }
        effects.push(Effect::WriteClaim(Box::new(drained)));
        return Reaction { effects, look_again_at: Some(observation.now) };
    }
    if let Some(wait) = wait_for_volumes(observation, &name, deadline) {
        effects.extend(wait.effects);
        return Reaction { effects, ..wait };
    }
    if provider_id(observation.claim).is_none() {
        effects.extend(release_node(node));
    }
    effects.extend(terminate(observation));
    Reaction { effects, look_again_at: Some(retry_at) }
}

/// Until the volumes of a drained node are detached, or its time is over; `None` once that is noted.
fn wait_for_volumes(observation: &Observation<'_>, node: &str, deadline: Option<Timestamp>) -> Option<Reaction> {
    let type_ = conditions::VOLUMES_DETACHED;
    let mut claim = observation.claim.clone();
    let volumes = observation.attached_volumes;
    let is_over = deadline.is_some_and(|deadline| observation.now >= deadline);
    let known = observation.claim.condition(type_);
    if known.is_some_and(|condition| condition.status != "Unknown") {
        return None;
    }
    if volumes.is_empty() {
        conditions::set(&mut claim, type_, "True", type_, "", observation.now);
    } else if is_over {
        let reason = "TerminationGracePeriodElapsed";
        conditions::set(&mut claim, type_, "False", reason, &still_attached(volumes), observation.now);
    } else {
        let look_again = seconds_after(observation.now, DETACH_SECONDS);
        let look_again_at = Some(deadline.map_or(look_again, |deadline| deadline.min(look_again)));
        if known.is_some() {
            return Some(Reaction { effects: Vec::new(), look_again_at });
        }
        let message = still_attached(volumes);
        conditions::set(&mut claim, type_, "Unknown", "AwaitingVolumeDetachment", &message, observation.now);
        let (node, volumes) = (node.to_owned(), volumes.to_vec());
        let reached = Effect::Reached(Milestone::AwaitsDetachment { node, volumes });
        return Some(Reaction { effects: vec![Effect::WriteClaim(Box::new(claim)), reached], look_again_at });
    }
    let effects = vec![Effect::WriteClaim(Box::new(claim))];
    Some(Reaction { effects, look_again_at: Some(observation.now) })
}

/// `2 volumes are attached: pv-a, pv-b`
fn still_attached(volumes: &[String]) -> String {
    let (number, noun, verb) = match volumes.len() {
        1 => (1, "volume", "is"),
        number => (number, "volumes", "are"),
    };
    format!("{number} {noun} {verb} attached: {}", volumes.join(", "))
}

fn react_without_node(observation: &Observation<'_>) -> Reaction {
    let claim = observation.claim;
    if provider_id(claim).is_none() || observation.instance_gone {
        return Reaction { effects: release_claim(claim), look_again_at: None };
    }
    let look_again_at = Some(seconds_after(observation.now, RETRY_SECONDS));
    Reaction { effects: terminate(observation), look_again_at }
}

/// The same for the claim, where nothing is left of its node.
fn release_claim(claim: &NodeClaim) -> Vec<Effect> {
    let mut released = claim.clone();
    let finalizers = released.metadata.finalizers.get_or_insert_default();
    let before = finalizers.len();
    finalizers.retain(|finalizer| finalizer != keys::TERMINATION_FINALIZER);
    let is_last = finalizers.is_empty();
    if !is_last && finalizers.len() == before {
        return Vec::new();
    }
    let mut effects = vec![Effect::WriteClaim(Box::new(released))];
    effects.extend(is_last.then_some(Effect::Reached(Milestone::ClaimDeleted)));
    effects
}

fn provider_id(claim: &NodeClaim) -> Option<&String> {
    claim.status.as_ref()?.provider_id.as_ref()
}

/// Asks for the end of the instance, and notes that it was asked for. Asking again does no harm.
fn terminate(observation: &Observation<'_>) -> Vec<Effect> {
    let Some(provider_id) = provider_id(observation.claim) else { return Vec::new() };
    let mut effects = vec![Effect::TerminateInstance { provider_id: provider_id.clone() }];
    if !observation.claim.is_true(conditions::INSTANCE_TERMINATING) {
        let mut claim = observation.claim.clone();
        let type_ = conditions::INSTANCE_TERMINATING;
        conditions::set(&mut claim, type_, "True", type_, "", observation.now);
        effects.push(Effect::WriteClaim(Box::new(claim)));
    }
    effects
}

/// Lets the node go, as far as it is ours to do: nothing once that was done. What somebody else put there stays, and so does the node.
fn release_node(node: &Node) -> Vec<Effect> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let (ours, others): (Vec<&String>, Vec<&String>) =
        node.metadata.finalizers.iter().flatten().partition(|finalizer| *finalizer == keys::TERMINATION_FINALIZER);
    if ours.is_empty() && !others.is_empty() {
        return Vec::new();
    }
    let finalizers = if others.is_empty() { Value::Null } else { json!(others) };
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    let mut effects = vec![Effect::PatchNode(patch)];
    effects.extend(others.is_empty().then_some(Effect::Reached(Milestone::NodeDeleted { node: name })));
    effects
}

/// The taint that keeps new pods away and the label that keeps load balancers away; `None` when both are there.
fn removal_patch(node: &Node) -> Option<Value> {
    let taint_patch = disrupted_taint_patch(node);
    let labels = node.metadata.labels.as_ref();
    let excluded = labels.is_some_and(|labels| labels.contains_key(EXCLUDE_FROM_LOAD_BALANCERS));
    if excluded && taint_patch.is_none() {
        return None;
    }
    let mut patch = taint_patch.unwrap_or_else(|| json!({}));
    if let Some(fields) = patch.as_object_mut() {
        fields.insert("metadata".to_owned(), json!({ "labels": { EXCLUDE_FROM_LOAD_BALANCERS: "karpenter" } }));
    }
    Some(patch)
}

/// Adds `karpenter.sh/disrupted:NoSchedule`; `None` when it is there.
pub fn disrupted_taint_patch(node: &Node) -> Option<Value> {
    taint_patch::with(node, keys::DISRUPTED_TAINT, "NoSchedule")
}

/// Takes the taint away again; `None` when it is not there.
pub fn undisrupted_taint_patch(node: &Node) -> Option<Value> {
    taint_patch::without(node, keys::DISRUPTED_TAINT)
}
