//! Preemptions that kube-scheduler had begun when the cluster was looked at: it evicts pods of lower priority on the node that it has
//! nominated. It begins no others here.

use std::cmp::Reverse;

use crate::core::model::Resources;
use crate::core::snapshot::requests::effective_requests;
use crate::core::snapshot::{Pod, nodes};

use super::state::World;

impl World {
    /// Goes on with them after every pod was tried. Where the node could not take the pod even so, kube-scheduler forgets its name.
    pub(super) fn preempt(&mut self) {
        let waiting = self.pods.waiting().keys().filter_map(|key| self.pods.get(key));
        let preempting: Vec<(String, Option<Vec<String>>)> =
            waiting.filter_map(|pod| Some((pod.key(), self.victims(pod, pod.preempting_on()?)))).collect();
        for (key, victims) in preempting {
            match victims {
                Some(victims) => victims.iter().for_each(|victim| self.delete_pod(victim, None)),
                None => {
                    self.pods.change(&key, |pod| pod.status.nominated_node_name = None);
                    self.touch();
                }
            }
        }
    }

    /// Pods to evict for this one, the least important first and of these the newest, until it has room; none while enough are on their
    /// way out. `None` where that helps nothing.
    fn victims(&self, pod: &Pod, node: &str) -> Option<Vec<String>> {
        let mut free = nodes::allocatable(self.nodes.get(node)?);
        let there = self.pods.on(node).into_iter().filter_map(|key| self.pods.get(&key));
        let (ending, mut staying): (Vec<&Pod>, Vec<&Pod>) =
            there.filter(|other| !other.is_terminal()).partition(|other| other.is_terminating());
        staying.iter().for_each(|other| free.subtract(&requests(other)));
        let needed = requests(pod);
        let mut victims = Vec::new();
        let priority = |pod: &Pod| pod.spec.priority.unwrap_or(0);
        staying.retain(|other| priority(other) < priority(pod));
        staying.sort_by_key(|other| (priority(other), Reverse(other.metadata.creation_timestamp.clone())));
        let mut candidates = staying.into_iter();
        while !needed.fits_in(&free) {
            let victim = candidates.next()?;
            free.add(&requests(victim));
            victims.push(victim.key());
        }
        (!victims.is_empty() || !ending.is_empty()).then_some(victims)
    }
}

fn requests(pod: &Pod) -> Resources {
    effective_requests(pod).unwrap_or_default()
}
