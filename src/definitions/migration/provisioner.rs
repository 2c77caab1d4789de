//! `karpenter.sh/v1alpha5 Provisioner` to a NodePool of version 1, as Karpenter's own conversions do it one after the other.

use serde_json::{Map, Value, json};

use super::editor::Spot;
use super::node_pool;
use super::object_editor::ObjectEditor;
use crate::definitions::document::spans;
use crate::definitions::kinds::Kind;

pub const REFERENCE: &str = "/spec/providerRef";
pub const KUBELET: &str = "/spec/kubeletConfiguration";

const TEMPLATE: &str = "/spec/template/spec";
const REQUIREMENTS: &str = "/spec/template/spec/requirements";

/// Requirements that the webhook filled in where nothing was said of these labels.
const ALWAYS: [(&[&str], &str, &str); 3] = [
    (&["kubernetes.io/os", "beta.kubernetes.io/os"], "kubernetes.io/os", "linux"),
    (&["kubernetes.io/arch", "beta.kubernetes.io/arch"], "kubernetes.io/arch", "amd64"),
    (&["karpenter.sh/capacity-type"], "karpenter.sh/capacity-type", "on-demand"),
];
/// Labels of which any keeps the webhook from choosing instance types.
const OF_TYPES: [&str; 5] = [
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-category",
    "karpenter.k8s.aws/instance-generation",
];

pub fn migrate(object: &mut ObjectEditor<'_>) {
    if !object.set("/apiVersion", Kind::NodePool.api_version()) || !object.set("/kind", Kind::NodePool.name()) {
        return;
    }
    if !object.has("/spec") {
        return object.by_hand("", "the Provisioner has no `spec`", "write a NodePool with a `spec.template`");
    }
    let spec = Value::Object(Map::new());
    if !object.insert("/spec", "template", json!({ "spec": spec }), Spot::First) {
        return;
    }
    metadata(object);
    reference(object);
    if object.has("/spec/requirements") {
        object.relocate("/spec/requirements", TEMPLATE, "requirements");
    }
    if !object.is_partial {
        defaults(object);
    }
    for field in ["taints", "startupTaints"] {
        if object.has(&format!("/spec/{field}")) {
            object.relocate(&format!("/spec/{field}"), TEMPLATE, field);
        }
    }
    expiry(object);
    consolidation(object);
    node_pool::limits(object);
    if object.has("/status") && object.remove("/status") {
        object.note("", "`status` is dropped: the cluster writes it");
    }
    object.remove_if_empty(TEMPLATE);
    object.remove_if_empty("/spec/template");
}

fn metadata(object: &mut ObjectEditor<'_>) {
    let present = ["labels", "annotations"].into_iter().filter(|it| object.has(&format!("/spec/{it}")));
    let present: Vec<&str> = present.collect();
    if present.is_empty() || !object.insert("/spec/template", "metadata", Value::Object(Map::new()), Spot::First) {
        return;
    }
    for field in present {
        object.relocate(&format!("/spec/{field}"), "/spec/template/metadata", field);
    }
}

fn reference(object: &mut ObjectEditor<'_>) {
    if object.has("/spec/provider") {
        object.by_hand(
            "/spec/provider",
            "`spec.provider` has no place in v1: what it says belongs to an EC2NodeClass",
            "write an EC2NodeClass with what stands there, and name it in `spec.template.spec.nodeClassRef`",
        );
    }
    if object.has(REFERENCE) {
        let kind = object.str("/spec/providerRef/kind").unwrap_or("AWSNodeTemplate").to_owned();
        if !["AWSNodeTemplate", Kind::EC2NodeClass.name()].contains(&kind.as_str()) {
            let message = format!("`spec.providerRef` names a {kind}, which is not AWS's");
            return object.by_hand(REFERENCE, message, "name the class in `spec.template.spec.nodeClassRef`");
        }
        if !object.relocate(REFERENCE, TEMPLATE, "nodeClassRef") {
            return;
        }
    } else if object.has("/spec/provider") || object.is_partial {
        return;
    }
    node_pool::reference(object, node_pool::REFERENCE);
}

