//! The node is of use: ready, free of start-up taints, with every extended resource that was asked for.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use serde_json::json;

use crate::snapshot::nodes;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

use super::{Effect, Milestone, Observation, Reaction, conditions, consistency, liveness};

/// Taints that go by themselves while a node starts.
const EPHEMERAL_TAINTS: [&str; 4] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    keys::UNREGISTERED_TAINT,
];
const READINESS_TAINT_PREFIX: &str = "readiness.k8s.io/";

pub(super) fn react(observation: &Observation<'_>) -> Reaction {
    let claim = observation.claim;
    let Some(node) = observation.node else {
        let mut written = claim.clone();
        let message = "its node is not there";
        conditions::set(&mut written, conditions::INITIALIZED, "Unknown", "NodeNotFound", message, observation.now);
        let write = (written != *claim).then(|| Effect::WriteClaim(Box::new(written)));
        return Reaction { effects: write.into_iter().collect(), look_again_at: None };
    };
    let name = node.metadata.name.clone().unwrap_or_default();
    let Seen { claim: written, is_of_use, fault } = see(Cow::Borrowed(claim), node, observation.now);
    let is_new = *written != *claim;
    let write = is_new.then(|| Effect::WriteClaim(Box::new(written.into_owned())));
    if !is_of_use {
        let look_again_at = observation.is_awaited.then(|| liveness::initialization_deadline(claim)).flatten();
        return Reaction { effects: write.into_iter().collect(), look_again_at };
    }
    let patch = json!({ "metadata": { "labels": { keys::INITIALIZED: "true" } } });
    let mut effects = vec![Effect::PatchNode(patch)];
    effects.extend(write);
    effects.extend(reached(name, fault));
    Reaction { effects, look_again_at: None }
}

/// What a look at a registered node shows.
pub(super) struct Seen<'a> {
    /// With its conditions as they are now.
    pub claim: Cow<'a, NodeClaim>,
    pub is_of_use: bool,
    /// What is wrong with it although it is of use, when that is new.
    pub fault: Option<String>,
}

pub(super) fn see<'a>(mut claim: Cow<'a, NodeClaim>, node: &Node, now: Timestamp) -> Seen<'a> {
    if let Some((reason, message)) = obstacle(&claim, node) {
        conditions::set(claim.to_mut(), conditions::INITIALIZED, "Unknown", reason, &message, now);
        return Seen { claim, is_of_use: false, fault: None };
    }
    conditions::set(claim.to_mut(), conditions::INITIALIZED, "True", "Initialized", "", now);
    let fault = consistency::note(&mut claim, node, now);
    Seen { claim, is_of_use: true, fault }
}

/// What is said of a node that is of use now.
pub(super) fn reached(node: String, fault: Option<String>) -> impl Iterator<Item = Effect> {
    let fault = fault.map(|fault| Effect::Reached(Milestone::Inconsistent { fault }));
    std::iter::once(Effect::Reached(Milestone::Initialized { node })).chain(fault)
}

/// What the node still lacks: reason and sentence.
pub fn obstacle(claim: &NodeClaim, node: &Node) -> Option<(&'static str, String)> {
    if !is_ready(node) {
        return Some(("NodeNotReady", not_ready(node)));
    }
    let taints = nodes::taints(node);
    if let Some(text) = still_there("start-up taint", startup_taints(claim, node)) {
        return Some(("StartupTaintsExist", text));
    }
    let ephemeral = taints.iter().filter(|taint| {
        EPHEMERAL_TAINTS.contains(&taint.key.as_str()) || taint.key.starts_with(READINESS_TAINT_PREFIX)
    });
    if let Some(text) = still_there("taint", ephemeral) {
        return Some(("KnownEphemeralTaintsExist", text));
    }
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let awaited = nodes::awaited(claim);
    let is_missing = |name: &&str| allocatable.and_then(|it| it.get(*name)).is_none_or(|quantity| quantity.0 == "0");
    let missing: Vec<&str> = awaited.iter().map(|(name, _)| name).filter(is_missing).collect();
    match missing.as_slice() {
        [] => None,
        [one] => Some(("ResourceNotRegistered", format!("the resource {one} is not registered"))),
        several => Some(("ResourceNotRegistered", format!("the resources {} are not registered", several.join(", ")))),
    }
}

