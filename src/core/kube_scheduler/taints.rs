//! NodeUnschedulable and TaintToleration.

use k8s_openapi::api::core::v1::{Node, Taint, Toleration};

use crate::snapshot::{Pod, nodes};

use super::{Filter, FilterRefusal};

/// A cordoned node takes only pods that tolerate the taint which stands for it.
pub(super) fn unschedulable(pod: &Pod, node: &Node) -> Option<FilterRefusal> {
    let cordoned =
        node.spec.as_ref()?.unschedulable? && !is_tolerated(pod, "node.kubernetes.io/unschedulable", "", "NoSchedule");
    cordoned.then(|| FilterRefusal::new(Filter::NodeUnschedulable, "the node is cordoned"))
}

pub(super) fn untolerated(pod: &Pod, node: &Node) -> Option<FilterRefusal> {
    let taint = untolerated_taint(pod, node)?;
    let value = taint.value.as_deref().map(|value| format!("={value}")).unwrap_or_default();
    Some(FilterRefusal::new(
        Filter::TaintToleration,
        format!("taint {}{value}:{} is not tolerated", taint.key, taint.effect),
    ))
}

/// The first taint of the node that keeps this pod away.
pub(super) fn untolerated_taint<'n>(pod: &Pod, node: &'n Node) -> Option<&'n Taint> {
    let taints = node.spec.as_ref()?.taints.as_deref()?;
    taints
        .iter()
        .filter(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"))
        .find(|taint| !is_tolerated(pod, &taint.key, taint.value.as_deref().unwrap_or_default(), &taint.effect))
}

/// How many taints of the node ask the pod to go elsewhere if it can.
pub(super) fn discouraging(pod: &Pod, node: &Node) -> usize {
    let soft = nodes::taints(node).iter().filter(|taint| taint.effect == "PreferNoSchedule");
    soft.filter(|taint| !is_tolerated(pod, &taint.key, taint.value.as_deref().unwrap_or_default(), &taint.effect))
        .count()
}

/// Whether some toleration of the pod covers a taint of this key, value and effect.
pub(crate) fn is_tolerated(pod: &Pod, key: &str, value: &str, effect: &str) -> bool {
    pod.spec.tolerations.iter().any(|toleration| tolerates(toleration, key, value, effect))
}

/// An empty effect covers every effect; an empty key covers every key, and only with Exists.
fn tolerates(toleration: &Toleration, key: &str, value: &str, effect: &str) -> bool {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let (its_key, its_effect) = (text(&toleration.key), text(&toleration.effect));
    if !(its_effect.is_empty() || its_effect == effect) || !(its_key.is_empty() || its_key == key) {
        return false;
    }
    match text(&toleration.operator).as_str() {
        "Exists" => true,
        "" | "Equal" => !its_key.is_empty() && text(&toleration.value) == value,
        _ => false,
    }
}
