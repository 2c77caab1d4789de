//! Prices per piece from the dual of the linear program of buying whole bins for whole classes.
//!
//! The program: buy x of each offering at its price; put y pieces of each class on bins of each offering, no more than fit
//! in each resource and no more than `most` on one bin; place every piece. Its dual asks for a price per piece of each class
//! such that no offering can be filled with pieces worth more than it costs. Any such prices bound the cost of the fleet
//! from below, and they are what the greedy choice needs to know: what else each piece would cost.
//!
//! Solved by [`super::generation`], where there are too many classes for it with classes of nearly one size as one, and where these are
//! too many, too, by [`super::ascent`]. Where a dozen pieces fill a bin it matters that they are whole: there the prices are made to hold
//! against the best filling with whole pieces, which proves more than the linear program, and tells the buyer what small bins are good for.
//! `tests/properties/lower_bound.rs` holds the result against a solver: no bin can be filled with more than it costs, and the
//! bound is nearly the linear program's optimum, or more.

use std::collections::BTreeMap;

use super::ascent::climb;
use super::filling::{Bin, Item};
use super::generation::{FilledBin, Generation, Pieces, ROWS_MAX};
use super::grouping::{Grouping, Size};
use super::parts::{ProgramPart, parts};
use super::prices::{Prices, Share, shares};

/// The part of the bound that bins must stand for which few pieces fill, for whole pieces to be worth looking at.
const OF_PARTS_MIN: f64 = 0.2;

/// Steps of one search for whole pieces at most, and the part of all the work that they may take: prices that are made to hold against
/// all that was not looked at are worse than those that need not be a proof.
const WHOLE_STEPS_MAX: u64 = 8000;
const WHOLE_STEPS_PART: u64 = 12_500;

/// Of more classes than a program has rows for, so many groups: with more, less would be proven in the same time.
const GROUPS_MAX: usize = 100;

/// How much is done for prices.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Multiplications at most, of which some 10^9 take a second, so that the result depends on the inputs alone.
    pub work: u64,
    /// Whether prices need not hold against parts of pieces, where it matters that these are whole.
    pub whole_pieces: bool,
}

impl Effort {
    /// For prices that prove as much as they can.
    pub const fn exact(work: u64) -> Self {
        Self { work, whole_pieces: true }
    }

    /// For prices that a search begins with.
    pub const fn rough(work: u64) -> Self {
        Self { work, whole_pieces: false }
    }
}

/// Maximises the bound from the given start.
pub fn dual_prices(items: &[Item], bins: &[Bin], start: &[f64], effort: Effort) -> Prices {
    let mut all = Prices { per_piece: start.to_vec(), bound: 0.0, shares: Vec::new() };
    for part in parts(items, bins) {
        let effort = Effort { work: part.share(effort.work, items.len()), ..effort };
        let prices = prices_of(&part, &part.own(start), effort);
        all.bound += prices.bound;
        part.items.iter().zip(prices.per_piece).for_each(|(item, price)| all.per_piece[*item] = price);
        let among_all = |share: Share| Share { bin: part.bins[share.bin], items: part.among_all(share.items) };
        all.shares.extend(prices.shares.into_iter().map(among_all));
    }
    all.shares.sort_by_key(|share| share.bin);
    all
}

fn prices_of(part: &ProgramPart, start: &[f64], effort: Effort) -> Prices {
    let (items, bins) = (&part.own_items, &part.own_bins);
    if let [item] = items.as_slice() {
        return prices_of_one(item, bins);
    }
    if bins.iter().any(|bin| bin.price <= 0.0) {
        return climb(items, bins, start, effort.work);
    }
    if items.len() <= ROWS_MAX {
        return generated(items, bins, start, effort);
    }
    let Some(grouping) = Grouping::new(items, bins, GROUPS_MAX, Size::OfSmallest) else {
        return climb(items, bins, start, effort.work);
    };
    let prices = generated(&grouping.groups, &grouping.bins, &grouping.of_groups(start), effort);
    let of_items = |share: Share| Share { items: grouping.divided(&share.items), ..share };
    Prices {
        per_piece: grouping.of_items(&prices.per_piece),
        shares: prices.shares.into_iter().map(of_items).collect(),
        ..prices
    }
}

fn generated(items: &[Item], bins: &[Bin], start: &[f64], effort: Effort) -> Prices {
    let bin_prices: Vec<f64> = bins.iter().map(|bin| bin.price).collect();
    let mut generation = Generation::new(items, bins, &bin_prices, start, effort.work);
    let near = generation.near(Pieces::InParts);
    let mut taken = generation.solve(near, Pieces::InParts);
    if effort.whole_pieces && generation.part_of_parts(&taken) > OF_PARTS_MIN {
        let steps = (effort.work / WHOLE_STEPS_PART).min(WHOLE_STEPS_MAX);
        let pieces = Pieces::WholeIfProven(usize::try_from(steps).unwrap_or(0));
        let near = generation.near(pieces);
        taken = generation.solve(near, pieces);
    }
    Prices { shares: shares(held(&taken), items), per_piece: generation.prices, bound: generation.bound }
}

/// Pieces of one class alone go where a bin costs least for each of those that it holds.
fn prices_of_one(item: &Item, bins: &[Bin]) -> Prices {
    let each = |(position, bin): (usize, &Bin)| Some((bin.price / bin.items.first()?.1, position));
    let least = bins.iter().enumerate().filter_map(each).min_by(|one, two| one.0.total_cmp(&two.0));
    let price = least.map_or(0.0, |(price, _)| price);
    let shares = least.map(|(_, bin)| Share { bin, items: vec![(0, item.count)] });
    Prices { per_piece: vec![price], bound: item.count * price, shares: shares.into_iter().collect() }
}

/// By bin and item: how many.
fn held(taken: &[(FilledBin, f64)]) -> BTreeMap<(usize, usize), f64> {
    let mut held: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for (filled_bin, amount) in taken.iter().filter(|(_, amount)| *amount > 0.0) {
        for (item, pieces) in &filled_bin.items {
            *held.entry((filled_bin.bin, *item)).or_default() += amount * pieces;
        }
    }
    held
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
        let prices = dual_prices(&items, &bins, &[1.0], Effort::exact(100_000_000));
        assert!((prices.bound - 100.0 * 1.5 / 8.0).abs() < 1e-6, "{prices:?}");
    }

    #[test]
    fn complementary_classes_share_a_bin() {
        // One asks for cores, the other for memory: together they fill a bin of price 1 that either alone would waste.
        let items = [item(10.0, [3.0, 1.0]), item(10.0, [1.0, 3.0])];
        let bins = [bin(1.0, [4.0, 4.0], &[(0, 1.0), (1, 1.0)])];
        let prices = dual_prices(&items, &bins, &[1.0, 1.0], Effort::exact(100_000_000));
        assert!(prices.bound <= 10.0 + 1e-9, "ten bins are enough: {prices:?}");
        assert!(prices.bound > 9.7, "and no fewer: {prices:?}");
    }

    #[test]
    fn a_bound_is_never_above_what_a_fleet_costs() {
        // Bins that fit just one kind each: 5 x 2 + 5 x 3.
        let items = [item(5.0, [1.0, 0.0]), item(5.0, [0.0, 1.0])];
        let bins = [bin(2.0, [1.0, 0.0], &[(0, 1.0)]), bin(3.0, [0.0, 1.0], &[(1, 1.0)])];
        let prices = dual_prices(&items, &bins, &[1.0, 1.0], Effort::exact(100_000_000));
        assert!(prices.bound <= 25.0 + 1e-9 && prices.bound > 24.0, "{prices:?}");
    }
}
