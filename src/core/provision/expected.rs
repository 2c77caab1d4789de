//! Pods that an earlier plan found a place for, and that are not there yet, are counted there first.
//!
//! While nodes boot and drain every look plans again. Packed anew, the same pods would not come out as they were planned: some
//! would find no room on the nodes that were bought for them, and more would be bought, at every look. kube-scheduler has the last
//! word, so some of what is yet to be evicted may find its place taken: as long as that is little, nothing is bought for it before it
//! is without a node.
//!
//! The place of each pod stands on its NodeClaim, so the next plan needs no memory.
//!
//! # What was tried
//!
//! While moves are under way, a look finds nodes that seem left over and pods that seem to lack a node. Most of them are neither. Plans that
//! removed such nodes at once, and bought for such pods at once, undid each other.

use std::collections::BTreeMap;

use crate::scheduler::{ClassIndex, Engine, HostIndex, Problem};
use crate::snapshot::{Pod, PodIndex};
use cutlist_api::keys;

use super::backlog::Backlog;
use crate::scheduler::Demand;

/// Namespace and name, without the part that tells the replicas of one owner apart.
pub(super) type Owner = String;

/// A pod of the backlog that is expected on a host.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub class: ClassIndex,
    /// Position in the snapshot.
    pub pod: PodIndex,
    pub host: HostIndex,
}

/// Of the pods on nodes that go, and those evicted from them, one in so many may have lost its place without being bought for yet.
const LOST_PART: usize = 10;

/// Places pods of the backlog where they are expected, if they fit there, and takes them off the demand; gives those that were. A pod
/// that was evicted comes back under another name: it is expected where one of its owner's is missing. Of those yet to be evicted, few
/// that fit nowhere are off demand and backlog. O(pods that are expected somewhere).
pub fn settle(engine: &mut Engine<'_, '_>, backlog: &mut Backlog, demand: &mut Demand) -> Vec<Expected> {
    let problem = engine.problem;
    let mut places = places(problem);
    if places.is_empty() {
        return Vec::new();
    }
    let mut missing = missing(problem, &places);
    let mut successors: BTreeMap<Owner, Vec<(ClassIndex, PodIndex)>> = BTreeMap::new();
    let mut settling: Vec<Expected> = Vec::new();
    for (class, position) in backlog.waiting.iter().flat_map(|(class, pods)| pods.iter().map(|pod| (*class, *pod))) {
        let pod = &problem.snapshot.pods[position];
        match (places.remove(&pod.key()), owner_of(pod)) {
            (Some(host), owner) => {
                settling.push(Expected { class, pod: position, host });
                let missing = owner.and_then(|owner| missing.get_mut(&owner)?.get_mut(&host));
                missing.into_iter().for_each(|count| *count = count.saturating_sub(1));
            }
            (None, Some(owner)) => successors.entry(owner).or_default().push((class, position)),
            // Nobody makes another pod in the place of one without an owner.
            (None, None) => {}
        }
    }
    for (owner, pods) in successors {
        let hosts = missing.get(&owner).into_iter().flatten();
        let hosts = hosts.flat_map(|(host, count)| std::iter::repeat_n(*host, *count));
        settling.extend(pods.into_iter().zip(hosts).map(|((class, pod), host)| Expected { class, pod, host }));
    }
    let mut settled = place_all(engine, &mut settling, demand);
    // Nodes are also bought where spreads are over domains alone that have a node, and kube-scheduler knows of no others.
    engine.counting_nodes_alone(|engine| settled.extend(place_all(engine, &mut settling, demand)));
    let running: Vec<Expected> = settling.into_iter().filter(|it| backlog.displaced.contains(&it.pod)).collect();
    let lost = without_room(engine, running);
    if lost.len() * LOST_PART <= moving(problem) {
        for Expected { class, pod, .. } in lost {
            backlog.postpone(class, pod);
            take_off(demand, class);
        }
    }
    settled
}

/// Those of the pods that no node has room for after the others. The engine is as it was.
fn without_room(engine: &mut Engine<'_, '_>, mut pods: Vec<Expected>) -> Vec<Expected> {
    let mark = engine.mark();
    pods.retain(|Expected { class, .. }| {
        let variants = &engine.problem.classes[*class].variants;
        let host =
            variants.iter().find_map(|variant| engine.find_existing(*class, *variant, HostIndex::default(), None));
        host.inspect(|host| engine.place_on_existing(*class, *host)).is_none()
    });
    engine.revert(mark);
    pods
}

