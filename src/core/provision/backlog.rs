//! The pods that need a place.
//! Which ones count: reference, section 3.2.

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::lifecycle::pod_disruption_budgets::PodDisruptionBudgets;
use crate::lifecycle::staying::stays_for_long;
use crate::model::IndexVec;
use crate::scheduler::vectors::{CPU_DIMENSION, MEMORY_DIMENSION};
use crate::scheduler::{ClassIndex, Problem};
use crate::snapshot::nodes::Machine;
use crate::snapshot::pod::is_of_buffer;
use crate::snapshot::{Pod, PodIndex, Snapshot};
use cutlist_api::keys;

use super::age::Ages;
use super::daemon_pods::{is_waiting_daemon, why_it_waits};
use super::obstacle::PodObstacle;

/// Pods waiting for a place, and pods that are waiting for something else.
#[derive(Debug, Default)]
pub struct Backlog {
    /// By class: positions of its pods in the snapshot, oldest first.
    pub waiting: BTreeMap<ClassIndex, Vec<PodIndex>>,
    /// Those of them that run on a node that is being removed, and have to move.
    pub displaced: BTreeSet<PodIndex>,
    /// Those that run, and whose planned place was lost: a node is bought for them once they run on none.
    pub postponed: Vec<PodIndex>,
    /// Pods that no node can help: position, and why.
    pub not_schedulable: Vec<(PodIndex, PodObstacle)>,
    ages: Ages,
}

impl Backlog {
    /// O(pods log pods).
    pub fn new(problem: &Problem<'_>, now: Timestamp) -> Self {
        let mut backlog = Self::default();
        let nominated: BTreeMap<PodIndex, &Machine<'_>> = problem
            .nodes
            .iter()
            .map(|node| (node, &problem.machines[node.machine]))
            .flat_map(|(node, machine)| node.nominated.iter().map(move |(pod, _)| (*pod, machine)))
            .collect();
        let hosts = problem.machines.enumerated().map(|(host, machine)| (machine.name, host)).collect();
        let mut waiting: Vec<PodIndex> = Vec::new();
        for (position, pod) in problem.snapshot.pods.enumerated() {
            if is_waiting_daemon(pod) {
                let gate = obstacle(pod, position, problem);
                let why = gate.or_else(|| why_it_waits(problem, &hosts, position));
                backlog.not_schedulable.extend(why.map(|why| (position, why)));
                continue;
            }
            if !is_waiting(pod) {
                continue;
            }
            let machine = nominated.get(&position);
            // Told to kube-scheduler by an earlier plan: its node is there for it, and all there is left to do is to bind it.
            if machine.is_some_and(|machine| is_expected_on(machine, pod)) {
                continue;
            }
            let preempting = machine.map(|machine| PodObstacle::Preempting { node: machine.name.to_owned() });
            if let Some(obstacle) = preempting.or_else(|| obstacle(pod, position, problem)) {
                backlog.not_schedulable.push((position, obstacle));
            } else if problem.class_of_pod[position].is_some() {
                waiting.push(position);
            }
        }
        let has_place = pods_with_place(problem);
        let budgets = LazyCell::new(|| PodDisruptionBudgets::new(problem.snapshot));
        for node in problem.nodes.iter().filter(|node| node.being_removed) {
            let claim = problem.machines[node.machine].claim;
            for (pod, _) in node.pods.iter().filter(|(pod, _)| is_reschedulable(&problem.snapshot.pods[*pod])) {
                if let Some(disk) = problem.disks.get(pod).filter(|disk| disk.holds_pod) {
                    let node = problem.machines[node.machine].name.to_owned();
                    let obstacle = PodObstacle::DiskOfRemovedNode { volume: disk.volume.clone(), node };
                    backlog.not_schedulable.push((*pod, obstacle));
                    continue;
                }
                let running = &problem.snapshot.pods[*pod];
                if !has_place.contains(running.key().as_str()) && stays_for_long(running, &budgets, claim, now) {
                    continue;
                }
                waiting.push(*pod);
                backlog.displaced.insert(*pod);
            }
        }
        backlog.ages = Ages::sort(&problem.snapshot.pods, &mut waiting);
        backlog.waiting = by_class(problem, &waiting);
        backlog.hold_back_from_claims_in_use(problem.snapshot);
        backlog
    }

