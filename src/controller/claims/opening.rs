//! What was planned is what happens: the pods of a plan are told to kube-scheduler before their node takes any pod.
//!
//! kube-scheduler tries `status.nominatedNodeName` first and binds there when the pod fits (1.34 with its feature gate, on by
//! default in 1.35). It forgets the name of a node that does not exist yet or does not fit at that attempt, so it is told
//! again; and it binds to whichever node opens first if the pod fits there, so nodes of one plan open together. Each is opened by a call of
//! its own, and until the last one is, kube-scheduler tries the pods of the others on what is open: so they open in the order in which
//! kube-scheduler comes to their pods ([`super::queue`]), and of equals the fullest first. One that is ready opens when those that have joined
//! are ready, too, as kube-scheduler takes no node that is not.
//!
//! A node that joins also makes it try pods again that can not run there yet. While it does, that order changes, and names that pods are told
//! are taken away again; each one that is makes it look at all other pods that wait, which makes it ten times slower. So pods are told, and
//! nodes open, when it has come to rest: when no pod that waits was refused for a while.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;

use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_claims;
use crate::controller::observed::view::{PodsByKey, View, name_of, node_name};
use crate::core::lifecycle::{conditions, has_started, ready_since, startup_taints};
use crate::core::model::Resources;
use crate::core::plan::Plan;
use crate::core::snapshot::Pod;
use crate::core::snapshot::requests::effective_requests;

use super::binding_order::{self, Expected};
use super::effects::allocatable;
use super::queue::{self, Queued, Refusals};
use super::self_affinity::{ClosedNode, would_take_first};

/// How long nodes wait for the next one of their plan to join before they open.
const WINDOW: SignedDuration = SignedDuration::from_secs(5);
/// How long a node that is ready waits for others of its plan, however many still come.
const WINDOW_MAX: SignedDuration = SignedDuration::from_secs(15);
/// How long a node that has joined stays closed at most: for others, or until it is ready. What makes a node ready may run in pods that do not
/// tolerate that it is not registered.
const CLOSED_MAX: SignedDuration = SignedDuration::from_mins(1);
/// How long no pod may be refused before pods are told and nodes open together. A kube-scheduler that tries pods takes some milliseconds
/// for each.
const AT_REST: SignedDuration = SignedDuration::from_millis(500);
/// How long nodes wait for that when the last one of their plan has joined. Opened sooner, pods land where they are not to, and nodes are
/// bought for those that then have no place.
const AT_REST_MAX: SignedDuration = SignedDuration::from_secs(20);
/// How long after a node was seen to be up its pods are still told: the name is forgotten of one that was tried just before it opened.
const FILLING: SignedDuration = SignedDuration::from_secs(30);
/// How often a pod is told to kube-scheduler again: one that does not fit will not fit for being told.
const NOMINATIONS_MAX: u8 = 5;

#[derive(Clone, Copy, Debug, Default)]
struct Closed {
    nodes: usize,
    joined: usize,
    ready: usize,
    /// When the last one joined of those that have.
    last_joined: Option<Timestamp>,
}

/// What opening nodes is decided by, at one moment.
#[derive(Default)]
pub struct Opening<'a> {
    /// By claim: the pods it was created for that are on no node, and for which none was created later.
    waiting: BTreeMap<&'a str, Vec<&'a Pod>>,
    /// By plan: its nodes that take no pods yet, and how many of them could open now.
    closed: BTreeMap<&'a str, Closed>,
    /// What the pods that wait ask for, and how many of them ask for the same.
    needs: BTreeMap<Resources, usize>,
    /// By claim: the place in kube-scheduler's queue of the first of its pods that wait.
    first: BTreeMap<&'a str, Queued>,
    /// UIDs of pods that are told their node when others are bound.
    told_later: HashSet<&'a str>,
    /// Names of claims whose nodes would take the first of other nodes' pods that must be near each other.
    would_take_first: BTreeSet<&'a str>,
    /// Pods were told just now, which takes a moment for each: what was seen of nodes is as old.
    told: bool,
    /// When a pod that waits was seen to be refused last.
    refused_at: Option<Timestamp>,
    now: Timestamp,
}

