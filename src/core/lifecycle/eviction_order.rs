//! Nodes take turns in getting the pods of nodes that go, so that these come to be where their plan has room for them.
//!
//! The pod that takes the place of an evicted one is bound before anybody could name a node to kube-scheduler, which chooses the least
//! allocated one: room that a plan fills to the last would be spread over all nodes, and some pods find none at the end. So of pods
//! that consolidation moves, only those leave that go to the nodes whose turn it is, and meanwhile all others with room are tainted
//! `PreferNoSchedule`: kube-scheduler goes there only where nothing else is left, and counts that for more than anything it prefers by
//! itself (weight 3 of TaintToleration against 1 of LeastAllocated). A pod that comes from elsewhere meanwhile is never kept waiting.
//!
//! A turn is for pods that may leave now: while PodDisruptionBudgets keep all that wait, the turn stays as it is, and so do the taints,
//! for half a minute. Else nodes would be tainted and untainted as fast as the API server answers, and nobody would leave.
//!
//! What is remembered may be lost: another turn begins then, and taints that are not needed are taken off.
//!
#![doc = include_str!("eviction_order.md")]

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;

use crate::model::resources::{CPU, MEMORY};
use crate::snapshot::requests::effective_requests;
use crate::snapshot::{Pod, nodes};
use cutlist_api::keys;

use super::taint_patch;

/// Of more nodes several have their turn together: one at a time, where all pods come to be just where they are planned, up to twice as
/// many, and however many they are in less than twice as many turns.
const TURNS: usize = 64;

/// A turn ends after this time at the latest, whether or not all pods that left came back.
const TURN_MAX: SignedDuration = SignedDuration::from_secs(5);

/// Pods leave after this time although other nodes could not be tainted: somebody else may change one all the time.
const TAINTING_MAX: SignedDuration = SignedDuration::from_secs(2);

/// A turn in which no pod may leave is kept for this time, since its budgets may soon allow one more.
const IDLE_MAX: SignedDuration = SignedDuration::from_secs(30);

/// Where a pod goes that leaves its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination<'a> {
    /// To a node that takes pods, by its name.
    Node(&'a str),
    /// To whichever node has room.
    Any,
    /// It comes back nowhere, or can not wait.
    None,
}

/// The turn of pods that go to whichever node has room: no node is called so.
const ANY: &str = "";

impl<'a> Destination<'a> {
    /// Whose turn a pod waits for.
    fn turn(self) -> Option<&'a str> {
        match self {
            Self::Node(node) => Some(node),
            Self::Any => Some(ANY),
            Self::None => None,
        }
    }
}

/// A pod that may leave its node now.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    pub pod: &'a Pod,
    pub destination: Destination<'a>,
    /// Whether it is moved to save money. For others alone nobody takes turns.
    pub is_consolidated: bool,
    /// Whether it may be evicted now, as far as is known.
    pub is_allowed: bool,
}

impl<'a> Leaving<'a> {
    /// Whose turn the pod waits for, if it may be evicted.
    fn awaits(&self) -> Option<&'a str> {
        self.destination.turn().filter(|_| self.is_allowed)
    }
}

