//! A plan carried out on a copy of the cluster, move by move, with every pod placed as kube-scheduler would.
//!
//! First the pending pods: nodes for them are created, and they go where the plan says. Then each move that removes:
//! its creations, its removals, and the pods that have to move. The order matters, because affinity and spread look at who
//! is there at the time, and nobody asks again later.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;

use crate::kube_scheduler::{Filter, FilterContext, FilterRefusal, void_nominations};
use crate::plan::{Plan, StepKind};
use crate::snapshot::{Pod, PodIndex, Snapshot};

use super::creations::{Creation, node_to_come};
use super::known::{Existing, Known};
use super::steps::{alternatives, removed_node, steps};

/// Everything that appears in a rehearsal, so that the stages only borrow.
pub(super) struct Scene<'p> {
    before: Snapshot,
    pub variants: Vec<Variant>,
    /// Index into the variants of the one that is shown, by the name of the claim.
    shown: BTreeMap<&'p str, usize>,
    stages: Vec<Stage<'p>>,
    judges_devices: bool,
}

/// A node that a creation may lead to, with the pods that DaemonSets run on it.
pub(super) struct Variant {
    /// Index into the plan's steps.
    pub step: usize,
    /// Index into the step's alternatives; 0 is the one that is shown.
    pub alternative: usize,
    pub instance_type: String,
    pub zone: String,
    name: String,
    node: Node,
    daemons: Vec<Pod>,
}

#[derive(Default)]
struct Stage<'p> {
    /// Names of the claims that are created.
    created: Vec<&'p str>,
    removed: Vec<&'p str>,
    /// Index into the pods of `before`, and the node.
    moving: Vec<(PodIndex, &'p str)>,
}

/// How it ended, and who was refused: `namespace/name`, node, why.
pub(super) struct Ending<'s> {
    pub context: FilterContext<'s>,
    pub refused: Vec<(String, String, FilterRefusal)>,
}

impl<'p> Scene<'p> {
    /// `destinations`: `namespace/name` of each pod that moves, and the node it goes to.
    pub(super) fn new(plan: &'p Plan, known: &Known<'_>, destinations: &'p BTreeMap<String, String>) -> Self {
        let mut before = known.inputs.snapshot.clone();
        before.nodes = known.nodes.values().map(|existing| existing.node.clone()).collect();
        let stages = stages(plan, known, destinations);
        // Nobody is kept away by a pod that is leaving with its node: by the time a place beside it is taken, it is gone.
        let going = |node: &String| known.nodes.get(node).is_some_and(|existing| existing.going);
        let leaves =
            |pod: &Pod| pod.spec.node_name.as_ref().is_some_and(going) && !destinations.contains_key(&pod.key());
        // kube-scheduler holds the room of pods that it evicts others for.
        let void = void_nominations(known.inputs.snapshot, known.inputs.now);
        let void: BTreeSet<String> =
            void.into_iter().map(|position| known.inputs.snapshot.pods[position].key()).collect();
        let holds_room = |pod: &Pod| {
            let stays = |name: &String| known.nodes.get(name).is_some_and(|existing| !existing.going);
            let held = pod.status.nominated_node_name.as_ref().filter(|name| stays(name));
            held.filter(|_| {
                !pod.is_terminating() && !destinations.contains_key(&pod.key()) && !void.contains(&pod.key())
            })
            .cloned()
        };
        // What moves is a new pod where it comes, also when the old one was on its way out.
        let comes_anew = |pod: &Pod| pod.is_terminating() && destinations.contains_key(&pod.key());
        // Only those that change are copied.
        let changed = |pod: &Pod| {
            let runs = if leaves(pod) { None } else { pod.spec.node_name.clone() };
            let node_name = runs.or_else(|| holds_room(pod));
            (node_name != pod.spec.node_name || comes_anew(pod)).then_some(node_name)
        };
        let changes: Vec<(PodIndex, Option<String>)> =
            before.pods.enumerated().filter_map(|(index, pod)| Some((index, changed(pod)?))).collect();
        for (index, node_name) in changes {
            let pod = &mut before.pods[index];
            pod.spec.node_name = node_name;
            if comes_anew(pod) {
                pod.metadata.deletion_timestamp = None;
            }
        }
        let coming = coming_daemons(&before, known);
        before.pods.extend(coming);
        let judges_devices = !known.inputs.policy.scheduling.ignore_dynamic_resource_allocation;
        let variants = variants(plan, known);
        let of_step = |(index, variant): (usize, &Variant)| {
            (variant.alternative == 0).then(|| (plan.steps[variant.step].node_claim.as_str(), index))
        };
        let shown = variants.iter().enumerate().filter_map(of_step).collect();
        Self { before, variants, shown, stages, judges_devices }
    }

