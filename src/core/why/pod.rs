//! Why one pod is where the plan puts it, or why it gets no place.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inputs::Inputs;
use crate::lifecycle::waits_for;
use crate::model::resources::{CPU, MEMORY};
use crate::model::{HourlyPrice, Resources};
use crate::plan::{Alternative, Change, PendingReason, Plan, Step, StepKind, change};
use crate::prepare;
use crate::provision::advice::Adviser;
use crate::provision::daemon_pods::{is_waiting_daemon, meant_for};
pub use crate::provision::explain::ExistingNodes;
use crate::provision::explain::{existing_nodes, explain};
use crate::provision::passing::passes;
use crate::provision::{self, Provisioning, provision};
use crate::scheduler::{ClassIndex, Engine, HostIndex, Problem};
use crate::snapshot::nodes::Machine;
use crate::snapshot::{Pod, PodIndex};

use super::{Fate, NodeDetails, considered, fate, node_of_machine, node_of_step, planned};

/// What is to be said about one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyPod {
    /// `namespace/name`
    pub pod: String,
    /// What scheduling counts: containers, init containers, overhead.
    pub requests: Resources,
    #[serde(flatten)]
    pub answer: PodAnswer,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "state")]
pub enum PodAnswer {
    /// No place was found.
    Pending {
        /// Pods that wait and can not be told apart from it, with itself.
        alike: usize,
        /// Nearest pool first.
        reasons: Vec<PendingReason>,
        existing_nodes: Vec<ExistingNodes>,
        /// The fewest changes that let it, or one that is alike, in; tried. Empty: none was found.
        changes: Vec<Change>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        smallest_change: Option<String>,
    },
    /// It waits, and a node would be created for it.
    PlacedOnNewNode {
        node: NodeDetails,
        because: String,
        /// Pods that the node is created for.
        pods: Vec<String>,
        /// What the pod takes of the price by the larger of its shares of cores and memory.
        share_per_hour: HourlyPrice,
        /// Other types that would hold the same pods, each where it is cheapest, cheapest first.
        considered: Vec<Alternative>,
    },
    /// It waits, and there is room for it.
    PlacedOnExistingNode {
        node: NodeDetails,
        /// Why the node has not initialized yet, where it has not: till then the pod waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits_for: Option<String>,
    },
    /// It runs.
    Running {
        node: NodeDetails,
        fate: Fate,
        /// Where it goes when its node is removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moves_to: Option<String>,
    },
    /// It does not take part: it is over, on its way out, or belongs to its node.
    NotPlanned { because: String },
}

/// Answers for one of the pods at these positions of the snapshot: the first that gets no place, else the first; `None`
/// without any. Takes as long as a plan, without its disruption where the pod is pending; the advice tries the cluster
/// anew some times where other pods have a say.
pub fn why_pod(inputs: &Inputs<'_>, positions: &[PodIndex]) -> Option<WhyPod> {
    let (snapshot, catalog) = (prepare::complete(inputs), prepare::preview_prices::catalog(inputs));
    let inputs = &Inputs { snapshot: &snapshot, catalog: &catalog, ..inputs.clone() };
    let problem = Problem::new(inputs);
    let mut engine = provision::engine(&problem, inputs);
    let provisioning = provision(&mut engine, inputs, inputs.policy.packing);
    let refused = provisioning.backlog.not_schedulable.iter().map(|(pod, ..)| pod);
    let left: BTreeSet<&PodIndex> = provisioning.unplaced.values().flatten().chain(refused).collect();
    let position = *positions.iter().find(|position| left.contains(position)).or(positions.first())?;
    let pod = &inputs.snapshot.pods[position];
    let requests = crate::snapshot::requests::effective_requests(pod).unwrap_or_default();
    Some(WhyPod { pod: pod.key(), answer: answer(&mut engine, inputs, &provisioning, position, &requests), requests })
}

fn answer(
    engine: &mut Engine<'_, '_>,
    inputs: &Inputs<'_>,
    provisioning: &Provisioning,
    position: PodIndex,
    requests: &Resources,
) -> PodAnswer {
    let (problem, pod) = (engine.problem, &inputs.snapshot.pods[position]);
    let unplaced = provisioning.unplaced.iter().find(|(_, pods)| pods.contains(&position));
    if let Some((class, pods)) = unplaced {
        return pending(engine, inputs, provisioning, *class, pods);
    }
    if let Some((_, obstacle)) = provisioning.backlog.not_schedulable.iter().find(|(pod, ..)| *pod == position) {
        let reasons = vec![obstacle.reason()];
        return PodAnswer::Pending {
            alike: 1,
            reasons,
            existing_nodes: Vec::new(),
            changes: Vec::new(),
            smallest_change: None,
        };
    }
    if let Some(node) = meant_for(pod).filter(|_| is_waiting_daemon(pod)) {
        let so = match problem.machines.iter().find(|machine| machine.name == node) {
            Some(machine) if machine.is_being_removed() => "which is on its way out",
            Some(machine) if !machine.is_initialized() => "which has not initialized yet",
            _ => "where nothing keeps it from starting: kube-scheduler puts it there",
        };
        return PodAnswer::NotPlanned { because: format!("its DaemonSet means it for node {node} alone, {so}") };
    }
    if let Some(because) = takes_no_part(pod) {
        return PodAnswer::NotPlanned { because: because.to_owned() };
    }
    let plan = planned(engine, inputs, provisioning);
    let node = pod.spec.node_name.as_deref().filter(|name| !name.is_empty());
    match node.and_then(|name| problem.machines.position(|machine| machine.name == name)) {
        Some(host) => running(inputs, problem, &plan, host, &pod.key()),
        None if node.is_some() => {
            PodAnswer::NotPlanned { because: "it runs on a node that the snapshot does not have".to_owned() }
        }
        None => placed(inputs, problem, &plan, &pod.key(), requests),
    }
}

