//! The pods that DaemonSets will run on a node.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use serde_json::json;

use crate::snapshot::{Pod, Snapshot};
use cutlist_api::node_pool::IntOrString;

/// Taints that the DaemonSet controller lets each of its pods tolerate: key and effect.
pub const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// A pod of each DaemonSet, under the set's name. O(DaemonSets x pods).
pub(super) fn daemon_pods(snapshot: &Snapshot) -> Vec<Pod> {
    snapshot.daemon_sets.iter().filter_map(|daemon_set| daemon_pod(daemon_set, snapshot)).collect()
}

/// The pod that a DaemonSet would run on a node: one like the newest that runs, or one of the template, with what the
/// LimitRanges of its namespace and its RuntimeClass add.
fn daemon_pod(daemon_set: &DaemonSet, snapshot: &Snapshot) -> Option<Pod> {
    let template = serde_json::to_value(&daemon_set.spec.as_ref()?.template).ok()?;
    let mut pod: Pod = serde_json::from_value(template).ok()?;
    pod.metadata.name = daemon_set.metadata.name.clone()?;
    pod.metadata.namespace = daemon_set.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    match newest(daemon_set, snapshot) {
        Some(running) => {
            let node_affinity = pod.spec.affinity.take().and_then(|affinity| affinity.node_affinity);
            pod.spec = running.spec.clone();
            pod.spec.node_name = None;
            pod.status.container_statuses = running.status.container_statuses.clone();
            pod.status.init_container_statuses = running.status.init_container_statuses.clone();
            pod.spec.affinity.get_or_insert_default().node_affinity = node_affinity;
        }
        None => {
            limit_ranges(&mut pod, snapshot);
            runtime_class(&mut pod, snapshot, snapshot.pods.iter());
        }
    }
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon_set.metadata.name, "uid": "", "controller": true
    });
    pod.metadata.owner_references = vec![serde_json::from_value(owner).ok()?].into();
    // The DaemonSet controller adds these to every pod it makes.
    for (key, effect) in TOLERATED {
        let toleration = json!({ "key": key, "operator": "Exists", "effect": effect });
        pod.spec.tolerations.push(serde_json::from_value(toleration).ok()?);
    }
    Some(pod)
}

fn newest<'a>(daemon_set: &DaemonSet, snapshot: &'a Snapshot) -> Option<&'a Pod> {
    let is_of_set = |pod: &&Pod| {
        let mut owners = pod.metadata.owner_references.iter();
        let owned = owners.any(|it| it.kind == "DaemonSet" && Some(&it.name) == daemon_set.metadata.name.as_ref());
        owned && Some(&pod.metadata.namespace) == daemon_set.metadata.namespace.as_ref() && !pod.is_terminal()
    };
    let running = snapshot.pods.iter().filter(is_of_set);
    running.max_by(|one, two| {
        let (one, two) = (&one.metadata, &two.metadata);
        (&one.creation_timestamp, &one.name).cmp(&(&two.creation_timestamp, &two.name))
    })
}

/// Requests and limits that admission fills in where a container has none.
pub fn limit_ranges(pod: &mut Pod, snapshot: &Snapshot) {
    let ranges = snapshot.limit_ranges.iter().filter(|range| {
        range.metadata.namespace.as_deref().unwrap_or("default") == pod.metadata.namespace && range.spec.is_some()
    });
    for item in ranges.flat_map(|range| range.spec.iter().flat_map(|spec| &spec.limits)) {
        if item.type_ != "Container" {
            continue;
        }
        let first = |name: &str, sources: &[&Option<BTreeMap<String, _>>]| {
            let quantity = sources.iter().find_map(|source| source.as_ref()?.get(name));
            quantity.map(|it: &k8s_openapi::apimachinery::pkg::api::resource::Quantity| it.0.clone())
        };
        for container in pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers) {
            let resources = &mut container.resources;
            let sources = [&item.default_request, &item.default, &item.max, &item.min];
            let names: Vec<String> =
                sources.iter().filter_map(|it| it.as_ref()).flat_map(|it| it.keys().cloned()).collect();
            for name in names {
                let stated = resources.requests.get(&name).or_else(|| resources.limits.get(&name)).cloned();
                let request = stated.or_else(|| first(&name, &sources).map(IntOrString::String));
                resources.requests.extend(request.map(|request| (name.clone(), request)));
                if !resources.limits.contains_key(&name)
                    && let Some(limit) = first(&name, &[&item.default, &item.max])
                {
                    resources.limits.insert(name, IntOrString::String(limit));
                }
            }
        }
    }
}

/// What admission adds by the RuntimeClass of a pod; where the class is not known, what the last of `admitted` has that is of it.
pub fn runtime_class<'p>(pod: &mut Pod, snapshot: &Snapshot, mut admitted: impl DoubleEndedIterator<Item = &'p Pod>) {
    let Some(name) = pod.spec.runtime_class_name.clone() else { return };
    let mut classes = snapshot.runtime_classes.iter();
    let Some(class) = classes.find(|class| class.metadata.name.as_ref() == Some(&name)) else {
        let is_alike = |it: &&Pod| it.spec.runtime_class_name.as_ref() == Some(&name) && !it.spec.overhead.is_empty();
        if let Some(alike) = admitted.rfind(is_alike).filter(|_| pod.spec.overhead.is_empty()) {
            pod.spec.overhead = alike.spec.overhead.clone();
        }
        return;
    };
    let fixed = class.overhead.as_ref().and_then(|overhead| overhead.pod_fixed.as_ref());
    if let Some(fixed) = fixed.filter(|_| pod.spec.overhead.is_empty()) {
        for (resource, quantity) in fixed {
            pod.spec.overhead.insert(resource.clone(), IntOrString::String(quantity.0.clone()));
        }
    }
    if let Some(scheduling) = &class.scheduling {
        let mut selector = scheduling.node_selector.clone().unwrap_or_default();
        selector.extend(pod.spec.node_selector.iter().map(|(key, value)| (key.clone(), value.clone())));
        pod.spec.node_selector = selector.into();
        pod.spec.tolerations.extend(scheduling.tolerations.iter().flatten().cloned());
    }
}
