//! Answers to "why": about a pod, and about a node.

pub mod node;
pub mod pod;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::disrupt::disrupt;
use crate::inputs::Inputs;
use crate::model::{HourlyPrice, Resources};
use crate::plan::{Alternative, DefinitionPlace, Plan, Reason, ReasonCode, Step, StepKind};
use crate::planner::decide::assemble;
use crate::planner::report;
use crate::provision::Provisioning;
use crate::scheduler::{Engine, HostIndex, Problem};
use crate::snapshot::nodes::Machine;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDetails {
    pub name: String,
    pub node_pool: String,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<HourlyPrice>,
    pub allocatable: Resources,
    /// With DaemonSets.
    pub requested: Resources,
}

/// What the plan does with the node of a running pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "fate")]
pub enum Fate {
    Removed {
        reason: Reason,
    },
    NeedsConfirmation {
        reason: Reason,
    },
    /// Another NodePool takes it over; nothing about the machine changes.
    #[serde(rename_all = "camelCase")]
    Adopted {
        node_pool: String,
        reason: Reason,
    },
    /// A candidate that is held back.
    HeldBack {
        reason: Reason,
        /// Where the definition has what the reason is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        definition: Option<DefinitionPlace>,
    },
    /// No NodeClaim stands behind it, so nobody here removes it.
    NotManaged,
    /// A candidate that no method had anything to say about.
    Stays,
}

/// The plan without what waits and without notes. The engine holds the provisioning.
fn planned(engine: &mut Engine<'_, '_>, inputs: &Inputs<'_>, provisioning: &Provisioning) -> Plan {
    let causes = report::creation_causes(engine, inputs, provisioning);
    let disruption = disrupt(engine, inputs, provisioning);
    assemble(inputs, engine.problem, provisioning, &causes, Vec::new(), disruption, Vec::new())
}

/// What the plan does with a node that exists.
fn fate(plan: &Plan, machine: &Machine<'_>) -> Fate {
    let of_node = |step: &&Step| step.node.as_deref() == Some(machine.name) || step.node_claim == machine.name;
    let step = |kind| plan.steps.iter().filter(move |step| step.kind == kind).find(of_node);
    let held_back = plan.held_back.iter().find(|held| held.node == machine.name);
    let leaving = machine
        .is_being_removed()
        .then(|| Reason::new(ReasonCode::BeingDeleted, "it was on its way out before this plan".to_owned()));
    if let Some(reason) = step(StepKind::Remove).map(|step| step.reason.clone()).or(leaving) {
        Fate::Removed { reason }
    } else if let Some(step) = step(StepKind::Hold) {
        Fate::NeedsConfirmation { reason: step.reason.clone() }
    } else if let Some(step) = step(StepKind::Adopt) {
        Fate::Adopted { node_pool: step.node_pool.clone(), reason: step.reason.clone() }
    } else if let Some(held) = held_back {
        Fate::HeldBack { reason: held.reason(), definition: held.definition.clone() }
    } else if machine.is_managed() {
        Fate::Stays
    } else {
        Fate::NotManaged
    }
}

fn node_of_step(step: &Step) -> NodeDetails {
    NodeDetails {
        name: step.node_claim.clone(),
        node_pool: step.node_pool.clone(),
        instance_type: step.instance_type.clone(),
        zone: step.zone.clone(),
        capacity_type: step.capacity_type.clone(),
        price_per_hour: Some(step.price_per_hour),
        allocatable: step.allocatable.clone(),
        requested: step.requested.clone(),
    }
}

fn node_of_machine(inputs: &Inputs<'_>, problem: &Problem<'_>, host: HostIndex) -> NodeDetails {
    let machine: &Machine<'_> = &problem.machines[host];
    let label = |key: &str| machine.label(key).unwrap_or_default().to_owned();
    let mut requested = Resources::new();
    problem.nodes[host].pods.iter().for_each(|(_, class)| requested.add(&problem.classes[*class].requests));
    NodeDetails {
        name: machine.name.to_owned(),
        node_pool: machine.node_pool().unwrap_or_default().to_owned(),
        instance_type: label(cutlist_api::keys::INSTANCE_TYPE),
        zone: label(cutlist_api::keys::ZONE),
        capacity_type: label(cutlist_api::keys::CAPACITY_TYPE),
        price_per_hour: problem.offer.price_of(inputs, machine),
        allocatable: machine.allocatable(),
        requested,
    }
}

/// The launch list by type, without the type that was chosen.
fn considered(step: &Step) -> Vec<Alternative> {
    let mut considered: Vec<Alternative> = Vec::new();
    for alternative in step.launch.iter().flat_map(|launch| &launch.alternatives) {
        let known = considered.iter_mut().find(|other| other.instance_type == alternative.instance_type);
        match known {
            Some(other) if other.price_per_hour > alternative.price_per_hour => *other = alternative.clone(),
            Some(_) => {}
            None if alternative.instance_type == step.instance_type => {}
            None => considered.push(alternative.clone()),
        }
    }
    considered
        .sort_by(|one, two| (one.price_per_hour, &one.instance_type).cmp(&(two.price_per_hour, &two.instance_type)));
    considered
}
