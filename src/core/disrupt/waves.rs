//! Waves in which nodes go, so that no workload loses all of its replicas at once, also where no PodDisruptionBudget guards it. A wave
//! begins when the nodes of the one before are gone.

use std::collections::BTreeMap;

use crate::core::snapshot::{Pod, Snapshot};

/// `namespace/Kind/name` of what made a pod.
pub type Workload = String;

/// How many replicas each workload has running.
pub fn replicas(snapshot: &Snapshot) -> BTreeMap<Workload, usize> {
    let is_running = |pod: &&Pod| pod.spec.node_name.is_some() && !pod.is_terminal() && !pod.is_terminating();
    by_workload(snapshot.pods.iter().filter(is_running))
}

/// How many of these pods each workload has.
pub fn by_workload<'a>(pods: impl Iterator<Item = &'a Pod>) -> BTreeMap<Workload, usize> {
    let mut counts = BTreeMap::new();
    for workload in pods.filter_map(Pod::workload) {
        *counts.entry(workload).or_default() += 1;
    }
    counts
}

/// The wave of each node from 0, by the pods of each workload that it makes move; the first in which enough of them stay.
/// O(nodes x waves x workloads on one).
pub fn waves(moved_by_nodes: &[BTreeMap<Workload, usize>], replicas: &BTreeMap<Workload, usize>) -> Vec<usize> {
    // By wave, how many of each workload move.
    let mut waves: Vec<BTreeMap<&Workload, usize>> = Vec::new();
    let wave_of = |moved: &'_ BTreeMap<Workload, usize>, waves: &[BTreeMap<&Workload, usize>]| {
        let leaves_some = |wave: &BTreeMap<&Workload, usize>| {
            moved.iter().all(|(workload, count)| {
                let all = replicas.get(workload).copied().unwrap_or(0);
                let before = wave.get(workload).copied().unwrap_or(0);
                // What is all on one node can not be spared.
                *count >= all || before + count < all
            })
        };
        waves.iter().position(leaves_some).unwrap_or(waves.len())
    };
    let mut numbers = Vec::with_capacity(moved_by_nodes.len());
    for moved in moved_by_nodes {
        let wave = wave_of(moved, &waves);
        if wave == waves.len() {
            waves.push(BTreeMap::new());
        }
        for (workload, count) in moved {
            *waves[wave].entry(workload).or_default() += count;
        }
        numbers.push(wave);
    }
    numbers
}
