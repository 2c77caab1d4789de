//! The node joined: it gets the claim's labels, annotations and taints, an owner and a finalizer.

use serde_json::{Value, json};

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::{Taint, TaintEffect};

use super::{Effect, Milestone, Observation, Reaction, conditions, liveness};
use k8s_openapi::api::core::v1::{Node, Taint as NodeTaint};

/// A node with this label had its taints applied before, or wants none from us.
const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";

pub(super) fn react(observation: &Observation<'_>) -> Reaction {
    let claim = observation.claim;
    let look_again_at = liveness::registration_deadline(claim);
    let Some(node) = observation.node else { return Reaction { effects: Vec::new(), look_again_at } };
    let name = node.metadata.name.clone().unwrap_or_default();
    let mut registered = claim.clone();
    registered.status.get_or_insert_default().node_name = Some(name.clone());
    conditions::set(&mut registered, conditions::REGISTERED, "True", "Registered", "", observation.now);
    let message = "the node is not ready";
    conditions::set(&mut registered, conditions::INITIALIZED, "Unknown", "NodeNotReady", message, observation.now);
    let effects = vec![
        Effect::PatchNode { node: name.clone(), patch: patch(claim, node) },
        Effect::WriteClaim(Box::new(registered)),
        Effect::Reached(Milestone::Registered { node: name }),
    ];
    Reaction { effects, look_again_at }
}

fn patch(claim: &NodeClaim, node: &Node) -> Value {
    let mut labels = claim.metadata.labels.clone().unwrap_or_default();
    labels.insert(keys::REGISTERED.to_owned(), "true".to_owned());
    let own = node.metadata.labels.as_ref();
    let sync = own.and_then(|labels| labels.get(DO_NOT_SYNC_TAINTS)).is_none_or(|value| value != "true");
    let mut taints: Vec<Value> = Vec::new();
    let existing = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    taints.extend(existing.iter().filter(|taint| taint.key != keys::UNREGISTERED_TAINT).map(|taint| json!(taint)));
    if sync {
        let wanted = claim.spec.taints.iter().chain(&claim.spec.startup_taints);
        let missing = wanted.filter(|taint| !existing.iter().any(|there| is_same(there, taint)));
        taints.extend(missing.map(|taint| json!(taint)));
    }
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    json!({
        "metadata": {
            "labels": labels,
            "annotations": claim.metadata.annotations.clone().unwrap_or_default(),
            "finalizers": [keys::TERMINATION_FINALIZER],
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "name": claim.metadata.name,
                "uid": uid,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": { "taints": taints },
    })
}

fn is_same(node: &NodeTaint, taint: &Taint) -> bool {
    node.key == taint.key && node.effect == effect_name(taint.effect)
}

pub(super) fn effect_name(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    }
}