impl<'a> Opening<'a> {
    pub fn new(view: &View<'a>, told: &mut Nominations, now: Timestamp) -> Self {
        let is_opening = |claim: &&NodeClaim| is_filling(claim, now) && claim.is_true(conditions::LAUNCHED);
        let mut opening: Vec<&NodeClaim> = view.snapshot.node_claims.iter().filter(is_opening).collect();
        opening.sort_by_key(|claim| &claim.metadata.creation_timestamp);
        let newest: BTreeMap<&str, &str> =
            opening.iter().flat_map(|claim| of_claims::pods(claim).map(|pod| (pod, name_of(claim)))).collect();
        let unbound = (!newest.is_empty()).then(|| view.unbound_pods());
        let mut waiting: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
        for (pod, claim) in newest {
            let pod = unbound.as_ref().and_then(|unbound| unbound.get(pod));
            waiting.entry(claim).or_default().extend(pod.filter(|pod| !pod.is_terminating()));
        }
        let nodes = closed_nodes(view, &opening, &waiting);
        let closed = by_plan(&nodes);
        let mut made = Self { now, ..Self::default() };
        if !closed.is_empty() {
            made.needs = needs(waiting.values().flatten().copied());
            made.first = first_of_each(&waiting, told, now);
            made.would_take_first = would_take_first(view, &nodes);
        }
        made.told_later = told_later(view, &opening, &waiting);
        Self { waiting, closed, refused_at: told.refused_at, ..made }
    }

    /// The lesser opens first. Claims that are not to be opened come before all others, and of those that are, whose pods are all on
    /// nodes come last.
    pub fn turn(&self, claim: &NodeClaim) -> impl Ord + use<> {
        let first = self.first.get(name_of(claim));
        (is_closed(claim), first.is_none(), first.copied(), self.drawn_to(claim))
    }

    /// How many of the pods that wait have room on the node of a claim that is to be opened, beside those that it was created for.
    /// O(different needs).
    fn drawn_to(&self, claim: &NodeClaim) -> usize {
        if !is_closed(claim) {
            return 0;
        }
        let mut spare = allocatable(claim);
        spare.subtract(&Resources::of(&claim.spec.resources.requests).unwrap_or_default());
        self.needs.iter().filter(|(need, _)| need.fits_in(&spare)).map(|(_, pods)| pods).sum()
    }

    /// The same, when the pods of the nodes that open now were told.
    pub fn after_telling(self) -> Self {
        Self { told: true, ..self }
    }

    /// Until when a node that has joined stays closed: for others of its plan, for a kube-scheduler that is at rest, or for a fresh look at
    /// the nodes after its pods were told.
    pub fn waits(&self, claim: &NodeClaim, node: &Node) -> Option<Timestamp> {
        self.waits_to_tell(claim, node).or_else(|| (is_closed(claim) && self.told).then_some(self.now))
    }

    /// Until when the pods of a node that has joined are not told of it.
    pub fn waits_to_tell(&self, claim: &NodeClaim, node: &Node) -> Option<Timestamp> {
        let waits = self.waits_for_others(claim, node).or_else(|| self.waits_for_first(claim, node));
        waits.or_else(|| self.waits_for_rest(claim))
    }

    fn waits_for_rest(&self, claim: &NodeClaim) -> Option<Timestamp> {
        let closed = self.closed_of_plan(claim);
        if !may_wait(claim) || closed.nodes < 2 {
            return None;
        }
        let rests = self.end_of(self.refused_at, AT_REST)?;
        let longest = self.end_of(closed.last_joined, AT_REST_MAX)?;
        Some(rests.min(longest))
    }

    fn closed_of_plan(&self, claim: &NodeClaim) -> Closed {
        of_claims::plan(claim).and_then(|plan| self.closed.get(plan)).copied().unwrap_or_default()
    }

    /// Until when a node that has joined stays closed, because others of its plan are about to be ready.
    fn waits_for_others(&self, claim: &NodeClaim, node: &Node) -> Option<Timestamp> {
        let closed = self.closed_of_plan(claim);
        if !may_wait(claim) || closed.nodes < 2 || closed.ready == closed.nodes {
            return None;
        }
        let longest = self.end_of(joined(node), CLOSED_MAX)?;
        if closed.ready == closed.joined {
            return Some(self.end_of(closed.last_joined, WINDOW)?.min(longest));
        }
        match has_started(node) {
            true => Some(self.end_of(ready_since(node), WINDOW_MAX)?.min(longest)),
            false => Some(longest),
        }
    }

