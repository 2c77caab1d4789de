//! Waves in which nodes go, so that no workload loses all of its replicas at once, also where no PodDisruptionBudget guards it. A wave
//! begins when the nodes of the one before are gone, and their pods run elsewhere.

use std::collections::{BTreeMap, HashMap};

use crate::snapshot::{Pod, Snapshot, Workload};

/// How many pods of each workload a node has.
pub type PodCounts<'p> = BTreeMap<Workload<'p>, usize>;

/// How many replicas of each workload there are: hashed, since it is asked about every pod that moves.
pub type Replicas<'p> = HashMap<Workload<'p>, usize>;

/// How many replicas each workload has running.
pub fn replicas(snapshot: &Snapshot) -> Replicas<'_> {
    let is_running = |pod: &&Pod| pod.spec.node_name.is_some() && !pod.is_terminal() && !pod.is_terminating();
    let mut replicas = Replicas::new();
    for workload in snapshot.pods.iter().filter(is_running).filter_map(Pod::workload) {
        *replicas.entry(workload).or_default() += 1;
    }
    replicas
}

/// How many of these pods each workload has.
pub fn by_workload<'a>(pods: impl Iterator<Item = &'a Pod>) -> PodCounts<'a> {
    let mut counts = PodCounts::new();
    for workload in pods.filter_map(Pod::workload) {
        *counts.entry(workload).or_default() += 1;
    }
    counts
}

/// The wave of each node from 0, by the pods of each workload that it makes move; the first in which enough of them stay.
/// O(nodes x waves x workloads on one).
pub fn waves<'a, 's: 'a>(
    moved_by_nodes: impl IntoIterator<Item = &'a PodCounts<'s>>,
    replicas: &Replicas<'s>,
) -> Vec<usize> {
    // By wave, how many of each workload move.
    let mut waves: Vec<HashMap<Workload<'s>, usize>> = Vec::new();
    let mut numbers = Vec::new();
    for moved in moved_by_nodes {
        let leaves_some = |wave: &HashMap<Workload<'s>, usize>| {
            moved.iter().all(|(workload, count)| {
                let all = replicas.get(workload).copied().unwrap_or(0);
                let before = wave.get(workload).copied().unwrap_or(0);
                // What is all on one node can not be spared.
                *count >= all || before + count < all
            })
        };
        let number = waves.iter().position(leaves_some).unwrap_or(waves.len());
        if number == waves.len() {
            waves.push(HashMap::new());
        }
        for (workload, count) in moved {
            *waves[number].entry(*workload).or_default() += count;
        }
        numbers.push(number);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&'static str, usize)]) -> PodCounts<'static> {
        let workload = |name| Workload { namespace: "shop", kind: "ReplicaSet", name };
        of.iter().map(|(name, count)| (workload(name), *count)).collect()
    }

    #[test]
    fn each_wave_leaves_every_workload_a_replica_unless_one_node_has_them_all() {
        let replicas = counts(&[("web", 3), ("shop", 2), ("alone", 1)]).into_iter().collect();
        let moved =
            [counts(&[("web", 1)]), counts(&[("web", 1), ("shop", 1)]), counts(&[("web", 1)]), counts(&[("shop", 1)])];
        assert_eq!(waves(&moved, &replicas), [0, 0, 1, 1]);
        assert_eq!(waves(&[counts(&[("alone", 1)]), counts(&[("shop", 2)])], &replicas), [0, 0]);
    }
}
