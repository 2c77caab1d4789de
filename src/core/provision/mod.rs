//! Where pending pods go, and which nodes are bought for them.
//!
//! Two packings on one engine: [`karpenter`] keeps the reference's order and choices, [`cheapest`] looks for the
//! cheapest fleet. Both first use the room that is there.

pub mod advice;
mod age;
pub mod amounts;
pub mod backlog;
mod binding_order;
pub mod bound;
pub mod cheapest;
pub mod choice;
pub mod daemon_pods;
pub mod distances;
pub mod existing_refusal;
mod expected;
pub mod explain;
pub mod karpenter;
pub mod obstacle;
mod open_order;
pub mod passing;
pub mod priority;
pub mod purchase;
mod reference_sort;
pub mod refused_nodes;
pub mod static_capacity;
mod turns;
mod unpriced;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::inputs::Inputs;
use crate::lifecycle::ending::without_future;
use crate::model::IndexVec;
use crate::plan::FewerNodes;
use crate::scheduler::topology::GroupIndex;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Problem};
use cutlist_api::settings::{MinValuesPolicy, Packing};

use crate::scheduler::Demand;
use crate::snapshot::PodIndex;
use backlog::Backlog;
use choice::LaunchLists;
use expected::Expected;
pub use purchase::Purchase;
use refused_nodes::RefusedNodes;
use static_capacity::Shortfall;

/// An engine for these inputs, in which nothing was placed yet. Nodes that every plan removes take no pods, and neither do those of which
/// nobody knows whether they are.
pub fn engine<'p, 'a>(problem: &'p Problem<'a>, inputs: &Inputs<'_>) -> Engine<'p, 'a> {
    let mut engine = Engine::new(problem, inputs.policy.packing);
    engine.lower_min_values(inputs.policy.scheduling.min_values_policy == MinValuesPolicy::BestEffort);
    without_future(inputs, &problem.machines).into_iter().map(HostIndex::from).for_each(|host| engine.close(host));
    let doubts = &inputs.snapshot.doubts;
    let doubled = problem.machines.enumerated().filter(|(_, machine)| doubts.is_doubled(machine.name));
    doubled.for_each(|(host, _)| engine.withhold(host));
    engine
}

/// What provisioning came to.
#[derive(Debug)]
pub struct Provisioning {
    pub backlog: Backlog,
    /// What is known of nodes that were bought for pods and that kube-scheduler refuses them.
    pub refused_nodes: RefusedNodes,
    pub purchases: Vec<Purchase>,
    /// Pods that go on nodes that exist: position in the snapshot, host.
    pub placements: Vec<(PodIndex, HostIndex)>,
    /// By class: positions of the pods that found no place.
    pub unplaced: BTreeMap<ClassIndex, Vec<PodIndex>>,
    /// What is left of the work that the search may do.
    pub budget: cheapest::WorkBudget,
    /// Static pools that stay below their replicas.
    pub shortfalls: Vec<Shortfall>,
    /// Whether pods were spread over domains alone that have a node, or get one.
    pub counted_nodes_alone: bool,
    /// Pods that others may come before and be in the way of: positions in the snapshot.
    pub order_matters: Vec<PodIndex>,
    /// What the planner finds out afterwards.
    pub fewer_nodes: Option<FewerNodes>,
}

/// Gives every waiting pod a place, as far as there is one. The engine then holds the result.
pub fn provision(engine: &mut Engine<'_, '_>, inputs: &Inputs<'_>, packing: Packing) -> Provisioning {
    let problem = engine.problem;
    let refused_nodes = RefusedNodes::new(inputs, &problem.machines, &problem.class_of_pod);
    let mut backlog = Backlog::new(problem, inputs.now);
    refused_nodes.hold_back(&mut backlog);
    let mut order = backlog.by_size(problem);
    if packing == Packing::Cheapest {
        // Room that is there is for pods that are there.
        order.sort_by_key(|class| backlog.is_of_buffer(problem, *class));
    }
    let mut demand: Demand = backlog.waiting.iter().map(|(class, pods)| (*class, pods.len())).collect();
    let before: IndexVec<HostIndex, BTreeMap<ClassIndex, u32>> =
        engine.all_hosts().map(|host| engine.host(host).pods.clone()).collect();
    let skews_before = engine.skews();
    let shortfalls = static_capacity::open_missing(engine);
    let settled = expected::settle(engine, &mut backlog, &mut demand);
    for (class, _) in refused_nodes.hold_back_unsettled(problem, &settled, &mut backlog) {
        expected::take_off(&mut demand, class);
    }
    let since = engine.mark();
    let mut budget = cheapest::WorkBudget::new(problem);
    engine.hold_in_any_order(true);
    match packing {
        Packing::Karpenter => karpenter::pack_in_turn(engine, &backlog.queue(problem), &demand),
        Packing::Cheapest => priority::pack(engine, &order, &demand, &mut budget),
    };
    engine.hold_in_any_order(false);
    let mut waiting = Waiting::new(&backlog, &settled);
    match packing {
        Packing::Karpenter => waiting.serve_in_turn(engine.placed_since(since)),
        Packing::Cheapest => waiting.serve_by_domain(engine, &before),
    }
    let mut placements = Vec::new();
    for host in engine.existing_hosts() {
        for (class, count) in &engine.host(host).pods {
            let added = count - before[host].get(class).copied().unwrap_or(0).min(*count);
            placements.extend(waiting.take(*class, added, host).into_iter().map(|pod| (pod, host)));
        }
    }
    if !engine.lowers_min_values() {
        give_up_what_is_not_varied(engine, &skews_before);
    }
    let open: Vec<HostIndex> = engine.open_hosts().filter(|host| !engine.is_closed(*host)).collect();
    let mut lists = LaunchLists::default();
    let purchases = open.into_iter().filter_map(|host| {
        let pods = engine.host(host).pods.iter();
        let pods = pods.flat_map(|(class, count)| waiting.take(*class, *count, host)).collect();
        Some((host, Purchase::new(engine, host, pods, &mut lists)?))
    });
    let purchases: Vec<(HostIndex, Purchase)> = purchases.collect();
    let counted_nodes_alone = engine.counted_nodes_alone();
    let order_matters = binding_order::order_matters(engine, &purchases, &placements);
    let purchases = purchases.into_iter().map(|(_, purchase)| purchase).collect();
    let unplaced = waiting.left();
    Provisioning {
        purchases,
        placements,
        unplaced,
        backlog,
        refused_nodes,
        shortfalls,
        budget,
        counted_nodes_alone,
        order_matters,
        fewer_nodes: None,
    }
}