/// Whose turn it is, and who has had one.
#[derive(Clone, Debug, Default)]
pub struct EvictionOrder {
    current: Option<Turn>,
    /// Pods that stayed then are asked for again when all have had one.
    had_one: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Turn {
    nodes: BTreeSet<String>,
    began: Timestamp,
    /// Whether the nodes are tainted for it.
    is_prepared: bool,
    /// UIDs of pods that left.
    left: BTreeSet<String>,
    /// Namespace and name of ReplicaSets of which pods leave, and how many pods each had.
    replicas: Vec<(String, String, usize)>,
    /// Whether its time is over and budgets keep all that wait.
    is_idle: bool,
}

impl EvictionOrder {
    /// Begins the next turn if none goes on. `all`: every pod of the cluster. O(pods).
    pub fn go_on<'a>(&mut self, leaving: &[Leaving<'_>], all: impl Iterator<Item = &'a Pod> + Clone, now: Timestamp) {
        if !leaving.iter().any(|it| it.is_consolidated && matches!(it.destination, Destination::Node(_))) {
            *self = Self::default();
            return;
        }
        let is_awaited = leaving.iter().any(|it| it.awaits().is_some());
        self.current = match self.current.take() {
            Some(turn) if !turn.is_over(all.clone(), now) => Some(turn),
            Some(turn) if turn.is_prepared && leaving.iter().any(|it| turn.is_for(it)) => {
                Some(Turn { is_prepared: true, ..Turn::new(turn.nodes, leaving, all, now) })
            }
            _ if is_awaited => Some(self.next(leaving, all, now)),
            turn => turn.filter(|turn| turn.is_prepared && now < turn.idle_end()).map(Turn::idle),
        };
    }

    /// Whether the nodes are not tainted for the turn, or for nobody's.
    pub fn wants_taints(&self) -> bool {
        self.current.as_ref().is_none_or(|turn| !turn.is_prepared)
    }

    /// Takes note of whether every node is tainted as it should be.
    pub fn tainted(&mut self, is_prepared: bool) {
        if let Some(turn) = &mut self.current {
            turn.is_prepared |= is_prepared;
        }
    }

    /// Positions of the pods that leave now.
    pub fn take(&self, leaving: &[Leaving<'_>], now: Timestamp) -> Vec<usize> {
        let Some(turn) = &self.current else { return (0..leaving.len()).collect() };
        let is_open = turn.is_prepared || now >= turn.opening();
        let is_now = |it: &Leaving<'_>| it.destination.turn().is_none_or(|node| is_open && turn.nodes.contains(node));
        (0..leaving.len()).filter(|position| is_now(&leaving[*position])).collect()
    }

    fn next<'a>(&mut self, leaving: &[Leaving<'_>], all: impl Iterator<Item = &'a Pod>, now: Timestamp) -> Turn {
        let mut awaited: BTreeSet<&str> = leaving.iter().filter_map(Leaving::awaits).collect();
        if awaited.iter().all(|node| self.had_one.contains(*node)) {
            self.had_one.clear();
        }
        awaited.retain(|node| !self.had_one.contains(*node));
        if awaited.len() > 1 {
            awaited.remove(ANY);
        }
        let together = ((awaited.len() + self.had_one.len()) / TURNS).max(1);
        let nodes: BTreeSet<String> = awaited.into_iter().take(together).map(str::to_owned).collect();
        self.had_one.extend(nodes.iter().cloned());
        Turn::new(nodes, leaving, all, now)
    }

    /// Takes note of a pod that leaves.
    pub fn note(&mut self, pod: &Pod) {
        if let Some(turn) = &mut self.current {
            turn.left.insert(pod.metadata.uid.clone());
        }
    }

    /// The nodes whose turn it is; `None` where pods may go anywhere.
    pub fn nodes(&self) -> Option<&BTreeSet<String>> {
        self.current.as_ref().map(|turn| &turn.nodes).filter(|nodes| !nodes.contains(ANY))
    }

    /// When pods leave, or the turn ends, whatever happens: after `now`.
    pub fn look_again_at(&self, now: Timestamp) -> Option<Timestamp> {
        let turn = self.current.as_ref()?;
        let opening = (!turn.is_prepared).then(|| turn.opening());
        let moments = if turn.is_idle { [None, Some(turn.idle_end())] } else { [opening, Some(turn.end())] };
        moments.into_iter().flatten().find(|moment| *moment > now)
    }
}

impl Turn {
    fn new<'a>(
        nodes: BTreeSet<String>,
        leaving: &[Leaving<'_>],
        all: impl Iterator<Item = &'a Pod>,
        now: Timestamp,
    ) -> Self {
        let mut turn =
            Self { nodes, began: now, is_prepared: false, left: BTreeSet::new(), replicas: Vec::new(), is_idle: false };
        let sets: BTreeSet<_> =
            leaving.iter().filter(|it| turn.is_for(it)).filter_map(|it| replica_set(it.pod)).collect();
        let counts = decided(all, sets.iter().copied());
        turn.replicas = sets.iter().map(|set| (set.0.to_owned(), set.1.to_owned(), counts[set])).collect();
        turn
    }

    fn is_for(&self, leaving: &Leaving<'_>) -> bool {
        leaving.awaits().is_some_and(|node| self.nodes.contains(node))
    }

    fn idle(self) -> Self {
        Self { is_idle: true, ..self }
    }

    fn idle_end(&self) -> Timestamp {
        self.began.saturating_add(IDLE_MAX).unwrap_or(Timestamp::MAX)
    }

    fn opening(&self) -> Timestamp {
        self.began.saturating_add(TAINTING_MAX).unwrap_or(Timestamp::MAX)
    }

    fn end(&self) -> Timestamp {
        self.began.saturating_add(TURN_MAX).unwrap_or(Timestamp::MAX)
    }

