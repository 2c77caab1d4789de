//! Which whole bins to buy, with whole pieces on each.
//!
//! The program of [`super::generation`] says how often each column is taken; those taken at least once are bought, and the nearly
//! whole ones, and the program is made again for what is left. Its prices begin as those of [`super::dual`], and so do its columns:
//! fillings at these prices, shaken.

use std::collections::BTreeSet;

use super::filling::{Bin, Item, WHOLE_STEPS};
pub use super::generation::FilledBin;
use super::generation::{Generation, Pieces, ROWS_MAX, worth};
use super::grouping::{Grouping, Size};
use super::number;
use super::parts::{ProgramPart, parts};

/// The part of what is left that is bought before the program is made again: by attempt, of which the cheapest counts, since what
/// rounding loses is a matter of luck. All begin with the same program of all pieces. A new one is made as long as those before took
/// less than this part of the work.
const PARTS_BOUGHT: [f64; 8] = [0.35, 0.5, 0.2, 0.7, 0.1, 0.9, 0.3, 0.6];
const ATTEMPTS_PART: u64 = 20;

/// A column that is taken in part is bought whole when its pieces are worth this part of its price.
const WORTH_MIN: f64 = 0.97;

/// Columns worth less than this part of their price are forgotten.
const REMEMBERED_WORTH_MIN: f64 = 0.9;

/// A program begins with so many columns for each row at most; more slow it down more than they tell.
const KNOWN_PER_ROW: usize = 10;

/// How often prices are shaken for the first columns, by up to which part, and what the fillings must be worth at those that were
/// not shaken.
const SHAKES: u32 = 10;
const SHAKEN_BY: f64 = 0.1;
const SHAKEN_WORTH_MIN: f64 = 0.97;

/// Nothing costs less than this, for the sake of divisions.
const PRICE_MIN: f64 = 1e-6;

const PIECES: Pieces = Pieces::Whole(WHOLE_STEPS);

/// What short searches do not find they take for not there, and end up to 5 % too dear where pieces are large and of many sizes. So the
/// program of all pieces is solved once more with longer ones, from the columns that are known: for this part of the work at most, and
/// where all before it took less than the part above.
const LONGER: Pieces = Pieces::Whole(16 * WHOLE_STEPS);
const LONGER_PART: u64 = 10;

#[derive(Clone)]
struct Search<'a> {
    /// Of the pieces that have no bin yet.
    generation: Generation<'a>,
    known: Vec<FilledBin>,
    part_bought: f64,
}

/// Bins for the items, which take each piece once; what no bin takes, or no work is left for, is on none of them. `start` is what the
/// items are worth by [`super::dual`]. `work` bounds the multiplications, of which some 10^9 take a second, and is what is left of them
/// afterwards. Items that share no bin, as those of other teams or zones, are programs of their own; in one that would be too large, items of nearly one size are as one.
/// `None` where not even that makes it small enough.
pub fn filled_bins(items: &[Item], bins: &[Bin], start: &[f64], work: &mut u64) -> Option<Vec<FilledBin>> {
    let parts = parts(items, bins);
    let most = *work;
    let of_part = |part: &ProgramPart| {
        let share = part.share(most, items.len());
        let (filled, left) = filled_of(&part.own_items, &part.own_bins, &part.own(start), share)?;
        *work -= share - left;
        let among_all = |filled_bin: FilledBin| FilledBin {
            bin: part.bins[filled_bin.bin],
            items: part.among_all(filled_bin.items),
        };
        Some(filled.into_iter().map(among_all).collect())
    };
    let of_parts: Option<Vec<Vec<FilledBin>>> = parts.iter().map(of_part).collect();
    Some(of_parts?.into_iter().flatten().collect())
}

/// Bins for the items of one part, and the work that is left.
fn filled_of(items: &[Item], bins: &[Bin], start: &[f64], work: u64) -> Option<(Vec<FilledBin>, u64)> {
    if items.len() > ROWS_MAX {
        let grouping = Grouping::new(items, bins, ROWS_MAX, Size::OfLargest)?;
        let (filled, left) = filled_of(&grouping.groups, &grouping.bins, &grouping.of_groups(start), work)?;
        return Some((grouping.dealt(filled), left));
    }
    let bin_prices: Vec<f64> = bins.iter().map(|bin| bin.price.max(PRICE_MIN)).collect();
    let generation = Generation::new(items, bins, &bin_prices, start, work);
    Some(Search { generation, known: Vec::new(), part_bought: 0.0 }.cheapest_attempt())
}

