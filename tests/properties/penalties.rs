//! Penalties pay: by what they count, a plan that knows of them is not worse than one that does not.

use std::cell::Cell;
use std::collections::BTreeMap;

use cutlist::api::keys;
use cutlist::api::settings::{ConcentrationPenalty, Packing, Penalties};
use cutlist::core::inputs::{Inputs, Policy};
use cutlist::core::model::HourlyPrice;
use cutlist::core::plan::Plan;
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Workload;
use proptest::prelude::Strategy;

use crate::build::Built;
use crate::carried_out::carry_out;
use crate::for_worlds_of;
use crate::world::{World, worlds};

const WORLDS: u32 = 24;

/// What the fleet costs after a plan, with all penalties, counted from where pods are then.
fn total(plan: &Plan, built: &Built, inputs: &Inputs<'_>) -> HourlyPrice {
    let mut after = built.snapshot.clone();
    carry_out(plan, &mut after, &built.catalog, &built.classes, inputs.now);
    let penalties = &built.penalties;
    let dollars = |amount: f64| HourlyPrice::from_dollars(amount).unwrap();
    let staying = after.nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_none());
    let spot_pools: BTreeMap<&str, Option<(&str, &str)>> = staying
        .map(|node| {
            let label =
                |key: &str| node.metadata.labels.as_ref().and_then(|all| all.get(key)).map_or("", String::as_str);
            let is_spot = label(keys::CAPACITY_TYPE) == keys::SPOT;
            (node.metadata.name.as_deref().unwrap(), is_spot.then(|| (label(keys::INSTANCE_TYPE), label(keys::ZONE))))
        })
        .collect();
    let mut replicas: BTreeMap<Workload<'_>, u32> = BTreeMap::new();
    let (mut on_nodes, mut in_pools) = (BTreeMap::new(), BTreeMap::new());
    for pod in after.pods.iter().filter(|pod| !pod.is_terminal() && !pod.is_terminating()) {
        let Some(workload) = pod.workload() else { continue };
        *replicas.entry(workload).or_default() += 1;
        let node = pod.spec.node_name.as_deref().and_then(|name| spot_pools.get_key_value(name));
        let Some((node, spot_pool)) = node else { continue };
        *on_nodes.entry((workload, *node)).or_insert(0_u32) += 1;
        if let Some(spot_pool) = spot_pool {
            *in_pools.entry((workload, *spot_pool)).or_insert(0_u32) += 1;
        }
    }
    let beyond = |penalty: &ConcentrationPenalty, workload: &Workload<'_>, pods: u32| -> usize {
        pods.saturating_sub(penalty.free_pods(replicas[workload])) as usize
    };
    let on_nodes: usize = on_nodes.iter().map(|((it, _), pods)| beyond(&penalties.blast_radius, it, *pods)).sum();
    let in_pools: usize = in_pools.iter().map(|((it, _), pods)| beyond(&penalties.spot_concentration, it, *pods)).sum();
    plan.summary.price_per_hour_after
        + dollars(penalties.per_node_per_hour).times(plan.summary.nodes_after)
        + dollars(penalties.blast_radius.per_pod_per_hour).times(on_nodes)
        + dollars(penalties.spot_concentration.per_pod_per_hour).times(in_pools)
}

/// What is bought new is bought with them in mind. In all worlds together, not in each: the search ends with its work, and not with
/// the best there is. And not where nodes are there already: their room is taken to be free, as in the reference, so pods may be
/// spread over one that could go otherwise, until the next plan.
#[test]
fn plans_that_count_penalties_are_the_better_by_them() {
    let bought = |world: World| World { nodes: Vec::new(), unmanaged_nodes: 0, ..world };
    let worlds = worlds().prop_filter("without penalties there is nothing to see", |it| it.penalties.is_some());
    let (all, all_otherwise) = (Cell::new(HourlyPrice::ZERO), Cell::new(HourlyPrice::ZERO));
    for_worlds_of(WORLDS, worlds.prop_map(bought), |built| {
        let inputs = built.inputs(Packing::Cheapest);
        let none = Penalties { per_node_per_hour: 0.0, ..Penalties::default() };
        let policy = Policy { penalties: none, ..inputs.policy.clone() };
        let without = Inputs { policy, ..inputs.clone() };
        let (plan, plain) = (decide(&inputs), decide(&without));
        let (counted, otherwise) = (total(&plan, built, &inputs), total(&plain, built, &inputs));
        let said = plan.summary.penalties_per_hour.unwrap_or_default();
        let per_node = plan.summary.costs_per_hour.unwrap_or_default().per_node;
        let said = plan.summary.price_per_hour_after + per_node + said.blast_radius + said.spot_concentration;
        if counted != said {
            return Err(format!("{counted} are counted, the plan says {said}"));
        }
        if plan.summary.pods_pending == plain.summary.pods_pending {
            all.set(all.get() + counted);
            all_otherwise.set(all_otherwise.get() + otherwise);
        }
        Ok(())
    });
    let (all, otherwise) = (all.get(), all_otherwise.get());
    assert!(all < otherwise, "{all}, and {otherwise} for plans that do not count them");
}