fn pending(
    engine: &Engine<'_, '_>,
    inputs: &Inputs<'_>,
    provisioning: &Provisioning,
    class: ClassIndex,
    alike: &[PodIndex],
) -> PodAnswer {
    let waiting = provisioning.backlog.waiting.values().map(Vec::len).sum();
    // What passes by itself needs no change.
    let mut adviser = (!passes(engine, class)).then(|| Adviser::for_one_pod(engine, inputs, waiting));
    let advised = adviser.as_mut().and_then(|adviser| adviser.advise(engine, class, alike));
    let changes = advised.unwrap_or_default();
    PodAnswer::Pending {
        alike: alike.len(),
        reasons: explain(engine, class, inputs.places),
        existing_nodes: existing_nodes(engine, class),
        smallest_change: (!changes.is_empty()).then(|| change::text(&changes)),
        changes,
    }
}

fn takes_no_part(pod: &Pod) -> Option<&'static str> {
    match () {
        () if pod.is_terminal() => Some("it is over"),
        () if pod.is_owned_by("DaemonSet") => Some("it belongs to a DaemonSet: it comes and goes with its node"),
        () if pod.is_owned_by("Node") => Some("it is a mirror of a file on its node"),
        () if pod.is_terminating() && pod.spec.node_name.is_none() => Some("it is on its way out"),
        () => None,
    }
}

fn placed(inputs: &Inputs<'_>, problem: &Problem<'_>, plan: &Plan, pod: &str, requests: &Resources) -> PodAnswer {
    let creates = |step: &&Step| step.kind == StepKind::Create && step.pods.iter().any(|other| other == pod);
    if let Some(step) = plan.steps.iter().find(creates) {
        return PodAnswer::PlacedOnNewNode {
            node: node_of_step(step),
            because: step.reason.text.clone(),
            pods: step.pods.clone(),
            share_per_hour: share(requests, &step.allocatable, step.price_per_hour),
            considered: considered(step),
        };
    }
    let node = plan.placements.iter().find(|placement| placement.pod == pod).map(|placement| &placement.node);
    match node.and_then(|node| problem.machines.position(|machine| machine.name == node)) {
        Some(host) => PodAnswer::PlacedOnExistingNode {
            node: node_of_machine(inputs, problem, host),
            waits_for: waited_for(&problem.machines[host]),
        },
        None => PodAnswer::NotPlanned { because: "nothing is planned for it".to_owned() },
    }
}

/// Why a node has not initialized yet, as the plan says it of nodes that stay.
fn waited_for(machine: &Machine<'_>) -> Option<String> {
    let claim = machine.claim.filter(|_| !machine.is_initialized())?;
    waits_for(claim, machine.node).map(|lacking| lacking.text)
}

fn running(inputs: &Inputs<'_>, problem: &Problem<'_>, plan: &Plan, host: HostIndex, pod: &str) -> PodAnswer {
    let machine = &problem.machines[host];
    let creation = plan.steps.iter().filter(|step| step.kind == StepKind::Create);
    let on_new = creation.filter(|step| step.pods.iter().any(|other| other == pod)).map(|step| &step.node_claim).next();
    let existing = plan.placements.iter().find(|placement| placement.pod == pod).map(|placement| &placement.node);
    PodAnswer::Running {
        node: node_of_machine(inputs, problem, host),
        fate: fate(plan, machine),
        moves_to: on_new.or(existing).cloned(),
    }
}

/// The part of the price that goes with the larger of the shares of cores and memory, in thousandths of a thousandth.
fn share(requests: &Resources, allocatable: &Resources, price: HourlyPrice) -> HourlyPrice {
    const WHOLE: i128 = 1_000_000;
    let of = |name: &str| match i128::from(allocatable.get(name)) {
        ..=0 => 0,
        all => (i128::from(requests.get(name)) * WHOLE / all).clamp(0, WHOLE),
    };
    let part = i128::from(price.nanodollars()) * of(CPU).max(of(MEMORY)) / WHOLE;
    HourlyPrice::from_nanodollars(i64::try_from(part).unwrap_or(i64::MAX))
}
