//! Nodes that were bought for pods, and that kube-scheduler refuses them: whatever the reason, the same is not bought again at once.
//!
//! Planner and kube-scheduler may disagree for reasons that nobody foresaw: a label that the machine lacks, a taint that somebody adds, a
//! plugin of which only kube-scheduler knows. Without a guard each look would buy another node like the last. All that is needed to tell
//! stands in the cluster: the NodeClaims say for which pods they were bought and since when their nodes are open, the pods say that they
//! wait. What came of it is part of the plan, and who carries the plan out notes it on the pool ([`Noted`]), as failures of a rollout
//! are: pods come under other names, and an empty node is removed.
//!
//! - While a node comes, and for a while after it opened, its pods have their place there if they fit; if they do not, none is bought in
//!   its place ([`RefusedNodes::hold_back_unsettled`]), and it is not removed as empty.
//! - When none of its pods came, the attempt has failed: its need waits, twice as long each time ([`attempts`]). Then a node is bought for
//!   one pod alone; when one of its need runs on it, the others follow.
//! - A node that was filled by others meanwhile was not refused, nor one that pods are kept from by where others went: that is what
//!   kube-scheduler is for. But not more than twice.

pub mod attempts;
mod need;
mod scheduler_says;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use crate::inputs::Inputs;
use crate::kube_scheduler::{Filter, FilterContext, FilterRefusal};
use crate::lifecycle::conditions::{INITIALIZED, transition};
use crate::lifecycle::expiry::is_of_other_template;
use crate::model::IndexVec;
use crate::plan::{Note, NoteCode, RefusedNode};
use crate::scheduler::{ClassIndex, HostIndex, Problem};
use crate::snapshot::nodes::Machine;
use crate::snapshot::pod::is_of_buffer;
use crate::snapshot::{Pod, PodIndex, Snapshot};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::NodePool;

use super::backlog::{Backlog, is_reschedulable, is_waiting};
use super::expected::{Expected, Owner, owner_of};
use super::obstacle::{NextAttempt, PodObstacle, RefusedNeed, attempts_text};

pub use attempts::{Attempts, Noted};
use need::Needs;

/// How long after its node opened a pod may wait for it, where a filter that is known here refuses it. kube-scheduler tries a pod again
/// ten seconds after it found no node, or when one changes.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);
/// The same where it is refused for pods that went elsewhere, which the next plan knows of: as long as kube-scheduler may take to try it.
const PATIENCE_WITH_OTHERS: SignedDuration = SignedDuration::from_secs(10);
/// The same where nothing is known to keep it away: it may be that kube-scheduler has much to do, or is away.
const PATIENCE_WITHOUT_CAUSE: SignedDuration = SignedDuration::from_mins(3);
/// A pod that came in the place of one that a node was bought for waits for that node, if it opened no longer ago.
const SUCCESSORS_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// So many nodes for the same pod may be filled by others.
const LOST_MAX: usize = 2;
/// Of what kube-scheduler or a filter says; people read no more.
const CHARACTERS_MAX: usize = 300;

/// What is known of such nodes.
#[derive(Clone, Debug, Default)]
pub struct RefusedNodes {
    needs: BTreeMap<String, Waits>,
    /// Of the pods that these and [`Awaited`] are about, by position.
    need_of_pod: BTreeMap<PodIndex, String>,
    awaited: Vec<Awaited>,
}

#[derive(Clone, Debug)]
struct Waits {
    attempts: Attempts,
    node_pool: String,
    next: NextAttempt,
}

/// A node on its way, or open for a moment, and pods of one need that it was bought for.
#[derive(Clone, Debug)]
struct Awaited {
    host: HostIndex,
    name: String,
    need: String,
    /// How many, and which of them still have the name they had.
    count: usize,
    by_name: BTreeSet<PodIndex>,
    is_open: bool,
}