    /// Until when a node that has joined stays closed, because it would take the first of other nodes' pods that must be near each other.
    fn waits_for_first(&self, claim: &NodeClaim, node: &Node) -> Option<Timestamp> {
        let waits = may_wait(claim) && self.would_take_first.contains(name_of(claim));
        waits.then(|| self.end_of(joined(node), CLOSED_MAX)).flatten()
    }

    /// When it will be so long ago, if that is still to come.
    fn end_of(&self, moment: Option<Timestamp>, window: SignedDuration) -> Option<Timestamp> {
        moment?.checked_add(window).ok().filter(|until| *until > self.now)
    }
}

/// Notes how the pods that wait were refused. By claim: the first place in kube-scheduler's queue that one of its pods has.
fn first_of_each<'a>(
    waiting: &BTreeMap<&'a str, Vec<&'a Pod>>,
    nominations: &mut Nominations,
    now: Timestamp,
) -> BTreeMap<&'a str, Queued> {
    let of_claims = || waiting.iter().flat_map(|(claim, pods)| pods.iter().map(|pod| (*claim, *pod)));
    let refusals: Vec<Refusals> = of_claims().map(|(_, pod)| nominations.see(pod, now)).collect();
    let mut first: BTreeMap<&str, Queued> = BTreeMap::new();
    for ((claim, _), place) in of_claims().zip(queue::places(&refusals)) {
        first.entry(claim).and_modify(|first| *first = place.min(*first)).or_insert(place);
    }
    first
}

/// UIDs of those that are told their node when others are bound. Some of the others may wait for nodes that were there before: these
/// are open, and who is told one is bound or refused by now.
fn told_later<'a>(
    view: &View<'a>,
    opening: &[&'a NodeClaim],
    waiting: &BTreeMap<&'a str, Vec<&'a Pod>>,
) -> HashSet<&'a str> {
    let first: HashSet<&str> = opening.iter().flat_map(|claim| of_claims::first_pods(claim)).collect();
    if first.is_empty() {
        return HashSet::new();
    }
    let expected = opening.iter().flat_map(|&claim| {
        let pods = waiting.get(name_of(claim)).into_iter().flatten();
        pods.map(move |&pod| Expected { pod, claim: Some(claim), node: view.node_of(claim) })
    });
    binding_order::told_later(&expected.collect::<Vec<_>>(), |pod| first.contains(pod.key().as_str()))
}

/// Those that take no pods yet.
fn closed_nodes<'a, 'b>(
    view: &View<'a>,
    opening: &[&'a NodeClaim],
    waiting: &'b BTreeMap<&'a str, Vec<&'a Pod>>,
) -> Vec<ClosedNode<'a, 'b>> {
    let closed = opening.iter().map(|claim| (*claim, view.node_of(claim)));
    let closed = closed.filter(|(claim, node)| takes_no_pods_yet(claim, *node));
    let closed = closed.map(|(claim, node)| ClosedNode {
        claim,
        node,
        is_ready: node.is_some_and(|node| takes_pods_when_open(claim, node)),
        pods: waiting.get(name_of(claim)).map_or(&[][..], Vec::as_slice),
    });
    closed.collect()
}

fn by_plan<'a>(nodes: &[ClosedNode<'a, '_>]) -> BTreeMap<&'a str, Closed> {
    let mut by_plan: BTreeMap<&str, Closed> = BTreeMap::new();
    for ClosedNode { claim, node, is_ready, .. } in nodes {
        let Some(plan) = of_claims::plan(claim) else { continue };
        let closed = by_plan.entry(plan).or_default();
        closed.nodes += 1;
        closed.joined += usize::from(node.is_some());
        closed.ready += usize::from(*is_ready);
        closed.last_joined = closed.last_joined.max(node.and_then(joined));
    }
    by_plan
}

/// Whether it is closed, or start-up taints keep pods away.
fn takes_no_pods_yet(claim: &NodeClaim, node: Option<&Node>) -> bool {
    is_closed(claim) || (is_on_its_way(claim) && node.is_some_and(|node| has_start_up_taint(claim, node)))
}

/// Whether nothing but its being closed keeps pods away. Start-up taints come when it is registered, where it does not bring them.
fn takes_pods_when_open(claim: &NodeClaim, node: &Node) -> bool {
    let is_clear = || claim.is_true(conditions::REGISTERED) && !has_start_up_taint(claim, node);
    has_started(node) && (claim.spec.startup_taints.is_empty() || is_clear())
}

fn has_start_up_taint(claim: &NodeClaim, node: &Node) -> bool {
    startup_taints(claim, node).next().is_some()
}

/// Whether it is closed and may stay so for a while. One with start-up taints is registered as soon as it joins: what takes them off may have
/// done so before, and registration would put them there again.
fn may_wait(claim: &NodeClaim) -> bool {
    is_closed(claim) && claim.spec.startup_taints.is_empty()
}

fn joined(node: &Node) -> Option<Timestamp> {
    node.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn needs<'a>(pods: impl Iterator<Item = &'a Pod>) -> BTreeMap<Resources, usize> {
    let mut needs: BTreeMap<Resources, usize> = BTreeMap::new();
    for need in pods.filter_map(|pod| effective_requests(pod).ok()) {
        *needs.entry(need).or_default() += 1;
    }
    needs
}

/// Created for pods that are waiting, and not registered yet.
fn is_closed(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none()
        && !claim.is_true(conditions::REGISTERED)
        && of_claims::pods(claim).next().is_some()
}

/// Pods, by `namespace/name`, that claims were created for whose nodes are not open yet: they have a place, whatever they know of it.
pub fn pods_of_closed<'a>(view: &View<'a>) -> HashSet<&'a str> {
    let on_their_way = view.snapshot.node_claims.iter().filter(|claim| is_closed(claim));
    on_their_way.flat_map(of_claims::pods).collect()
}

