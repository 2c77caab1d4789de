//! What was planned is what happens: the pods of a plan are told to kube-scheduler before their node takes any pod.
//!
//! kube-scheduler tries `status.nominatedNodeName` first and binds there when the pod fits (1.34 with its feature gate, on by
//! default in 1.35). It forgets the name of a node that does not exist yet or does not fit at that attempt, so it is told
//! again; and it binds to whichever node opens first if the pod fits there, so nodes of one plan open together.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;

use crate::api::node_claim::NodeClaim;
use crate::core::lifecycle::conditions;
use crate::core::snapshot::Pod;

use super::marks;
use super::view::View;

/// How long a node waits for the others of its plan before it opens.
const WINDOW: SignedDuration = SignedDuration::from_secs(5);
/// How often a pod is told to kube-scheduler again: one that does not fit will not fit for being told.
const MOST_NOMINATIONS: u8 = 5;

/// What opening nodes is decided by, at one moment.
pub struct Opening<'a> {
    unbound: BTreeMap<String, &'a Pod>,
    /// Plans of which a claim has its instance and no node yet.
    awaited: BTreeSet<&'a str>,
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
        let without_node = opening.iter().filter(|claim| view.node_of(claim).is_none());
        let awaited = without_node.filter_map(|claim| marks::plan(claim)).collect();
        Self { unbound, awaited, now }
    }

    /// Until when a node that has joined stays closed, because another one of its plan is about to join.
    pub fn waits_for_others(&self, claim: &NodeClaim, node: &Node) -> Option<Timestamp> {
        let registered = claim.is_true(conditions::REGISTERED) || claim.metadata.deletion_timestamp.is_some();
        let is_awaited = marks::plan(claim).is_some_and(|plan| self.awaited.contains(plan));
        if registered || !is_awaited || marks::pods(claim).next().is_none() {
            return None;
        }
        let joined = node.metadata.creation_timestamp.as_ref()?.0;
        joined.checked_add(WINDOW).ok().filter(|until| *until > self.now)
    }
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