    fn context(&self) -> FilterContext<'_> {
        let mut context = FilterContext::new(&self.before);
        context.find_by_labels(&self.before);
        if self.judges_devices {
            context.judge_devices(&self.before);
        }
        context
    }

    /// Carries the plan out; `instead` replaces the node of its step. `None` where that takes more looks.
    pub(super) fn rehearse<'s>(&'s self, instead: Option<&'s Variant>, looks_max: u64) -> Option<Ending<'s>> {
        let mut context = self.context();
        let mut refused = Vec::new();
        for stage in &self.stages {
            refused.extend(self.play(stage, instead, &mut context, looks_max)?);
        }
        Some(Ending { context, refused })
    }

    pub(super) fn removes_nothing(&self) -> bool {
        self.stages.iter().all(|stage| stage.removed.is_empty())
    }

    /// The cluster when pending pods are placed and nothing is removed; `finished` where nothing is.
    pub(super) fn before_removals<'s>(
        &'s self,
        finished: FilterContext<'s>,
        looks_max: u64,
    ) -> Option<FilterContext<'s>> {
        if self.removes_nothing() {
            return Some(finished);
        }
        drop(finished);
        let mut context = self.context();
        for stage in self.stages.iter().take_while(|stage| stage.removed.is_empty()) {
            self.play(stage, None, &mut context, looks_max)?;
        }
        Some(context)
    }

    fn shown_for(&self, claim: &str) -> Option<&Variant> {
        self.shown.get(claim).and_then(|index| self.variants.get(*index))
    }

    /// Whether the pods of the step's node fit on this one in its place, when all others are where they end up. Leaves
    /// `finished` as it was.
    pub(super) fn takes_the_same_pods<'s>(&'s self, variant: &'s Variant, finished: &mut FilterContext<'s>) -> bool {
        let Some(shown) = self.shown_for(&variant.name) else { return true };
        let pods = finished.remove_node(&variant.name);
        let guests: Vec<(&Pod, &str)> = pods
            .iter()
            .filter(|pod| !shown.daemons.iter().any(|daemon| daemon.key() == pod.key()))
            .map(|pod| (*pod, variant.name.as_str()))
            .collect();
        variant.appear(finished);
        let fits = place_in_order(&guests, finished, u64::MAX).is_some_and(|refused| refused.is_empty());
        finished.remove_node(&variant.name);
        shown.appear(finished);
        for (pod, node) in guests {
            finished.place(pod, node);
        }
        fits
    }

    fn play<'s>(
        &'s self,
        stage: &Stage<'p>,
        instead: Option<&'s Variant>,
        context: &mut FilterContext<'s>,
        looks_max: u64,
    ) -> Option<Vec<(String, String, FilterRefusal)>> {
        for variant in stage.created.iter().filter_map(|name| self.shown_for(name)) {
            instead.filter(|instead| instead.step == variant.step).unwrap_or(variant).appear(context);
        }
        let moving: Vec<(&Pod, &str)> =
            stage.moving.iter().map(|(pod, node)| (&self.before.pods[*pod], *node)).collect();
        for (pod, _) in &moving {
            context.remove(pod);
        }
        for node in &stage.removed {
            context.remove_node(node);
        }
        let refused = place_all(&moving, context, looks_max)?;
        Some(refused.into_iter().map(|(pod, node, refusal)| (pod.key(), node.to_owned(), refusal)).collect())
    }
}

impl Variant {
    fn appear<'s>(&'s self, context: &mut FilterContext<'s>) {
        context.add_node(&self.node);
        for daemon in &self.daemons {
            context.place(daemon, &self.name);
        }
    }
}

