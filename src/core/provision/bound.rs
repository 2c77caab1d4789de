//! A lower bound on the price of a fleet: no way to buy for the same pods can cost less.
//!
//! Two bounds, of which the larger counts. For one class alone, covering n pods with nodes that hold k each is solved
//! exactly by dynamic programming, whole nodes included. For all classes together, any price per pod that no offering can
//! be filled for at a profit is a feasible solution of the dual linear program, so what the pods are worth at these
//! prices bounds the fleet from below.

use std::collections::BTreeMap;

use crate::core::model::HourlyPrice;
use crate::core::scheduler::vectors::{self, Vector};
use crate::core::scheduler::{ClassIndex, Problem};

use super::cheapest::weights::{as_number, weights};

/// More pods than this of one class are bounded by the linear program alone: its error shrinks as they grow.
const EXACT_PODS_MAX: usize = 20_000;

/// The least that new nodes for the demand can cost, when nodes that exist (but those removed) give all their free room
/// for nothing. `None` when a class can not be hosted at all. O(classes x offers + pods of the largest class x offers).
pub fn lower_bound(
    problem: &Problem<'_>,
    demand: &BTreeMap<ClassIndex, usize>,
    removed: &[usize],
) -> Option<HourlyPrice> {
    // The last variant has given up every preference, so it is the least that a class can ask for.
    let variants =
        demand.keys().filter_map(|class| Some((*class, *problem.classes[*class].variants.last()?))).collect();
    let weights = weights(problem, &variants);
    let offers = offers(problem, demand, &variants);
    let free: Vec<&Vector> = free_room(problem, removed);
    let mut best = HourlyPrice::ZERO;
    for (class, count) in demand {
        let request = &problem.classes[*class].request;
        let elsewhere: usize = free.iter().map(|free| vectors::copies(request, free, *count)).sum();
        let left = count.saturating_sub(elsewhere);
        weights.get(class)?;
        if left <= EXACT_PODS_MAX {
            best = best.max(exact(&offers, *class, request, left));
        }
    }
    best = best.max(dual(problem, demand, &weights, &offers, &free));
    Some(best)
}

struct Offer {
    price: HourlyPrice,
    room: Vector,
    /// Classes that it may hold.
    classes: Vec<ClassIndex>,
}

fn free_room<'p>(problem: &'p Problem<'_>, removed: &[usize]) -> Vec<&'p Vector> {
    let staying =
        problem.nodes.iter().enumerate().filter(|(host, node)| !node.being_removed && !removed.contains(host));
    staying.map(|(_, node)| &node.free).collect()
}

fn offers(
    problem: &Problem<'_>,
    demand: &BTreeMap<ClassIndex, usize>,
    variants: &BTreeMap<ClassIndex, usize>,
) -> Vec<Offer> {
    let mut offers = Vec::new();
    for (index, template) in problem.templates.iter().enumerate() {
        for (position, entry) in template.offerings.offered(&template.set) {
            let fits = |class: &&ClassIndex| {
                let allowed = problem
                    .fit_of_template(variants[*class], index)
                    .as_ref()
                    .is_ok_and(|set| set.types.contains(position) && set.slots & entry.available != 0);
                let mut room = entry.allocatable.clone();
                vectors::add(&mut room, &template.daemon_overhead[position], -1);
                allowed && vectors::fits(&problem.classes[**class].request, &room)
            };
            let classes: Vec<ClassIndex> = demand.keys().filter(fits).copied().collect();
            let Some((_, price)) = entry.cheapest(template.set.slots).filter(|_| !classes.is_empty()) else { continue };
            let mut room = entry.allocatable.clone();
            vectors::add(&mut room, &template.daemon_overhead[position], -1);
            offers.push(Offer { price, room, classes });
        }
    }
    offers
}

/// The cheapest whole nodes that hold `count` pods of one class.
fn exact(offers: &[Offer], class: ClassIndex, request: &[i64], count: usize) -> HourlyPrice {
    let mut by_size: BTreeMap<usize, HourlyPrice> = BTreeMap::new();
    for offer in offers.iter().filter(|offer| offer.classes.contains(&class)) {
        let holds = vectors::copies(request, &offer.room, count);
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

/// The worth of all pods at prices that no offering beats, less what the room that is there could be filled with.
fn dual(
    problem: &Problem<'_>,
    demand: &BTreeMap<ClassIndex, usize>,
    weights: &BTreeMap<ClassIndex, f64>,
    offers: &[Offer],
    free: &[&Vector],
) -> HourlyPrice {
    let most_worth = |room: &[i64], classes: &mut dyn Iterator<Item = ClassIndex>| {
        let classes: Vec<(f64, &[i64], usize)> =
            classes.map(|class| (weights[&class], &*problem.classes[class].request, demand[&class])).collect();
        fractional_worth(room, &classes)
    };
    // Scaled so that the best filled offering is worth just its price.
    let ratios = offers.iter().map(|offer| {
        most_worth(&offer.room, &mut offer.classes.iter().copied()) / offer.price.dollars().max(f64::MIN_POSITIVE)
    });
    let scale = ratios.fold(1.0_f64, f64::max);
    let total: f64 =
        demand.iter().map(|(class, count)| weights[class] * as_number(i64::try_from(*count).unwrap_or(i64::MAX))).sum();
    let for_nothing: f64 = free.iter().map(|room| most_worth(room, &mut demand.keys().copied())).sum();
    let bound = ((total - for_nothing) / scale).max(0.0);
    // Rounded down by more than the arithmetic can be off, so that it stays a bound.
    HourlyPrice::from_dollars(bound * (1.0 - 1e-9)).unwrap_or(HourlyPrice::ZERO)
}

/// An upper bound on what room can be filled with: for each resource alone, pods by worth per amount, the last one in
/// part; the least of these. Each resource is a relaxation, so the least of them still is one.
fn fractional_worth(room: &[i64], classes: &[(f64, &[i64], usize)]) -> f64 {
    let mut least = f64::INFINITY;
    for dimension in 0..room.len() {
        let mut by_density: Vec<(f64, f64, f64)> = Vec::new();
        let mut worth = 0.0;
        for (weight, request, count) in classes {
            let most = vectors::copies(request, room, *count);
            let amount = as_number(request[dimension]);
            let pods = as_number(i64::try_from(most).unwrap_or(i64::MAX));
            if amount <= 0.0 {
                worth += weight * pods;
            } else {
                by_density.push((weight / amount, amount, pods));
            }
        }
        by_density.sort_by(|one, two| two.0.total_cmp(&one.0));
        let mut left = as_number(room[dimension].max(0));
        for (density, amount, pods) in by_density {
            let used = (amount * pods).min(left);
            worth += density * used;
            left -= used;
        }
        least = least.min(worth);
    }
    if least.is_finite() { least } else { 0.0 }
}
