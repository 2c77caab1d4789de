//! A lower bound on the price of a fleet: no way to buy for the same pods can cost less.
//!
//! Two bounds, of which the larger counts. For one class alone, covering n pods with nodes that hold k each is solved
//! exactly by dynamic programming, whole nodes included. For all classes together, the linear program of
//! [`super::cheapest::dual`] bounds the fleet from below.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::model::HourlyPrice;
use crate::core::scheduler::vectors::{self, Vector};
use crate::core::scheduler::{ClassIndex, Problem};

use super::cheapest::dual::{Bin, Filling, Item};
use super::cheapest::market::{Offer, most_per_node, number, offers, prices};
use super::cheapest::weights::{as_number, weights};

/// More pods than this of one class are bounded by the linear program alone: its error shrinks as they grow.
const EXACT_PODS_MAX: usize = 20_000;

/// The least that new nodes for the demand can cost, when nodes that exist (but those removed) give all their free room
/// for nothing. `None` when a class can not be hosted at all. O(classes x offers + pods of the largest class x offers).
pub fn lower_bound(
    problem: &Problem<'_>,
    demand: &BTreeMap<ClassIndex, usize>,
    removed: &BTreeSet<usize>,
) -> Option<HourlyPrice> {
    // The last variant has given up every preference, so it is the least that a class can ask for.
    let variants =
        demand.keys().filter_map(|class| Some((*class, *problem.classes[*class].variants.last()?))).collect();
    let weights = weights(problem, &variants);
    if weights.len() < demand.len() {
        return None;
    }
    let classes: Vec<ClassIndex> = demand.keys().copied().collect();
    let counts: Vec<usize> = demand.values().copied().collect();
    let most: BTreeMap<ClassIndex, usize> =
        variants.iter().map(|(class, variant)| (*class, most_per_node(problem, *class, *variant))).collect();
    let offers = offers(problem, &classes, &variants, None);
    let free = free_room(problem, removed);
    let mut best = HourlyPrice::ZERO;
    for (position, class) in classes.iter().enumerate() {
        let request = &problem.classes[*class].request;
        let elsewhere: usize = free.iter().map(|free| vectors::copies(request, free, counts[position])).sum();
        let left = counts[position].saturating_sub(elsewhere);
        if left <= EXACT_PODS_MAX {
            best = best.max(exact(&offers, position, request, left, most[class]));
        }
    }
    let start: Vec<f64> = weights.values().copied().collect();
    let priced = prices(problem, &classes, &counts, &offers, &most, &start);
    let for_nothing = worth_of_free(problem, &classes, &counts, &priced.per_pod, &free);
    // Rounded down by more than the arithmetic can be off, so that it stays a bound.
    let bound = (priced.bound - for_nothing).max(0.0) * (1.0 - 1e-9);
    Some(best.max(HourlyPrice::from_dollars(bound).unwrap_or(HourlyPrice::ZERO)))
}

fn free_room<'p>(problem: &'p Problem<'_>, removed: &BTreeSet<usize>) -> Vec<&'p Vector> {
    let staying =
        problem.nodes.iter().enumerate().filter(|(host, node)| !node.being_removed && !removed.contains(host));
    staying.map(|(_, node)| &node.free).collect()
}

/// The cheapest whole nodes that hold `count` pods of one class.
fn exact(offers: &[Offer], position: usize, request: &[i64], count: usize, most: usize) -> HourlyPrice {
    let mut by_size: BTreeMap<usize, HourlyPrice> = BTreeMap::new();
    for offer in offers.iter().filter(|offer| offer.allowed[position] != 0) {
        let holds = vectors::copies(request, &offer.room, count.min(most));
        let price = by_size.entry(holds).or_insert(HourlyPrice::MAX);
        *price = (*price).min(offer.price);
    }
    // A larger node for no more money makes a smaller one superfluous.
    let mut useful: Vec<(usize, HourlyPrice)> = Vec::new();
    for (holds, price) in by_size.into_iter().rev().filter(|(holds, _)| *holds > 0) {
        if useful.last().is_none_or(|(_, larger)| price < *larger) {
            useful.push((holds, price));
        }
    }
    let mut least = vec![HourlyPrice::ZERO; count + 1];
    for pods in 1..=count {
        let options = useful.iter().map(|(holds, price)| least[pods.saturating_sub(*holds)] + *price);
        least[pods] = options.min().unwrap_or(HourlyPrice::MAX);
    }
    least[count]
}

/// What the room that is there could be filled with, at these prices.
fn worth_of_free(
    problem: &Problem<'_>,
    classes: &[ClassIndex],
    counts: &[usize],
    per_pod: &[f64],
    free: &[&Vector],
) -> f64 {
    let items: Vec<Item> = classes
        .iter()
        .map(|class| Item {
            count: 0.0,
            request: problem.classes[*class].request.iter().copied().map(as_number).collect(),
        })
        .collect();
    let worth = |room: &&Vector| {
        let held = classes.iter().enumerate().map(|(position, class)| {
            (position, number(vectors::copies(&problem.classes[*class].request, room, counts[position])))
        });
        let bin = Bin {
            price: 0.0,
            room: room.iter().copied().map(as_number).collect(),
            items: held.filter(|(_, most)| *most > 0.0).collect(),
        };
        let mut filling = Filling::new(&bin);
        filling.fill(&items, &bin, per_pod);
        filling.refine(&items, &bin, per_pod);
        filling.worth
    };
    free.iter().map(worth).sum()
}
