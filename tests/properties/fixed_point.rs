//! The loop of planning and carrying out, with the workload and the prices constant: it comes to an end, and never back to where it was.

use std::collections::BTreeSet;

use cutlist::api::keys::{self, ZONE};
use cutlist::api::settings::Packing;
use cutlist::core::check::check;
use cutlist::core::inputs::Inputs;
use cutlist::core::model::HourlyPrice;
use cutlist::core::plan::{Plan, ReasonCode, StepKind};
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use jiff::SignedDuration;
use serde_json::json;

use crate::bad_input::{cluster_of, instance_type, pod};
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

/// What a plan bought, and what has not joined yet: its pods wait.
fn on_its_way(built: &Built) -> Snapshot {
    let inputs = built.inputs(Packing::Cheapest);
    let plan = decide(&inputs);
    assert_eq!(plan.pending, []);
    let mut snapshot = built.snapshot.clone();
    carry_out(&plan, &mut snapshot, &built.catalog, &built.classes, inputs.now);
    snapshot.nodes.clear();
    for claim in &mut snapshot.node_claims {
        let step = plan.steps.iter().find(|step| claim.metadata.name.as_ref() == Some(&step.node_claim)).unwrap();
        claim.metadata.annotations.get_or_insert_default().insert(keys::PODS.to_owned(), step.pods.join(","));
        claim.metadata.labels.get_or_insert_default().remove(keys::INITIALIZED);
        let status = claim.status.get_or_insert_default();
        status.node_name = None;
        status.conditions.retain(|condition| condition.type_ == "Launched");
    }
    snapshot.pods = built.snapshot.pods.clone();
    snapshot
}

/// Zones that a spread counts, and in which no node can be had for the pods: it is too small there, or a limit forbids it. The plan goes by
/// the domains that have a node, and so does the next one.
#[test]
fn pods_are_expected_where_nodes_were_bought_for_them() {
    let spread = json!({ "topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchExpressions": [{ "key": "app", "operator": "Exists" }] },
    }] });
    let pods = |cpu: &str| (0..3).map(|it| pod(&format!("web-{it}"), json!({ "cpu": cpu }), spread.clone())).collect();
    let sold_in = |name: &str, cpu: u32, zone: &str| {
        let mut sold = instance_type(name, cpu);
        sold["requirements"][ZONE] = json!([zone]);
        sold["offerings"].as_array_mut().unwrap().retain(|offering| offering["zone"] == zone);
        sold
    };
    let small = vec![sold_in("m.large", 2, "zone-a"), sold_in("m.xlarge", 4, "zone-b")];
    let too_small = cluster_of(json!({}), small, pods("2500m"));
    let limited = cluster_of(json!({ "cpu": "4" }), vec![instance_type("m.xlarge", 4)], pods("1"));
    for built in [too_small, limited] {
        let snapshot = on_its_way(&built);
        let inputs = Inputs { snapshot: &snapshot, ..built.inputs(Packing::Cheapest) };
        let plan = decide(&inputs);
        assert_eq!(plan.pending, []);
        assert!(plan.steps.is_empty());
        assert_eq!(plan.placements.len(), 3);
        assert_eq!(check(&plan, &inputs), []);
    }
}

#[test]
fn consolidation_comes_to_an_end_and_never_goes_in_circles() {
    for_worlds(32, |built| settles(built, Packing::Cheapest));
}

#[test]
fn consolidation_in_the_way_of_karpenter_comes_to_an_end() {
    for_worlds(32, |built| settles(built, Packing::Karpenter));
}
