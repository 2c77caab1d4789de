//! The pods of CapacityBuffers, put into the cluster as if they waited there, so that the same rules judge their places.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::inputs::Inputs;
use crate::model::Resources;
use crate::snapshot::requests::effective_requests;
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::capacity_buffer::CapacityBuffer;
use cutlist_api::keys;

use super::daemons::limit_ranges;

/// Whether a plan means room of a buffer by this name; a colon is in no name of Kubernetes.
pub(super) fn stands_for_room(pod: &str) -> bool {
    pod.contains("/buffer:")
}

/// A copy of the cluster with the pods of its buffers.
pub(super) fn written_out(inputs: &Inputs<'_>) -> Snapshot {
    let mut snapshot = inputs.snapshot.clone();
    if inputs.policy.feature_gates.capacity_buffer {
        // What the definitions have goes before what the cluster has; what we applied and they lack is on its way out.
        let place = |buffer: &CapacityBuffer| {
            let metadata = &buffer.metadata;
            (metadata.namespace.clone().unwrap_or_else(|| "default".to_owned()), metadata.name.clone())
        };
        let mut buffers = BTreeMap::new();
        for buffer in &inputs.snapshot.capacity_buffers {
            let labels = buffer.metadata.labels.as_ref();
            if labels.is_none_or(|labels| labels.get(keys::MANAGED_BY).is_none_or(|by| by != keys::FIELD_MANAGER)) {
                buffers.insert(place(buffer), buffer);
            }
        }
        buffers.extend(inputs.capacity_buffers.iter().map(|buffer| (place(buffer), buffer)));
        snapshot.pods.extend(buffers.into_values().filter_map(|buffer| pods(buffer, inputs)).flatten());
    }
    snapshot
}

/// `None` where the buffer asks for nothing that can be found.
fn pods(buffer: &CapacityBuffer, inputs: &Inputs<'_>) -> Option<Vec<Pod>> {
    let snapshot = inputs.snapshot;
    let spec = &buffer.spec;
    let active = spec.provisioning_strategy.as_deref().is_none_or(|it| it.ends_with("/active-capacity"));
    let namespace = buffer.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let (template, replicas) = match (&spec.pod_template_ref, &spec.scalable_ref) {
        (Some(reference), None) => {
            let defined = object(inputs.pod_templates, &namespace, &reference.name);
            let template = defined.or_else(|| object(&snapshot.pod_templates, &namespace, &reference.name))?;
            (template["template"].clone(), 0)
        }
        (None, Some(reference)) if reference.api_group == "apps" => {
            let object = match reference.kind.as_str() {
                "Deployment" => object(&snapshot.deployments, &namespace, &reference.name)?,
                "StatefulSet" => object(&snapshot.stateful_sets, &namespace, &reference.name)?,
                "ReplicaSet" => object(&snapshot.replica_sets, &namespace, &reference.name)?,
                _ => return None,
            };
            (object["spec"]["template"].clone(), object["spec"]["replicas"].as_i64().unwrap_or(1))
        }
        _ => return None,
    };
    let mut pod: Pod = serde_json::from_value(template).ok().filter(|_| active)?;
    pod.metadata.namespace = namespace;
    limit_ranges(&mut pod, snapshot);
    pod.spec.volumes.clear();
    pod.spec.scheduling_gates.clear();
    pod.spec.node_name = None;
    let count = count(buffer, replicas, &effective_requests(&pod).ok()?)?;
    let name = buffer.metadata.name.clone().unwrap_or_default();
    let numbered = |number: i64| {
        let mut pod = pod.clone();
        pod.metadata.name = format!("buffer:{name}:{number}");
        pod
    };
    // No more than this are planned for.
    Some((0..count.min(10_000)).map(numbered).collect())
}

fn object<'a, T: serde::Serialize + 'a>(
    objects: impl IntoIterator<Item = &'a T>,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let mut objects = objects.into_iter().filter_map(|object| serde_json::to_value(object).ok());
    objects.find(|object| {
        let metadata = &object["metadata"];
        metadata["name"] == json!(name) && metadata["namespace"].as_str().unwrap_or("default") == namespace
    })
}

/// The larger of what is asked for, as far as the limits go.
fn count(buffer: &CapacityBuffer, replicas: i64, requests: &Resources) -> Option<i64> {
    let spec = &buffer.spec;
    let share = spec.percentage.filter(|_| spec.scalable_ref.is_some()).map(|percentage| {
        let share = i64::from(percentage) * replicas;
        let rounded_up = share / 100 + i64::from(share % 100 > 0);
        if percentage > 0 { rounded_up.max(1) } else { 0 }
    });
    let mut count = spec.replicas.map(i64::from).max(share);
    for (name, limit) in spec.limits.iter().flatten() {
        let limit: i64 = limit.to_string().parse().map_or(0, |quantity| Resources::amount(name, quantity));
        if requests.get(name) > 0 {
            let fit = limit / requests.get(name);
            count = Some(count.map_or(fit, |count| count.min(fit)));
        }
    }
    count
}
