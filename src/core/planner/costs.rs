//! What nodes cost beside their instances once a plan is carried out.

use std::collections::BTreeSet;

use crate::catalog::NodeCosts;
use crate::inputs::Inputs;
use crate::plan::{CostsPerHour, Step, StepKind, Summary};
use crate::scheduler::Problem;
use crate::snapshot::nodes::Machine;
use cutlist_api::settings::Packing;

/// Of all nodes after the steps of a plan, whose other figures are known. `None` where nothing but the prices of instances is counted.
/// O(nodes + steps).
pub fn per_hour<'s>(
    inputs: &Inputs<'_>,
    problem: &Problem<'_>,
    steps: &'s [Step],
    summary: &Summary,
) -> Option<CostsPerHour> {
    if inputs.policy.packing != Packing::Cheapest {
        return None;
    }
    // A claim that never became a node goes by its own name.
    let name = |step: &'s Step| step.node.as_deref().unwrap_or(&step.node_claim);
    let of_kind = |kind: StepKind| steps.iter().filter(move |step| step.kind == kind);
    let gone: BTreeSet<&str> = of_kind(StepKind::Remove).map(name).collect();
    let stays = |it: &&Machine<'_>| !it.is_being_removed() && !gone.contains(it.name);
    let staying = problem.machines.iter().filter(stays);
    let of_staying: NodeCosts = staying.map(|machine| problem.offer.costs_of_machine(inputs, machine)).sum();
    let pool = |step: &Step| {
        inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(step.node_pool.as_str()))
    };
    let created = of_kind(StepKind::Create).filter_map(pool);
    let of_created: NodeCosts = created.map(|pool| problem.offer.costs_of_pool(pool)).sum();
    let NodeCosts { volumes, addresses, monitoring } = of_staying + of_created;
    let costs = CostsPerHour {
        instances: summary.price_per_hour_after,
        volumes,
        addresses,
        monitoring,
        per_node: inputs.policy.price_per_node().times(summary.nodes_after),
        lower_bound: None,
    };
    (costs.total() > costs.instances).then_some(costs)
}