/// What the webhook wrote, and v1 does not.
fn defaults(object: &mut ObjectEditor<'_>) {
    let given = object.get(REQUIREMENTS).and_then(Value::as_array).cloned().unwrap_or_default();
    let labels = object.get("/spec/template/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    if object.has("/spec/requirements") || object.has("/spec/labels") {
        // Could not be moved, and is said already.
        return;
    }
    let has = |key: &&str| {
        given.iter().any(|it| it.get("key").and_then(Value::as_str) == Some(*key)) || labels.contains_key(*key)
    };
    let requirement =
        |key: &str, operator: &str, values: &[&str]| json!({ "key": key, "operator": operator, "values": values });
    let mut added = Vec::new();
    for (keys, key, value) in ALWAYS {
        if !keys.iter().any(&has) {
            added.push(requirement(key, "In", &[value]));
        }
    }
    if !OF_TYPES.iter().any(&has) {
        added.push(requirement("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"]));
        added.push(requirement("karpenter.k8s.aws/instance-generation", "Gt", &["2"]));
    }
    if added.is_empty() {
        return;
    }
    let keys: Vec<String> = added.iter().filter_map(|it| Some(format!("`{}`", it.get("key")?.as_str()?))).collect();
    let is_made = if object.has(REQUIREMENTS) {
        let hint = "add the requirements that the webhook of v1alpha5 filled in";
        added.iter().all(|item| object.edit(REQUIREMENTS, hint, |editor, pointer| editor.append(pointer, item)))
    } else {
        object.insert(TEMPLATE, "requirements", Value::Array(added), Spot::Last)
    };
    if is_made {
        let message = format!("requirements on {} are written: v1alpha5 filled them in by itself", keys.join(", "));
        object.note(REQUIREMENTS, message);
    }
}

fn expiry(object: &mut ObjectEditor<'_>) {
    const OLD: &str = "/spec/ttlSecondsUntilExpired";
    const NEW: &str = "/spec/template/spec/expireAfter";
    if !object.has(OLD) {
        if !object.is_partial && object.insert(TEMPLATE, "expireAfter", "Never", Spot::Last) {
            object.note(NEW, "`expireAfter: Never` is written: without `ttlSecondsUntilExpired` nodes never expired, and v1 ends them after 720h");
        }
        return;
    }
    let Some(duration) = seconds(object, OLD) else { return };
    if object.relocate(OLD, TEMPLATE, "expireAfter") {
        object.set(NEW, duration);
    }
}

fn consolidation(object: &mut ObjectEditor<'_>) {
    const BLOCK: &str = "/spec/consolidation";
    const EMPTY: &str = "/spec/ttlSecondsAfterEmpty";
    let is_enabled = object.get("/spec/consolidation/enabled") == Some(&Value::Bool(true));
    let (has_block, has_empty) = (object.has(BLOCK), object.has(EMPTY));
    let policy = |policy: &str, after: &str| json!({ "consolidationPolicy": policy, "consolidateAfter": after });
    match (is_enabled, has_empty) {
        (true, true) => object.by_hand(
            EMPTY,
            "`ttlSecondsAfterEmpty` and `consolidation.enabled` exclude each other, and v1alpha5 refused both together",
            "write `spec.disruption` with the one that is meant: `WhenEmpty`, or `WhenEmptyOrUnderutilized`, and `consolidateAfter`",
        ),
        (true, false) => {
            object.replace(BLOCK, "disruption", &policy("WhenEmptyOrUnderutilized", "0s"));
        }
        (false, true) => {
            let Some(duration) = seconds(object, EMPTY) else { return };
            if !has_block || object.remove(BLOCK) {
                object.replace(EMPTY, "disruption", &policy("WhenEmpty", &duration));
            }
        }
        (false, false) if object.is_partial && !has_block => {}
        (false, false) => {
            let never = policy("WhenEmpty", "Never");
            let is_written = match has_block {
                true => object.replace(BLOCK, "disruption", &never),
                false => object.insert("/spec", "disruption", never, Spot::Last),
            };
            if is_written {
                object.note(
                    "/spec/disruption",
                    "`consolidateAfter: Never` is written: the Provisioner removed no empty and no underutilized node, and v1 does by default",
                );
            }
        }
    }
}

/// A number of seconds as a duration.
fn seconds(object: &mut ObjectEditor<'_>, pointer: &str) -> Option<String> {
    match object.get(pointer).and_then(Value::as_u64) {
        Some(seconds) => Some(format!("{seconds}s")),
        None => {
            let message = format!("`{}` is left as it is: it is no number of seconds", spans::field_path(pointer));
            object.by_hand(pointer, message, "write a duration, such as `30s`, into the field of v1");
            None
        }
    }
}