/// One pod less of a class.
pub(super) fn take_off(demand: &mut Demand, class: ClassIndex) {
    if let Some(left) = demand.get_mut(&class) {
        *left -= 1;
        if *left == 0 {
            demand.remove(&class);
        }
    }
}

/// Takes those that fit where they are expected, and gives them.
fn place_all(engine: &mut Engine<'_, '_>, settling: &mut Vec<Expected>, demand: &mut Demand) -> Vec<Expected> {
    let mut settled = Vec::new();
    // One zone may take its pod only after another has got one, so those that are refused are asked again while some are not.
    loop {
        let before = settled.len();
        settled.extend(settling.extract_if(.., |expected| place(engine, expected, demand)));
        if settled.len() == before {
            return settled;
        }
    }
}

/// Whether the pod fits where it is expected; it is then there.
fn place(engine: &mut Engine<'_, '_>, expected: &Expected, demand: &mut Demand) -> bool {
    let Expected { class, host, .. } = *expected;
    let fits = demand.contains_key(&class) && engine.takes(class, host);
    if fits {
        engine.place_on_existing(class, host);
        take_off(demand, class);
    }
    fits
}

/// Where pods are expected, by `namespace/name`: on the nodes that were created for them, and where the plan that removes their
/// node sends them.
fn places(problem: &Problem<'_>) -> BTreeMap<String, HostIndex> {
    let mut hosts: BTreeMap<&str, HostIndex> = BTreeMap::new();
    for (host, node) in problem.nodes.enumerated().filter(|(_, node)| !node.being_removed) {
        let machine = &problem.machines[node.machine];
        hosts.insert(machine.name, host);
        hosts.extend(machine.claim_name().map(|name| (name, host)));
    }
    let mut places = BTreeMap::new();
    // Of several nodes that were bought for a pod one after the other it is expected on the last.
    let created = |host: &HostIndex| {
        let claim = problem.machines[problem.nodes[*host].machine].claim;
        claim.and_then(|claim| claim.metadata.creation_timestamp.as_ref().map(|time| time.0))
    };
    let mut oldest_first: Vec<HostIndex> = problem.nodes.indices().collect();
    oldest_first.sort_by_key(created);
    for (host, node) in oldest_first.into_iter().map(|host| (host, &problem.nodes[host])) {
        let Some(claim) = problem.machines[node.machine].claim else { continue };
        if node.being_removed {
            for (pod, target) in claim.listed(keys::DESTINATIONS).filter_map(|entry| entry.split_once('=')) {
                places.extend(hosts.get(target).map(|host| (pod.to_owned(), *host)));
            }
        } else {
            places.extend(claim.listed(keys::PODS).map(|pod| (pod.to_owned(), host)));
        }
    }
    places
}

/// Pods that the plans which remove nodes have places for, evicted or not.
fn moving(problem: &Problem<'_>) -> usize {
    let going = problem.nodes.iter().filter(|node| node.being_removed);
    let claims = going.filter_map(|node| problem.machines[node.machine].claim);
    claims.map(|claim| claim.listed(keys::DESTINATIONS).count()).sum()
}

/// How many pods of an owner each node waits for.
fn missing(problem: &Problem<'_>, places: &BTreeMap<String, HostIndex>) -> BTreeMap<Owner, BTreeMap<HostIndex, usize>> {
    let mut missing: BTreeMap<Owner, BTreeMap<HostIndex, usize>> = BTreeMap::new();
    for (pod, host) in places {
        if let Some((owner, _)) = pod.rsplit_once('-') {
            *missing.entry(owner.to_owned()).or_default().entry(*host).or_default() += 1;
        }
    }
    for (host, node) in problem.nodes.enumerated().filter(|(_, node)| !node.being_removed) {
        for (position, _) in node.pods.iter().chain(&node.nominated) {
            let owner = owner_of(&problem.snapshot.pods[*position]);
            let count = owner.and_then(|owner| missing.get_mut(&owner)?.get_mut(&host));
            count.into_iter().for_each(|count| *count = count.saturating_sub(1));
        }
    }
    missing
}

pub(super) fn owner_of(pod: &Pod) -> Option<Owner> {
    let owner = pod.metadata.owner_references.first()?;
    Some(format!("{}/{}", pod.metadata.namespace, owner.name))
}