    /// Whether for all pods that left others found a node, or none.
    fn is_over<'a>(&self, all: impl Iterator<Item = &'a Pod> + Clone, now: Timestamp) -> bool {
        if now >= self.end() || now < self.began {
            return true;
        }
        if !self.is_prepared {
            return false;
        }
        let is_there = |pod: &Pod| !pod.is_terminating() && self.left.contains(&pod.metadata.uid);
        if all.clone().any(is_there) {
            return false;
        }
        let sets = self.replicas.iter().map(|(namespace, name, _)| (namespace.as_str(), name.as_str()));
        let counts = decided(all, sets);
        self.replicas.iter().all(|(namespace, name, before)| counts[&(namespace.as_str(), name.as_str())] >= *before)
    }
}

/// Namespace and name of what replaces the pod while it still ends. A StatefulSet waits until it has.
fn replica_set(pod: &Pod) -> Option<(&str, &str)> {
    let workload = pod.workload().filter(|workload| workload.kind == "ReplicaSet")?;
    Some((workload.namespace, workload.name))
}

/// How many pods these ReplicaSets have about which kube-scheduler has decided.
fn decided<'s, 'a: 's>(
    all: impl Iterator<Item = &'a Pod>,
    sets: impl Iterator<Item = (&'s str, &'s str)>,
) -> HashMap<(&'s str, &'s str), usize> {
    let mut counts: HashMap<_, usize> = sets.map(|set| (set, 0)).collect();
    for pod in all.filter(|pod| !pod.is_terminal() && !pod.is_terminating()) {
        let count = replica_set(pod).and_then(|set| counts.get_mut(&set));
        if let Some(count) = count.filter(|_| pod.spec.node_name.is_some() || pod.scheduling_refused().is_some()) {
            *count += 1;
        }
    }
    counts
}

/// The least that one of the pods asks for: processors, memory.
pub fn least_request<'a>(pods: impl Iterator<Item = &'a Pod>) -> [i64; 2] {
    pods.filter_map(|pod| effective_requests(pod).ok())
        .fold([i64::MAX; 2], |least, requests| [least[0].min(requests.get(CPU)), least[1].min(requests.get(MEMORY))])
}

/// Whether kube-scheduler could put a pod there that asks for so much of processors and memory.
pub fn has_room(node: &Node, pods: &[&Pod], request: [i64; 2]) -> bool {
    let allocatable = nodes::allocatable(node);
    let mut free = [CPU, MEMORY].map(|name| allocatable.get(name));
    for requests in pods.iter().filter(|pod| !pod.is_terminal()).filter_map(|pod| effective_requests(pod).ok()) {
        free[0] -= requests.get(CPU);
        free[1] -= requests.get(MEMORY);
    }
    free[0] >= request[0] && free[1] >= request[1]
}

