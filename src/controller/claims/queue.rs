//! Where a pod stands in kube-scheduler's queue.
//!
//! A node that opens puts all pods back that it could take, and kube-scheduler takes them by priority and then by the time of their last
//! refusal (its plugin `PrioritySort`; source: Kubernetes, `pkg/scheduler/framework/plugins/queuesort`). It writes that refusal on the
//! pod, so the version of the object says of two pods which was refused later; it also takes the nominated node away from a pod that
//! it refuses, so a pod that still has one was not refused since it was told.
//!
//! A refusal in the words of the one before is not written. It shows by the others: kube-scheduler goes through its queue from the front, so
//! when one is refused again, those before it were as well.

use std::cmp::Reverse;

use crate::core::snapshot::Pod;

/// The lesser is taken first: priority, and the versions that the last refusal was written in, or that of the next one, and the first.
pub type Queued = (Reverse<i32>, u64, u64);

/// What is known of the refusals of a pod.
#[derive(Clone, Copy, Debug)]
pub struct Refusals {
    pub priority: i32,
    /// The version of the refusal that was seen first.
    pub first: u64,
    /// The version of the last one.
    pub last: u64,
}

/// The version that a pod's last refusal was written in. `before_told`: the pod's version before it was told its node last.
pub fn refused(pod: &Pod, before_told: Option<u64>) -> u64 {
    let is_told = pod.status.nominated_node_name.as_deref().is_some_and(|node| !node.is_empty());
    before_told.filter(|_| is_told).unwrap_or_else(|| pod.metadata.version())
}

/// The place of each, in the order of `pods`. O(pods x log pods).
pub fn places(pods: &[Refusals]) -> Vec<Queued> {
    let mut backwards: Vec<usize> = (0..pods.len()).collect();
    backwards.sort_by_key(|pod| Reverse((Reverse(pods[*pod].priority), pods[*pod].first)));
    let mut places = vec![(Reverse(0), 0, 0); pods.len()];
    // The earliest second refusal of those behind.
    let mut behind: Option<(i32, u64)> = None;
    for pod in backwards {
        let Refusals { priority, first, last } = pods[pod];
        let next = behind.filter(|(of, _)| *of == priority).map(|(_, next)| next);
        let is_seen = last > first;
        let refused = if is_seen { last } else { next.unwrap_or(last) };
        places[pod] = (Reverse(priority), refused, first);
        let earliest = if is_seen { Some(next.map_or(last, |next| next.min(last))) } else { next };
        behind = earliest.map(|earliest| (priority, earliest));
    }
    places
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(version: &str, told: Option<&str>) -> Pod {
        let pod = json!({
            "metadata": { "name": "web-1", "resourceVersion": version },
            "spec": { "containers": [] },
            "status": { "nominatedNodeName": told },
        });
        serde_json::from_value(pod).unwrap()
    }

    /// Positions in the order in which they are taken, of pods given as priority, first and last refusal.
    fn order<const N: usize>(pods: [(i32, u64, u64); N]) -> Vec<usize> {
        let pods = pods.map(|(priority, first, last)| Refusals { priority, first, last });
        let places = places(&pods);
        let mut order: Vec<usize> = (0..N).collect();
        order.sort_by_key(|pod| places[*pod]);
        order
    }

    #[test]
    fn who_was_refused_first_is_taken_first_and_who_matters_more_before_all() {
        assert_eq!(order([(0, 10, 10), (0, 9, 9), (1, 11, 11)]), [2, 1, 0]);
    }

    #[test]
    fn who_was_refused_again_is_behind_who_was_not() {
        assert_eq!(order([(0, 1, 20), (0, 2, 21), (0, 3, 3), (0, 4, 4)]), [2, 3, 0, 1]);
    }

    #[test]
    fn who_stood_before_one_that_was_refused_again_was_too() {
        assert_eq!(order([(0, 1, 1), (0, 2, 2), (0, 3, 20), (0, 4, 4)]), [3, 0, 1, 2], "1 and 2 in the same words");
        assert_eq!(order([(0, 3, 20), (1, 1, 1), (0, 4, 4)]), [1, 2, 0], "that says nothing of other priorities");
    }

    #[test]
    fn telling_a_pod_its_node_does_not_move_it_and_a_refusal_does() {
        let told = Some("node-1");
        assert_eq!(refused(&pod("20", told), Some(10)), 10, "20 is what we wrote");
        assert_eq!(refused(&pod("20", None), Some(10)), 20, "20 is a refusal since");
        assert_eq!(refused(&pod("20", told), None), 20, "an earlier process told it");
    }
}