fn stages<'p>(plan: &'p Plan, known: &Known<'_>, destinations: &'p BTreeMap<String, String>) -> Vec<Stage<'p>> {
    let removing: BTreeSet<u32> = steps(plan, StepKind::Remove).map(|step| step.move_number).collect();
    // Number 0 stands for all that comes before the first removal.
    let stage_of = |number: u32| if removing.contains(&number) { number } else { 0 };
    let mut stages: BTreeMap<u32, Stage<'p>> = BTreeMap::from([(0, Stage::default())]);
    let mut stage_of_node: BTreeMap<&str, u32> = BTreeMap::new();
    for step in steps(plan, StepKind::Create) {
        let number = stage_of(step.move_number);
        stages.entry(number).or_default().created.push(&step.node_claim);
        stage_of_node.insert(&step.node_claim, number);
    }
    for step in steps(plan, StepKind::Remove) {
        stages.entry(step.move_number).or_default().removed.push(removed_node(step));
        stage_of_node.insert(removed_node(step), step.move_number);
    }
    for (index, pod) in known.inputs.snapshot.pods.enumerated() {
        let Some(node) = destinations.get(&pod.key()) else { continue };
        let leaves_in = pod.spec.node_name.as_deref().and_then(|node| stage_of_node.get(node)).copied().unwrap_or(0);
        let comes_in = stage_of_node.get(node.as_str()).copied().unwrap_or(0);
        stages.entry(leaves_in.max(comes_in)).or_default().moving.push((index, node));
    }
    stages.into_values().collect()
}

fn variants(plan: &Plan, known: &Known<'_>) -> Vec<Variant> {
    let mut variants = Vec::new();
    for (index, step) in plan.steps.iter().enumerate().filter(|(_, step)| step.kind == StepKind::Create) {
        let Some(pool) = known.pools.get(step.node_pool.as_str()) else { continue };
        let creation = Creation::new(step, pool, known);
        // A node without pods does for nobody, whatever it becomes: static pools have thousands.
        let judged = if step.pods.is_empty() { 1 } else { usize::MAX };
        for (number, alternative) in alternatives(step).iter().take(judged).enumerate() {
            let Some(node) = node_to_come(&creation, alternative, known) else { continue };
            variants.push(Variant {
                step: index,
                alternative: number,
                instance_type: alternative.instance_type.clone(),
                zone: alternative.zone.clone(),
                name: step.node_claim.clone(),
                daemons: match pool.spec.replicas {
                    Some(_) => with_room(&node, daemon_pods(&node, known)),
                    None => daemon_pods(&node, known),
                },
                node,
            });
        }
    }
    variants
}