/// A node that was refused: its need, when it was bought, and the attempt that it was.
struct RefusedPurchase {
    bought: Timestamp,
    node_pool: String,
    attempts: Attempts,
    /// Whether no filter that is known here keeps the pods away, and nothing else is there.
    should_do: bool,
}

impl RefusedNodes {
    /// O(pods), and O(1) where none waits.
    pub fn new(
        inputs: &Inputs<'_>,
        machines: &IndexVec<HostIndex, Machine<'_>>,
        class_of_pod: &IndexVec<PodIndex, Option<ClassIndex>>,
    ) -> Self {
        let snapshot = inputs.snapshot;
        let mut known = noted(inputs);
        known.retain(|_, (attempts, _)| !attempts.are_forgotten(inputs.now));
        let names_pods =
            |machine: &Machine<'_>| machine.claim.is_some_and(|claim| claim.annotation(keys::PODS).is_some());
        if known.is_empty() && !machines.iter().any(names_pods) {
            return Self::default();
        }
        let waiting = Waiting::new(snapshot, machines);
        if waiting.is_empty() {
            return Self::default();
        }
        let mut needs = Needs::new(snapshot, class_of_pod);
        let bought = bought(inputs, machines, &waiting, &mut needs);
        if known.is_empty() && bought.is_empty() {
            return Self::default();
        }
        let mut judge = Judge { inputs, machines, needs: &mut needs, context: None };
        let (refused, awaited) = judge.judge(bought);
        let mut standing: BTreeSet<String> = BTreeSet::new();
        let mut pools: BTreeMap<String, String> = BTreeMap::new();
        for RefusedPurchase { bought, node_pool, attempts, should_do } in refused {
            let need = attempts.need.clone();
            if should_do {
                standing.insert(need.clone());
            }
            let before = known.remove(&need);
            let attempts = Attempts::with(before.map(|(attempts, _)| attempts), attempts, bought);
            pools.insert(need.clone(), node_pool.clone());
            known.insert(need, (attempts, node_pool));
        }
        let mut found = Self { awaited, ..Self::default() };
        found.look_at_pods(inputs, machines, known, &standing, &waiting, &mut needs);
        found
    }

