//! Priorities, for pods that were never admitted: an API server writes them into each pod.
//! Source: `k8s.io/kubernetes/plugin/pkg/admission/priority`.

use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::snapshot::{Pod, Snapshot};

/// Whether some pod has no priority, but would be given one.
pub fn is_missing(snapshot: &Snapshot) -> bool {
    let has_default = global_default(snapshot).is_some();
    snapshot
        .pods
        .iter()
        .any(|pod| pod.spec.priority.is_none() && (has_default || pod.spec.priority_class_name.is_some()))
}

/// Gives each pod that has none the priority and the preemption policy of its class.
pub fn apply(snapshot: &mut Snapshot) {
    let mut pods = std::mem::take(&mut snapshot.pods);
    for pod in pods.iter_mut().filter(|pod| pod.spec.priority.is_none()) {
        complete(pod, snapshot);
    }
    snapshot.pods = pods;
}

/// The same for one pod.
pub fn complete(pod: &mut Pod, snapshot: &Snapshot) {
    let class = match pod.spec.priority_class_name.as_deref() {
        Some("system-cluster-critical") => return pod.spec.priority = Some(2_000_000_000),
        Some("system-node-critical") => return pod.spec.priority = Some(2_000_001_000),
        Some(name) => snapshot.priority_classes.iter().find(|class| class.metadata.name.as_deref() == Some(name)),
        None => global_default(snapshot),
    };
    if let Some(class) = class {
        pod.spec.priority = Some(class.value);
        pod.spec.preemption_policy = pod.spec.preemption_policy.take().or_else(|| class.preemption_policy.clone());
    }
}

/// Of several the lowest counts, as for the API server.
fn global_default(snapshot: &Snapshot) -> Option<&PriorityClass> {
    let defaults = snapshot.priority_classes.iter().filter(|class| class.global_default == Some(true));
    defaults.min_by_key(|class| (class.value, class.metadata.name.clone()))
}