/// A number between 0 and 1 that is hardly related to those of other positions and times (Roberts 2018).
fn scattered(position: usize, time: u32) -> f64 {
    let (position, time) = (number(position + 1), f64::from(time + 1));
    (position * 0.618_033_988_749_895 + time * 0.754_877_666_246_693 + position * time * 0.569_840_290_998_053).fract()
}

impl Search<'_> {
    /// The bins of the cheapest of some attempts, which go different ways from what the program says of all pieces; and the work that
    /// is left.
    fn cheapest_attempt(mut self) -> (Vec<FilledBin>, u64) {
        let most = self.generation.work;
        if most == 0 {
            return (Vec::new(), 0);
        }
        self.shake();
        // What prices have shown that were shaken is no measure of how far to go.
        self.generation.start_again();
        let mut taken = self.solve(PIECES);
        if most - self.generation.work < most / ATTEMPTS_PART {
            taken = self.solve_longer(most / LONGER_PART);
        }
        let most = self.generation.work;
        let mut best: Option<(f64, Vec<FilledBin>)> = None;
        for part_bought in PARTS_BOUGHT {
            let mut search = Self { part_bought, ..self.clone() };
            let filled = search.go_on(taken.clone());
            let price: f64 = filled.iter().map(|filled_bin| self.generation.price(filled_bin)).sum();
            let left = search.generation.left.iter().zip(&self.generation.prices);
            let rest: f64 = left.map(|(left, price)| left * price).sum();
            if best.as_ref().is_none_or(|(least, _)| price + rest < *least) {
                best = Some((price + rest, filled));
            }
            self.generation.work = search.generation.work;
            if most - self.generation.work > most / ATTEMPTS_PART {
                break;
            }
        }
        (best.map_or_else(Vec::new, |(_, filled)| filled), self.generation.work)
    }

    /// Buys some of what is taken, and again of what is then taken for the rest.
    fn go_on(&mut self, mut taken: Vec<(FilledBin, f64)>) -> Vec<FilledBin> {
        let mut filled = Vec::new();
        loop {
            let bought = self.buy(&taken);
            let is_last = bought.is_empty() || self.generation.work == 0;
            filled.extend(bought);
            if is_last {
                return filled;
            }
            self.turn_to_the_rest();
            taken = self.solve(PIECES);
        }
    }

    /// The first columns: what offerings are filled with at prices near those that are known, less and less far away.
    fn shake(&mut self) {
        self.known = self.generation.near(PIECES);
        let exact = self.generation.prices.clone();
        let mut seen: BTreeSet<(usize, Vec<(usize, u64)>)> = BTreeSet::new();
        for time in 0..SHAKES {
            let by = SHAKEN_BY * (1.0 - f64::from(time) / f64::from(SHAKES));
            let shaken =
                |(position, price): (usize, &f64)| price * (1.0 + by * (2.0 * scattered(position, time) - 1.0));
            let prices: Vec<f64> = exact.iter().enumerate().map(shaken).collect();
            let found = self.generation.seek(&prices, &exact, SHAKEN_WORTH_MIN, PIECES);
            let is_new = |filled_bin: &FilledBin| {
                let items = filled_bin.items.iter().map(|(item, count)| (*item, count.to_bits())).collect();
                seen.insert((filled_bin.bin, items))
            };
            self.known.extend(found.into_iter().filter(is_new));
        }
    }

    /// How often each column is taken in the program for what is left.
    fn solve(&mut self, pieces: Pieces) -> Vec<(FilledBin, f64)> {
        let known = std::mem::take(&mut self.known);
        let filled = self.generation.solve(self.best_of(known), pieces);
        self.known = filled.iter().map(|(filled_bin, _)| filled_bin.clone()).collect();
        filled.into_iter().filter(|(_, amount)| *amount > 0.0).collect()
    }

    /// The same again with longer searches, for so much work.
    fn solve_longer(&mut self, work: u64) -> Vec<(FilledBin, f64)> {
        let kept = self.generation.work.saturating_sub(work);
        self.generation.work -= kept;
        // What shorter searches have seen is no measure of how far to go.
        self.generation.start_again();
        let taken = self.solve(LONGER);
        self.generation.work += kept;
        taken
    }

    /// The columns that are known, for what is left, and those near its prices.
    fn turn_to_the_rest(&mut self) {
        self.generation.start_again();
        let mut known = self.generation.near(PIECES);
        known.extend(self.known.iter().map(|filled_bin| self.cut(filled_bin)));
        self.known = known;
    }

    /// Those that are worth enough for their price; at most so many for each row, best first.
    fn best_of(&self, filled: Vec<FilledBin>) -> Vec<FilledBin> {
        let ranked = filled.into_iter().map(|filled_bin| (self.worth_for_its_price(&filled_bin), filled_bin));
        let is_worth_it =
            |(worth, filled_bin): &(f64, FilledBin)| filled_bin.items.len() > 1 && *worth >= REMEMBERED_WORTH_MIN;
        let mut ranked: Vec<(f64, FilledBin)> = ranked.filter(is_worth_it).collect();
        ranked.sort_by(|one, two| two.0.total_cmp(&one.0));
        ranked.truncate(KNOWN_PER_ROW * self.generation.left.iter().filter(|left| **left > 0.0).count());
        ranked.into_iter().map(|(_, filled_bin)| filled_bin).collect()
    }

    fn worth_for_its_price(&self, filled_bin: &FilledBin) -> f64 {
        worth(&filled_bin.items, &self.generation.prices) / self.generation.price(filled_bin)
    }

    /// What is left of a bin when it holds no more of an item than is left.
    fn cut(&self, filled_bin: &FilledBin) -> FilledBin {
        let items = filled_bin.items.iter().map(|(item, count)| (*item, count.min(self.generation.left[*item])));
        FilledBin { bin: filled_bin.bin, items: items.filter(|(_, count)| *count >= 1.0).collect() }
    }

    /// Takes what is whole, and then what is most nearly so, until enough is bought.
    fn buy(&mut self, taken: &[(FilledBin, f64)]) -> Vec<FilledBin> {
        let mut bought = Vec::new();
        for (filled_bin, amount) in taken {
            let mut whole = (amount + NEARLY).floor();
            while whole >= 1.0 && self.cut(filled_bin).items == filled_bin.items {
                self.take(filled_bin, &mut bought);
                whole -= 1.0;
            }
        }
        let mut in_part: Vec<&(FilledBin, f64)> = taken.iter().filter(|(_, amount)| amount.fract() > NEARLY).collect();
        in_part.sort_by(|one, two| two.1.fract().total_cmp(&one.1.fract()));
        let enough = self.part_bought * taken.iter().map(|(_, amount)| amount).sum::<f64>();
        for (filled_bin, _) in in_part {
            if number(bought.len()) >= enough.max(1.0) {
                break;
            }
            let filled_bin = self.cut(filled_bin);
            if !filled_bin.items.is_empty() && (self.worth_for_its_price(&filled_bin) >= WORTH_MIN || bought.is_empty())
            {
                self.take(&filled_bin, &mut bought);
            }
        }
        bought
    }

    fn take(&mut self, filled_bin: &FilledBin, bought: &mut Vec<FilledBin>) {
        for (item, count) in &filled_bin.items {
            self.generation.left[*item] -= count;
        }
        bought.push(filled_bin.clone());
    }
}

