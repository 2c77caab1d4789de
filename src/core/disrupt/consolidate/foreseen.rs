//! Where kube-scheduler will put the pods of nodes that go.
//!
//! Nobody can tell it: a pod that takes the place of an evicted one is bound before its name is known. But all nodes of a plan stop
//! taking pods at the same time, the waves in which they go and the order of evictions are known, and of the nodes that take a pod
//! kube-scheduler chooses the least allocated one. What it will find no room for is known beforehand, too: few nodes that have these pods go last, when there are new
//! nodes for them.

use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;

use crate::core::disrupt::rehome::{self, Allotments};
use crate::core::disrupt::waves::{PodCounts, Replicas, by_workload, replicas, waves};
use crate::core::lifecycle::drain::order_of_eviction;
use crate::core::model::resources::{CPU, MEMORY};
use crate::core::scheduler::{ClassIndex, Engine, HostIndex};
use crate::core::snapshot::Pod;

use super::Source;

/// Evicted pods times nodes that may take them, at most.
const PAIRS_MAX: usize = 2_000_000;

/// How often nodes are taken from those that go at once because pods of theirs found no room.
const ROUNDS_MAX: usize = 12;

/// What will happen.
pub(super) struct Foreseen {
    /// Where pods come to be.
    pub allotments: Allotments,
    /// Positions of sources that go last, of those that go.
    pub last: BTreeSet<usize>,
}

/// A node that may take pods.
struct Taker {
    host: HostIndex,
    /// Of processors and memory, in the order of the first two dimensions.
    allocatable: [i64; 2],
}

/// Evicts the pods of the sources that go, on trial, onto those that may take them. `None` where that would be too much work.
/// O(rounds x pods x takers). The engine is as it was.
pub(super) fn foresee(
    engine: &mut Engine<'_, '_>,
    sources: &[Source<'_>],
    mut going: Vec<usize>,
    takers: &FixedBitSet,
) -> Option<Foreseen> {
    let takers: Vec<Taker> = takers.ones().map(|host| taker(engine, host)).collect();
    let pods: usize = going.iter().map(|source| sources[*source].candidate.displaced().count()).sum();
    if pods * takers.len() > PAIRS_MAX {
        return None;
    }
    let of_one = pods / going.len().max(1);
    let evictions = Evictions::new(engine, sources, takers);
    let mut last = BTreeSet::new();
    let (mut placed, mut left) = evictions.carry_out(engine, &going);
    for _ in 0..ROUNDS_MAX {
        if left.is_empty() {
            break;
        }
        last.extend(with_most_of(engine, sources, &going, &left, of_one));
        going.retain(|source| !last.contains(source));
        (placed, left) = evictions.carry_out(engine, &going);
    }
    let mut of_class = BTreeMap::new();
    for (class, _) in &placed {
        let next = of_class.len();
        of_class.entry(*class).or_insert(next);
    }
    let hosts: Vec<_> = placed.into_iter().map(|(class, host)| (of_class[&class], host, 1)).collect();
    Some(Foreseen { allotments: Allotments::new(of_class, hosts), last })
}

fn taker(engine: &Engine<'_, '_>, host: HostIndex) -> Taker {
    let problem = engine.problem;
    let allocatable = problem.machines[problem.nodes[host].machine].allocatable();
    Taker { host, allocatable: [CPU, MEMORY].map(|name| allocatable.get(name).max(1)) }
}

/// All that is needed to tell what becomes of the pods of some sources.
struct Evictions<'s, 'c, 'p> {
    sources: &'s [Source<'c>],
    takers: Vec<Taker>,
    replicas: Replicas<'p>,
    /// By source: how many pods of each workload move with it.
    moved: Vec<PodCounts<'p>>,
}

