//! The pods of CapacityBuffers, put into the cluster as if they waited there, so that the same rules judge their places.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::inputs::Inputs;
use crate::model::Resources;
use crate::snapshot::requests::effective_requests;
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::capacity_buffer::CapacityBuffer;
use cutlist_api::keys;

use super::daemons::{limit_ranges, runtime_class};

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
        let asked: Vec<(&CapacityBuffer, Pod, i64)> =
            buffers.into_values().filter_map(|buffer| pod(buffer, inputs)).collect();
        let most = most_of_each(asked.iter().map(|(_, _, count)| *count).collect());
        for (buffer, pod, count) in asked {
            snapshot.pods.extend(numbered(buffer, &pod, count.min(most)));
        }
    }
    snapshot
}

/// No more than 20,000 pods are planned for, of which one buffer has at most 10,000, and none more than another that asks for more.
fn most_of_each(mut asked: Vec<i64>) -> i64 {
    asked.sort_unstable_by(|one, other| other.cmp(one));
    let mut smaller: i64 = asked.iter().map(|count| (*count).clamp(0, 10_000)).sum();
    let mut most = 10_000;
    if smaller <= 20_000 {
        return most;
    }
    for (larger, count) in (1..).zip(&asked) {
        smaller -= (*count).clamp(0, 10_000);
        most = (20_000 - smaller) / larger;
        if asked.get(usize::try_from(larger).unwrap_or(usize::MAX)).is_none_or(|next| *next <= most) {
            break;
        }
    }
    most
}

/// One of the pods, and how many are asked for. `None` where the buffer asks for nothing that can be found.
fn pod<'b>(buffer: &'b CapacityBuffer, inputs: &Inputs<'_>) -> Option<(&'b CapacityBuffer, Pod, i64)> {
    let snapshot = inputs.snapshot;
    let spec = &buffer.spec;
    let active = spec.provisioning_strategy.as_deref().is_none_or(|it| it.ends_with("/active-capacity"));
    let namespace = buffer.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let (template, replicas) = match (&spec.pod_template_ref, &spec.scalable_ref) {
        (Some(reference), None) => {
            let defined = object(inputs.pod_templates, |it| &it.metadata, &namespace, &reference.name);
            let of_cluster = || object(&snapshot.pod_templates, |it| &it.metadata, &namespace, &reference.name);
            let template = defined.or_else(of_cluster)?;
            (template["template"].clone(), 0)
        }
        (None, Some(reference)) if reference.api_group == "apps" => {
            let object = match reference.kind.as_str() {
                "Deployment" => object(&snapshot.deployments, |it| &it.metadata, &namespace, &reference.name)?,
                "StatefulSet" => object(&snapshot.stateful_sets, |it| &it.metadata, &namespace, &reference.name)?,
                "ReplicaSet" => object(&snapshot.replica_sets, |it| &it.metadata, &namespace, &reference.name)?,
                _ => return None,
            };
            (object["spec"]["template"].clone(), object["spec"]["replicas"].as_i64().unwrap_or(1))
        }
        _ => return None,
    };
    let mut pod: Pod = serde_json::from_value(template).ok().filter(|_| active)?;
    pod.metadata.namespace = namespace;
    limit_ranges(&mut pod, snapshot);
    runtime_class(&mut pod, snapshot, snapshot.pods.iter());
    pod.spec.volumes.clear();
    pod.spec.scheduling_gates.clear();
    pod.spec.node_name = None;
    let count = count(buffer, replicas, &effective_requests(&pod).ok()?)?;
    Some((buffer, pod, count))
}

fn numbered(buffer: &CapacityBuffer, pod: &Pod, count: i64) -> impl Iterator<Item = Pod> {
    let name = buffer.metadata.name.clone().unwrap_or_default();
    (0..count).map(move |number| {
        let mut pod = pod.clone();
        pod.metadata.name = format!("buffer:{name}:{number}");
        pod
    })
}

fn object<'a, T: serde::Serialize + 'a>(
    objects: impl IntoIterator<Item = &'a T>,
    metadata: fn(&T) -> &ObjectMeta,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let is_meant = |object: &&T| {
        let metadata = metadata(object);
        metadata.name.as_deref() == Some(name) && metadata.namespace.as_deref().unwrap_or("default") == namespace
    };
    serde_json::to_value(objects.into_iter().find(is_meant)?).ok()
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

#[cfg(test)]
mod tests {
    use super::most_of_each;

    #[test]
    fn many_buffers_share_what_is_planned_for_all() {
        for (asked, most) in [
            (vec![10, 0, 20], 10_000),
            (vec![30_000, 9_000], 10_000),
            (vec![30_000, 5, -7, 10_000], 9_997),
            (vec![i64::MAX; 200], 100),
            (vec![1; 50_000], 0),
            (vec![], 10_000),
        ] {
            assert_eq!(most_of_each(asked.clone()), most, "{} buffers", asked.len());
        }
    }
}
