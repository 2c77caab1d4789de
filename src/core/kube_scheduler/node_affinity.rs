//! NodeAffinity: nodeSelector and required node affinity.

use k8s_openapi::api::core::v1::Node;

use crate::snapshot::Pod;

use super::objects::node_labels;
use super::selectors::node_selector_matches;
use super::{Filter, FilterRefusal};

pub(super) fn refusal(pod: &Pod, node: &Node) -> Option<FilterRefusal> {
    let labels = node_labels(node);
    if let Some((key, value)) = pod.spec.node_selector.iter().find(|(key, value)| labels.get(*key) != Some(*value)) {
        return Some(FilterRefusal::new(Filter::NodeAffinity, format!("nodeSelector {key}={value} does not match")));
    }
    let required = pod
        .spec
        .affinity
        .as_ref()?
        .node_affinity
        .as_ref()?
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    (!node_selector_matches(required, node))
        .then(|| FilterRefusal::new(Filter::NodeAffinity, "no term of the required node affinity matches"))
}

pub(super) fn matches(pod: &Pod, node: &Node) -> bool {
    refusal(pod, node).is_none()
}
