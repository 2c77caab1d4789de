//! Prices per pod from the dual of the linear program of buying whole nodes for whole classes.
//!
//! The program: buy x of each offering at its price; put y pods of each class on nodes of each offering, no more than fit
//! in each resource and no more than `most` on one node; place every pod. Its dual asks for a price per pod of each class
//! such that no offering can be filled with pods worth more than it costs. Any such prices bound the cost of the fleet
//! from below, and they are what the greedy choice needs to know: what else each pod would cost.
//!
//! Solved by ascent on the bound itself: prices move from what the most profitable offerings would be filled with
//! towards what is in demand. An offering that is nearly the most profitable counts nearly as much (a soft maximum that is
//! made sharper from round to round), or the prices would swing between two that are alike; and each price has a step of
//! its own, by how much its demand has been missed so far (Kingma and Ba 2015), or rare classes would never arrive. What
//! each offering is filled with, or bounded by where it is far from the most profitable, is a matter of [`super::filling`].
//! Where a dozen pods fill a node it matters that they are whole: there the prices climb on, against the best filling with whole
//! pods (branch and bound), which proves more than the linear program, and tells the buyer what small nodes are good for.
//! `tests/properties/lower_bound.rs` holds the result against a solver: no node can be filled with more than it costs, and the
//! bound is at least 97 % of the linear program's optimum.

use std::collections::BTreeMap;

use super::filling::{Bin, Filling, Item};
use super::market::number;

/// Prices per pod that no bin beats, by position of the item, and the bound on the fleet's cost that they prove.
#[derive(Clone, Debug)]
pub struct Prices {
    pub per_pod: Vec<f64>,
    pub bound: f64,
    /// The other side of the program: what the bins would hold.
    pub shares: Vec<Share>,
}

/// What all bins of one kind hold together.
#[derive(Clone, Debug)]
pub struct Share {
    /// Position of the bin.
    pub bin: usize,
    /// Positions of the items and how many of each; over all bins as many as are asked for.
    pub items: Vec<(usize, f64)>,
}

/// Rounds from this part on count for the shares: before, the prices are still far off.
const SHARES_FROM: f64 = 0.5;

/// The mean of what bins were filled with, which tends to the optimum of the program as the prices do.
#[derive(Default)]
struct Mean {
    /// By position of the bin and of the item: how many.
    held: BTreeMap<(usize, usize), f64>,
}

impl Mean {
    fn add(&mut self, bin: usize, bins: f64, filling: &Filling) {
        for (item, amount) in filling.taken() {
            *self.held.entry((bin, item)).or_default() += bins * amount;
        }
    }

    /// Scaled so that each item is held as often as it is asked for.
    fn shares(self, items: &[Item]) -> Vec<Share> {
        let mut totals = vec![0.0; items.len()];
        for ((_, item), held) in &self.held {
            totals[*item] += held;
        }
        let mut shares: Vec<Share> = Vec::new();
        for ((bin, item), held) in self.held {
            let amount = held / totals[item] * items[item].count;
            match shares.last_mut().filter(|share| share.bin == bin) {
                Some(share) => share.items.push((item, amount)),
                None => shares.push(Share { bin, items: vec![(item, amount)] }),
            }
        }
        shares
    }
}

/// The part of the bound that nodes must stand for which few pods fill, for whole pods to be worth looking at.
const OF_PARTS_LEAST: f64 = 0.2;

/// How often the weights of the deciding offering are improved in one round.
const REFINEMENTS: usize = 12;

/// One way to climb.
struct Stage {
    /// At most, and the work of one of them for each pair of a bin and an item.
    rounds_max: usize,
    work_of_pair: u64,
    /// How much sharper than a mean the maximum is taken: an offering that is one part in this less profitable than the best
    /// counts a third as much.
    sharpness: Schedule,
    /// The part by which a price moves in one round, at most.
    step: Schedule,
    /// Whether nodes that few pods fill are filled with whole ones.
    whole: bool,
}

const PARTS: Stage = Stage {
    rounds_max: 300,
    work_of_pair: 1,
    sharpness: Schedule { first: 40.0, last: 1500.0 },
    step: Schedule { first: 0.2, last: 0.005 },
    whole: false,
};

/// From the prices that parts of pods have led to; the first round proves as much as they did, or more.
const WHOLE: Stage = Stage {
    rounds_max: 150,
    work_of_pair: 12,
    sharpness: Schedule { first: 150.0, last: 1500.0 },
    step: Schedule { first: 0.04, last: 0.003 },
    whole: true,
};

/// How much of the past stays in the mean of what was missed, and of its square.
const MEMORY: f64 = 0.8;
const MEMORY_OF_SQUARES: f64 = 0.95;

/// Offerings that count less than this part of the best one are not worth refining, or looking at.
const WORTH_REFINING: f64 = 0.02;
const WORTH_COUNTING: f64 = 1e-4;

