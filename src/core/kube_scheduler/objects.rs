//! What filters read of nodes and pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PodAffinityTerm};

use crate::snapshot::Pod;

pub(super) type Labels = BTreeMap<String, String>;

static NO_LABELS: Labels = BTreeMap::new();

pub(super) fn node_labels(node: &Node) -> &Labels {
    labels(&node.metadata)
}

pub(super) fn node_name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

pub(super) fn labels(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> &Labels {
    metadata.labels.as_ref().unwrap_or(&NO_LABELS)
}

pub(super) fn name(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Option<&str> {
    metadata.name.as_deref()
}

/// Whether a pod keeps others away from where it is.
pub fn repels(pod: &Pod) -> bool {
    !required_anti_affinity(pod).is_empty()
}

pub(super) fn required_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.pod_affinity.as_ref());
    affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

pub(super) fn required_anti_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}
