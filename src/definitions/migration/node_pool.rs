//! `karpenter.sh/v1beta1 NodePool` to `karpenter.sh/v1`.

use serde_json::Value;

use super::editor::Spot;
use super::hand::Hand;
use crate::definitions::document::spans;
use crate::definitions::kinds::Kind;

pub const REFERENCE: &str = "/spec/template/spec/nodeClassRef";
pub const KUBELET: &str = "/spec/template/spec/kubelet";

pub fn migrate(hand: &mut Hand<'_>) {
    if !hand.set("/apiVersion", Kind::NodePool.api_version()) {
        return;
    }
    reference(hand, REFERENCE);
    disruption(hand);
    limits(hand);
    let resources = "/spec/template/spec/resources";
    if hand.has(resources) && hand.remove(resources) {
        hand.note(
            "/spec/template/spec",
            "`spec.template.spec.resources` is dropped: a NodePool of v1 has no such field",
        );
    }
}

/// To a class: group, kind and name are all required now.
pub fn reference(hand: &mut Hand<'_>, at: &str) {
    if !hand.has(at) {
        if !hand.is_partial {
            let message = format!("`{}` is missing: v1 requires it", spans::field_path(at));
            hand.by_hand(spans::parent(at), message, "name the EC2NodeClass: group, kind and name");
        }
        return;
    }
    let field = |name: &str| spans::join(at, name);
    if !hand.is_partial && !hand.has(&field("name")) {
        let message = format!("`{}` names no class: v1 requires it", spans::field_path(at));
        hand.by_hand(at, message, "add the `name` of the EC2NodeClass");
    }
    let is_of_azure = hand.get("").is_some_and(|it| it.to_string().contains("karpenter.azure.com"));
    if is_of_azure && !hand.has(&field("kind")) {
        let message = format!("`{}` names no kind, and the pool is not AWS's", spans::field_path(at));
        return hand.by_hand(at, message, "add `group` and `kind` of the class");
    }
    let group = hand.str(&field("apiVersion")).map(|version| version.split('/').next().unwrap_or(version).to_owned());
    match group {
        Some(_) if hand.has(&field("group")) => {
            hand.remove(&field("apiVersion"));
        }
        Some(group) => {
            let is_renamed = hand.rename(&field("apiVersion"), "group");
            if is_renamed {
                hand.set(&field("group"), group);
            }
        }
        None if !hand.is_partial && !hand.has(&field("group")) => {
            hand.insert(at, "group", Kind::EC2NodeClass.group(), Spot::First);
        }
        None => {}
    }
    match hand.str(&field("kind")) {
        None if !hand.is_partial => {
            let spot = if hand.has(&field("group")) { Spot::After("group") } else { Spot::First };
            hand.insert(at, "kind", Kind::EC2NodeClass.name(), spot);
        }
        Some("AWSNodeTemplate") => {
            hand.set(&field("kind"), Kind::EC2NodeClass.name());
        }
        _ => {}
    }
}

fn disruption(hand: &mut Hand<'_>) {
    let at = "/spec/disruption";
    let (after, policy) = ("/spec/disruption/consolidateAfter", "/spec/disruption/consolidationPolicy");
    if hand.has("/spec/disruption/expireAfter") {
        hand.relocate("/spec/disruption/expireAfter", "/spec/template/spec", "expireAfter");
    }
    let had_policy = hand.str(policy).map(str::to_owned);
    if had_policy.as_deref() == Some("WhenUnderutilized") {
        hand.set(policy, "WhenEmptyOrUnderutilized");
    }
    if hand.get(at).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
        // The default is the same as it was.
        hand.remove(at);
        return;
    }
    if had_policy.as_deref() == Some("WhenUnderutilized") && hand.str(after).is_some_and(|it| it != "Never") {
        hand.note(after, "`consolidateAfter` is kept: v1beta1 refused it beside `WhenUnderutilized`, and v1 takes it");
    }
    let is_needed = hand.has(at) && !hand.has(after) && (!hand.is_partial || had_policy.is_some());
    if !is_needed {
        return;
    }
    match had_policy.as_deref() {
        Some("WhenEmpty") if hand.is_partial => {}
        Some("WhenEmpty") => hand.by_hand(
            policy,
            "`consolidationPolicy: WhenEmpty` has no `consolidateAfter`: v1beta1 required it, and so does v1",
            "add `consolidateAfter`: how long a node is empty before it goes",
        ),
        _ if hand.editor.value().pointer(&hand.in_document(after)).is_some() => {
            hand.set(after, "0s");
        }
        Some(_) => {
            hand.insert(at, "consolidateAfter", "0s", Spot::After("consolidationPolicy"));
        }
        None => {
            hand.insert(at, "consolidateAfter", "0s", Spot::First);
        }
    }
}

/// What was under `limits.resources` is under `limits`.
pub fn limits(hand: &mut Hand<'_>) {
    const RESOURCES: &str = "/spec/limits/resources";
    let Some(Value::Object(resources)) = hand.get(RESOURCES).cloned() else { return };
    let whole = hand.in_document(RESOURCES);
    if hand.editor.unwrap_block(&whole).is_ok() {
        return;
    }
    for name in resources.keys() {
        if !hand.relocate(&spans::join(RESOURCES, name), "/spec/limits", name) {
            return;
        }
    }
    hand.remove_if_empty(RESOURCES);
    hand.remove_if_empty("/spec/limits");
}
