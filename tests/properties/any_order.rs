//! Plans hold in whichever order kube-scheduler takes the pods that wait, or name those for whom they do not: all new nodes open at once,
//! the pods come in an order drawn at random, each tries the node that it was told, then every other one, the emptiest first; who is
//! refused is tried again. Judged by the filters, which the planner does not know.
//!
//! kube-scheduler asks twice: as if the pods were there already that were told the node and are not less important, and as if not.

use std::collections::{BTreeMap, BTreeSet};

use cutlist::api::keys::{HOSTNAME, ZONE};
use cutlist::api::settings::Packing;
use cutlist::core::inputs::Inputs;
use cutlist::core::kube_scheduler::FilterContext;
use cutlist::core::model::Resources;
use cutlist::core::plan::{Plan, StepKind};
use cutlist::core::planner::decide;
use cutlist::core::snapshot::{Pod, Snapshot, nodes};
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};
use serde_json::{Value, json};

use crate::bad_input::{cluster, pod};
use crate::build::{Built, STARTUP_TAINT};
use crate::carried_out::carry_out;
use crate::for_worlds_of;
use crate::world::{self, Constraint, World};

/// Sets of workloads, each of some pods.
const SPREADS: u32 = 96;

/// Numbers that follow from a seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(most.max(1)).unwrap()).unwrap()
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

/// The cluster with the nodes that a plan creates, and nobody on them yet; and where the plan sends the pods that wait.
fn opened(built: &Built, inputs: &Inputs<'_>, plan: &Plan) -> (Snapshot, BTreeMap<String, String>) {
    let mut created = plan.clone();
    created.steps.retain(|step| step.kind == StepKind::Create);
    created.placements.clear();
    let waits = |key: &String| {
        let pod = inputs.snapshot.pods.iter().find(|pod| pod.key() == *key);
        pod.is_some_and(|pod| pod.spec.node_name.is_none())
    };
    let mut places: BTreeMap<String, String> =
        plan.placements.iter().map(|placement| (placement.pod.clone(), placement.node.clone())).collect();
    for step in &mut created.steps {
        let pods = std::mem::take(&mut step.pods);
        places.extend(pods.iter().map(|pod| (pod.clone(), step.node_claim.clone())));
    }
    places.retain(|key, _| waits(key));
    let mut snapshot = inputs.snapshot.clone();
    carry_out(&created, &mut snapshot, &built.catalog, &built.classes, inputs.now);
    let leaving = snapshot.nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_some());
    let leaving: BTreeSet<String> = leaving.filter_map(|node| node.metadata.name.clone()).collect();
    let stays = |pod: &Pod| !pod.spec.node_name.as_ref().is_some_and(|node| leaving.contains(node));
    snapshot.pods.retain(|pod| stays(pod) && !pod.is_terminating());
    // Nodes that are starting are up by then.
    for taints in snapshot.nodes.iter_mut().filter_map(|node| node.spec.as_mut()?.taints.as_mut()) {
        taints.retain(|taint| taint.key != STARTUP_TAINT);
    }
    (snapshot, places)
}

/// kube-scheduler, as far as it matters here.
struct Scheduler<'a> {
    context: FilterContext<'a>,
    nodes: Vec<&'a str>,
    /// By node the pods that were told it and are not bound.
    told: BTreeMap<&'a str, Vec<&'a Pod>>,
}

impl<'a> Scheduler<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let mut context = FilterContext::new(snapshot);
        context.judge_devices(snapshot);
        let nodes = snapshot.nodes.iter().filter_map(|node| node.metadata.name.as_deref()).collect();
        Self { context, nodes, told: BTreeMap::new() }
    }

    /// Both with and without those who were told the node.
    fn takes(&mut self, pod: &'a Pod, node: &'a str) -> bool {
        let Some(object) = self.context.node(node) else { return false };
        let is_important = |other: &&&Pod| {
            other.key() != pod.key() && other.spec.priority.unwrap_or(0) >= pod.spec.priority.unwrap_or(0)
        };
        let others: Vec<&Pod> = self.told.get(node).into_iter().flatten().filter(is_important).copied().collect();
        if self.context.examine(pod).refusal(object).is_some() {
            return false;
        }
        for other in &others {
            self.context.place(other, node);
        }
        let takes = self.context.examine(pod).refusal(object).is_none();
        for other in &others {
            self.context.remove(other);
        }
        takes
    }

    /// Every node, the one with the largest part free first.
    fn emptiest_first(&self) -> Vec<&'a str> {
        let free = |node: &&str| -> i64 {
            let allocatable = self.context.node(node).map(nodes::allocatable).unwrap_or_default();
            let taken: Resources = self.context.requested_on(node);
            let share = |name: &str| (allocatable.get(name) - taken.get(name)) * 1000 / allocatable.get(name).max(1);
            share("cpu") + share("memory")
        };
        let mut nodes = self.nodes.clone();
        nodes.sort_by_cached_key(|node| std::cmp::Reverse(free(node)));
        nodes
    }

    fn bind(&mut self, pod: &'a Pod, told: &'a str) -> bool {
        let node = match self.takes(pod, told) {
            true => Some(told),
            false => self.emptiest_first().into_iter().find(|node| *node != told && self.takes(pod, node)),
        };
        // What it was told of a pod that finds no node it forgets.
        if let Some(waiting) = self.told.get_mut(told) {
            waiting.retain(|other| other.key() != pod.key());
        }
        node.is_some_and(|node| self.context.place(pod, node))
    }

    /// Tells it again.
    fn tell(&mut self, pods: &[&'a Pod], places: &'a BTreeMap<String, String>) {
        self.told.clear();
        for pod in pods {
            self.told.entry(&places[&pod.key()]).or_default().push(pod);
        }
    }
}