impl<'s, 'c, 'p> Evictions<'s, 'c, 'p> {
    fn new(engine: &Engine<'_, 'p>, sources: &'s [Source<'c>], takers: Vec<Taker>) -> Self {
        let snapshot = engine.problem.snapshot;
        let moved = |source: &Source<'_>| by_workload(source.candidate.displaced().map(|pod| &snapshot.pods[pod]));
        Self { sources, takers, replicas: replicas(snapshot), moved: sources.iter().map(moved).collect() }
    }

    /// Where each pod came to be, and how many of each class found no room. The engine is as it was.
    fn carry_out(
        &self,
        engine: &mut Engine<'_, '_>,
        going: &[usize],
    ) -> (Vec<(ClassIndex, HostIndex)>, BTreeMap<ClassIndex, usize>) {
        let problem = engine.problem;
        let since = engine.mark();
        let candidates: Vec<_> = going.iter().map(|source| self.sources[*source].candidate).collect();
        rehome::take_off(engine, &candidates);
        let (mut placed, mut left) = (Vec::new(), BTreeMap::new());
        for evicted in self.in_waves(going) {
            let evicted = evicted.into_iter();
            let evicted = evicted.filter_map(|pod| Some((&problem.snapshot.pods[pod], problem.class_of_pod[pod]?)));
            let (pods, classes): (Vec<&Pod>, Vec<ClassIndex>) = evicted.unzip();
            for class in order_of_eviction(&pods).into_iter().map(|pod| classes[pod]) {
                match least_allocated(engine, class, &self.takers) {
                    Some(host) => {
                        engine.place_on_existing(class, host);
                        placed.push((class, host));
                    }
                    None => *left.entry(class).or_default() += 1,
                }
            }
        }
        engine.revert(since);
        (placed, left)
    }

    /// Pods by the wave in which their source goes.
    fn in_waves(&self, going: &[usize]) -> Vec<Vec<usize>> {
        let mut of_waves: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let waves = waves(going.iter().map(|source| &self.moved[*source]), &self.replicas);
        for (source, wave) in going.iter().zip(waves) {
            of_waves.entry(wave).or_default().extend(self.sources[*source].candidate.displaced());
        }
        of_waves.into_values().collect()
    }
}

/// Source: kube-scheduler's `LeastAllocated`, the mean of what stays free of processors and memory.
fn least_allocated(engine: &Engine<'_, '_>, class: ClassIndex, takers: &[Taker]) -> Option<HostIndex> {
    let request = &engine.problem.classes[class].request;
    let score = |taker: &Taker| -> i64 {
        let room = engine.headroom(taker.host);
        let free = |dimension: usize| {
            let left = i128::from(room[dimension]) - i128::from(request[dimension]);
            i64::try_from(left * 1_000 / i128::from(taker.allocatable[dimension])).unwrap_or(0)
        };
        (free(0) + free(1)) / 2
    };
    let mut order: Vec<(i64, &Taker)> = takers.iter().map(|taker| (score(taker), taker)).collect();
    order.sort_by_key(|(score, taker)| (std::cmp::Reverse(*score), taker.host));
    order.into_iter().map(|(_, taker)| taker.host).find(|host| engine.takes(class, *host))
}

/// Sources that have such pods, those with most of them: half as many as it takes for as many pods to stay, since others that stay
/// with them leave room. `of_one` is how many pods are on a source.
fn with_most_of(
    engine: &Engine<'_, '_>,
    sources: &[Source<'_>],
    going: &[usize],
    pods: &BTreeMap<ClassIndex, usize>,
    of_one: usize,
) -> Vec<usize> {
    let mut going = going.to_vec();
    let held = |source: &usize| -> usize {
        let mut left = pods.clone();
        let classes = sources[*source].candidate.displaced().filter_map(|pod| engine.problem.class_of_pod[pod]);
        let mut is_left = |class: &ClassIndex| {
            let left = left.get_mut(class).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        };
        classes.filter(|class| is_left(class)).count()
    };
    going.sort_by_cached_key(|source| (std::cmp::Reverse(held(source)), *source));
    going.truncate((pods.values().sum::<usize>() / (2 * of_one.max(1))).max(1));
    going
}