    /// Leaves a pod where it is for now.
    pub fn postpone(&mut self, class: ClassIndex, pod: PodIndex) {
        self.postponed.push(pod);
        self.take_off(class, pod);
    }

    /// Takes off pods that `why` has a reason for, and gives those.
    pub fn hold_back(&mut self, mut why: impl FnMut(PodIndex) -> Option<PodObstacle>) -> Vec<(ClassIndex, PodIndex)> {
        let mut held = Vec::new();
        for (class, pods) in &mut self.waiting {
            pods.retain(|pod| {
                let Some(obstacle) = why(*pod) else { return true };
                held.push((*class, *pod));
                self.not_schedulable.push((*pod, obstacle));
                false
            });
        }
        self.waiting.retain(|_, pods| !pods.is_empty());
        held
    }

    fn take_off(&mut self, class: ClassIndex, pod: PodIndex) {
        self.displaced.remove(&pod);
        if let Some(pods) = self.waiting.get_mut(&class) {
            pods.retain(|other| *other != pod);
        }
        self.waiting.retain(|_, pods| !pods.is_empty());
    }

    /// A claim that is ReadWriteOncePod serves one pod of the cluster: the one that runs, else the oldest that waits.
    fn hold_back_from_claims_in_use(&mut self, snapshot: &Snapshot) {
        let exclusive = claims_for_one_pod(snapshot);
        if exclusive.is_empty() {
            return;
        }
        let claims = |pod: &Pod| -> Vec<ClaimName> {
            claims_of(pod)
                .filter(|claim| exclusive.contains(claim))
                .map(|(space, name)| (space.to_owned(), name.to_owned()))
                .collect()
        };
        let mut users: BTreeMap<ClaimName, String> = BTreeMap::new();
        for pod in snapshot.pods.iter().filter(|pod| pod.spec.node_name.is_some() && !pod.is_terminal()) {
            users.extend(claims(pod).into_iter().map(|claim| (claim, pod.key())));
        }
        let mut in_order: Vec<(ClassIndex, PodIndex)> =
            self.waiting.iter().flat_map(|(class, pods)| pods.iter().map(|pod| (*class, *pod))).collect();
        in_order.sort_by_key(|(_, pod)| self.ages.rank(*pod));
        for (class, position) in in_order {
            let pod = &snapshot.pods[position];
            let wanted = claims(pod);
            let taken =
                wanted.iter().find_map(|claim| Some((claim, users.get(claim).filter(|user| **user != pod.key())?)));
            match taken {
                Some(((_, claim), user)) => {
                    let obstacle = PodObstacle::ClaimInUse { claim: claim.clone(), pod: user.clone() };
                    self.not_schedulable.push((position, obstacle));
                    self.take_off(class, position);
                }
                None => users.extend(wanted.into_iter().map(|claim| (claim, pod.key()))),
            }
        }
    }

    /// Whether the pods of this class only stand for room. They have a priority that no pod has, so no other is among them.
    pub fn is_of_buffer(&self, problem: &Problem<'_>, class: ClassIndex) -> bool {
        let first = self.waiting.get(&class).and_then(|pods| pods.first());
        first.is_some_and(|pod| is_of_buffer(&problem.snapshot.pods[*pod]))
    }

    /// Classes in the reference's order: CPU, then memory, descending; then age, then name of the oldest pod.
    pub fn by_size(&self, problem: &Problem<'_>) -> Vec<ClassIndex> {
        let mut classes: Vec<ClassIndex> = self.waiting.keys().copied().collect();
        classes.sort_by_cached_key(|class| {
            let oldest = self.waiting[class].first().map(|position| self.ages.rank(*position));
            (Reverse(size(problem, *class)), oldest)
        });
        classes
    }

    /// The reference's queue: pods by CPU, then memory, descending, then age; so pods of classes of the same size alternate. Each
    /// entry is a class and how many of its pods follow one another.
    pub fn queue(&self, problem: &Problem<'_>) -> Vec<(ClassIndex, usize)> {
        let pods = self.waiting.iter().flat_map(|(class, pods)| {
            let size = Reverse(size(problem, *class));
            pods.iter().map(move |position| (size, self.ages.rank(*position), *class))
        });
        let mut pods: Vec<(_, usize, ClassIndex)> = pods.collect();
        // Of equals the lesser class came first.
        pods.sort_unstable();
        let runs = pods.chunk_by(|one, two| one.2 == two.2);
        runs.filter_map(|run| Some((run.first()?.2, run.len()))).collect()
    }
}

