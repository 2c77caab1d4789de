//! What one pod is worth: the least that it could cost on a node filled with pods of its own kind.
//!
//! For a fleet of one class this is the optimum of the linear program of the lower bound; for mixes it is the guide
//! that the greedy choice needs: which of two patterns saves more money elsewhere.

use crate::core::scheduler::Problem;

use super::kinds::Kind;

/// Dollars per hour for one pod of the kind; `None` when nothing can host it. O(variants x templates x types).
pub fn weight(problem: &Problem<'_>, kind: &Kind) -> Option<f64> {
    // What is reserved costs next to nothing, but only so much of it is there.
    least_cost(problem, kind, false).or_else(|| least_cost(problem, kind, true))
}

fn least_cost(problem: &Problem<'_>, kind: &Kind, reserved: bool) -> Option<f64> {
    let mut least: Option<f64> = None;
    for variant in &kind.variants {
        let templates = problem.templates.iter().enumerate();
        for (position, template) in templates.filter(|(_, template)| template.is_reserved() == reserved) {
            let Ok(set) = problem.purchasable(*variant, position) else { continue };
            for (instance_type, entry) in template.offerings.offered(set) {
                let share = share(&kind.request, &template.room[instance_type]);
                // Types stand in the order of their cheapest price, which is not always one that the kind can have.
                if share <= 1.0
                    && let Some((_, price)) = entry.cheapest(set.slots)
                {
                    let cost = price.dollars() * share;
                    least = Some(least.map_or(cost, |least| least.min(cost)));
                }
            }
        }
    }
    least
}

/// The part of a node that one pod takes, in its scarcest resource; infinite where it does not fit.
pub fn share(request: &[i64], room: &[i64]) -> f64 {
    let mut most: f64 = 0.0;
    for (request, room) in request.iter().zip(room).filter(|(request, _)| **request > 0) {
        most = if *room <= 0 { f64::INFINITY } else { most.max(as_number(*request) / as_number(*room)) };
    }
    most
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of amounts; fifteen digits are plenty for a guide")]
pub fn as_number(amount: i64) -> f64 {
    amount as f64
}