    /// Keeps what is known of needs whose pods wait, and of which none runs on a node that was bought later.
    fn look_at_pods(
        &mut self,
        inputs: &Inputs<'_>,
        machines: &[Machine<'_>],
        known: BTreeMap<String, (Attempts, String)>,
        standing: &BTreeSet<String>,
        waiting: &Waiting<'_>,
        needs: &mut Needs<'_>,
    ) {
        let about: BTreeSet<&String> = known.keys().chain(self.awaited.iter().map(|it| &it.need)).collect();
        let mut of_pods: BTreeMap<PodIndex, String> = BTreeMap::new();
        let positions = waiting.positions.iter();
        of_pods.extend(positions.filter_map(|position| {
            needs.of(*position).filter(|need| about.contains(need)).map(|need| (*position, need))
        }));
        let mut let_in: BTreeSet<String> = BTreeSet::new();
        if !known.is_empty() {
            let bought: HashMap<&str, Timestamp> =
                machines.iter().filter_map(|machine| Some((machine.name, created(machine)?))).collect();
            let is_bound = |pod: &Pod| pod.spec.node_name.is_some() && is_reschedulable(pod);
            for (position, pod) in inputs.snapshot.pods.enumerated().filter(|(_, pod)| is_bound(pod)) {
                let Some(need) = needs.of(position) else { continue };
                let Some((attempts, _)) = known.get(&need) else { continue };
                let node = pod.spec.node_name.as_deref().and_then(|name| bought.get(name));
                if node.is_some_and(|bought| *bought > attempts.last) {
                    let_in.insert(need.clone());
                }
                of_pods.insert(position, need);
            }
        }
        self.need_of_pod = of_pods;
        for (need, (attempts, node_pool)) in known.into_iter().filter(|(need, _)| !let_in.contains(need)) {
            let next = match attempts.next() {
                time if inputs.now < time => NextAttempt::NotBefore(time),
                _ if standing.contains(&need) => NextAttempt::WhenNodeIsGone,
                _ => NextAttempt::OneIsTried,
            };
            self.needs.insert(need, Waits { attempts, node_pool, next });
        }
    }

    /// Whether pods are yet to come to the node, which was bought for them.
    pub fn is_awaited(&self, host: HostIndex) -> bool {
        self.awaited.iter().any(|awaited| awaited.host == host && awaited.is_open)
    }

    /// Why a pod that runs should stay where it is; `None` where nothing of the kind is known.
    pub fn refused(&self, position: PodIndex) -> Option<RefusedNeed> {
        Some(self.needs.get(self.need_of_pod.get(&position)?)?.refused())
    }

    /// Takes pods of needs that wait off the backlog; all but one of those for which a node is tried.
    pub fn hold_back(&self, backlog: &mut Backlog) {
        if self.needs.is_empty() {
            return;
        }
        let tried = self.tried(backlog);
        backlog.hold_back(|pod| {
            let need = self.need_of_pod.get(&pod)?;
            let waits = self.needs.get(need)?;
            let is_tried = tried.get(need.as_str()) == Some(&pod);
            (!is_tried).then(|| PodObstacle::RefusedByScheduler { refused: waits.refused(), next: waits.next })
        });
    }

    /// By need, the pod for which a node is tried: the one that has a node on its way, else another one each time.
    fn tried(&self, backlog: &Backlog) -> BTreeMap<&str, PodIndex> {
        let mut pods: BTreeMap<&str, Vec<PodIndex>> = BTreeMap::new();
        for pod in backlog.waiting.values().flatten() {
            let need = self.need_of_pod.get(pod);
            let need = need.filter(|need| self.needs.get(*need).is_some_and(|it| it.next == NextAttempt::OneIsTried));
            if let Some(need) = need {
                pods.entry(need).or_default().push(*pod);
            }
        }
        let chosen = pods.into_iter().filter_map(|(need, pods)| {
            let has_node = |pod: &&PodIndex| self.awaited.iter().any(|it| it.need == need && it.by_name.contains(pod));
            let attempts = self.needs.get(need).map_or(0, |waits| waits.attempts.count);
            let turn = usize::try_from(attempts).unwrap_or(0) % pods.len().max(1);
            Some((need, *pods.iter().find(has_node).or(pods.get(turn))?))
        });
        chosen.collect()
    }

    /// Of nodes on which none of their pods has its place any more, although they are on their way or just opened: these pods, which
    /// nothing is bought for before it is known what came of them. O(pods that wait), where there are such nodes.
    pub fn hold_back_unsettled(
        &self,
        problem: &Problem<'_>,
        settled: &[Expected],
        backlog: &mut Backlog,
    ) -> Vec<(ClassIndex, PodIndex)> {
        let need_of = |pod: PodIndex| self.need_of_pod.get(&pod).map(String::as_str);
        let has_place: HashSet<PodIndex> = settled.iter().map(|expected| expected.pod).collect();
        let got: HashSet<(HostIndex, Option<&str>)> = settled.iter().map(|it| (it.host, need_of(it.pod))).collect();
        let lost: Vec<&Awaited> =
            self.awaited.iter().filter(|awaited| !got.contains(&(awaited.host, Some(&awaited.need)))).collect();
        if lost.is_empty() {
            return Vec::new();
        }
        let mut free: BTreeMap<&str, Vec<PodIndex>> = BTreeMap::new();
        for pod in backlog.waiting.values().flatten().filter(|pod| !has_place.contains(pod)) {
            if let Some(need) = need_of(*pod) {
                free.entry(need).or_default().push(*pod);
            }
        }
        let mut held: BTreeMap<PodIndex, PodObstacle> = BTreeMap::new();
        for awaited in lost {
            let Some(free) = free.get_mut(awaited.need.as_str()).filter(|free| !free.is_empty()) else { continue };
            free.sort_by_key(|pod| !awaited.by_name.contains(pod));
            let obstacle = awaited.obstacle(problem, free[0]);
            // An open node is what it is: one more for further pods of the need would be no better.
            let count = if awaited.is_open { free.len() } else { awaited.count.min(free.len()) };
            held.extend(free.drain(..count).map(|pod| (pod, obstacle.clone())));
        }
        backlog.hold_back(|pod| held.remove(&pod))
    }

    /// For who carries the plan out, and who reads it. `pods`: by name.
    pub fn for_plan(&self, snapshot: &Snapshot) -> Vec<RefusedNode> {
        let mut pods: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (position, need) in &self.need_of_pod {
            let pod = &snapshot.pods[*position];
            if is_waiting(pod) {
                pods.entry(need).or_default().push(pod.key());
            }
        }
        let node = |(need, waits): (&String, &Waits)| {
            let mut pods = pods.get(need.as_str()).cloned()?;
            pods.sort();
            let Attempts { node, node_claim, filters, because, count, last, .. } = &waits.attempts;
            Some(RefusedNode {
                node_pool: waits.node_pool.clone(),
                node_claim: node_claim.clone(),
                node: node.clone(),
                pods,
                need: need.clone(),
                filters: filters.clone(),
                text: because.clone(),
                attempts: *count,
                refused_at: last.to_string(),
                next_attempt_at: waits.attempts.next().to_string(),
            })
        };
        self.needs.iter().filter_map(node).collect()
    }
}

impl Awaited {
    /// Why nothing is bought for a pod that has no place on the node any more.
    fn obstacle(&self, problem: &Problem<'_>, pod: PodIndex) -> PodObstacle {
        let snapshot = problem.snapshot;
        let node = problem.machines[self.host].node.filter(|_| self.is_open);
        // Before it is open every filter would name what makes it start.
        let refusal = node.and_then(|node| judging(snapshot).examine(&snapshot.pods[pod]).refusal(node));
        PodObstacle::Unsettled { node: self.name.clone(), is_open: self.is_open, refusal }
    }
}

/// Filters that look at devices too.
fn judging(snapshot: &Snapshot) -> FilterContext<'_> {
    let mut context = FilterContext::new(snapshot);
    context.judge_devices(snapshot);
    context
}