/// Gives up nodes whose launch would not be as varied as the pool's `minValues` ask for, and then those that only made
/// sense beside them: without a node in one zone, another zone may hold too many.
fn give_up_what_is_not_varied(engine: &mut Engine<'_, '_>, skews_before: &IndexVec<GroupIndex, u32>) {
    let mut given_up = false;
    for host in engine.open_hosts() {
        let is_static = engine.open_node(host).is_some_and(|open| engine.problem.templates[open.template].is_static());
        if !engine.is_closed(host) && !is_static && !purchase::is_varied_enough(engine, host) {
            engine.discard(host);
            given_up = true;
        }
    }
    while let Some(host) = engine.open_node_too_many(skews_before).filter(|_| given_up) {
        engine.discard(host);
    }
}

/// Hands out the pods of each class: to the node that they are expected on, the others oldest first to the nodes in their order, or
/// to those that were served before.
struct Waiting {
    pods: BTreeMap<ClassIndex, Vec<PodIndex>>,
    /// The pods that a node has got already.
    served: BTreeMap<(HostIndex, ClassIndex), Vec<PodIndex>>,
}

impl Waiting {
    fn new(backlog: &Backlog, settled: &[Expected]) -> Self {
        let has_place: BTreeSet<PodIndex> = settled.iter().map(|expected| expected.pod).collect();
        let mut pods = backlog.waiting.clone();
        for pods in pods.values_mut() {
            pods.retain(|pod| !has_place.contains(pod));
            // Taken from the end, so the oldest comes last.
            pods.reverse();
        }
        let mut served: BTreeMap<(HostIndex, ClassIndex), Vec<PodIndex>> = BTreeMap::new();
        for Expected { class, pod, host } in settled {
            served.entry((*host, *class)).or_default().push(*pod);
        }
        Self { pods, served }
    }

    /// Pods of a class go where the first of them was placed, the second, and so on.
    fn serve_in_turn(&mut self, placed: impl Iterator<Item = (ClassIndex, HostIndex)>) {
        for (class, host) in placed {
            let next = self.pods.get_mut(&class).and_then(Vec::pop);
            self.served.entry((host, class)).or_default().extend(next);
        }
    }

    /// Of pods that spread each goes to another domain than the one before it. `before`: pods by class that nodes had before any was placed.
    fn serve_by_domain(&mut self, engine: &Engine<'_, '_>, before: &IndexVec<HostIndex, BTreeMap<ClassIndex, u32>>) {
        let problem = engine.problem;
        let mut places: BTreeMap<ClassIndex, Vec<(HostIndex, u32)>> = BTreeMap::new();
        for host in engine.existing_hosts().chain(engine.open_hosts().filter(|host| !engine.is_closed(*host))) {
            for (class, count) in &engine.host(host).pods {
                let served = self.served.get(&(host, *class)).map_or(0, Vec::len);
                let there = before.get(host).and_then(|pods| pods.get(class)).copied().unwrap_or(0);
                let missing = count.saturating_sub(there).saturating_sub(u32::try_from(served).unwrap_or(u32::MAX));
                if missing > 0 && !problem.classes[*class].spreads.is_empty() {
                    places.entry(*class).or_default().push((host, missing));
                }
            }
        }
        for (class, places) in places {
            let moment = |pod: &PodIndex| {
                let metadata = &problem.snapshot.pods[*pod].metadata;
                Reverse((metadata.creation_timestamp.clone(), metadata.version()))
            };
            self.pods.entry(class).or_default().sort_by_cached_key(moment);
            self.serve_in_turn(turns::in_turn(engine, class, &places).into_iter().map(|host| (class, host)));
        }
    }

    fn take(&mut self, class: ClassIndex, count: u32, host: HostIndex) -> Vec<PodIndex> {
        let mut served = self.served.remove(&(host, class)).unwrap_or_default();
        let missing = usize::try_from(count).unwrap_or(usize::MAX).saturating_sub(served.len());
        let pods = self.pods.get_mut(&class).into_iter();
        served.extend(pods.flat_map(|pods| pods.split_off(pods.len().saturating_sub(missing)).into_iter().rev()));
        served
    }

    /// Those of nodes that were given up again are among them.
    fn left(mut self) -> BTreeMap<ClassIndex, Vec<PodIndex>> {
        self.pods.retain(|_, pods| !pods.is_empty());
        self.pods.values_mut().for_each(|pods| pods.reverse());
        for ((_, class), pods) in self.served {
            let left = self.pods.entry(class).or_default();
            left.splice(0..0, pods);
        }
        self.pods.retain(|_, pods| !pods.is_empty());
        self.pods
    }
}
