//! `karpenter.sh/v1beta1 NodePool` to `karpenter.sh/v1`.

use serde_json::Value;

use super::editor::Spot;
use super::object_editor::ObjectEditor;
use crate::definitions::document::spans;
use crate::definitions::kinds::Kind;

pub const REFERENCE: &str = "/spec/template/spec/nodeClassRef";
pub const KUBELET: &str = "/spec/template/spec/kubelet";

pub fn migrate(object: &mut ObjectEditor<'_>) {
    if !object.set("/apiVersion", Kind::NodePool.api_version()) {
        return;
    }
    reference(object, REFERENCE);
    disruption(object);
    limits(object);
    let resources = "/spec/template/spec/resources";
    if object.has(resources) && object.remove(resources) {
        object.note(
            "/spec/template/spec",
            "`spec.template.spec.resources` is dropped: a NodePool of v1 has no such field",
        );
    }
}

/// To a class: group, kind and name are all required now.
pub fn reference(object: &mut ObjectEditor<'_>, at: &str) {
    if !object.has(at) {
        if !object.is_partial {
            let message = format!("`{}` is missing: v1 requires it", spans::field_path(at));
            object.by_hand(spans::parent(at), message, "name the EC2NodeClass: group, kind and name");
        }
        return;
    }
    let field = |name: &str| spans::join(at, name);
    if !object.is_partial && !object.has(&field("name")) {
        let message = format!("`{}` names no class: v1 requires it", spans::field_path(at));
        object.by_hand(at, message, "add the `name` of the EC2NodeClass");
    }
    let is_of_azure = object.get("").is_some_and(|it| it.to_string().contains("karpenter.azure.com"));
    if is_of_azure && !object.has(&field("kind")) {
        let message = format!("`{}` names no kind, and the pool is not AWS's", spans::field_path(at));
        return object.by_hand(at, message, "add `group` and `kind` of the class");
    }
    let group = object.str(&field("apiVersion")).map(|version| version.split('/').next().unwrap_or(version).to_owned());
    match group {
        Some(_) if object.has(&field("group")) => {
            object.remove(&field("apiVersion"));
        }
        Some(group) => {
            let is_renamed = object.rename(&field("apiVersion"), "group");
            if is_renamed {
                object.set(&field("group"), group);
            }
        }
        None if !object.is_partial && !object.has(&field("group")) => {
            object.insert(at, "group", Kind::EC2NodeClass.group(), Spot::First);
        }
        None => {}
    }
    match object.str(&field("kind")) {
        None if !object.is_partial => {
            let spot = if object.has(&field("group")) { Spot::After("group") } else { Spot::First };
            object.insert(at, "kind", Kind::EC2NodeClass.name(), spot);
        }
        Some("AWSNodeTemplate") => {
            object.set(&field("kind"), Kind::EC2NodeClass.name());
        }
        _ => {}
    }
}

fn disruption(object: &mut ObjectEditor<'_>) {
    let at = "/spec/disruption";
    let (after, policy) = ("/spec/disruption/consolidateAfter", "/spec/disruption/consolidationPolicy");
    if object.has("/spec/disruption/expireAfter") {
        object.relocate("/spec/disruption/expireAfter", "/spec/template/spec", "expireAfter");
    }
    let had_policy = object.str(policy).map(str::to_owned);
    if had_policy.as_deref() == Some("WhenUnderutilized") {
        object.set(policy, "WhenEmptyOrUnderutilized");
    }
    if object.get(at).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
        // The default is the same as it was.
        object.remove(at);
        return;
    }
    if had_policy.as_deref() == Some("WhenUnderutilized") && object.str(after).is_some_and(|it| it != "Never") {
        object
            .note(after, "`consolidateAfter` is kept: v1beta1 refused it beside `WhenUnderutilized`, and v1 takes it");
    }
    let is_needed = object.has(at) && !object.has(after) && (!object.is_partial || had_policy.is_some());
    if !is_needed {
        return;
    }
    match had_policy.as_deref() {
        Some("WhenEmpty") if object.is_partial => {}
        Some("WhenEmpty") => object.by_hand(
            policy,
            "`consolidationPolicy: WhenEmpty` has no `consolidateAfter`: v1beta1 required it, and so does v1",
            "add `consolidateAfter`: how long a node is empty before it goes",
        ),
        _ if object.editor.value().pointer(&object.in_document(after)).is_some() => {
            object.set(after, "0s");
        }
        Some(_) => {
            object.insert(at, "consolidateAfter", "0s", Spot::After("consolidationPolicy"));
        }
        None => {
            object.insert(at, "consolidateAfter", "0s", Spot::First);
        }
    }
}

/// What was under `limits.resources` is under `limits`.
pub fn limits(object: &mut ObjectEditor<'_>) {
    const RESOURCES: &str = "/spec/limits/resources";
    let Some(Value::Object(resources)) = object.get(RESOURCES).cloned() else { return };
    let whole = object.in_document(RESOURCES);
    if object.editor.unwrap_block(&whole).is_ok() {
        return;
    }
    for name in resources.keys() {
        if !object.relocate(&spans::join(RESOURCES, name), "/spec/limits", name) {
            return;
        }
    }
    object.remove_if_empty(RESOURCES);
    object.remove_if_empty("/spec/limits");
}