/// A pod, and the node that it should land on.
pub struct Nomination {
    pub namespace: String,
    pub pod: String,
    pub node: String,
}

/// Claims on their way that a plan puts further pods on, each with these noted beside those it was created for: they are told before
/// the node opens, and the next plan leaves them there.
pub fn claims_with_further_pods(plan: &Plan, view: &View<'_>) -> Vec<NodeClaim> {
    let on_their_way = view.snapshot.node_claims.iter().filter(|claim| is_on_its_way(claim));
    let claims: BTreeMap<&str, &NodeClaim> = on_their_way
        .flat_map(|claim| [Some(name_of(claim)), view.node_of(claim).map(node_name)].map(|name| (name, claim)))
        .filter_map(|(name, claim)| Some((name?, claim)))
        .collect();
    if claims.is_empty() || plan.placements.is_empty() {
        return Vec::new();
    }
    let unbound = view.unbound_pods();
    let first = plan.pods_to_bind_first();
    let known: BTreeSet<&str> = claims.values().flat_map(|claim| of_claims::pods(claim)).collect();
    let mut further: BTreeMap<&str, (&NodeClaim, Vec<&str>)> = BTreeMap::new();
    for placement in &plan.placements {
        let pod = placement.pod.as_str();
        let Some(claim) = claims.get(placement.node.as_str()) else { continue };
        if unbound.get(pod).is_some() && !known.contains(pod) {
            further.entry(name_of(claim)).or_insert((claim, Vec::new())).1.push(pod);
        }
    }
    further.into_values().map(|(claim, pods)| of_claims::with_further_pods(claim, &pods, &first)).collect()
}

/// Claims that are to go when others are up, each with the places noted that a plan has for its pods by now: what moved meanwhile
/// took room that they were to have, and the next plan leaves them where they go instead.
pub fn claims_with_other_destinations(plan: &Plan, view: &View<'_>) -> Vec<NodeClaim> {
    let waits = |claim: &&NodeClaim| claim.metadata.deletion_timestamp.is_none() && of_claims::goes(claim);
    let waiting: Vec<&NodeClaim> = view.snapshot.node_claims.iter().filter(waits).collect();
    if waiting.is_empty() {
        return Vec::new();
    }
    let targets: BTreeMap<&str, &str> = of_claims::targets(plan).collect();
    let other = waiting.into_iter().filter_map(|claim| {
        let keys: Vec<String> = view.pods_on(view.node_of(claim)).iter().map(|pod| pod.key()).collect();
        let pods: Vec<&str> = keys.iter().map(String::as_str).collect();
        of_claims::with_other_destinations(claim, &pods, &targets)
    });
    other.collect()
}