/// Pods that a node was created for, or that the plan which removes theirs has a place for.
fn pods_with_place<'a>(problem: &Problem<'a>) -> BTreeSet<&'a str> {
    let claims = problem.machines.iter().filter_map(|machine| Some((machine.is_being_removed(), machine.claim?)));
    let pods = claims.flat_map(|(goes, claim)| {
        let bought_for = claim.listed(keys::PODS).filter(move |_| !goes);
        bought_for.chain(claim.listed(keys::DESTINATIONS).filter_map(|entry| Some(entry.split_once('=')?.0)))
    });
    pods.collect()
}

/// CPU, then memory.
fn size(problem: &Problem<'_>, class: ClassIndex) -> (i64, i64) {
    let request = &problem.classes[class].request;
    (request[CPU_DIMENSION], request[MEMORY_DIMENSION])
}

/// In the order of the pods.
fn by_class(problem: &Problem<'_>, pods: &[PodIndex]) -> BTreeMap<ClassIndex, Vec<PodIndex>> {
    let mut by_class: IndexVec<ClassIndex, Vec<PodIndex>> = IndexVec::repeat(Vec::new(), problem.classes.len());
    for pod in pods {
        if let Some(class) = problem.class_of_pod[*pod] {
            by_class[class].push(*pod);
        }
    }
    by_class.into_enumerated().filter(|(_, pods)| !pods.is_empty()).collect()
}

/// Whether the node's claim was created for this pod.
fn is_expected_on(machine: &Machine<'_>, pod: &Pod) -> bool {
    let key = pod.key();
    machine.claim.is_some_and(|claim| claim.listed(keys::PODS).any(|name| name == key))
}

/// Not bound, not over, and nobody's daemon.
pub fn is_waiting(pod: &Pod) -> bool {
    let unbound = pod.spec.node_name.as_deref().is_none_or(str::is_empty);
    unbound && !pod.is_terminal() && !pod.is_terminating() && !pod.is_owned_by("DaemonSet") && !pod.is_owned_by("Node")
}

/// Whether a running pod must get a new place when its node goes: not a daemon, not a mirror of a file on the node, not
/// on its way out (except of a StatefulSet, which waits for its successor).
pub fn is_reschedulable(pod: &Pod) -> bool {
    !pod.is_terminal()
        && !pod.is_owned_by("DaemonSet")
        && !pod.is_owned_by("Node")
        && (!pod.is_terminating() || pod.is_owned_by("StatefulSet"))
}

/// Namespace and name.
type ClaimName = (String, String);

fn claims_for_one_pod(snapshot: &Snapshot) -> BTreeSet<(&str, &str)> {
    let claims = snapshot.persistent_volume_claims.iter().filter(|claim| {
        let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
        modes.into_iter().flatten().any(|mode| mode == "ReadWriteOncePod")
    });
    claims.filter_map(|claim| Some((claim.metadata.namespace.as_deref()?, claim.metadata.name.as_deref()?))).collect()
}

fn claims_of(pod: &Pod) -> impl Iterator<Item = (&str, &str)> {
    let sources = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    sources.map(|source| (pod.metadata.namespace.as_str(), source.claim_name.as_str()))
}

fn obstacle(pod: &Pod, position: PodIndex, problem: &Problem<'_>) -> Option<PodObstacle> {
    if let Some(gate) = pod.spec.scheduling_gates.first() {
        return Some(PodObstacle::SchedulingGate { name: gate.name.clone() });
    }
    if let Some(scheduler) = pod.other_scheduler().filter(|_| pod.is_left_to_its_scheduler()) {
        return Some(PodObstacle::OtherScheduler { name: scheduler.to_owned() });
    }
    let too_large = problem.too_large_pods.get(&position).map(|has| PodObstacle::TooManyTerms { has: has.clone() });
    let not_supported =
        || problem.not_supported_pods.get(&position).map(|what| PodObstacle::NotSupported { what: what.clone() });
    let invalid = || problem.invalid_pods.get(&position).map(|error| PodObstacle::Invalid { error: error.clone() });
    too_large.or_else(not_supported).or_else(invalid)
}