/// A figure that changes by the same factor from round to round.
struct Schedule {
    first: f64,
    last: f64,
}

impl Schedule {
    fn at(&self, progress: f64) -> f64 {
        self.first * (self.last / self.first).powf(progress)
    }
}

/// Maximises the bound from the given start. `work` limits the number of (bin, item) pairs looked at, refinements aside,
/// so the result depends on the inputs alone. O(rounds x bins x items x log items).
pub fn dual_prices(items: &[Item], bins: &[Bin], start: &[f64], work: u64) -> Prices {
    let mut fillings: Vec<Filling> = bins.iter().map(|bin| Filling::new(bin, items)).collect();
    let parts = climb(items, bins, &mut fillings, start, work, &PARTS);
    let worth = |share: &Share| share.items.iter().map(|(item, amount)| amount * parts.per_pod[*item]).sum::<f64>();
    let of_parts = parts.shares.iter().filter(|share| fillings[share.bin].is_of_parts());
    if of_parts.map(worth).sum::<f64>() < OF_PARTS_LEAST * parts.bound {
        return parts;
    }
    let whole = climb(items, bins, &mut fillings, &parts.per_pod, work, &WHOLE);
    if whole.bound >= parts.bound { whole } else { parts }
}

fn climb(items: &[Item], bins: &[Bin], fillings: &mut [Filling], start: &[f64], work: u64, stage: &Stage) -> Prices {
    let mut prices = start.to_vec();
    let mut best = Prices { per_pod: start.to_vec(), bound: 0.0, shares: Vec::new() };
    let mut mean = Mean::default();
    let mut missed = Missed::new(items.len());
    let pairs: usize = bins.iter().map(|bin| bin.items.len()).sum();
    let rounds = work / (pairs as u64 * stage.work_of_pair).max(1);
    let rounds = usize::try_from(rounds).unwrap_or(usize::MAX).clamp(1, stage.rounds_max);
    for round in 0..rounds {
        let demand_worth: f64 = items.iter().zip(&prices).map(|(item, price)| item.count * price).sum();
        let progress = number(round) / number(rounds);
        let sharpness = stage.sharpness.at(progress);
        // Further from the best than this, the weight falls below what counts.
        let near = (1.0 + WORTH_COUNTING.ln() / sharpness).max(0.0);
        let Some((ratio, decisive)) = most_profitable(bins, fillings, &prices, near, stage.whole) else { break };
        if ratio <= 0.0 || demand_worth <= 0.0 || !ratio.is_finite() {
            break;
        }
        let bound = demand_worth / ratio;
        if bound > best.bound {
            let per_pod = prices.iter().map(|price| price / ratio).collect();
            best = Prices { per_pod, bound, shares: Vec::new() };
        }
        let filled = shares_filled(bins, fillings, &prices, decisive, sharpness, stage.whole);
        if progress >= SHARES_FROM || rounds == 1 {
            for (bin, weight) in filled.by_bin {
                let worth = fillings[bin].worth.max(f64::MIN_POSITIVE);
                mean.add(bin, weight * demand_worth / worth, &fillings[bin]);
            }
        }
        let mut missed_in_all = 0.0;
        for (position, (item, filled)) in items.iter().zip(filled.by_item).enumerate() {
            let wanted = item.count * prices[position] / demand_worth;
            missed_in_all += (wanted - filled).abs();
            prices[position] *= (stage.step.at(progress) * missed.direction(position, wanted - filled)).exp();
        }
        // As with one class alone, whose price is right from the start.
        if missed_in_all < 1e-9 {
            mean = Mean::default();
            let filling = &fillings[decisive];
            mean.add(decisive, demand_worth / filling.worth.max(f64::MIN_POSITIVE), filling);
            break;
        }
    }
    Prices { shares: mean.shares(items), ..best }
}