/// One for each node of a plan.
pub fn notes(refused: &[RefusedNode]) -> Vec<Note> {
    let note = |refused: &RefusedNode| {
        let RefusedNode { node_pool, node, pods, text, attempts, .. } = refused;
        let more = match pods.len() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let first = pods.first().map_or("", String::as_str);
        Note::new(
            NoteCode::RefusedByScheduler,
            format!(
                "NodePool {node_pool}: kube-scheduler refuses node {node} pods that it was bought for ({first}{more}): {text}; {}, a node \
                 for one of them is bought not before {}, or when annotation {} of the pool is removed",
                attempts_text(*attempts),
                refused.next_attempt_at,
                keys::REFUSED_NODES,
            ),
        )
        .about_pool(node_pool)
    };
    refused.iter().map(note).collect()
}

impl Waits {
    fn refused(&self) -> RefusedNeed {
        let Attempts { node, because, count, .. } = &self.attempts;
        RefusedNeed { node: node.clone(), attempts: *count, because: because.clone() }
    }
}

/// What the pools say, with the name of the pool.
fn noted(inputs: &Inputs<'_>) -> BTreeMap<String, (Attempts, String)> {
    let mut known: BTreeMap<String, Attempts> = BTreeMap::new();
    let mut pools: BTreeMap<String, String> = BTreeMap::new();
    for (pool, noted) in inputs.node_pools.iter().filter_map(|pool| Some((pool, noted_on(inputs, pool)?))) {
        for attempts in noted.needs() {
            let is_latest = known.get(&attempts.need).is_none_or(|before| before.last <= attempts.last);
            attempts::add(&mut known, attempts);
            if is_latest {
                pools.insert(attempts.need.clone(), pool.metadata.name.clone().unwrap_or_default());
            }
        }
    }
    let pool_of = |need: &String| pools.get(need).cloned().unwrap_or_default();
    known.into_iter().map(|(need, attempts)| (need.clone(), (attempts, pool_of(&need)))).collect()
}

