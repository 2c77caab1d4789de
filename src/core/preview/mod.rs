//! The plan of a head beside the plan of its base, as the figures of a preview (`api::preview`): what the change causes, and what was so
//! anyway.

mod apart;
mod digest;

use std::collections::BTreeSet;

use crate::api::preview::{PreviewCount, PreviewFigures, PreviewPlan};
use crate::core::model::HourlyPrice;
use crate::core::plan::{NoteCode, Plan, Step, StepKind};
use crate::core::snapshot::Snapshot;

pub use apart::{Apart, held_back, pending, risks};
pub use digest::digest;

/// Notes that say what the prices are worth.
const ASSUMPTIONS: [NoteCode; 6] = [
    NoteCode::NodeOverlayApplied,
    NoteCode::PriceUnknown,
    NoteCode::PricesOfOtherRegion,
    NoteCode::RegionAssumed,
    NoteCode::SpotPricesAssumed,
    NoteCode::UnknownInstanceTypes,
];

/// How the plan is named, and what identifies what it decides.
pub fn identity(plan: &Plan) -> PreviewPlan {
    let base_id = plan.against.as_ref().map(|against| against.plan_id.clone());
    PreviewPlan { id: plan.id.clone(), digest: digest(plan), base_id }
}

/// The figures of a plan that was compared with that of its base ([`crate::core::plan::compare`]). Without a base everything counts as
/// the change's.
pub fn figures(plan: &Plan) -> PreviewFigures {
    let summary = &plan.summary;
    let base_after =
        plan.against.as_ref().map_or(summary.price_per_hour_before, |base| base.summary.price_per_hour_after);
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
        price_per_hour_of_the_change: (summary.price_per_hour_after - base_after).dollars(),
        steps_of_the_change: number(caused),
        assumptions: assumptions(plan),
    }
}

fn assumptions(plan: &Plan) -> Vec<String> {
    let day = format!("list prices of {}, without discounts, Savings Plans and traffic", plan.catalog_date);
    let of_notes = plan.notes.iter().filter(|note| ASSUMPTIONS.contains(&note.code)).map(|note| note.text.clone());
    std::iter::once(day).chain(of_notes).collect()
}

/// Steps of a move that the base does not plan, too. A move is the change's as soon as one of its steps is.
pub fn caused_steps(plan: &Plan) -> impl Iterator<Item = &Step> {
    let moves: BTreeSet<u32> =
        plan.steps.iter().filter(|step| step.also_in_base != Some(true)).map(|step| step.move_number).collect();
    plan.steps.iter().filter(move |step| moves.contains(&step.move_number))
}

/// The other steps: they would be done without the change as well.
pub fn steps_anyway(plan: &Plan) -> Vec<&Step> {
    let caused: BTreeSet<u32> = caused_steps(plan).map(|step| step.move_number).collect();
    plan.steps.iter().filter(|step| !caused.contains(&step.move_number)).collect()
}

/// Steps that the base plans and the head does not.
pub fn steps_taken_away(plan: &Plan) -> &[Step] {
    plan.against.as_ref().map_or(&[], |against| &against.steps_no_longer_planned)
}

/// What the change does to the nodes and to the pods on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    pub created: usize,
    pub removed: usize,
    pub adopted: usize,
    /// Removals that wait for a confirmation.
    pub held: usize,
    /// Running pods that move because of it.
    pub pods_moved: usize,
    /// Creations, removals and the like of the base that it takes away.
    pub taken_away: usize,
    /// Of the steps alone: what comes less what goes.
    pub price_per_hour: HourlyPrice,
}

impl Effect {
    /// Of these steps together.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Self {
        let mut effect = Self::default();
        for step in steps {
            match step.kind {
                StepKind::Create => {
                    effect.created += 1;
                    effect.price_per_hour += step.price_per_hour;
                }
                StepKind::Remove => {
                    effect.removed += 1;
                    effect.pods_moved += step.pods.len();
                    effect.price_per_hour -= step.price_per_hour;
                }
                StepKind::Adopt => effect.adopted += 1,
                StepKind::Hold => effect.held += 1,
            }
        }
        effect
    }

    /// Of all that the change causes.
    pub fn of_change(plan: &Plan) -> Self {
        Self { taken_away: steps_taken_away(plan).len(), ..Self::of(caused_steps(plan)) }
    }
}

/// Whether the change makes any difference: to what is done, to what waits, to what stays, or to what it costs.
pub fn has_effect(plan: &Plan, base: &Plan) -> bool {
    let waits =
        |plan: &Plan| -> BTreeSet<String> { plan.pending.iter().flat_map(|it| it.pods.iter().cloned()).collect() };
    let stays = |plan: &Plan| -> BTreeSet<(String, String)> {
        plan.held_back.iter().map(|it| (it.node.clone(), format!("{:?}", it.code))).collect()
    };
    Effect::of_change(plan) != Effect::default()
        || plan.summary.price_per_hour_after != base.summary.price_per_hour_after
        || waits(plan) != waits(base)
        || stays(plan) != stays(base)
        || plan.placements != base.placements
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
