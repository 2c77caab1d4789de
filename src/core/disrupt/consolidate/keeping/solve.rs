//! The program: keep a part of each node for that part of its price, with that part of its pods; put other pods into the free room of
//! what is kept, or on new nodes, each for the cost of a move; every pod has a place.
//!
//! Solved by ascent on its dual: the worth of room rises where kinds of pods are short of it and falls where there is more than enough,
//! never above what new nodes cost; a node is kept in part where it hardly matters, less and less so from round to round.

use crate::core::provision::cheapest::ascent::Missed;
use crate::core::provision::cheapest::filling::{Bin, Filling, Item};
use crate::core::provision::cheapest::market::number;

/// A node that may go.
#[derive(Clone, Debug)]
pub struct Stock {
    /// Dollars per hour.
    pub price: f64,
    /// Positions of items, and how many pods of each would have to move.
    pub own: Vec<(usize, f64)>,
    /// Its free room; the price is not looked at.
    pub bin: Bin,
}

/// Rounds of ascent at most.
const ROUNDS_MAX: u64 = 200;

/// The part by which the worth of room moves in one round, at most, in the first round and in the last.
const STEP: (f64, f64) = (0.2, 0.01);

/// A node is kept by half when it is worth its price, and to seven tenths when it is worth more by this part.
const SOFTNESS: (f64, f64) = (0.2, 0.01);

/// The last of so many parts of the rounds counts: their mean.
const COUNTED_PART: usize = 4;

/// The dual of the program.
pub struct Solved {
    /// By stock, in dollars per hour: what it is worth beyond its price.
    pub gains: Vec<f64>,
    /// Of the stocks and then of the nodes that stay, by what room for a pod is worth.
    pub fillings: Vec<Filling>,
}

/// `items` count the pods of the stocks, `staying` is the free room of nodes that do not go, `offers` are new nodes, `start` is what
/// a pod would cost on those, `moving` what a move counts, as dollars per hour. `work` bounds the pairs of bins and items that are
/// looked at. O(rounds x bins x items).
pub fn solve(
    items: &[Item],
    stocks: &[Stock],
    staying: &[Bin],
    offers: &[Bin],
    start: &[f64],
    moving: f64,
    work: u64,
) -> Solved {
    let filled = |bin: &Bin| Filling::new(bin, items);
    let mut of_stocks: Vec<Filling> = stocks.iter().map(|stock| filled(&stock.bin)).collect();
    let mut of_staying: Vec<Filling> = staying.iter().map(filled).collect();
    let mut of_offers: Vec<Filling> = offers.iter().map(filled).collect();
    let bins = stocks.iter().map(|stock| &stock.bin).chain(staying).chain(offers);
    let pairs: usize = bins.map(|bin| bin.items.len() + 1).sum();
    let rounds = usize::try_from((work / (pairs as u64).max(1)).clamp(1, ROUNDS_MAX)).unwrap_or(1);
    let mut room: Vec<f64> = start.to_vec();
    let mut missed = Missed::new(items.len());
    let mut gains = vec![0.0; stocks.len()];
    let first_counted = rounds - rounds.div_ceil(COUNTED_PART);
    for round in 0..rounds {
        let progress = number(round + 1) / number(rounds);
        let between = |(first, last): (f64, f64)| first * (last / first).powf(progress);
        cap(&mut room, offers, &mut of_offers);
        let mut supply = vec![0.0; items.len()];
        for filling in &mut of_staying {
            filling.fill(&room);
            filling.taken().into_iter().for_each(|(item, amount)| supply[item] += amount);
        }
        for ((stock, filling), mean) in stocks.iter().zip(&mut of_stocks).zip(&mut gains) {
            let gain = gain(stock, filling, &room, moving);
            let price = stock.price.max(f64::MIN_POSITIVE);
            let kept = 1.0 / (1.0 + (-gain / (between(SOFTNESS) * price)).exp());
            let held = stock.own.iter().copied().chain(filling.taken());
            held.for_each(|(item, amount)| supply[item] += kept * amount);
            if round >= first_counted {
                *mean += gain / number(rounds - first_counted);
            }
        }
        for (position, item) in items.iter().enumerate() {
            let short = (item.count - supply[position]) / item.count.max(1.0);
            room[position] *= (between(STEP) * missed.direction(position, short)).exp();
        }
    }
    of_stocks.append(&mut of_staying);
    of_stocks.iter_mut().for_each(|filling| filling.fill(&room));
    Solved { gains, fillings: of_stocks }
}

/// What a stock is worth beyond its price: its own pods need no move, and others find room.
fn gain(stock: &Stock, filling: &mut Filling, room: &[f64], moving: f64) -> f64 {
    let own: f64 = stock.own.iter().map(|(item, amount)| amount * (room[*item] + moving)).sum();
    filling.fill(room);
    own + filling.worth - stock.price
}

/// Room is worth no more than on new nodes.
fn cap(room: &mut [f64], offers: &[Bin], fillings: &mut [Filling]) {
    let mut most: f64 = 1.0;
    for (bin, filling) in offers.iter().zip(fillings) {
        if filling.fill_if_above(room, bin.price * most) {
            most = most.max(filling.ratio(bin));
        }
    }
    room.iter_mut().for_each(|worth| *worth /= most);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(price: f64, room: f64) -> Bin {
        Bin { price, room: vec![room], items: vec![(0, room)] }
    }

    fn stock(price: f64, own: f64, free: f64) -> Stock {
        Stock { price, own: vec![(0, own)], bin: bin(0.0, free) }
    }

    fn items(count: f64) -> [Item; 1] {
        [Item { count, request: vec![1.0] }]
    }

    #[test]
    fn the_fuller_half_of_equal_nodes_is_kept() {
        let stocks: Vec<Stock> =
            (0..10).map(|node| stock(1.0, 3.0 + number(node % 2) * 3.0, 5.0 - number(node % 2) * 3.0)).collect();
        let Solved { gains, .. } = solve(&items(45.0), &stocks, &[], &[bin(1.0, 8.0)], &[0.125], 0.02, 1_000_000);
        for (node, gain) in gains.iter().enumerate() {
            assert_eq!(*gain > 0.0, node % 2 == 1, "{gains:?}");
        }
    }

    #[test]
    fn what_fits_beside_nodes_that_stay_is_not_worth_a_node() {
        let Solved { gains, .. } =
            solve(&items(4.0), &[stock(1.0, 4.0, 4.0)], &[bin(0.0, 8.0)], &[bin(1.0, 8.0)], &[0.125], 0.001, 1_000_000);
        assert!(gains[0] < 0.0, "{gains:?}");
    }

    #[test]
    fn a_node_that_costs_less_than_new_ones_is_kept_and_a_dearer_one_goes() {
        let stocks = [stock(0.8, 8.0, 0.0), stock(1.5, 8.0, 0.0)];
        let Solved { gains, .. } = solve(&items(16.0), &stocks, &[], &[bin(1.0, 8.0)], &[0.125], 0.001, 1_000_000);
        assert!(gains[0] > 0.0 && gains[1] < 0.0, "{gains:?}");
    }
}