/// What is noted on a pool of the definitions; `None` where the cluster does not have it.
fn noted_on(inputs: &Inputs<'_>, pool: &NodePool) -> Option<Noted> {
    let applied = inputs.snapshot.node_pools.iter().find(|applied| applied.metadata.name == pool.metadata.name)?;
    applied.metadata.annotations.as_ref()?.get(keys::REFUSED_NODES)?;
    let class_name = &pool.spec.template.spec.node_class_ref.name;
    let class = inputs.node_classes.iter().find(|class| class.metadata.name.as_ref() == Some(class_name));
    Some(Noted::on(applied, pool, class))
}

/// Pods that are on no node, or on one that goes: by name, and by what made them.
#[derive(Default)]
struct Waiting<'a> {
    positions: Vec<PodIndex>,
    by_name: HashMap<(&'a str, &'a str), PodIndex>,
    by_owner: HashMap<Owner, Vec<PodIndex>>,
    /// Those of the other pods that have a place, by name.
    placed: HashSet<(&'a str, &'a str)>,
}

impl<'a> Waiting<'a> {
    fn new(snapshot: &'a Snapshot, machines: &[Machine<'_>]) -> Self {
        let leaving: HashSet<&str> =
            machines.iter().filter(|machine| machine.is_being_removed()).map(|machine| machine.name).collect();
        let mut waiting = Self::default();
        for (position, pod) in snapshot.pods.enumerated() {
            let waits = is_waiting(pod) && !is_of_buffer(pod) && pod.spec.scheduling_gates.is_empty();
            let moves =
                pod.spec.node_name.as_deref().is_some_and(|node| leaving.contains(node)) && is_reschedulable(pod);
            if waits || moves {
                waiting.positions.push(position);
                waiting.by_name.insert((&pod.metadata.namespace, &pod.metadata.name), position);
                if let Some(owner) = owner_of(pod).filter(|_| waits) {
                    waiting.by_owner.entry(owner).or_default().push(position);
                }
            } else if pod.spec.node_name.is_some() && is_reschedulable(pod) {
                waiting.placed.insert((&pod.metadata.namespace, &pod.metadata.name));
            }
        }
        waiting
    }

    fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// A node that was bought for pods of a need which are on no node.
struct Bought {
    host: HostIndex,
    created: Timestamp,
    opened: Option<Timestamp>,
    need: String,
    count: usize,
    /// Positions of those that still have the name they had.
    by_name: BTreeSet<PodIndex>,
    /// One of the need that waits.
    example: PodIndex,
}