/// Amounts are off by less than this.
const NEARLY: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::dual::{Effort, dual_prices};

    fn item(count: f64, request: [f64; 2]) -> Item {
        Item { count, request: request.to_vec() }
    }

    fn bin(price: f64, room: [f64; 2], most: &[f64]) -> Bin {
        Bin { price, room: room.to_vec(), items: most.iter().copied().enumerate().collect() }
    }

    fn price(filled: &[FilledBin], bins: &[Bin]) -> f64 {
        filled.iter().map(|filled_bin| bins[filled_bin.bin].price).sum()
    }

    #[test]
    fn bins_are_mixed_where_that_is_cheaper() {
        // Cores and memory: two of each kind fill a bin of 1 dollar, and alone each would leave half of one resource.
        let items = [item(20.0, [3.0, 1.0]), item(20.0, [1.0, 3.0])];
        let bins = [bin(1.0, [8.0, 8.0], &[2.0, 2.0]), bin(0.8, [4.0, 4.0], &[1.0, 1.0])];
        let filled = filled_bins(&items, &bins, &[0.25, 0.25], &mut 1_000_000_000).unwrap();
        assert!((price(&filled, &bins) - 10.0).abs() < 1e-9, "{filled:?}");
        let held = |which: usize| {
            filled
                .iter()
                .flat_map(|filled_bin| &filled_bin.items)
                .filter(|(item, _)| *item == which)
                .map(|(_, count)| count)
                .sum::<f64>()
        };
        assert!((held(0) - 20.0).abs() < 1e-9 && (held(1) - 20.0).abs() < 1e-9, "{filled:?}");
    }

    #[test]
    fn what_fits_nowhere_is_left() {
        let items = [item(3.0, [1.0, 1.0]), item(2.0, [9.0, 9.0])];
        let bins = [bin(1.0, [4.0, 4.0], &[3.0])];
        let filled = filled_bins(&items, &bins, &[0.3, 1.0], &mut 1_000_000_000).unwrap();
        assert_eq!(filled.len(), 1, "{filled:?}");
        assert_eq!(filled[0].items.len(), 1, "{filled:?}");
    }

    /// Millicores, MiB and accelerators of pieces of a public trace, from prices that are not quite right.
    #[test]
    fn searches_that_are_too_short_are_not_the_last_word() {
        let sizes = [
            (1512, [3152.0, 5600.0, 1.0]),
            (1095, [11300.0, 49152.0, 1.0]),
            (691, [11908.0, 47104.0, 1.0]),
            (512, [8000.0, 30517.0, 1.0]),
            (413, [11400.0, 48128.0, 1.0]),
            (387, [12500.0, 57344.0, 0.0]),
            (294, [32000.0, 49152.0, 0.0]),
            (266, [18708.0, 64512.0, 1.0]),
            (257, [8000.0, 30517.0, 0.0]),
            (245, [4152.0, 10600.0, 1.0]),
            (197, [4000.0, 22888.0, 1.0]),
            (176, [4000.0, 15258.0, 1.0]),
            (161, [12000.0, 24576.0, 1.0]),
            (114, [16000.0, 32768.0, 1.0]),
            (113, [8000.0, 16384.0, 1.0]),
            (112, [4000.0, 24576.0, 1.0]),
        ];
        let items: Vec<Item> =
            sizes.iter().map(|(count, request)| Item { count: f64::from(*count), request: request.to_vec() }).collect();
        let room = [95690.0, 355_262.0, 8.0];
        let most = |(count, request): &(i32, [f64; 3])| {
            let copies =
                |(room, request): (&f64, &f64)| if *request > 0.0 { (room / request).floor() } else { f64::MAX };
            room.iter().zip(request).map(copies).fold(f64::from(*count), f64::min)
        };
        let large = Bin { price: 7.824, room: room.to_vec(), items: sizes.iter().map(most).enumerate().collect() };
        let bins = [large];
        let prices = dual_prices(&items, &bins, &[1.0; 16], Effort::rough(20_000_000));
        for time in 0..8 {
            let shaken = |(position, price): (usize, &f64)| price * (0.9 + 0.2 * scattered(position, time));
            let start: Vec<f64> = prices.per_piece.iter().enumerate().map(shaken).collect();
            let price = price(&filled_bins(&items, &bins, &start, &mut 2_400_000_000).unwrap(), &bins);
            assert!(price <= 1.005 * prices.bound, "{price} of {} from {start:?}", prices.bound);
        }
    }

    #[test]
    fn without_work_nothing_is_bought() {
        let filled = filled_bins(&[item(3.0, [1.0, 1.0])], &[bin(1.0, [4.0, 4.0], &[3.0])], &[0.3], &mut 0).unwrap();
        assert!(filled.is_empty(), "{filled:?}");
    }

    #[test]
    fn what_shares_no_bin_is_bought_apart() {
        let items: Vec<Item> = (0..900).map(|_| item(2.0, [1.0, 1.0])).collect();
        let of = |item: usize, most: f64| Bin { price: 1.0, room: vec![4.0, 4.0], items: vec![(item, most)] };
        let bins: Vec<Bin> = (0..900).map(|item| of(item, 2.0)).collect();
        let bought = filled_bins(&items, &bins, &vec![0.5; 900], &mut 1_000_000_000).unwrap();
        assert_eq!(bought.len(), 900);
        assert!(bought.iter().all(|filled_bin| filled_bin.items == [(filled_bin.bin, 2.0)]), "{:?}", bought.first());
    }

    #[test]
    fn too_many_kinds_for_a_program_are_grouped_where_bins_take_them_alike() {
        let items: Vec<Item> = (0..900).map(|size| item(2.0, [1.0 - f64::from(size % 7) / 100.0, 1.0])).collect();
        let shared = bin(1.0, [4.0, 4.0], &[2.0; 900]);
        let bought = filled_bins(&items, std::slice::from_ref(&shared), &[0.5; 900], &mut 1_000_000_000).unwrap();
        assert_eq!(bought.len(), 450);
        let mut pieces = vec![0.0; 900];
        bought.iter().flat_map(|filled_bin| &filled_bin.items).for_each(|(item, count)| pieces[*item] += count);
        assert!(pieces.iter().all(|count| (count - 2.0).abs() < 1e-9), "{pieces:?}");
        let own = (0..900).map(|item| Bin { price: 1.0, room: vec![4.0, 4.0], items: vec![(item, 2.0)] });
        let bins: Vec<Bin> = own.chain([shared]).collect();
        assert!(filled_bins(&items, &bins, &[0.5; 900], &mut 1_000_000_000).is_none());
    }
}