/// Pods that find no node, of those that the plan has places for.
fn left_out(snapshot: &Snapshot, places: &BTreeMap<String, String>, seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut scheduler = Scheduler::new(snapshot);
    let mut waiting: Vec<&Pod> = snapshot.pods.iter().filter(|pod| places.contains_key(&pod.key())).collect();
    loop {
        random.shuffle(&mut waiting);
        waiting.sort_by_key(|pod| std::cmp::Reverse(pod.spec.priority.unwrap_or(0)));
        let before = waiting.len();
        scheduler.tell(&waiting, places);
        waiting.retain(|pod| !scheduler.bind(pod, &places[&pod.key()]));
        if waiting.len() == before {
            return waiting.into_iter().map(Pod::key).collect();
        }
    }
}

/// Whoever finds no node in some order is named by the plan.
fn holds_in_any_order(built: &Built, packing: Packing, orders: u64) -> Result<(), String> {
    let inputs = built.inputs(packing);
    let plan = decide(&inputs);
    let (snapshot, places) = opened(built, &inputs, &plan);
    let named = plan.pods_to_bind_first();
    for seed in 0..orders {
        let mut left = left_out(&snapshot, &places, seed);
        left.retain(|pod| !named.contains(pod.as_str()));
        if !left.is_empty() {
            return Err(format!("in order {seed} {left:?} find no node, beside {named:?}; {places:?}"));
        }
    }
    Ok(())
}

/// A workload with these labels, whose spread counts pods with those.
#[derive(Clone, Debug)]
struct Spreading {
    pods: usize,
    label: usize,
    /// Key, the label that is counted, and the skew that is allowed.
    spread: Option<(usize, usize, u8)>,
    cpu: usize,
}

fn spreading() -> impl Strategy<Value = Vec<Spreading>> {
    let spread = proptest::option::weighted(0.5, (0..2_usize, 0..3_usize, 1..3_u8));
    let workload = (1..8_usize, 0..3_usize, spread, 0..4_usize);
    vec(workload.prop_map(|(pods, label, spread, cpu)| Spreading { pods, label, spread, cpu }), 1..6)
}

fn pods_of(workloads: &[Spreading]) -> Vec<Value> {
    let of_workload = |(number, workload): (usize, &Spreading)| -> Vec<Value> {
        let constraints = workload.spread.iter().map(|(key, label, skew)| {
            let key = [HOSTNAME, ZONE][*key];
            json!({
                "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": { "matchLabels": { "label": format!("l{label}") } },
            })
        });
        let spec = json!({ "topologySpreadConstraints": constraints.collect::<Vec<_>>() });
        let named = |replica: usize| {
            let cpu = ["100m", "500m", "1", "1500m"][workload.cpu];
            let mut pod = pod(&format!("w{number}-{replica}"), json!({ "cpu": cpu }), spec.clone());
            pod["metadata"]["labels"] = json!({ "label": format!("l{}", workload.label) });
            pod
        };
        (0..workload.pods).map(named).collect()
    };
    workloads.iter().enumerate().flat_map(of_workload).collect()
}

/// Pods that are counted by the spreads of others.
#[test]
fn spreads_that_count_pods_without_them_hold_in_any_order() {
    let fixed = Config { cases: SPREADS, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    let result = runner.run(&spreading(), |workloads| {
        holds_in_any_order(&cluster(pods_of(&workloads)), Packing::Cheapest, 4).map_err(TestCaseError::fail)
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// Without what makes pods unequal: a pod of higher priority that is refused where it was told goes wherever there is room, also where those
/// of lower priority were told; so here all are equally important. What only an overlay gives, nodes of this test do not have.
fn worlds() -> impl Strategy<Value = World> {
    world::worlds().prop_map(|mut world| {
        for workload in &mut world.workloads {
            workload.priority = None;
            workload.constraints.retain(|constraint| !matches!(constraint, Constraint::Licence));
        }
        world
    })
}

#[test]
fn plans_hold_in_any_order_or_say_for_which_pods_they_do_not() {
    for_worlds_of(128, worlds(), |built| holds_in_any_order(built, Packing::Cheapest, 4));
}

#[test]
fn plans_of_the_reference_hold_in_any_order_or_say_for_which_pods_they_do_not() {
    for_worlds_of(128, worlds(), |built| holds_in_any_order(built, Packing::Karpenter, 4));
}
