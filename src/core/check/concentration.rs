//! Pods of one workload that are together, counted one by one: on a node, and on spot nodes of one type in one zone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::plan::{Plan, Step, StepKind};
use crate::snapshot::Pod;
use cutlist_api::keys;
use cutlist_api::settings::{ConcentrationPenalty, Packing};

use super::buffers::stands_for_room;
use super::known::Known;
use super::steps::{moves_with, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// Where pods are before the first move, and what their concentration counts from move to move. Each move takes
/// O(pods of the workloads that it touches).
pub(super) struct Whereabouts<'a> {
    known: &'a Known<'a>,
    /// By `namespace/name`.
    homes: HashMap<&'a str, PodPlace<'a>>,
    /// The nodes that exist to which the plan sends pods.
    placements: HashMap<&'a str, &'a str>,
    /// By move: what it removes, then what it creates.
    moves: BTreeMap<u32, [Vec<&'a Step>; 2]>,
    /// The pods of each.
    workloads: Vec<Vec<&'a str>>,
    workload_of: HashMap<&'a str, usize>,
}

/// Where a pod is, and of a spot node its type and zone.
#[derive(Clone, Copy)]
struct PodPlace<'a> {
    node: &'a str,
    spot: Option<(&'a str, &'a str)>,
}

/// Dollars per hour for concentration on nodes, and in spot pools.
#[derive(Clone, Copy, Default)]
struct Cost {
    on_nodes: f64,
    in_pools: f64,
}

fn counts(pod: &Pod) -> bool {
    !pod.is_terminal() && !pod.is_terminating() && !stands_for_room(&pod.key())
}

fn workload_of(pod: &Pod) -> Option<(&str, &str, &str)> {
    let owner = pod.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))?;
    let is_of_node = ["DaemonSet", "Node"].contains(&owner.kind.as_str());
    (!is_of_node).then_some((pod.metadata.namespace.as_str(), owner.kind.as_str(), owner.name.as_str()))
}

impl<'a> Whereabouts<'a> {
    /// Before anything is removed to save money: pending pods have their places. `None` where concentration costs nothing.
    pub(super) fn provisioned(plan: &'a Plan, known: &'a Known<'a>) -> Option<Self> {
        let policy = &known.inputs.policy;
        let penalties = &policy.penalties;
        let per_pod = penalties.blast_radius.per_pod_per_hour.max(penalties.spot_concentration.per_pod_per_hour);
        if policy.packing == Packing::Karpenter || per_pod <= 0.0 {
            return None;
        }
        let mut it = Self {
            known,
            homes: HashMap::new(),
            placements: plan.placements.iter().map(|it| (it.pod.as_str(), it.node.as_str())).collect(),
            moves: moves(plan),
            workloads: Vec::new(),
            workload_of: HashMap::new(),
        };
        it.gather_workloads();
        for (key, pod) in &known.pods {
            let node = pod.spec.node_name.as_deref().and_then(|name| known.nodes.get_key_value(name));
            if let Some((name, _)) = node.filter(|(_, existing)| !existing.going) {
                it.put_on_node(key, name);
            }
        }
        let moving: BTreeSet<&String> = steps(plan, StepKind::Remove).flat_map(|step| &step.pods).collect();
        for placement in plan.placements.iter().filter(|placement| !moving.contains(&placement.pod)) {
            it.put_on_node(&placement.pod, &placement.node);
        }
        let is_for_pending = |[removed, _]: &&[Vec<&Step>; 2]| removed.is_empty();
        let created: Vec<&Step> = it.moves.values().filter(is_for_pending).flat_map(|[_, new]| new).copied().collect();
        created.into_iter().for_each(|step| it.put_on_new(step));
        Some(it)
    }

    fn gather_workloads(&mut self) {
        let mut numbers: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for (key, pod) in self.known.pods.iter().filter(|(_, pod)| counts(pod)) {
            let Some(workload) = workload_of(pod) else { continue };
            let number = *numbers.entry(workload).or_insert(self.workloads.len());
            if number == self.workloads.len() {
                self.workloads.push(Vec::new());
            }
            self.workloads[number].push(key);
            self.workload_of.insert(key, number);
        }
    }

