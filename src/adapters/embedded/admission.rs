//! What the API server writes into a pod that somebody creates: the defaults of its namespace, its priority, and what its RuntimeClass
//! adds.
//! Source: `k8s.io/kubernetes/plugin/pkg/admission/{limitranger,priority,runtimeclass}`.

use crate::core::check::daemons::{limit_ranges, runtime_class};
use crate::core::snapshot::Pod;

use super::state::World;

impl World {
    pub(super) fn admit(&self, pod: &mut Pod) {
        limit_ranges(pod, &self.others);
        runtime_class(pod, &self.others, self.pods.values());
        if pod.spec.priority.is_none() {
            self.set_priority(pod);
        }
    }

    /// By its class, or by the one for pods without any; of several of those the lowest.
    fn set_priority(&self, pod: &mut Pod) {
        let mut classes = self.others.priority_classes.iter();
        let class = match pod.spec.priority_class_name.as_deref() {
            Some("system-cluster-critical") => return pod.spec.priority = Some(2_000_000_000),
            Some("system-node-critical") => return pod.spec.priority = Some(2_000_001_000),
            Some(name) => classes.find(|class| class.metadata.name.as_deref() == Some(name)),
            None => classes
                .filter(|class| class.global_default == Some(true))
                .min_by_key(|class| (class.value, class.metadata.name.clone())),
        };
        pod.spec.priority = Some(class.map_or(0, |class| class.value));
        let policy = class.and_then(|class| class.preemption_policy.clone());
        pod.spec.preemption_policy = pod.spec.preemption_policy.take().or(policy);
    }
}