/// Nodes with pods that wait for them, whether or not others run there. O(pods ever bought for).
fn bought(
    inputs: &Inputs<'_>,
    machines: &IndexVec<HostIndex, Machine<'_>>,
    waiting: &Waiting<'_>,
    needs: &mut Needs<'_>,
) -> Vec<Bought> {
    let mut all = Vec::new();
    for (host, machine) in machines.enumerated().filter(|(_, machine)| !machine.is_being_removed()) {
        let Some(claim) = machine.claim else { continue };
        let Some(created) = created(machine) else { continue };
        let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == machine.node_pool());
        if pool.is_none_or(|pool| is_of_other_template(claim, pool)) {
            continue;
        }
        let opened = machine.is_initialized().then(|| transition(claim, INITIALIZED)).flatten();
        // One that was up before noted when and is not new.
        if machine.is_initialized() && opened.is_none() {
            continue;
        }
        let takes_successors = opened
            .is_none_or(|opened| inputs.now.duration_since(opened) < SUCCESSORS_WITHIN && !was_used(machine, opened));
        let mut here: BTreeMap<String, Bought> = BTreeMap::new();
        for entry in claim.listed(keys::PODS) {
            let key = entry.split_once('/');
            // Nobody comes in the place of one that is there: a StatefulSet brings its pods one after the other.
            if key.is_some_and(|key| waiting.placed.contains(&key)) {
                continue;
            }
            let named = key.and_then(|key| waiting.by_name.get(&key).copied());
            let named = named.filter(|pod| !is_newer(&inputs.snapshot.pods[*pod], opened.unwrap_or(inputs.now)));
            let successor = || waiting.by_owner.get(entry.rsplit_once('-')?.0)?.first().copied();
            let Some(pod) = named.or_else(|| if takes_successors { successor() } else { None }) else { continue };
            let Some(need) = needs.of(pod) else { continue };
            let new = || Bought {
                host,
                created,
                opened,
                need: need.clone(),
                count: 0,
                by_name: BTreeSet::new(),
                example: pod,
            };
            let bought = here.entry(need.clone()).or_insert_with(new);
            bought.count += 1;
            // One that is without a node says more than one that still runs where it was.
            if is_waiting(&inputs.snapshot.pods[pod]) && !is_waiting(&inputs.snapshot.pods[bought.example]) {
                bought.example = pod;
            }
            bought.by_name.extend(named);
        }
        all.extend(here.into_values());
    }
    all.sort_by_key(|bought: &Bought| (bought.created, bought.host));
    all
}

