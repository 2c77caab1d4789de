//! What one pod is worth: the least that it could cost on a node filled with pods of its own kind.
//!
//! For a fleet of one class this is the optimum of the linear program of the lower bound; for mixes it is the guide
//! that the greedy choice needs: which of two patterns saves more money elsewhere.

use std::collections::BTreeMap;

use crate::model::HourlyPrice;
use crate::programs::as_number;
use crate::scheduler::Problem;
use crate::scheduler::vectors::Vector;

use super::kinds::SizeClass;

/// By kind: dollars per hour for one pod; `None` when nothing can host it.
/// O(compatibilities x variants x templates x types + kinds x types that no other one beats).
pub fn weights(problem: &Problem<'_>, kinds: &[SizeClass]) -> Vec<Option<f64>> {
    let mut rooms: BTreeMap<usize, [Vec<PricedRoom<'_>>; 2]> = BTreeMap::new();
    let weight = |kind: &SizeClass| {
        // What is reserved costs next to nothing, but only so much of it is there.
        let rooms = rooms
            .entry(kind.compatibility)
            .or_insert_with(|| [false, true].map(|reserved| rooms_for(problem, kind, reserved)));
        rooms.iter().find_map(|rooms| least_cost(kind, rooms))
    };
    kinds.iter().map(weight).collect()
}

/// A type that is for sale: what a node of it costs, and what it has room for.
type PricedRoom<'p> = (HourlyPrice, &'p Vector);

/// Cheapest first, without types that a cheaper one has more room than.
fn rooms_for<'p>(problem: &'p Problem<'_>, kind: &SizeClass, reserved: bool) -> Vec<PricedRoom<'p>> {
    let mut all: Vec<PricedRoom<'_>> = Vec::new();
    for variant in &kind.variants {
        let templates = problem.templates.enumerated();
        for (position, template) in templates.filter(|(_, template)| template.is_reserved() == reserved) {
            let Ok(set) = problem.purchasable(*variant, position) else { continue };
            // Types stand in the order of their cheapest price, which is not always one that the kind can have.
            let prices = template
                .offerings
                .offered(set)
                .map(|(instance_type, entry)| (entry.cheapest(set.slots), instance_type));
            all.extend(prices.filter_map(|(cheapest, instance_type)| {
                Some((cheapest?.1 + template.cost_beside, &template.room[instance_type]))
            }));
        }
    }
    all.sort_by_key(|(price, _)| *price);
    let mut kept: Vec<PricedRoom<'_>> = Vec::new();
    for (price, room) in all {
        if !kept.iter().any(|(_, larger)| room.iter().zip(larger.iter()).all(|(room, larger)| room <= larger)) {
            kept.push((price, room));
        }
    }
    kept
}

fn least_cost(kind: &SizeClass, rooms: &[PricedRoom<'_>]) -> Option<f64> {
    let costs = rooms.iter().map(|(price, room)| (price.dollars(), share(&kind.request, room)));
    costs.filter(|(_, share)| *share <= 1.0).map(|(price, share)| price * share).min_by(f64::total_cmp)
}

/// The part of a node that one pod takes, in its scarcest resource; infinite where it does not fit.
pub fn share(request: &[i64], room: &[i64]) -> f64 {
    let mut most: f64 = 0.0;
    for (request, room) in request.iter().zip(room).filter(|(request, _)| **request > 0) {
        most = if *room <= 0 { f64::INFINITY } else { most.max(as_number(*request) / as_number(*room)) };
    }
    most
}
