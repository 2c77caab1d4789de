//! The node joined: it gets the claim's labels, annotations and taints, an owner and a finalizer. One that has nothing more to wait for is
//! initialized by the same writes.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::snapshot::nodes;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::Taint;

use super::initialization::{self, Seen};
use super::{Effect, Milestone, Observation, Reaction, conditions, liveness};
use k8s_openapi::api::core::v1::{Node, Taint as NodeTaint};

pub(super) fn react(observation: &Observation<'_>) -> Reaction {
    let claim = observation.claim;
    let look_again_at = liveness::registration_deadline(claim);
    let Some(node) = observation.node else { return Reaction { effects: Vec::new(), look_again_at } };
    let name = node.metadata.name.clone().unwrap_or_default();
    let mut registered = claim.clone();
    registered.status.get_or_insert_default().node_name = Some(name.clone());
    conditions::set(&mut registered, conditions::REGISTERED, "True", "Registered", "", observation.now);
    let taints = registered_taints(claim, node);
    let mut opened = node.clone();
    opened.spec.get_or_insert_default().taints = Some(taints.clone());
    let Seen { claim: written, is_of_use, fault } =
        initialization::see(Cow::Owned(registered), &opened, observation.now);
    let mut effects = vec![
        Effect::PatchNode(patch(claim, node, &taints, is_of_use)),
        Effect::WriteClaim(Box::new(written.into_owned())),
        Effect::Reached(Milestone::Registered { node: name.clone() }),
    ];
    if is_of_use {
        effects.extend(initialization::reached(name, fault));
    }
    Reaction { effects, look_again_at }
}

/// The taints that the node has when it is registered.
pub fn registered_taints(claim: &NodeClaim, node: &Node) -> Vec<NodeTaint> {
    let own = node.metadata.labels.as_ref();
    let sync = own.and_then(|labels| labels.get(keys::DO_NOT_SYNC_TAINTS)).is_none_or(|value| value != "true");
    let existing = nodes::taints(node);
    let mut taints: Vec<NodeTaint> =
        existing.iter().filter(|taint| taint.key != keys::UNREGISTERED_TAINT).cloned().collect();
    if sync {
        let wanted = claim.spec.taints.iter().chain(&claim.spec.startup_taints);
        let missing = wanted.filter(|taint| !existing.iter().any(|there| is_same(there, taint)));
        taints.extend(missing.map(of_node));
    }
    taints
}

fn of_node(taint: &Taint) -> NodeTaint {
    let time_added = taint.time_added.as_ref().and_then(|text| text.parse::<Timestamp>().ok());
    NodeTaint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: taint.effect.name().to_owned(),
        time_added: time_added.map(Time),
    }
}

/// A merge patch replaces lists: what others have put into them is in it.
fn patch(claim: &NodeClaim, node: &Node, taints: &[NodeTaint], is_of_use: bool) -> Value {
    let mut labels = claim.metadata.labels.clone().unwrap_or_default();
    labels.insert(keys::REGISTERED.to_owned(), "true".to_owned());
    if is_of_use {
        labels.insert(keys::INITIALIZED.to_owned(), "true".to_owned());
    }
    let uid = claim.metadata.uid.clone().unwrap_or_default();
    let others =
        node.metadata.finalizers.iter().flatten().filter(|finalizer| *finalizer != keys::TERMINATION_FINALIZER);
    let finalizers: Vec<&str> = others.map(String::as_str).chain([keys::TERMINATION_FINALIZER]).collect();
    let others = node.metadata.owner_references.iter().flatten().filter(|owner| owner.uid != uid);
    let mut owners: Vec<Value> = others.map(|owner| json!(owner)).collect();
    owners.push(json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "name": claim.metadata.name,
        "uid": uid,
        "blockOwnerDeletion": true,
    }));
    json!({
        "metadata": {
            "labels": labels,
            "annotations": claim.metadata.annotations.clone().unwrap_or_default(),
            "finalizers": finalizers,
            "ownerReferences": owners,
        },
        "spec": { "taints": taints },
    })
}

fn is_same(node: &NodeTaint, taint: &Taint) -> bool {
    node.key == taint.key && node.effect == taint.effect.name()
}