/// By how much the demand for each class was missed in the rounds so far, of which the last count most.
pub struct Missed {
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Missed {
    pub fn new(classes: usize) -> Self {
        Self { mean: vec![0.0; classes], squares: vec![0.0; classes] }
    }

    /// Where the price should go, as a number around 1 however small the class is.
    pub fn direction(&mut self, position: usize, now: f64) -> f64 {
        let (mean, square) = (&mut self.mean[position], &mut self.squares[position]);
        *mean += (1.0 - MEMORY) * (now - *mean);
        *square += (1.0 - MEMORY_OF_SQUARES) * (now * now - *square);
        (*mean / (square.sqrt() + 1e-9)).clamp(-3.0, 3.0)
    }
}

/// What the most profitable bins are filled with.
struct Filled {
    /// By item: its share in the worth.
    by_item: Vec<f64>,
    /// Bins that count, each with its share in the worth.
    by_bin: Vec<(usize, f64)>,
}

fn shares_filled(
    bins: &[Bin],
    fillings: &mut [Filling],
    prices: &[f64],
    decisive: usize,
    sharpness: f64,
    whole: bool,
) -> Filled {
    let most = fillings[decisive].ratio(&bins[decisive]);
    let mut shares = vec![0.0; prices.len()];
    let mut total = 0.0;
    let mut by_bin: Vec<(usize, f64)> = Vec::new();
    for (position, (bin, filling)) in bins.iter().zip(fillings.iter_mut()).enumerate() {
        let weight = |filling: &Filling| (sharpness * (filling.ratio(bin) / most - 1.0)).exp();
        if position != decisive && weight(filling) > WORTH_REFINING {
            filling.fill_if_estimated(prices);
            filling.refine(prices, 1);
            if whole {
                filling.make_whole(prices);
            }
        }
        let weight = weight(filling);
        if weight < WORTH_COUNTING {
            continue;
        }
        total += weight;
        by_bin.push((position, weight));
        for (item, amount) in filling.taken() {
            shares[item] += weight * amount * prices[item] / filling.worth.max(f64::MIN_POSITIVE);
        }
    }
    shares.iter_mut().for_each(|share| *share /= total.max(f64::MIN_POSITIVE));
    by_bin.iter_mut().for_each(|(_, weight)| *weight /= total.max(f64::MIN_POSITIVE));
    Filled { by_item: shares, by_bin }
}

/// The bin with the most worth per price, after the weights that decide were improved. Bins that are worth less than the part `near` of
/// the best are not filled, only estimated.
fn most_profitable(
    bins: &[Bin],
    fillings: &mut [Filling],
    prices: &[f64],
    near: f64,
    whole: bool,
) -> Option<(f64, usize)> {
    let mut most = 0.0;
    for (bin, filling) in bins.iter().zip(fillings.iter_mut()) {
        if filling.fill_if_above(prices, most * near * bin.price) {
            most = filling.ratio(bin).max(most);
        }
    }
    let ratio = |fillings: &[Filling], position: usize| fillings[position].ratio(&bins[position]);
    let largest = |fillings: &[Filling]| {
        (0..bins.len()).max_by(|one, two| ratio(fillings, *one).total_cmp(&ratio(fillings, *two)).then(two.cmp(one)))
    };
    let mut position = largest(fillings)?;
    // What few pods fill promises more in parts than it keeps, so many have to be looked at.
    let refinements = if whole { bins.len().max(REFINEMENTS) } else { REFINEMENTS };
    for _ in 0..refinements {
        fillings[position].fill_if_estimated(prices);
        fillings[position].refine(prices, 2);
        if whole {
            fillings[position].make_whole(prices);
        }
        let next = largest(fillings)?;
        if next == position {
            break;
        }
        position = next;
    }
    Some((ratio(fillings, position), position))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(price: f64, room: [f64; 2], items: &[(usize, f64)]) -> Bin {
        Bin { price, room: room.to_vec(), items: items.to_vec() }
    }

    fn item(count: f64, request: [f64; 2]) -> Item {
        Item { count, request: request.to_vec() }
    }

    #[test]
    fn one_class_is_solved_exactly() {
        let items = [item(100.0, [1.0, 1.0])];
        let bins = [bin(1.0, [4.0, 8.0], &[(0, 4.0)]), bin(1.5, [8.0, 8.0], &[(0, 8.0)])];
        let prices = dual_prices(&items, &bins, &[1.0], 1_000_000);
        assert!((prices.bound - 100.0 * 1.5 / 8.0).abs() < 1e-6, "{prices:?}");
    }

    #[test]
    fn complementary_classes_share_a_node() {
        // One asks for cores, the other for memory: together they fill a node of price 1 that either alone would waste.
        let items = [item(10.0, [3.0, 1.0]), item(10.0, [1.0, 3.0])];
        let bins = [bin(1.0, [4.0, 4.0], &[(0, 1.0), (1, 1.0)])];
        let prices = dual_prices(&items, &bins, &[1.0, 1.0], 10_000_000);
        assert!(prices.bound <= 10.0 + 1e-9, "ten nodes are enough: {prices:?}");
        assert!(prices.bound > 9.7, "and no fewer: {prices:?}");
    }

    #[test]
    fn a_bound_is_never_above_what_a_fleet_costs() {
        // Nodes that fit just one kind each: 5 x 2 + 5 x 3.
        let items = [item(5.0, [1.0, 0.0]), item(5.0, [0.0, 1.0])];
        let bins = [bin(2.0, [1.0, 0.0], &[(0, 1.0)]), bin(3.0, [0.0, 1.0], &[(1, 1.0)])];
        let prices = dual_prices(&items, &bins, &[1.0, 1.0], 10_000_000);
        assert!(prices.bound <= 25.0 + 1e-9 && prices.bound > 24.0, "{prices:?}");
    }
}
