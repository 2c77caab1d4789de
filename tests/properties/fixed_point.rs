//! The loop of planning and carrying out, with the workload and the prices constant: it comes to an end, and never back to where it was.

use std::collections::BTreeSet;

use cutlist::api::settings::Packing;
use cutlist::core::check::check;
use cutlist::core::inputs::Inputs;
use cutlist::core::model::HourlyPrice;
use cutlist::core::plan::{Plan, ReasonCode, StepKind};
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use jiff::SignedDuration;

use crate::build::Built;
use crate::carried_out::carry_out;
use crate::for_worlds;

/// A world has at most ten nodes and some dozens of pods; more plans than this are a circle.
const PLANS_MAX: usize = 60;

/// Which pods run on what: the names of nodes do not count, since a node that is bought again has a new one.
fn arrangement(snapshot: &Snapshot) -> String {
    let mut nodes: Vec<String> = Vec::new();
    for node in &snapshot.nodes {
        let labels = node.metadata.labels.clone().unwrap_or_default();
        let kind = ["node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"];
        let kind: Vec<String> = kind.iter().map(|key| labels.get(*key).cloned().unwrap_or_default()).collect();
        let on_it = snapshot.pods.iter().filter(|pod| pod.spec.node_name == node.metadata.name);
        let pods: BTreeSet<String> = on_it.map(cutlist::core::snapshot::Pod::key).collect();
        nodes.push(format!("{kind:?} {pods:?}"));
    }
    nodes.sort();
    nodes.join("\n")
}

/// What is bought and what goes to save money are different things.
fn buys_nothing_that_goes(plan: &Plan) -> Result<(), String> {
    let of = |kind: StepKind| {
        let steps = plan.steps.iter().filter(move |step| step.kind == kind);
        let steps = steps.filter(|step| step.reason.code == ReasonCode::Underutilized);
        steps.map(|step| (step.instance_type.clone(), step.zone.clone(), step.capacity_type.clone()))
    };
    let gone: BTreeSet<_> = of(StepKind::Remove).collect();
    match of(StepKind::Create).find(|like| gone.contains(like)) {
        Some(like) => Err(format!("{like:?} is removed, and bought again")),
        None => Ok(()),
    }
}

fn settles(built: &Built, packing: Packing) -> Result<(), String> {
    let mut snapshot = built.snapshot.clone();
    let first = built.inputs(packing);
    let mut now = first.now;
    let mut seen = BTreeSet::new();
    for number in 0..PLANS_MAX {
        let inputs = Inputs { snapshot: &snapshot, now, ..first.clone() };
        let plan = decide(&inputs);
        if plan.steps.is_empty() {
            return Ok(());
        }
        let violations = check(&plan, &inputs);
        if !violations.is_empty() {
            return Err(format!("plan {number}: {violations:?}"));
        }
        if packing == Packing::Cheapest {
            buys_nothing_that_goes(&plan)?;
        }
        let saves_only = plan.steps.iter().all(|step| step.reason.code == ReasonCode::Underutilized);
        let saved = plan.summary.price_per_hour_before - plan.summary.price_per_hour_after;
        // Fewer nodes may cost more, since each costs something beside its instance: what a move saves by that the judge counts.
        let fewer = plan.summary.nodes_after < plan.summary.nodes_before && packing == Packing::Cheapest;
        if saves_only && saved <= HourlyPrice::ZERO && !fewer {
            return Err(format!("plan {number} is there to save money, and saves {saved}"));
        }
        carry_out(&plan, &mut snapshot, &built.catalog, &built.classes, now);
        // What expired is renewed as it was.
        if !seen.insert(arrangement(&snapshot)) && saves_only {
            return Err(format!("plan {number} leads back to where the cluster was"));
        }
        now += SignedDuration::from_mins(10);
    }
    Err(format!("{PLANS_MAX} plans, and still something to do"))
}

#[test]
fn consolidation_comes_to_an_end_and_never_goes_in_circles() {
    for_worlds(32, |built| settles(built, Packing::Cheapest));
}

#[test]
fn consolidation_in_the_way_of_karpenter_comes_to_an_end() {
    for_worlds(32, |built| settles(built, Packing::Karpenter));
}