/// Whether its node is to be opened, or its pods may still be on the way to it.
fn is_filling(claim: &NodeClaim, now: Timestamp) -> bool {
    let up_since = || conditions::transition(claim, conditions::INITIALIZED);
    let is_new = || up_since().is_some_and(|since| now.duration_since(since) < FILLING);
    is_on_its_way(claim) || (claim.metadata.deletion_timestamp.is_none() && is_new())
}

fn is_on_its_way(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_none() && !claim.is_true(conditions::INITIALIZED)
}

/// Where a plan expects pods to land that kube-scheduler found no place for, as far as it does not know. Of nodes that are closed they
/// are told when those are about to open: kube-scheduler forgets the name of one that is closed when it next tries the pod.
pub fn places(plan: &Plan, view: &View<'_>, now: Timestamp) -> Vec<Nomination> {
    if plan.placements.is_empty() {
        return Vec::new();
    }
    let unbound = view.unbound_pods();
    let is_told = |pod: &Pod, node: &str| pod.status.nominated_node_name.as_deref() == Some(node);
    let closed = view.snapshot.node_claims.iter().filter(|claim| is_closed(claim));
    let closed: HashSet<&str> = closed.filter_map(|claim| view.node_of(claim)).map(node_name).collect();
    let later = placed_later(plan, view, &unbound, now);
    let placements = plan.placements.iter().filter(|placement| !closed.contains(placement.node.as_str()));
    let places = placements.filter_map(|placement| {
        let pod = unbound.get(&placement.pod).filter(|pod| !is_told(pod, &placement.node))?;
        let (namespace, name) = (pod.metadata.namespace.clone(), pod.metadata.name.clone());
        let nomination = || Nomination { namespace, pod: name, node: placement.node.clone() };
        (!later.contains(pod.metadata.uid.as_str())).then(nomination)
    });
    places.collect()
}

/// UIDs of those that a plan puts on nodes that are there, and that are told so when others are bound: others of the plan, or pods of
/// nodes on their way.
fn placed_later<'a>(plan: &Plan, view: &View<'a>, unbound: &PodsByKey<'a>, now: Timestamp) -> HashSet<&'a str> {
    let filling = view.snapshot.node_claims.iter().filter(|claim| is_filling(claim, now));
    let first_of_claims: Vec<(&str, &NodeClaim)> =
        filling.flat_map(|claim| of_claims::first_pods(claim).map(move |pod| (pod, claim))).collect();
    let mut first = plan.pods_to_bind_first();
    first.extend(first_of_claims.iter().map(|(pod, _)| *pod));
    if first.is_empty() {
        return HashSet::new();
    }
    let on_nodes = plan.placements.iter().filter_map(|placement| {
        let node = view.node(&placement.node);
        Some(Expected { pod: unbound.get(&placement.pod)?, claim: None, node })
    });
    let on_their_way = first_of_claims.iter().filter_map(|(pod, claim)| {
        Some(Expected { pod: unbound.get(pod)?, claim: Some(claim), node: view.node_of(claim) })
    });
    let expected: Vec<Expected<'_>> = on_nodes.chain(on_their_way).collect();
    binding_order::told_later(&expected, |pod| first.contains(pod.key().as_str()))
}

/// What pods were told, by UID. Lost with the process: it bounds the work, and says when and in which order nodes open.
#[derive(Debug, Default)]
pub struct Nominations {
    told: BTreeMap<String, Told>,
    /// When a pod that waits was seen to be refused last.
    refused_at: Option<Timestamp>,
}

/// What one pod was told, and how it was refused.
#[derive(Debug, Default)]
struct Told {
    times: u8,
    /// The pod's version before it was told last.
    version: u64,
    /// The versions of the refusal that was seen first, and of the last one.
    refusals: Option<(u64, u64)>,
}

impl Nominations {
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// Looks at a pod that waits: which refusals of it were seen.
    fn see(&mut self, pod: &Pod, now: Timestamp) -> Refusals {
        let told = self.told.entry(pod.metadata.uid.clone()).or_default();
        let last = queue::refused(pod, (told.times > 0).then_some(told.version));
        let (first, before) = told.refusals.unwrap_or((last, last));
        told.refusals = Some((first, last));
        if last != before {
            self.refused_at = Some(now);
        }
        Refusals { priority: pod.spec.priority.unwrap_or_default(), first, last }
    }

