//! Where a pod stands in kube-scheduler's queue.
//!
//! A node that opens puts all pods back that it could take, and kube-scheduler takes them by priority and then by the time of their last
//! refusal (its plugin `PrioritySort`; source: Kubernetes, `pkg/scheduler/framework/plugins/queuesort`). It writes that refusal on the
//! pod, so the version of the object says of two pods which was refused later; it also takes the nominated node away from a pod that
//! it refuses, so a pod that still has one was not refused since it was told.

use std::cmp::Reverse;

use crate::core::snapshot::Pod;

/// The lesser is taken first: priority, and the version that the last refusal was written in.
pub type Queued = (Reverse<i32>, u64);

/// `before_told`: the pod's version before it was told its node last.
pub fn queued(pod: &Pod, before_told: Option<u64>) -> Queued {
    let is_told = pod.status.nominated_node_name.as_deref().is_some_and(|node| !node.is_empty());
    let refused = before_told.filter(|_| is_told).unwrap_or_else(|| pod.metadata.version());
    (Reverse(pod.spec.priority.unwrap_or_default()), refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(version: &str, priority: i32, told: Option<&str>) -> Pod {
        let pod = json!({
            "metadata": { "name": "web-1", "resourceVersion": version },
            "spec": { "containers": [], "priority": priority },
            "status": { "nominatedNodeName": told },
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn who_was_refused_first_is_taken_first_and_who_matters_more_before_all() {
        let refused_at_9 = queued(&pod("9", 0, None), None);
        assert!(refused_at_9 < queued(&pod("10", 0, None), None), "9 was written before 10");
        assert!(queued(&pod("10", 1, None), None) < refused_at_9, "priority comes first");
    }

    #[test]
    fn telling_a_pod_its_node_does_not_move_it_and_a_refusal_does() {
        let (between, told) = (queued(&pod("11", 0, None), None), Some("node-1"));
        assert!(queued(&pod("20", 0, told), Some(10)) < between, "20 is what we wrote");
        assert!(queued(&pod("20", 0, None), Some(10)) > between, "20 is a refusal since");
        assert!(queued(&pod("20", 0, told), None) > between, "an earlier process told it");
    }
}