/// Adds the taint of nodes whose turn it is not, or takes it off; `None` when the node is as it should be.
pub fn patch(node: &Node, is_tainted: bool) -> Option<Value> {
    let key = keys::HELD_FOR_MOVE_TAINT;
    if is_tainted { taint_patch::with(node, key, "PreferNoSchedule") } else { taint_patch::without(node, key) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildNode, BuildPod, Merge, node, pod};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_165_200 + second).unwrap()
    }

    fn replica(name: &str, on: &str) -> Pod {
        let pod = pod(name).owned_by("ReplicaSet", "web").on(on);
        pod.merge(json!({ "metadata": { "uid": name } }))
    }

    fn to<'a>(pod: &'a Pod, destination: Destination<'a>) -> Leaving<'a> {
        Leaving { pod, destination, is_consolidated: true, is_allowed: true }
    }

    /// The pods that leave once all nodes are tainted.
    fn take<'a>(
        turns: &mut EvictionOrder,
        leaving: &[Leaving<'_>],
        all: impl Iterator<Item = &'a Pod> + Clone,
        now: Timestamp,
    ) -> Vec<usize> {
        turns.go_on(leaving, all, now);
        turns.tainted(true);
        turns.take(leaving, now)
    }

    #[test]
    fn the_pods_of_the_next_node_leave_when_those_of_the_one_before_are_back() {
        let (one, two) = (replica("one", "goes"), replica("two", "goes"));
        let leaving = [to(&one, Destination::Node("b")), to(&two, Destination::Node("a"))];
        let mut turns = EvictionOrder::default();
        assert_eq!(take(&mut turns, &leaving, [&one, &two].into_iter(), at(0)), [1]);
        assert_eq!(turns.nodes(), Some(&BTreeSet::from(["a".to_owned()])));
        turns.note(&two);
        assert_eq!(take(&mut turns, &leaving, [&one, &two].into_iter(), at(1)), [1], "it is not seen yet that it went");
        let leaving = &leaving[..1];
        assert!(take(&mut turns, leaving, [&one].into_iter(), at(1)).is_empty(), "the other waits for its node");
        let mut back = replica("three", "a");
        back.spec.node_name = None;
        assert!(
            take(&mut turns, leaving, [&one, &back].into_iter(), at(2)).is_empty(),
            "kube-scheduler has not seen it"
        );
        let refused =
            back.clone().merge(json!({ "status": { "conditions": [{ "type": "PodScheduled", "status": "False" }] } }));
        assert_eq!(take(&mut turns.clone(), leaving, [&one, &refused].into_iter(), at(2)), [0], "it found no node");
        back.spec.node_name = Some("a".to_owned());
        assert_eq!(take(&mut turns, leaving, [&one, &back].into_iter(), at(2)), [0]);
        assert_eq!(turns.nodes(), Some(&BTreeSet::from(["b".to_owned()])));
    }

    #[test]
    fn a_turn_ends_although_pods_do_not_come_back() {
        let (one, two) = (replica("one", "goes"), replica("two", "goes"));
        let leaving = [to(&one, Destination::Node("a")), to(&two, Destination::Node("b"))];
        let mut turns = EvictionOrder::default();
        assert_eq!(take(&mut turns, &leaving, [&one, &two].into_iter(), at(0)), [0]);
        turns.note(&one);
        assert_eq!(turns.look_again_at(at(0)), Some(at(5)));
        assert!(take(&mut turns, &leaving[1..], [&two].into_iter(), at(4)).is_empty());
        assert_eq!(take(&mut turns, &leaving[1..], [&two].into_iter(), at(5)), [0]);
        assert_eq!(take(&mut turns, &leaving[1..], [&two].into_iter(), at(-60)), [0], "a clock was set back");
    }

    #[test]
    fn nothing_leaves_before_the_nodes_are_tainted_for_it() {
        let (one, daemon) = (replica("one", "goes"), pod("daemon").on("goes"));
        let leaving = [to(&one, Destination::Node("a")), to(&daemon, Destination::None)];
        let mut turns = EvictionOrder::default();
        let look = |turns: &mut EvictionOrder, leaving: &[Leaving<'_>], second, is_prepared| {
            turns.go_on(leaving, [&one, &daemon].into_iter(), at(second));
            let wants_taints = turns.wants_taints();
            turns.tainted(is_prepared);
            (wants_taints, turns.take(leaving, at(second)), turns.look_again_at(at(second)))
        };
        let overtaken = look(&mut turns, &leaving, 0, false);
        assert_eq!(overtaken, (true, vec![1], Some(at(2))), "somebody changed a node meanwhile");
        assert_eq!(look(&mut turns, &leaving, 1, true), (true, vec![0, 1], Some(at(5))));
        turns.note(&one);
        assert_eq!(look(&mut turns, &leaving, 2, true), (false, vec![0, 1], Some(at(5))), "they are");
        assert_eq!(look(&mut turns, &leaving, 5, false), (false, vec![0, 1], Some(at(10))), "the same node");
        let other = [to(&one, Destination::Node("b")), leaving[1]];
        assert_eq!(look(&mut turns, &other, 10, false), (true, vec![1], Some(at(12))), "another turn");
        let still_overtaken = look(&mut turns, &other, 12, false);
        assert_eq!(still_overtaken, (true, vec![0, 1], Some(at(15))), "somebody changes a node all the time");
    }

    #[test]
    fn what_the_api_refuses_to_evict_is_asked_for_again_after_the_others() {
        let (kept, other) = (replica("kept", "goes"), replica("other", "goes"));
        let (kept, other) = (to(&kept, Destination::Node("a")), to(&other, Destination::Node("b")));
        let refused = Leaving { is_allowed: false, ..kept };
        let all = || [kept.pod, other.pod].into_iter();
        let mut turns = EvictionOrder::default();
        assert_eq!(take(&mut turns, &[kept, other], all(), at(0)), [0]);
        assert_eq!(take(&mut turns, &[refused, other], all(), at(1)), [1]);
        turns.note(other.pod);
        assert_eq!(take(&mut turns, &[kept], [kept.pod].into_iter(), at(6)), [0]);
    }

    #[test]
    fn a_turn_stays_while_budgets_keep_all_that_wait() {
        let (one, two) = (replica("one", "goes"), replica("two", "goes"));
        let leaving = [to(&one, Destination::Node("a")), to(&two, Destination::Node("b"))];
        let kept = leaving.map(|it| Leaving { is_allowed: false, ..it });
        let all = || [&one, &two].into_iter();
        let mut turns = EvictionOrder::default();
        turns.go_on(&kept, all(), at(0));
        assert_eq!((turns.nodes(), turns.look_again_at(at(0))), (None, None), "nobody may leave");
        assert_eq!(take(&mut turns, &leaving, all(), at(1)), [0]);
        for second in 2..31 {
            turns.go_on(&kept, all(), at(second));
            assert!(!turns.wants_taints(), "the taints stay");
            assert_eq!(turns.nodes(), Some(&BTreeSet::from(["a".to_owned()])));
            assert!(turns.look_again_at(at(second)).is_some_and(|moment| moment > at(second)));
        }
        assert_eq!(turns.look_again_at(at(30)), Some(at(31)));
        let mut goes_on = turns.clone();
        assert_eq!(take(&mut goes_on, &[leaving[0], kept[1]], all(), at(30)), [0]);
        goes_on.go_on(&[leaving[0], kept[1]], all(), at(30));
        assert!(!goes_on.wants_taints(), "it is the turn of the same node");
        turns.go_on(&kept, all(), at(31));
        assert!(turns.wants_taints() && turns.nodes().is_none(), "no node need be avoided any longer");
    }

    #[test]
    fn no_look_is_asked_for_at_the_moment_that_it_is() {
        let pod = replica("one", "goes");
        for (is_allowed, is_prepared) in [(true, true), (true, false), (false, true), (false, false)] {
            let leaving = [Leaving { is_allowed, ..to(&pod, Destination::Node("a")) }];
            let mut turns = EvictionOrder::default();
            turns.go_on(&[to(&pod, Destination::Node("a"))], [&pod].into_iter(), at(0));
            for second in 0..100 {
                turns.tainted(is_prepared);
                turns.go_on(&leaving, [&pod].into_iter(), at(second));
                assert!(turns.look_again_at(at(second)).is_none_or(|moment| moment > at(second)));
            }
        }
    }

    #[test]
    fn pods_without_a_place_go_last_and_daemons_wait_for_nobody() {
        let (one, any, daemon) = (replica("one", "goes"), replica("any", "goes"), pod("daemon").on("goes"));
        let mut turns = EvictionOrder::default();
        let all = || [&one, &any, &daemon].into_iter();
        let leaving = [to(&any, Destination::Any), to(&daemon, Destination::None), to(&one, Destination::Node("a"))];
        assert_eq!(take(&mut turns, &leaving, all(), at(0)), [1, 2]);
        let refused = [leaving[0], leaving[1], Leaving { is_allowed: false, ..leaving[2] }];
        assert_eq!(take(&mut turns, &refused, all(), at(1)), [0, 1]);
        assert_eq!(turns.nodes(), None, "no node is to be avoided");
        assert_eq!(take(&mut turns, &leaving[..2], all(), at(2)), [0, 1], "nobody takes turns");
        let drifted = Leaving { is_consolidated: false, ..leaving[2] };
        assert_eq!(take(&mut turns, &[leaving[0], drifted], all(), at(3)), [0, 1], "nothing is moved to save money");
    }

    #[test]
    fn of_many_nodes_several_have_their_turn_together() {
        let pod = replica("one", "goes");
        let names: Vec<String> = (0..200).map(|number| format!("{number:03}")).collect();
        let leaving: Vec<_> = names.iter().map(|name| to(&pod, Destination::Node(name))).collect();
        assert_eq!(take(&mut EvictionOrder::default(), &leaving, [&pod].into_iter(), at(0)).len(), 3);
    }

    #[test]
    fn only_our_taint_comes_and_goes() {
        let bare = node("a").taint("team", "a", "NoSchedule");
        assert_eq!(patch(&bare, false), None);
        let team = json!({ "key": "team", "value": "a", "effect": "NoSchedule" });
        let ours = json!({ "key": keys::HELD_FOR_MOVE_TAINT, "effect": "PreferNoSchedule" });
        let tainting = patch(&bare, true).unwrap();
        assert_eq!(tainting["spec"]["taints"], json!([team, ours]));
        let tainted = bare.merge(json!({ "spec": { "taints": [team, ours] } }));
        assert_eq!(patch(&tainted, true), None);
        assert_eq!(patch(&tainted, false).unwrap()["spec"]["taints"], json!([team]));
    }

    #[test]
    fn a_node_has_room_for_what_both_its_processors_and_its_memory_are_enough_for() {
        let node = node("a").allocatable("2", "4Gi", "10");
        let (large, small) = (pod("large").cpu("1500m").memory("1Gi"), pod("small").cpu("500m").memory("2Gi"));
        let least = least_request([&large, &small].into_iter());
        assert_eq!(least, [500, 1 << 30]);
        assert!(has_room(&node, &[], least) && has_room(&node, &[&large], least));
        assert!(!has_room(&node, &[&large, &small], least));
    }
}