    /// All but those of these pods.
    pub fn forget(&mut self, uids: &HashSet<&str>) {
        self.told.retain(|uid, _| uids.contains(uid.as_str()));
    }

    /// The pods that the node of a claim has to be told to, now, each counted: those it was created for that are on no node
    /// and do not know it. None once it has been up for a while, nor one that `is_aside`.
    pub fn due<'a>(
        &mut self,
        opening: &Opening<'a>,
        claim: &NodeClaim,
        node: &str,
        is_aside: impl Fn(&Pod) -> bool,
    ) -> Vec<&'a Pod> {
        let waiting = opening.waiting.get(name_of(claim)).into_iter().flatten().copied();
        let waiting = waiting.filter(|pod| !opening.told_later.contains(pod.metadata.uid.as_str()));
        let mut due: Vec<&Pod> =
            waiting.filter(|pod| pod.status.nominated_node_name.as_deref() != Some(node) && !is_aside(pod)).collect();
        due.retain(|pod| {
            let told = self.told.entry(pod.metadata.uid.clone()).or_default();
            let is_due = told.times < NOMINATIONS_MAX;
            if is_due {
                (told.times, told.version) = (told.times + 1, pod.metadata.version());
            }
            is_due
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(allocatable: Value, requests: Value) -> NodeClaim {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": { "name": "default-1", "annotations": { "cutlist.dev/pods": "shop/web-1" } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
                "resources": { "requests": requests },
            },
            "status": { "allocatable": allocatable },
        });
        serde_json::from_value(claim).unwrap()
    }

    fn need(cpu: &str, memory: &str) -> Resources {
        Resources::parse([("cpu", cpu), ("memory", memory), ("pods", "1")]).unwrap()
    }

    #[test]
    fn a_node_draws_the_pods_that_have_room_beside_its_own() {
        let needs = BTreeMap::from([(need("100m", "128Mi"), 3), (need("500m", "1Gi"), 4), (need("250m", "8Gi"), 5)]);
        let opening = Opening { needs, ..Opening::default() };
        let room = json!({ "cpu": "2", "memory": "4Gi", "pods": "10" });
        let drawn = |requests: Value| opening.drawn_to(&claim(room.clone(), requests));
        assert_eq!(drawn(json!({ "cpu": "1", "memory": "1Gi", "pods": "2" })), 7, "but for what asks for 8Gi");
        assert_eq!(drawn(json!({ "cpu": "1800m", "memory": "1Gi", "pods": "2" })), 3);
        assert_eq!(drawn(json!({ "cpu": "1950m", "memory": "1Gi", "pods": "2" })), 0, "it is full");
        assert_eq!(drawn(json!({ "cpu": "1", "memory": "1Gi", "pods": "10" })), 0, "it has no room for another pod");
    }

    #[test]
    fn a_node_with_start_up_taints_is_registered_at_once_and_waited_for_until_they_are_gone() {
        let taint = json!({ "key": "cni", "effect": "NoSchedule" });
        let node = |taints: Value| -> Node {
            let conditions = json!([{ "type": "Ready", "status": "True" }]);
            serde_json::from_value(json!({ "spec": { "taints": taints }, "status": { "conditions": conditions } }))
                .unwrap()
        };
        let mut claim = claim(json!({}), json!({}));
        assert!(may_wait(&claim) && takes_pods_when_open(&claim, &node(json!([]))));
        claim.spec.startup_taints = serde_json::from_value(json!([taint])).unwrap();
        assert!(!may_wait(&claim), "registration would put back what is gone by then");
        assert!(!takes_pods_when_open(&claim, &node(json!([]))), "registration puts them there");
        conditions::set(&mut claim, conditions::REGISTERED, "True", "Registered", "", Timestamp::UNIX_EPOCH);
        assert!(takes_no_pods_yet(&claim, Some(&node(json!([taint])))));
        assert!(!takes_pods_when_open(&claim, &node(json!([taint]))));
        assert!(takes_pods_when_open(&claim, &node(json!([]))));
        assert!(!takes_no_pods_yet(&claim, Some(&node(json!([])))));
    }
}
