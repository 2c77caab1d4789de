//! What was planned is what happens: the pods of a plan are told to kube-scheduler before their node takes any pod.
//!
//! kube-scheduler tries `status.nominatedNodeName` first and binds there when the pod fits (1.34 with its feature gate, on by
//! default in 1.35). It forgets the name of a node that does not exist yet or does not fit at that attempt, so it is told
//! again; and it binds to whichever node opens first if the pod fits there, so nodes of one plan open together.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;

use crate::api::node_claim::NodeClaim;
use crate::core::lifecycle::{conditions, is_ready};
use crate::core::plan::Plan;
use crate::core::snapshot::Pod;

use super::marks;
use super::view::View;

/// How long a node waits for the others of its plan before it opens.
const WINDOW: SignedDuration = SignedDuration::from_secs(5);
/// How often a pod is told to kube-scheduler again: one that does not fit will not fit for being told.
const MOST_NOMINATIONS: u8 = 5;

#[derive(Clone, Copy, Debug, Default)]
struct Closed {
    nodes: usize,
    ready: usize,
}

/// What opening nodes is decided by, at one moment.
pub struct Opening<'a> {
    unbound: BTreeMap<String, &'a Pod>,
    /// By plan: its nodes that are closed, and whether each of them could open now.
    closed: BTreeMap<&'a str, Closed>,
    now: Timestamp,
}

impl<'a> Opening<'a> {
    pub fn new(view: &View<'a>, now: Timestamp) -> Self {
        let is_opening = |claim: &&NodeClaim| {
            claim.metadata.deletion_timestamp.is_none()
                && claim.is_true(conditions::LAUNCHED)
                && !claim.is_true(conditions::INITIALIZED)
        };
        let opening: Vec<&NodeClaim> = view.snapshot.node_claims.iter().filter(is_opening).collect();
        let unbound = if opening.is_empty() { BTreeMap::new() } else { view.unbound_pods() };
        let mut closed: BTreeMap<&str, Closed> = BTreeMap::new();
        for claim in opening.iter().filter(|claim| is_closed(claim)) {
            let Some(plan) = marks::plan(claim) else { continue };
            let closed = closed.entry(plan).or_default();
            closed.nodes += 1;
            closed.ready += usize::from(view.node_of(claim).is_some_and(is_ready));
        }
        Self { unbound, closed, now }
    }

    /// Until when a node that has joined stays closed, because another one of its plan is about to be ready.
    pub fn waits_for_others(&self, claim: &NodeClaim, node: &Node) -> Option<Timestamp> {
        let closed = marks::plan(claim).and_then(|plan| self.closed.get(plan)).copied().unwrap_or_default();
        if !is_closed(claim) || closed.nodes < 2 || closed.ready == closed.nodes {
            return None;
        }
        let joined = node.metadata.creation_timestamp.as_ref()?.0;
        joined.checked_add(WINDOW).ok().filter(|until| *until > self.now)
    }
}

/// Created for pods that are waiting, and not registered yet.
fn is_closed(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none()
        && !claim.is_true(conditions::REGISTERED)
        && marks::pods(claim).next().is_some()
}

/// A pod, and the node that it should land on.
pub struct Place {
    pub namespace: String,
    pub pod: String,
    pub node: String,
}

/// Where a plan expects pods to land that kube-scheduler found no place for, as far as it does not know. It forgets the name of a node
/// that is closed when it next tries the pod, and most pods are not tried again before their node opens: told early they land there.
pub fn places(plan: &Plan, view: &View<'_>) -> Vec<Place> {
    if plan.placements.is_empty() {
        return Vec::new();
    }
    let unbound = view.unbound_pods();
    let is_told = |pod: &Pod, node: &str| pod.status.nominated_node_name.as_deref() == Some(node);
    let places = plan.placements.iter().filter_map(|placement| {
        let pod = unbound.get(&placement.pod).filter(|pod| !is_told(pod, &placement.node))?;
        let (namespace, name) = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
        Some(Place { namespace, pod: name, node: placement.node.clone() })
    });
    places.collect()
}

/// How often each pod was told, by `namespace/name`. Lost with the process: it only bounds the work.
#[derive(Debug, Default)]
pub struct Nominations(BTreeMap<String, u8>);

impl Nominations {
    pub fn forget(&mut self, pods: &BTreeSet<String>) {
        self.0.retain(|pod, _| pods.contains(pod));
    }

    /// The pods that the node of a claim has to be told to, now, each counted: those it was created for that are on no node
    /// and do not know it. None once it is open.
    pub fn due<'a>(&mut self, opening: &Opening<'a>, claim: &NodeClaim, node: &str) -> Vec<&'a Pod> {
        if claim.is_true(conditions::INITIALIZED) || claim.metadata.deletion_timestamp.is_some() {
            return Vec::new();
        }
        let mut due = Vec::new();
        for name in marks::pods(claim) {
            let Some(pod) = opening.unbound.get(name) else { continue };
            if pod.status.nominated_node_name.as_deref() == Some(node) || pod.is_terminating() {
                continue;
            }
            let told = self.0.entry(name.to_owned()).or_default();
            if *told < MOST_NOMINATIONS {
                *told += 1;
                due.push(*pod);
            }
        }
        due
    }
}