/// The pods of DaemonSets that nodes get before any other pod: all of a node that starts; of one that is up those that have a place
/// there, since others wait for something, nobody knows how long. O(nodes x DaemonSets + pods), and a look at each that is missing.
fn coming_daemons(before: &Snapshot, known: &Known<'_>) -> Vec<Pod> {
    let staying = known.nodes.values().filter(|existing| !existing.going);
    let missing: Vec<(&Existing<'_>, Pod)> = staying
        .flat_map(|existing| daemons_to_come(existing, known).into_iter().map(move |pod| (existing, pod)))
        .collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let mut context = FilterContext::new(before);
    let mut comes = Vec::with_capacity(missing.len());
    for (existing, pod) in &missing {
        let has_place = !existing.initialized || context.examine(pod).refusal(&existing.node).is_none();
        if let Some(name) = existing.node.metadata.name.as_deref().filter(|_| has_place) {
            context.place(pod, name);
        }
        comes.push(has_place);
    }
    drop(context);
    missing.into_iter().zip(comes).filter(|(_, comes)| *comes).map(|((_, pod), _)| pod).collect()
}

/// The pods of DaemonSets that have none yet on a node that exists.
fn daemons_to_come(existing: &Existing<'_>, known: &Known<'_>) -> Vec<Pod> {
    let name = existing.node.metadata.name.as_deref().unwrap_or_default();
    let there: BTreeSet<(&str, Option<&str>)> = known.pods_on(name).map(set_of).collect();
    let mut pods = daemon_pods_of(&existing.node, known, |daemon| !there.contains(&set_of(daemon)));
    pods.iter_mut().for_each(|pod| pod.spec.node_name = Some(name.to_owned()));
    pods
}

/// Namespace and DaemonSet of a pod.
fn set_of(pod: &Pod) -> (&str, Option<&str>) {
    let owner = pod.metadata.owner_references.iter().find(|owner| owner.kind == "DaemonSet");
    (&pod.metadata.namespace, owner.map(|owner| owner.name.as_str()))
}

/// The pods that DaemonSets run on a node. Their controller looks at taints and node affinity only.
pub(super) fn daemon_pods(node: &Node, known: &Known<'_>) -> Vec<Pod> {
    daemon_pods_of(node, known, |_| true)
}

/// The same of those DaemonSets that are asked for.
fn daemon_pods_of(node: &Node, known: &Known<'_>, is_asked_for: impl Fn(&Pod) -> bool) -> Vec<Pod> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let empty = Snapshot::default();
    let context = FilterContext::new(&empty);
    let runs = |pod: &&Pod| {
        let refusal = context.examine(pod).refusal(node).map(|refusal| refusal.filter);
        !matches!(refusal, Some(Filter::TaintToleration | Filter::NodeAffinity))
    };
    let named_after_node = |pod: &Pod| {
        let mut pod = pod.clone();
        pod.metadata.name = format!("{}-{name}", pod.metadata.name);
        pod
    };
    known.daemons.iter().filter(|daemon| is_asked_for(daemon)).filter(runs).map(named_after_node).collect()
}

/// Those that a node has room for one after another: one of a static pool is launched whether or not all have.
fn with_room(node: &Node, mut daemons: Vec<Pod>) -> Vec<Pod> {
    let empty = Snapshot::default();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let mut context = FilterContext::new(&empty);
    context.add_node(node);
    let mut has_room = Vec::with_capacity(daemons.len());
    for daemon in &daemons {
        let refusal = context.examine(daemon).refusal(node).map(|refusal| refusal.filter);
        let fits = !matches!(refusal, Some(Filter::NodeResourcesFit));
        if fits {
            context.place(daemon, name);
        }
        has_room.push(fits);
    }
    drop(context);
    let mut has_room = has_room.into_iter();
    daemons.retain(|_| has_room.next().unwrap_or(true));
    daemons
}

type Refused<'a> = Vec<(&'a Pod, &'a str, FilterRefusal)>;

/// Places pods that are on no node, one by one as a scheduler could: a pod that is refused waits for those after it,
/// because affinity and spread look at who is there already. An order is found when there is one among three; else the
/// refusals of the first are given. `None` where `context` has been looked at more often than that before all are placed.
fn place_all<'a>(
    moving: &[(&'a Pod, &'a str)],
    context: &mut FilterContext<'a>,
    looks_max: u64,
) -> Option<Refused<'a>> {
    let mut constrained_first = moving.to_vec();
    constrained_first.sort_by_key(|(pod, _)| pod.spec.topology_spread_constraints.is_empty());
    let reversed: Vec<_> = constrained_first.iter().rev().copied().collect();
    let mut first = None;
    for order in [constrained_first, reversed, moving.to_vec()] {
        let refused = place_in_order(&order, context, looks_max)?;
        if refused.is_empty() {
            return Some(refused);
        }
        for (pod, _) in moving {
            context.remove(pod);
        }
        first.get_or_insert((order, refused));
    }
    let Some((order, refused)) = first else { return Some(Vec::new()) };
    place_in_order(&order, context, looks_max)?;
    Some(refused)
}

fn place_in_order<'a>(
    order: &[(&'a Pod, &'a str)],
    context: &mut FilterContext<'a>,
    looks_max: u64,
) -> Option<Refused<'a>> {
    let mut waiting = order.to_vec();
    loop {
        let mut refused = Vec::new();
        for (pod, node_name) in &waiting {
            // A node that is not there was reported where the plan names it.
            let Some(node) = context.node(node_name) else { continue };
            match context.examine(pod).refusal(node) {
                None => {
                    context.place(pod, node_name);
                }
                Some(refusal) => refused.push((*pod, *node_name, refusal)),
            }
            if context.looks() > looks_max {
                return None;
            }
        }
        if refused.is_empty() || refused.len() == waiting.len() {
            return Some(refused);
        }
        waiting = refused.iter().map(|(pod, node, _)| (*pod, *node)).collect();
    }
}
