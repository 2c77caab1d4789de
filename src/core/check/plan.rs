//! A whole plan against the inputs it was made from.

use rayon::prelude::*;

use crate::inputs::Inputs;
use crate::plan::Plan;

use super::known::Known;
use super::placements::{LooksMax, Untried};
use super::violation::{Findings, Violation};
use super::{
    adoptions, budgets, buffers, concentration, costs, creations, disks, overlays, placements, removals, rollouts,
    spread_defaults, structure, summary, worth,
};

/// Everything in `plan` that breaks a rule of Kubernetes, of Karpenter's definitions or of the plan format; empty when
/// the plan is valid. Sorted by code and place. Takes O(pods x nodes) where pods have affinity or spread constraints.
pub fn check(plan: &Plan, inputs: &Inputs<'_>) -> Vec<Violation> {
    check_within(plan, inputs, LooksMax::NONE).violations
}

/// What was found, and what was not looked for.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub violations: Vec<Violation>,
    pub untried: Untried,
}

/// The same, where places are judged as far as so many looks at nodes and pods last.
pub(super) fn check_within(plan: &Plan, inputs: &Inputs<'_>, looks_max: LooksMax) -> Judgement {
    let priced = overlays::with_prices_of_previews(inputs);
    let inputs = &Inputs { catalog: priced.as_ref().unwrap_or(inputs.catalog), ..inputs.clone() };
    let with_buffers = buffers::written_out(inputs);
    let inputs = &Inputs { snapshot: &with_buffers, ..inputs.clone() };
    let snapshot = spread_defaults::written_out(inputs);
    let inputs = &Inputs { snapshot: &snapshot, ..inputs.clone() };
    let known = Known::new(plan, inputs);
    let run = |check: &Check| {
        let mut findings = Findings::default();
        check(plan, &known, &mut findings);
        findings
    };
    let of_places = || {
        let mut findings = Findings::default();
        let untried = placements::check(plan, &known, looks_max, &mut findings);
        (findings, untried)
    };
    let of_all_else = || CHECKS.par_iter().map(run).collect::<Vec<Findings>>();
    let ((places, untried), mut all) = rayon::join(of_places, of_all_else);
    all.push(places);
    Judgement { violations: Findings::sorted(all), untried }
}

type Check = fn(&Plan, &Known<'_>, &mut Findings);

/// Each looks at the plan for itself, on whichever processor is free. The places of pods come beside them.
const CHECKS: [Check; 11] = [
    structure::check,
    adoptions::check,
    creations::check,
    removals::check,
    disks::check,
    rollouts::check,
    worth::check,
    budgets::check,
    concentration::check,
    costs::check,
    summary::check,
];