    /// Carries out one move; what concentration costs more afterwards.
    pub(super) fn cost_of_move(&mut self, number: u32) -> f64 {
        let steps = self.moves.get(&number).into_iter().flatten().flatten();
        let pods = steps.flat_map(|step| &step.pods);
        let touched: BTreeSet<usize> = pods.filter_map(|pod| self.workload_of.get(pod.as_str())).copied().collect();
        let before = self.cost_of(touched.iter().copied());
        self.carry_out(number);
        let after = self.cost_of(touched.into_iter());
        after.on_nodes - before.on_nodes + after.in_pools - before.in_pools
    }

    /// Once for each move.
    fn carry_out(&mut self, number: u32) {
        let Some([removed, created]) = self.moves.remove(&number) else { return };
        for pod in removed.iter().flat_map(|step| &step.pods) {
            self.homes.remove(pod.as_str());
            if let Some(node) = self.placements.get(pod.as_str()).copied() {
                self.put_on_node(pod, node);
            }
        }
        created.into_iter().for_each(|step| self.put_on_new(step));
    }

    fn put_on_node(&mut self, pod: &'a str, node: &'a str) {
        let labels = self.known.nodes.get(node).and_then(|existing| existing.node.metadata.labels.as_ref());
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).map_or("", String::as_str);
        let is_spot = label(keys::CAPACITY_TYPE) == keys::SPOT;
        let spot = is_spot.then(|| (label(keys::INSTANCE_TYPE), label(keys::ZONE)));
        self.homes.insert(pod, PodPlace { node, spot });
    }

    fn put_on_new(&mut self, step: &'a Step) {
        let spot = (step.capacity_type == keys::SPOT).then_some((step.instance_type.as_str(), step.zone.as_str()));
        let home = PodPlace { node: &step.node_claim, spot };
        self.homes.extend(step.pods.iter().map(|pod| (pod.as_str(), home)));
    }

    fn cost(&self) -> Cost {
        self.cost_of(0..self.workloads.len())
    }

    fn cost_of(&self, workloads: impl Iterator<Item = usize>) -> Cost {
        let penalties = &self.known.inputs.policy.penalties;
        let mut cost = Cost::default();
        for pods in workloads.map(|number| &self.workloads[number]) {
            let homes = || pods.iter().filter_map(|pod| self.homes.get(pod));
            cost.on_nodes += beyond(&penalties.blast_radius, pods.len(), homes().map(|home| home.node));
            cost.in_pools += beyond(&penalties.spot_concentration, pods.len(), homes().filter_map(|home| home.spot));
        }
        cost
    }
}

fn moves(plan: &Plan) -> BTreeMap<u32, [Vec<&Step>; 2]> {
    let mut moves: BTreeMap<u32, [Vec<&Step>; 2]> = BTreeMap::new();
    for step in &plan.steps {
        let [removed, created] = moves.entry(step.move_number).or_default();
        match step.kind {
            StepKind::Remove => removed.push(step),
            StepKind::Create => created.push(step),
            _ => {}
        }
    }
    moves
}

/// What the pods of one workload count that are together with more than its share.
fn beyond<H: Ord>(penalty: &ConcentrationPenalty, replicas: usize, homes: impl Iterator<Item = H>) -> f64 {
    let mut together: BTreeMap<H, usize> = BTreeMap::new();
    for home in homes {
        *together.entry(home).or_default() += 1;
    }
    let free = (replicas * penalty.max_share_percent as usize / 100).max(1);
    let pods: usize = together.values().map(|pods| pods.saturating_sub(free)).sum();
    penalty.per_pod_per_hour.max(0.0) * f64::from(u32::try_from(pods).unwrap_or(u32::MAX))
}

/// What the plan says concentration counts.
pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let Some(stated) = &plan.summary.penalties_per_hour else { return };
    let counted = Whereabouts::provisioned(plan, known).map(|mut after| {
        moves_with(plan, StepKind::Remove).into_iter().for_each(|number| after.carry_out(number));
        after.cost()
    });
    let Cost { on_nodes, in_pools } = counted.unwrap_or_default();
    for (name, stated, counted) in
        [("blastRadius", stated.blast_radius, on_nodes), ("spotConcentration", stated.spot_concentration, in_pools)]
    {
        // Prices are rounded to a billionth of a dollar, once for each pod or node.
        if (stated.dollars() - counted).abs() > 1e-6 {
            let text = format!("penaltiesPerHour.{name} is {counted}, not {stated}");
            findings.add(ViolationCode::WrongSummary, ViolationPlace::Field("summary"), text);
        }
    }
}
