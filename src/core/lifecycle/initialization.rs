//! The node is of use: ready, free of start-up taints, with every extended resource that was asked for.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::core::snapshot::nodes;

use super::registration::effect_name;
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
    let Some(node) = observation.node else { return Reaction::default() };
    let name = node.metadata.name.clone().unwrap_or_default();
    let Seen { claim: written, is_of_use, fault } = see(Cow::Borrowed(claim), node, observation.now);
    let is_new = *written != *claim;
    let write = is_new.then(|| Effect::WriteClaim(Box::new(written.into_owned())));
    if !is_of_use {
        let look_again_at = observation.is_awaited.then(|| liveness::initialization_deadline(claim)).flatten();
        return Reaction { effects: write.into_iter().collect(), look_again_at };
    }
    let patch = json!({ "metadata": { "labels": { keys::INITIALIZED: "true" } } });
    let mut effects = vec![Effect::PatchNode { node: name.clone(), patch }];
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
fn obstacle(claim: &NodeClaim, node: &Node) -> Option<(&'static str, String)> {
    if !is_ready(node) {
        return Some(("NodeNotReady", "the node is not ready".to_owned()));
    }
    let taints = nodes::taints(node);
    let startup = taints.iter().find(|taint| {
        claim.spec.startup_taints.iter().any(|own| own.key == taint.key && effect_name(own.effect) == taint.effect)
    });
    if let Some(taint) = startup {
        return Some(("StartupTaintsExist", format!("the start-up taint {} is still there", taint.key)));
    }
    let ephemeral = taints
        .iter()
        .find(|taint| EPHEMERAL_TAINTS.contains(&taint.key.as_str()) || taint.key.starts_with(READINESS_TAINT_PREFIX));
    if let Some(taint) = ephemeral {
        return Some(("KnownEphemeralTaintsExist", format!("the taint {} is still there", taint.key)));
    }
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let awaited = nodes::awaited(claim);
    let extended = awaited
        .iter()
        .map(|(name, _)| name)
        .find(|name| allocatable.and_then(|resources| resources.get(*name)).is_none_or(|quantity| quantity.0 == "0"));
    extended.map(|name| ("ResourceNotRegistered", format!("the resource {name} is not registered")))
}

/// Whether the node's condition Ready is True.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
