//! Prices of many classes, by ascent on the bound itself.
//!
//! Prices move from what the most profitable offerings would be filled with towards what is in demand. An offering that is nearly
//! the most profitable counts nearly as much (a soft maximum that is made sharper from round to round), or the prices would swing
//! between two that are alike; and each price has a step of its own, by how much its demand has been missed so far (Kingma and Ba
//! 2015), or rare classes would never arrive. Slower than [`super::generation`] to the last percents, but a round takes no longer for
//! more classes than it takes to look at them.

use std::collections::BTreeMap;

use super::filling::{Bin, Filling, Item};
use super::number;
use super::prices::{Prices, shares};

const ROUNDS_MAX: usize = 300;

/// Rounds from this part on count for the shares: before, the prices are still far off.
const SHARES_FROM: f64 = 0.5;

/// Multiplications for each pair of a bin and an item in one round.
const OF_A_PAIR: u64 = 20;

/// How much sharper than a mean the maximum is taken: an offering that is one part in this less profitable than the best counts a
/// third as much.
const SHARPNESS: Schedule = Schedule { first: 40.0, last: 1500.0 };

/// The part by which a price moves in one round, at most.
const STEP: Schedule = Schedule { first: 0.2, last: 0.005 };

/// How much of the past stays in the mean of what was missed, and of its square.
const MEMORY: f64 = 0.8;
const MEMORY_OF_SQUARES: f64 = 0.95;

/// Offerings that count less than this part of the best one are not worth looking at.
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

/// Better prices than those at the start. O(rounds x bins x items).
pub fn climb(items: &[Item], bins: &[Bin], start: &[f64], work: u64) -> Prices {
    let mut fillings: Vec<Filling> = bins.iter().map(|bin| Filling::new(bin, items)).collect();
    let mut prices = start.to_vec();
    let mut best = Prices { per_piece: start.to_vec(), bound: 0.0, shares: Vec::new() };
    let mut held: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    let mut missed = Missed::new(items.len());
    let pairs: usize = bins.iter().map(|bin| bin.items.len()).sum();
    let rounds = usize::try_from(work / (OF_A_PAIR * pairs as u64).max(1)).unwrap_or(ROUNDS_MAX).clamp(1, ROUNDS_MAX);
    for round in 0..rounds {
        let demand_worth: f64 = items.iter().zip(&prices).map(|(item, price)| item.count * price).sum();
        let progress = number(round) / number(rounds);
        let sharpness = SHARPNESS.at(progress);
        // Further from the best than this, the weight falls below what counts.
        let near = (1.0 + WORTH_COUNTING.ln() / sharpness).max(0.0);
        let most = most_profitable(bins, &mut fillings, &prices, near);
        if most <= 0.0 || demand_worth <= 0.0 || !most.is_finite() {
            break;
        }
        if demand_worth / most > best.bound {
            let per_piece = prices.iter().map(|price| price / most).collect();
            best = Prices { per_piece, bound: demand_worth / most, shares: Vec::new() };
        }
        let filled = shares_filled(bins, &mut fillings, &prices, most, sharpness);
        if progress >= SHARES_FROM || rounds == 1 {
            for (bin, weight) in filled.by_bin {
                let worth = fillings[bin].worth.max(f64::MIN_POSITIVE);
                for (item, amount) in fillings[bin].taken() {
                    *held.entry((bin, item)).or_default() += weight * demand_worth / worth * amount;
                }
            }
        }
        for (position, (item, filled)) in items.iter().zip(filled.by_item).enumerate() {
            let wanted = item.count * prices[position] / demand_worth;
            prices[position] *= (STEP.at(progress) * missed.direction(position, wanted - filled)).exp();
        }
    }
    Prices { shares: shares(held, items), ..best }
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

fn shares_filled(bins: &[Bin], fillings: &mut [Filling], prices: &[f64], most: f64, sharpness: f64) -> Filled {
    let mut shares = vec![0.0; prices.len()];
    let mut total = 0.0;
    let mut by_bin: Vec<(usize, f64)> = Vec::new();
    for (position, (bin, filling)) in bins.iter().zip(fillings.iter_mut()).enumerate() {
        let weight = (sharpness * (filling.ratio(bin) / most - 1.0)).exp();
        if weight < WORTH_COUNTING {
            continue;
        }
        filling.fill_if_estimated(prices);
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

/// The most worth per price. Bins that are worth less than the part `near` of the best are not filled, only estimated.
fn most_profitable(bins: &[Bin], fillings: &mut [Filling], prices: &[f64], near: f64) -> f64 {
    let mut most = 0.0;
    for (bin, filling) in bins.iter().zip(fillings.iter_mut()) {
        filling.fill_if_above(prices, most * near * bin.price);
        most = filling.ratio(bin).max(most);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_come_near_the_optimum_and_prove_no_more() {
        // Cores and memory: together they fill bins of price 1 that either alone would waste, ten for both.
        let item = |request: [f64; 2]| Item { count: 10.0, request: request.to_vec() };
        let items = [item([3.0, 1.0]), item([1.0, 3.0])];
        let bin =
            |price: f64, room: f64, most: f64| Bin { price, room: vec![room; 2], items: vec![(0, most), (1, most)] };
        let prices = climb(&items, &[bin(1.0, 4.0, 1.0), bin(9.0, 8.0, 2.0)], &[1.0, 0.1], 100_000_000);
        assert!(prices.bound <= 10.0 + 1e-9 && prices.bound > 9.9, "{prices:?}");
        assert!(prices.per_piece.iter().sum::<f64>() <= 1.0 + 1e-9, "no bin is worth more than it costs: {prices:?}");
        let held: f64 =
            prices.shares.iter().filter(|share| share.bin == 0).flat_map(|share| &share.items).map(|it| it.1).sum();
        assert!(held > 19.0, "the dear bins hold next to nothing: {prices:?}");
    }

    #[test]
    fn too_little_work_still_proves_something() {
        let items = [Item { count: 6.0, request: vec![1.0] }];
        let bins = [Bin { price: 2.0, room: vec![4.0], items: vec![(0, 4.0)] }];
        let prices = climb(&items, &bins, &[0.1], 0);
        assert!((prices.bound - 3.0).abs() < 1e-9, "{prices:?}");
    }
}
