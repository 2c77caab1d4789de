//! Pods of one workload that are together, counted one by one: on a node, and on spot nodes of one type in one zone.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::keys;
use crate::api::settings::{ConcentrationPenalty, Packing};
use crate::core::plan::{Plan, Step, StepKind};
use crate::core::snapshot::Pod;

use super::buffers::stands_for_room;
use super::known::{Known, steps};
use super::violation::{Findings, ViolationCode};

/// Where pods are: by `namespace/name` the node, and `type in zone` if it is spot.
#[derive(Clone)]
pub(super) struct Whereabouts(BTreeMap<String, (String, Option<String>)>);

fn counts(pod: &Pod) -> bool {
    !pod.is_terminal() && !pod.is_terminating() && !stands_for_room(&pod.key())
}

fn workload_of(pod: &Pod) -> Option<(String, String, String)> {
    let owner = pod.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))?;
    let is_of_node = ["DaemonSet", "Node"].contains(&owner.kind.as_str());
    (!is_of_node).then(|| (pod.metadata.namespace.clone(), owner.kind.clone(), owner.name.clone()))
}

impl Whereabouts {
    /// Before anything is removed to save money: pending pods have their places.
    pub(super) fn provisioned(plan: &Plan, known: &Known<'_>) -> Self {
        let mut it = Self(BTreeMap::new());
        for (key, pod) in &known.pods {
            let node = pod.spec.node_name.as_deref().and_then(|name| known.nodes.get_key_value(name));
            if let Some((name, _)) = node.filter(|(_, existing)| !existing.going) {
                it.put_on_node(key, name, known);
            }
        }
        let moving: BTreeSet<&String> = steps(plan, StepKind::Remove).flat_map(|step| &step.pods).collect();
        for placement in plan.placements.iter().filter(|placement| !moving.contains(&placement.pod)) {
            it.put_on_node(&placement.pod, &placement.node, known);
        }
        let with_removals: BTreeSet<u32> = steps(plan, StepKind::Remove).map(|step| step.move_number).collect();
        for step in steps(plan, StepKind::Create).filter(|step| !with_removals.contains(&step.move_number)) {
            it.put_on_new(step);
        }
        it
    }

    /// Carries out one move.
    pub(super) fn carry_out(&mut self, number: u32, plan: &Plan, known: &Known<'_>) {
        for step in steps(plan, StepKind::Remove).filter(|step| step.move_number == number) {
            for pod in &step.pods {
                self.0.remove(pod);
                for placement in plan.placements.iter().filter(|placement| placement.pod == *pod) {
                    self.put_on_node(pod, &placement.node, known);
                }
            }
        }
        for step in steps(plan, StepKind::Create).filter(|step| step.move_number == number) {
            self.put_on_new(step);
        }
    }

    fn put_on_node(&mut self, pod: &str, node: &str, known: &Known<'_>) {
        let labels =
            known.nodes.get(node).and_then(|existing| existing.node.metadata.labels.clone()).unwrap_or_default();
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let is_spot = label(keys::CAPACITY_TYPE) == "spot";
        let pool = is_spot.then(|| format!("{} in {}", label(keys::INSTANCE_TYPE), label(keys::ZONE)));
        self.0.insert(pod.to_owned(), (node.to_owned(), pool));
    }

    fn put_on_new(&mut self, step: &Step) {
        let pool = (step.capacity_type == "spot").then(|| format!("{} in {}", step.instance_type, step.zone));
        for pod in &step.pods {
            self.0.insert(pod.clone(), (step.node_claim.clone(), pool.clone()));
        }
    }

    /// Dollars per hour for concentration on nodes, and in spot pools.
    pub(super) fn cost(&self, known: &Known<'_>) -> (f64, f64) {
        let penalties = &known.inputs.policy.penalties;
        let per_pod = penalties.blast_radius.per_pod_per_hour.max(penalties.spot_concentration.per_pod_per_hour);
        if known.inputs.policy.packing == Packing::Karpenter || per_pod <= 0.0 {
            return (0.0, 0.0);
        }
        let mut workloads: BTreeMap<(String, String, String), Vec<String>> = BTreeMap::new();
        for (key, pod) in known.pods.iter().filter(|(_, pod)| counts(pod)) {
            if let Some(workload) = workload_of(pod) {
                workloads.entry(workload).or_default().push(key.clone());
            }
        }
        let mut cost = (0.0, 0.0);
        for pods in workloads.values() {
            let homes = || pods.iter().filter_map(|pod| self.0.get(pod));
            cost.0 += beyond(&penalties.blast_radius, pods.len(), homes().map(|(node, _)| node));
            cost.1 += beyond(&penalties.spot_concentration, pods.len(), homes().filter_map(|(_, pool)| pool.as_ref()));
        }
        cost
    }
}

/// What the pods of one workload count that are together with more than its share.
fn beyond<'a>(penalty: &ConcentrationPenalty, replicas: usize, homes: impl Iterator<Item = &'a String>) -> f64 {
    let mut together: BTreeMap<&str, usize> = BTreeMap::new();
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
    let mut after = Whereabouts::provisioned(plan, known);
    let moves: BTreeSet<u32> = steps(plan, StepKind::Remove).map(|step| step.move_number).collect();
    moves.into_iter().for_each(|number| after.carry_out(number, plan, known));
    let (on_nodes, in_pools) = after.cost(known);
    for (name, stated, counted) in
        [("blastRadius", stated.blast_radius, on_nodes), ("spotConcentration", stated.spot_concentration, in_pools)]
    {
        // Prices are rounded to a billionth of a dollar, once for each pod or node.
        if (stated.dollars() - counted).abs() > 1e-6 {
            let text = format!("penaltiesPerHour.{name} is {counted}, not {stated}");
            findings.add(ViolationCode::WrongSummary, "summary", text);
        }
    }
}