/// The start-up taints of the claim that the node has now.
pub fn startup_taints<'n>(claim: &NodeClaim, node: &'n Node) -> impl Iterator<Item = &'n Taint> {
    nodes::taints(node).iter().filter(|taint| {
        claim.spec.startup_taints.iter().any(|own| own.key == taint.key && own.effect.name() == taint.effect)
    })
}

/// With what the kubelet says, where it says something.
fn not_ready(node: &Node) -> String {
    let ready = ready_condition(node);
    let message = ready.and_then(|condition| condition.message.as_deref()).filter(|message| !message.is_empty());
    let reason = ready.and_then(|condition| condition.reason.as_deref()).filter(|reason| !reason.is_empty());
    match message.or(reason) {
        Some(said) => format!("the node is not ready: {said}"),
        None => "the node is not ready".to_owned(),
    }
}

fn still_there<'t>(noun: &str, taints: impl Iterator<Item = &'t Taint>) -> Option<String> {
    let keys: Vec<&str> = taints.map(|taint| taint.key.as_str()).collect();
    match keys.as_slice() {
        [] => None,
        [one] => Some(format!("the {noun} {one} is still there")),
        several => Some(format!("the {noun}s {} are still there", several.join(", "))),
    }
}

/// What a machine lacks that has not initialized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// In one word.
    pub kind: &'static str,
    pub text: String,
}

/// What a machine of a claim waits for that has not initialized. What can not be seen on the node its NodeClaim may say.
pub fn waits_for(claim: &NodeClaim, node: Option<&Node>) -> Option<Lacking> {
    let lacking = |(kind, text): (&'static str, String)| Lacking { kind, text };
    let said = |type_: &str| claim.condition(type_).map(|it| it.message.clone()).filter(|message| !message.is_empty());
    let with = |text: &str, said: Option<String>| said.map_or(text.to_owned(), |said| format!("{text}: {said}"));
    match node {
        Some(node) => {
            let of_claim = || Some((conditions::INITIALIZED, said(conditions::INITIALIZED)?));
            obstacle(claim, node).or_else(of_claim).map(lacking)
        }
        None if !claim.is_true(conditions::LAUNCHED) => {
            let text = with("its instance is not launched", said(conditions::LAUNCHED));
            Some(Lacking { kind: conditions::LAUNCHED, text })
        }
        None if !claim.is_true(conditions::REGISTERED) => {
            let text = said(conditions::REGISTERED).unwrap_or_else(|| "its node has not registered".to_owned());
            Some(Lacking { kind: conditions::REGISTERED, text })
        }
        None => Some(Lacking { kind: "NodeGone", text: LOST.to_owned() }),
    }
}

/// Of a claim whose node was there.
const LOST: &str = "its node is gone, and no pod is planned on it: its NodeClaim goes when EC2 no longer has the instance; if the instance \
                    still runs, delete the NodeClaim";

/// Whether the node is ready and nothing keeps pods away that goes by itself while a node starts, but for what waits for us.
pub fn has_started(node: &Node) -> bool {
    let starts =
        |taint: &Taint| taint.key != keys::UNREGISTERED_TAINT && EPHEMERAL_TAINTS.contains(&taint.key.as_str());
    is_ready(node) && !nodes::taints(node).iter().any(starts)
}

/// Whether the node's condition Ready is True.
pub fn is_ready(node: &Node) -> bool {
    ready_condition(node).is_some_and(|ready| ready.status == "True")
}

/// Since when the node's condition Ready is as it is.
pub fn ready_since(node: &Node) -> Option<Timestamp> {
    ready_condition(node)?.last_transition_time.as_ref().map(|time| time.0)
}

fn ready_condition(node: &Node) -> Option<&NodeCondition> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().find(|condition| condition.type_ == "Ready")
}
