//! The figures at the end of a plan, counted again.

use crate::model::HourlyPrice;
use crate::plan::{Plan, ReasonCode, StepKind};

use super::buffers::stands_for_room;
use super::known::Known;
use super::steps::{moves_with, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    counts(plan, known, findings);
    prices(plan, known, findings);
}

fn counts(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let summary = &plan.summary;
    let count = |kind| steps(plan, kind).count();
    let moves_that_create = moves_with(plan, StepKind::Create);
    let moves_that_remove = moves_with(plan, StepKind::Remove);
    let alone = steps(plan, StepKind::Create).filter(|step| !moves_that_remove.contains(&step.move_number)).count();
    let replaced = steps(plan, StepKind::Remove).filter(|step| moves_that_create.contains(&step.move_number)).count();
    let before = known.nodes.len();
    let leaving = known.nodes.values().filter(|existing| existing.going).count();
    let was_pending = |pod: &&String| known.pods.get(*pod).is_some_and(|pod| pod.spec.node_name.is_none());
    let of_creations = steps(plan, StepKind::Create).flat_map(|step| &step.pods);
    let goes_somewhere = plan.placements.iter().map(|placement| &placement.pod).chain(of_creations).filter(was_pending);
    let (buffer_placed, placed): (Vec<&String>, Vec<&String>) = goes_somewhere.partition(|pod| stands_for_room(pod));
    let stays = plan.pending.iter().flat_map(|pending| &pending.pods);
    let (buffer_pending, pending): (Vec<&String>, Vec<&String>) = stays.partition(|pod| stands_for_room(pod));
    let disrupted = steps(plan, StepKind::Remove).map(|step| step.pods.len()).sum();
    let figures = [
        ("nodesBefore", summary.nodes_before, before),
        (
            "nodesAfter",
            summary.nodes_after,
            (before + count(StepKind::Create)).saturating_sub(count(StepKind::Remove) + leaving),
        ),
        ("nodesLeaving", summary.nodes_leaving, leaving),
        ("nodesCreated", summary.nodes_created, alone),
        ("nodesReplaced", summary.nodes_replaced, replaced),
        ("nodesRemoved", summary.nodes_removed, count(StepKind::Remove) - replaced),
        ("podsPlaced", summary.pods_placed, placed.len()),
        ("podsPending", summary.pods_pending, pending.len()),
        ("bufferPodsPlaced", summary.buffer_pods_placed, buffer_placed.len()),
        ("bufferPodsPending", summary.buffer_pods_pending, buffer_pending.len()),
        ("podsDisrupted", summary.pods_disrupted, disrupted),
    ];
    for (name, stated, counted) in figures.into_iter().filter(|(_, stated, counted)| stated != counted) {
        findings.add(
            ViolationCode::WrongSummary,
            ViolationPlace::Field("summary"),
            format!("{name} is {counted}, not {stated}"),
        );
    }
    if summary.candidates_examined > summary.candidates {
        findings.add(
            ViolationCode::WrongSummary,
            ViolationPlace::Field("summary"),
            "more candidates examined than there are",
        );
    }
}

/// Nodes at what the catalog asks for their type, zone and capacity type; unknown ones cost nothing.
fn prices(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let summary = &plan.summary;
    let price_of = |kind| steps(plan, kind).map(|step| step.price_per_hour).sum::<HourlyPrice>();
    let nodes = || known.nodes.values();
    let before: HourlyPrice = nodes().filter_map(|existing| known.price_of(existing)).sum();
    let leaving: HourlyPrice =
        nodes().filter(|existing| existing.going).filter_map(|existing| known.price_of(existing)).sum();
    let after = before + price_of(StepKind::Create) - price_of(StepKind::Remove) - leaving;
    for (name, stated, counted) in [
        ("pricePerHourBefore", summary.price_per_hour_before, before),
        ("pricePerHourAfter", summary.price_per_hour_after, after),
    ] {
        if stated != counted {
            findings.add(
                ViolationCode::WrongSummary,
                ViolationPlace::Field("summary"),
                format!("{name} is {counted}, not {stated}"),
            );
        }
    }
    let only_provisions = plan.steps.iter().all(|step| step.reason.code == ReasonCode::PodsPending);
    if only_provisions && summary.nodes_before == 0 && summary.lower_bound_price_per_hour > Some(after) {
        let text = format!("the lower bound is above what the fleet costs, {after}");
        findings.add(ViolationCode::WrongSummary, ViolationPlace::Field("summary"), text);
    }
}
