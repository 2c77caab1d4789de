//! Default spread constraints, written into the pods that they apply to, so that the filters find them there.
//! kube-scheduler does the same each time it looks at a pod, if its configuration lists the same constraints.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use serde_json::json;

use crate::inputs::Inputs;
use crate::snapshot::{Pod, Snapshot};

/// A copy of the cluster in which pods carry the defaults of the settings. O(pods x services).
pub(super) fn written_out(inputs: &Inputs<'_>) -> Snapshot {
    let mut snapshot = inputs.snapshot.clone();
    let defaults = &inputs.policy.scheduling.default_topology_spread_constraints;
    if defaults.is_empty() {
        return snapshot;
    }
    for pod in &mut snapshot.pods {
        let of_a_daemon = pod.metadata.owner_references.iter().any(|owner| owner.kind == "DaemonSet");
        if !pod.spec.topology_spread_constraints.is_empty() || of_a_daemon {
            continue;
        }
        let required = requirements(pod, inputs.snapshot);
        if required.is_empty() {
            continue;
        }
        for default in defaults {
            // Settings are plain data; they always have a JSON form, and it is that of a constraint.
            let form = serde_json::to_value(default).unwrap_or(json!({}));
            if let Ok(mut constraint) = serde_json::from_value::<TopologySpreadConstraint>(form) {
                let match_expressions = Some(required.clone());
                constraint.label_selector = Some(LabelSelector { match_expressions, match_labels: None });
                pod.spec.topology_spread_constraints.push(constraint);
            }
        }
    }
    snapshot
}

/// What the Services that select the pod ask for, and what its controller does.
fn requirements(pod: &Pod, snapshot: &Snapshot) -> Vec<LabelSelectorRequirement> {
    let mut required = Vec::new();
    let of_namespace =
        |metadata: &ObjectMeta| metadata.namespace.as_deref().unwrap_or("default") == pod.metadata.namespace;
    for service in snapshot.services.iter().filter(|service| of_namespace(&service.metadata)) {
        let asked = service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
        if asked.iter().all(|(key, value)| pod.metadata.labels.get(key) == Some(value)) {
            required.extend(equalities(&asked));
        }
    }
    let Some(owner) = pod.metadata.owner_references.iter().find(|owner| owner.controller == Some(true)) else {
        return required;
    };
    let is_owner = |metadata: &ObjectMeta| of_namespace(metadata) && metadata.name.as_deref() == Some(&owner.name);
    let selector = match owner.kind.as_str() {
        "ReplicationController" => {
            let mut controllers = snapshot.replication_controllers.iter();
            let controller = controllers.find(|it| is_owner(&it.metadata));
            let asked = controller.and_then(|it| it.spec.as_ref()?.selector.clone()).unwrap_or_default();
            required.extend(equalities(&asked));
            None
        }
        "ReplicaSet" => {
            let set = snapshot.replica_sets.iter().find(|it| is_owner(&it.metadata));
            set.and_then(|it| it.spec.as_ref()).map(|spec| spec.selector.clone())
        }
        "StatefulSet" => {
            let set = snapshot.stateful_sets.iter().find(|it| is_owner(&it.metadata));
            set.and_then(|it| it.spec.as_ref()).map(|spec| spec.selector.clone())
        }
        _ => None,
    };
    if let Some(selector) = selector {
        required.extend(equalities(&selector.match_labels.unwrap_or_default()));
        required.extend(selector.match_expressions.unwrap_or_default());
    }
    required
}

fn equalities(labels: &BTreeMap<String, String>) -> impl Iterator<Item = LabelSelectorRequirement> {
    labels.iter().map(|(key, value)| LabelSelectorRequirement {
        key: key.clone(),
        operator: "In".to_owned(),
        values: Some(vec![value.clone()]),
    })
}
