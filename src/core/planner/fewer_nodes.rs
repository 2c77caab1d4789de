//! The next point of the curve of nodes against money: what the same pods cost on much fewer new nodes.

use crate::inputs::Inputs;
use crate::model::HourlyPrice;
use crate::plan::FewerNodes;
use crate::provision::{self, Provisioning, Purchase, provision};
use crate::scheduler::Problem;
use cutlist_api::settings::Packing;

/// With fewer new nodes than this nothing is tried.
const NODES_MIN: usize = 10;

/// So many times what a node costs beside its instance is what it is taken to cost then, and at least this.
const TIMES: usize = 5;
const BESIDE_MIN: HourlyPrice = HourlyPrice::from_nanodollars(20_000_000);

/// The part of the work of a plan that it may take.
const WORK_PART: u64 = 4;

/// It is worth knowing where a quarter of the nodes goes, for at most a tenth of what all of them cost.
const FEWER_PART: usize = 4;
const DEARER_PART: usize = 10;

/// Provisions once more, as if each node cost more, and says what that comes to. `None` where it is not worth knowing, where few nodes
/// are bought, and while moves of earlier plans are under way. The problem is as it was afterwards.
pub fn fewer_nodes(inputs: &Inputs<'_>, problem: &mut Problem<'_>, provisioning: &Provisioning) -> Option<FewerNodes> {
    let policy = &inputs.policy;
    let bought = node_totals(inputs, problem, provisioning);
    if bought.nodes < NODES_MIN || policy.packing != Packing::Cheapest || policy.moves_under_way {
        return None;
    }
    let (work, beside) = (problem.search_work, costs_beside(problem));
    problem.search_work /= WORK_PART;
    for template in &mut problem.templates {
        template.cost_beside = template.cost_beside.times(TIMES).max(BESIDE_MIN);
    }
    let mut engine = provision::engine(problem, inputs);
    let other = provision(&mut engine, inputs, policy.packing);
    drop(engine);
    let fewer = node_totals(inputs, problem, &other);
    problem.search_work = work;
    problem.templates.iter_mut().zip(beside).for_each(|(template, beside)| template.cost_beside = beside);
    let unplaced = |it: &Provisioning| it.unplaced.values().map(Vec::len).sum::<usize>();
    let per_hour = fewer.per_hour - bought.per_hour;
    let is_worth_knowing = unplaced(&other) <= unplaced(provisioning)
        && fewer.nodes <= bought.nodes - bought.nodes.div_ceil(FEWER_PART)
        && per_hour.times(DEARER_PART) <= bought.per_hour;
    is_worth_knowing.then_some(FewerNodes { nodes: fewer.nodes, instead: bought.nodes, per_hour })
}

fn costs_beside(problem: &Problem<'_>) -> Vec<HourlyPrice> {
    problem.templates.iter().map(|template| template.cost_beside).collect()
}

/// New nodes for pods, and what the bill has of them: not the amount for each node.
struct NodeTotals {
    nodes: usize,
    per_hour: HourlyPrice,
}

fn node_totals(inputs: &Inputs<'_>, problem: &Problem<'_>, provisioning: &Provisioning) -> NodeTotals {
    let for_pods = |purchase: &&Purchase| !problem.templates[purchase.template].is_static();
    let of_bill = |purchase: &Purchase| {
        let pool = &inputs.node_pools[problem.templates[purchase.template].pool];
        purchase.price + problem.offer.costs_of_pool(pool).total()
    };
    NodeTotals {
        nodes: provisioning.purchases.iter().filter(for_pods).count(),
        per_hour: provisioning.purchases.iter().filter(for_pods).map(of_bill).sum(),
    }
}
