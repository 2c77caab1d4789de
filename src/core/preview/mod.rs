//! The plan of a head beside the plan of its base, as the figures of a preview (`api::preview`): what the change causes, and what was so
//! anyway.

mod apart;
mod digest;
mod reasons;

use std::collections::BTreeSet;

use crate::model::HourlyPrice;
use crate::plan::{NodeCounts, NoteCode, Plan, Step, StepKind};
use crate::snapshot::Snapshot;
use cutlist_api::preview::{PreviewCount, PreviewFigures, PreviewPlan};

pub use apart::{ByCause, held_back, pending, risks};
pub use digest::{DIGEST_DIGITS, digest, hash_of_texts};
pub use reasons::{other_reasons, with_reasons_of_base};

/// Notes that say what the prices are worth.
const ASSUMPTIONS: [NoteCode; 7] = [
    NoteCode::NodeOverlayApplied,
    NoteCode::PriceUnknown,
    NoteCode::PricesOfOtherRegion,
    NoteCode::RegionAssumed,
    NoteCode::SpotPricesAssumed,
    NoteCode::UnknownInstanceTypes,
    NoteCode::WindowsPricedAsLinux,
];

/// How the plan is named, and what identifies what it decides.
pub fn identity(plan: &Plan) -> PreviewPlan {
    let base_id = plan.against.as_ref().map(|against| against.plan_id.clone());
    PreviewPlan { id: plan.id.clone(), digest: digest(plan), base_id }
}

/// The figures of a plan that was compared with that of its base ([`crate::plan::compare`]). Without a base everything counts as
/// the change's.
pub fn figures(plan: &Plan) -> PreviewFigures {
    let summary = &plan.summary;
    let caused = caused_steps(plan).count() + steps_taken_away(plan).len();
    PreviewFigures {
        nodes_before: number(summary.nodes_before),
        nodes_after: number(summary.nodes_after),
        nodes_created: number(summary.nodes_created),
        nodes_replaced: number(summary.nodes_replaced),
        nodes_removed: number(summary.nodes_removed),
        pods_moved: number(summary.pods_disrupted),
        pods_placed: number(summary.pods_placed),
        pods_pending: number(summary.pods_pending),
        price_per_hour_before: summary.price_per_hour_before.dollars(),
        price_per_hour_after: summary.price_per_hour_after.dollars(),
        price_per_hour_of_the_change: price_of_the_change(plan).dollars(),
        steps_of_the_change: number(caused),
        assumptions: assumptions(plan),
    }
}

fn assumptions(plan: &Plan) -> Vec<String> {
    let day = format!("list prices of {}, without discounts, Savings Plans and traffic", plan.catalog_date);
    let of_notes = plan.notes.iter().filter(|note| ASSUMPTIONS.contains(&note.code)).map(|note| note.text.clone());
    std::iter::once(day).chain(of_notes).collect()
}

/// Steps that the base does not plan. A replacement is among them as a whole, with the nodes that the base replaces in another way: half of
/// it is nothing that either plan does. What the base does with them instead is among the steps that are taken away.
pub fn caused_steps(plan: &Plan) -> impl Iterator<Item = &Step> + Clone {
    plan.steps.iter().filter(|step| step.also_in_base != Some(true))
}

/// The other steps: they would be done without the change as well.
pub fn steps_anyway(plan: &Plan) -> Vec<&Step> {
    plan.steps.iter().filter(|step| step.also_in_base == Some(true)).collect()
}

/// Whether any node comes or goes without the change as well.
pub fn happens_anyway(plan: &Plan) -> bool {
    !steps_anyway(plan).is_empty() || Effect::of_change(plan).going_anyway > 0
}

/// Steps that the base plans and the head does not.
pub fn steps_taken_away(plan: &Plan) -> &[Step] {
    plan.against.as_ref().map_or(&[], |against| &against.steps_no_longer_planned)
}

/// What the head costs more than the base would.
pub fn price_of_the_change(plan: &Plan) -> HourlyPrice {
    let summary = &plan.summary;
    let base = plan.against.as_ref().map_or(summary.price_per_hour_before, |base| base.summary.price_per_hour_after);
    summary.price_per_hour_after - base
}

/// What the change does to the nodes and to the pods on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    pub nodes: NodeCounts,
    /// Of those that go, the nodes that the base would let go as well, in another way.
    pub going_anyway: usize,
    /// Running pods on the nodes that go.
    pub pods_moved: usize,
    /// What the base would do, and the change takes away.
    pub taken_away: NodeCounts,
    /// What comes less what goes, and less what the base would have made of it.
    pub price_per_hour: HourlyPrice,
}

impl Effect {
    /// Of these steps together, and of these of the base that are no longer done.
    pub fn of<'a>(
        steps: impl IntoIterator<Item = &'a Step> + Clone,
        taken_away: impl IntoIterator<Item = &'a Step> + Clone,
    ) -> Self {
        let goes = |step: &&Step| step.kind == StepKind::Remove;
        let gone: Vec<&Step> = steps.clone().into_iter().filter(goes).collect();
        let of_base = taken_away.clone().into_iter().filter(goes);
        let of_base: BTreeSet<_> = of_base.map(|step| (&step.node_claim, &step.node)).collect();
        Self {
            nodes: NodeCounts::of(steps.clone()),
            going_anyway: gone.iter().filter(|step| of_base.contains(&(&step.node_claim, &step.node))).count(),
            pods_moved: gone.iter().map(|step| step.pods.len()).sum(),
            taken_away: NodeCounts::of(taken_away.clone()),
            price_per_hour: price(steps) - price(taken_away),
        }
    }

    /// Of all that the change causes. The price is that of the fleets: what the same nodes cost by other prices is in it.
    pub fn of_change(plan: &Plan) -> Self {
        let caused: Vec<&Step> = caused_steps(plan).collect();
        let effect = Self::of(caused.iter().copied(), steps_taken_away(plan));
        Self { price_per_hour: price_of_the_change(plan), ..effect }
    }
}

/// What steps add to the price of the fleet.
fn price<'a>(steps: impl IntoIterator<Item = &'a Step>) -> HourlyPrice {
    let of_step = |step: &Step| match step.kind {
        StepKind::Create => step.price_per_hour,
        StepKind::Remove => -step.price_per_hour,
        StepKind::Adopt | StepKind::Hold => HourlyPrice::ZERO,
    };
    steps.into_iter().map(of_step).sum()
}

/// Whether the change makes any difference: to what is done and why, to what waits, to what stays, or to what it costs.
pub fn has_effect(plan: &Plan, base: &Plan) -> bool {
    let waits =
        |plan: &Plan| -> BTreeSet<String> { plan.pending.iter().flat_map(|it| it.pods.iter().cloned()).collect() };
    let stays = |plan: &Plan| -> BTreeSet<(String, String)> {
        plan.held_back.iter().map(|it| (it.node.clone(), format!("{:?}", it.code))).collect()
    };
    Effect::of_change(plan) != Effect::default()
        || waits(plan) != waits(base)
        || stays(plan) != stays(base)
        || plan.placements != base.placements
        || !other_reasons(plan, base).is_empty()
}

/// Counts of what is alike, for a plan and its base on one cluster.
pub fn counts(plan: &Plan, base: Option<&Plan>, snapshot: &Snapshot) -> [Vec<PreviewCount>; 3] {
    [
        apart::counts_of_risks(plan, base),
        apart::counts_of_held_back(plan, base, snapshot),
        apart::counts_of_pending(plan, base),
    ]
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
