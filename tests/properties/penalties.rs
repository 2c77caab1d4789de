//! Penalties pay: by what they count, a plan that knows of them is not worse than one that does not.

use std::collections::BTreeMap;

use cutlist::api::keys;
use cutlist::api::settings::{CrowdPenalty, Packing, Penalties};
use cutlist::core::model::HourlyPrice;
use cutlist::core::plan::{Inputs, Plan, Policy, decide};

use crate::build::Built;
use crate::carried_out::carry_out;
use crate::for_worlds;

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
    let mut replicas: BTreeMap<String, u32> = BTreeMap::new();
    let (mut on_nodes, mut in_pools) = (BTreeMap::new(), BTreeMap::new());
    for pod in after.pods.iter().filter(|pod| !pod.is_terminal() && !pod.is_terminating()) {
        let Some(workload) = pod.workload() else { continue };
        *replicas.entry(workload.clone()).or_default() += 1;
        let node = pod.spec.node_name.as_deref().and_then(|name| spot_pools.get_key_value(name));
        let Some((node, spot_pool)) = node else { continue };
        *on_nodes.entry((workload.clone(), *node)).or_insert(0_u32) += 1;
        if let Some(spot_pool) = spot_pool {
            *in_pools.entry((workload, *spot_pool)).or_insert(0_u32) += 1;
        }
    }
    let beyond = |penalty: &CrowdPenalty, workload: &String, pods: u32| -> usize {
        pods.saturating_sub(penalty.free_pods(replicas[workload])) as usize
    };
    let on_nodes: usize = on_nodes.iter().map(|((it, _), pods)| beyond(&penalties.blast_radius, it, *pods)).sum();
    let in_pools: usize = in_pools.iter().map(|((it, _), pods)| beyond(&penalties.spot_concentration, it, *pods)).sum();
    plan.summary.price_per_hour_after
        + dollars(penalties.per_node_per_hour).times(plan.summary.nodes_after)
        + dollars(penalties.blast_radius.per_pod_per_hour).times(on_nodes)
        + dollars(penalties.spot_concentration.per_pod_per_hour).times(in_pools)
}

#[test]
fn a_plan_that_counts_penalties_is_not_worse_by_them() {
    let stats = std::cell::RefCell::new((0, 0, 0, 0.0_f64));
    for_worlds(400, |built| {
        let inputs = built.inputs(Packing::Cheapest);
        if built.penalties == Penalties::default() {
            return Ok(());
        }
        if built.penalties.per_node_per_hour == 0.0
            && built.penalties.blast_radius.per_pod_per_hour == 0.0
            && built.penalties.spot_concentration.per_pod_per_hour == 0.0
        {
            return Ok(());
        }
        let without =
            Inputs { policy: Policy { penalties: Penalties::default(), ..inputs.policy.clone() }, ..inputs.clone() };
        let (one, other) = (decide(&inputs), decide(&without));
        let mut s = stats.borrow_mut();
        if one.summary.pods_pending != other.summary.pods_pending {
            s.3 += 1.0;
            return Ok(());
        }
        let (counted, plain) = (total(&one, built, &inputs), total(&other, built, &inputs));
        let p = one.summary.penalties_per_hour.unwrap_or_default();
        assert_eq!(counted, one.summary.price_per_hour_after + p.nodes + p.blast_radius + p.spot_concentration);
        s.0 += 1;
        if counted > plain {
            s.1 += 1;
            if counted.dollars() > plain.dollars() * 1.2 {
                return Err(format!(
                    "{counted} > {plain}: {:#?} {:#?}",
                    (&one.steps, &one.placements, &one.pending),
                    (&other.steps, &other.placements, &other.pending)
                ));
            }
        }
        Ok(())
    });
    println!("{:?}", stats.borrow());
}