fn created(machine: &Machine<'_>) -> Option<Timestamp> {
    machine.claim?.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// Whether a pod came to the node, or went, since it opened.
fn was_used(machine: &Machine<'_>, opened: Timestamp) -> bool {
    machine.claim.and_then(NodeClaim::last_pod_event).is_some_and(|event| event > opened)
}

/// Whether a pod was made after its node opened: it only has the name of the one that the node was for.
fn is_newer(pod: &Pod, opened: Timestamp) -> bool {
    let made = pod.metadata.creation_timestamp.as_ref().and_then(|text| text.parse::<Timestamp>().ok());
    made.is_some_and(|made| made > opened)
}

/// Tells nodes that are awaited from those that were refused.
struct Judge<'j, 'a> {
    inputs: &'j Inputs<'a>,
    machines: &'j IndexVec<HostIndex, Machine<'a>>,
    needs: &'j mut Needs<'a>,
    /// Made when the first node has had its time.
    context: Option<FilterContext<'a>>,
}

/// How many nodes others took the place of pods on.
#[derive(Default)]
struct Lost {
    of_need: BTreeMap<String, usize>,
    of_pod: BTreeMap<PodIndex, usize>,
}

impl Lost {
    /// Of the need, with this one, where pods still wait for it.
    fn nodes_of_need(&mut self, bought: &Bought) -> usize {
        let nodes = self.of_need.entry(bought.need.clone()).or_default();
        *nodes += usize::from(!bought.by_name.is_empty());
        *nodes
    }

    /// Of the pod that lost most of them, with this one.
    fn nodes_of_pods(&mut self, bought: &Bought) -> usize {
        let of_pod = bought.by_name.iter().map(|pod| {
            let nodes = self.of_pod.entry(*pod).or_default();
            *nodes += 1;
            *nodes
        });
        of_pod.max().unwrap_or_default()
    }
}

/// What is to be said of a node and the pods that it was bought for.
enum Verdict {
    Awaited,
    Refused(Box<RefusedPurchase>),
    /// They came, or others did.
    Nothing,
}

impl<'j> Judge<'j, '_> {
    fn judge(&mut self, bought: Vec<Bought>) -> (Vec<RefusedPurchase>, Vec<Awaited>) {
        let (mut refused, mut awaited) = (Vec::new(), Vec::new());
        let on_nodes = pods_on(self.inputs.snapshot, self.machines, &bought);
        let mut lost = Lost::default();
        for bought in bought {
            let machine = &self.machines[bought.host];
            let here = on_nodes.get(machine.name).map_or(&[][..], Vec::as_slice);
            match self.verdict(&bought, machine, here, &mut lost) {
                Verdict::Awaited => awaited.push(to_await(bought, machine)),
                Verdict::Refused(one) => refused.push(*one),
                Verdict::Nothing => {}
            }
        }
        (refused, awaited)
    }

    /// `here`: pods that are or were on the node. `lost`: of the nodes before.
    fn verdict(&mut self, bought: &Bought, machine: &'j Machine<'_>, here: &[PodIndex], lost: &mut Lost) -> Verdict {
        if here.iter().any(|pod| self.needs.of(*pod).is_some_and(|need| need == bought.need)) {
            return Verdict::Nothing;
        }
        let strangers: Vec<PodIndex> = here.iter().copied().filter(|pod| self.is_stranger(machine, *pod)).collect();
        let age = bought.opened.map(|opened| self.inputs.now.duration_since(opened));
        // Those that move to it may still run where they were.
        let waits = is_waiting(&self.inputs.snapshot.pods[bought.example]);
        let has_had_time = waits && age.is_some_and(|age| age >= PATIENCE_WITH_OTHERS);
        let refusal = if has_had_time { self.refusal(bought.example, machine) } else { None };
        let is_for_pods_elsewhere = refusal
            .as_ref()
            .is_some_and(|refusal| matches!(refusal.filter, Filter::PodTopologySpread | Filter::InterPodAffinity));
        if is_for_pods_elsewhere && lost.nodes_of_pods(bought) <= LOST_MAX {
            return Verdict::Nothing;
        }
        let Some(age) = age.filter(|age| *age >= PATIENCE && !self.is_being_bound(bought, machine)) else {
            // Whoever else came took the room, and that is how it is.
            return if strangers.is_empty() { Verdict::Awaited } else { Verdict::Nothing };
        };
        if !waits {
            return if strangers.is_empty() { Verdict::Awaited } else { Verdict::Nothing };
        }
        let is_for_strangers =
            refusal.is_some() && !strangers.is_empty() && self.is_for_strangers(bought.example, machine, &strangers);
        if is_for_strangers && lost.nodes_of_need(bought) <= LOST_MAX {
            return Verdict::Nothing;
        }
        let patience = if refusal.is_some() { PATIENCE } else { PATIENCE_WITHOUT_CAUSE };
        if age < patience {
            return Verdict::Awaited;
        }
        let refused = self.attempt(bought, machine, refusal.as_ref(), patience, strangers.is_empty());
        refused.map_or(Verdict::Nothing, |refused| Verdict::Refused(Box::new(refused)))
    }

    /// Whether a pod takes room of a node that was not bought for it.
    fn is_stranger(&self, machine: &Machine<'_>, position: PodIndex) -> bool {
        let pod = &self.inputs.snapshot.pods[position];
        let key = pod.key();
        !pod.is_terminal() && !machine.claim.is_some_and(|claim| claim.listed(keys::PODS).any(|listed| listed == key))
    }

    /// Whether kube-scheduler has chosen the node, and waits for a volume of the pod.
    fn is_being_bound(&self, bought: &Bought, machine: &Machine<'_>) -> bool {
        let snapshot = self.inputs.snapshot;
        let pod = &snapshot.pods[bought.example];
        let claims: BTreeSet<&str> = pod
            .spec
            .volumes
            .iter()
            .filter_map(|volume| volume.persistent_volume_claim.as_ref())
            .map(|source| source.claim_name.as_str())
            .collect();
        !claims.is_empty()
            && snapshot.persistent_volume_claims.iter().any(|claim| {
                let annotations = claim.metadata.annotations.as_ref();
                let is_unbound = claim.spec.as_ref().is_none_or(|spec| spec.volume_name.is_none());
                claim.metadata.namespace.as_deref() == Some(pod.metadata.namespace.as_str())
                    && claim.metadata.name.as_deref().is_some_and(|name| claims.contains(name))
                    && is_unbound
                    && annotations.and_then(|it| it.get(SELECTED_NODE)).is_some_and(|node| node == machine.name)
            })
    }

    /// Which filter keeps a pod from a node, as far as they are known here.
    fn refusal(&mut self, position: PodIndex, machine: &Machine<'_>) -> Option<FilterRefusal> {
        let snapshot = self.inputs.snapshot;
        let context = self.context.get_or_insert_with(|| judging(snapshot));
        context.examine(&snapshot.pods[position]).refusal(machine.node?)
    }

    /// Whether it is only because others came that the node refuses the pod.
    fn is_for_strangers(&mut self, position: PodIndex, machine: &Machine<'_>, strangers: &[PodIndex]) -> bool {
        let Some(context) = &mut self.context else { return false };
        let pods = &self.inputs.snapshot.pods;
        for stranger in strangers {
            context.remove(&pods[*stranger]);
        }
        let alone = machine.node.and_then(|node| context.examine(&pods[position]).refusal(node));
        for stranger in strangers {
            context.place(&pods[*stranger], machine.name);
        }
        alone.is_none()
    }

    fn attempt(
        &self,
        bought: &Bought,
        machine: &Machine<'_>,
        refusal: Option<&FilterRefusal>,
        patience: SignedDuration,
        is_alone: bool,
    ) -> Option<RefusedPurchase> {
        let (filters, because) = match refusal {
            Some(refusal) => (vec![format!("{:?}", refusal.filter)], refusal.to_string()),
            None => scheduler_says::why(&self.inputs.snapshot.pods[bought.example]),
        };
        let attempts = Attempts {
            need: bought.need.clone(),
            node_claim: machine.claim_name()?.to_owned(),
            node: machine.name.to_owned(),
            filters,
            because: because.chars().take(CHARACTERS_MAX).collect(),
            count: 1,
            last: bought.opened?.checked_add(patience).ok()?,
        };
        let node_pool = machine.node_pool().unwrap_or_default().to_owned();
        Some(RefusedPurchase { bought: bought.created, node_pool, attempts, should_do: refusal.is_none() && is_alone })
    }
}

/// Where kube-scheduler writes which node a volume is made for.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn to_await(bought: Bought, machine: &Machine<'_>) -> Awaited {
    Awaited {
        host: bought.host,
        name: machine.name.to_owned(),
        need: bought.need,
        count: bought.count,
        by_name: bought.by_name,
        is_open: bought.opened.is_some(),
    }
}

/// By node, the pods that are or were on it; those that it has of a DaemonSet do not count.
fn pods_on<'m>(
    snapshot: &Snapshot,
    machines: &'m IndexVec<HostIndex, Machine<'_>>,
    bought: &[Bought],
) -> HashMap<&'m str, Vec<PodIndex>> {
    let names: HashSet<&'m str> = bought.iter().map(|bought| machines[bought.host].name).collect();
    let mut pods: HashMap<&str, Vec<PodIndex>> = HashMap::new();
    for (position, pod) in snapshot.pods.enumerated() {
        let node = pod.spec.node_name.as_deref().and_then(|name| names.get(name).copied());
        if let Some(node) = node.filter(|_| !pod.is_owned_by("DaemonSet") && !pod.is_owned_by("Node")) {
            pods.entry(node).or_default().push(position);
        }
    }
    pods
}
