//! The linear program of whole fleets by column generation (Gilmore and Gomory 1961): a column is one filled bin of an offering.
//!
//! The program says how often each known column is taken and what one more piece of each class would cost; at these prices every
//! offering is asked for a filling that is worth more than the bin; those become columns, until there are none. Prices swing while
//! few columns are known, so fillings are sought between them and the best prices so far (Wentges 1997). Each place where they are
//! sought proves a bound of its own: what all pieces are worth there, by the most that an offering is then worth for its price
//! (Farley 1990).

use super::covering::{Column, Covering};
use super::filling::{Bin, Filling, Item};

/// A bin that is bought: its position, and positions of items with how many pieces of each.
#[derive(Clone, Debug)]
pub struct FilledBin {
    pub bin: usize,
    pub items: Vec<(usize, f64)>,
}

/// What bins are filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// Parts of pieces, too.
    InParts,
    /// Whole ones where few fill a bin, as far as so many steps can prove that nothing is better; else parts.
    WholeIfProven(usize),
    /// Whole ones, the best that are found in so many steps; the bound is then what the search has seen, and no proof.
    Whole(usize),
}

/// With more rows than this the inverse of the basis grows too large.
pub const ROWS_MAX: usize = 400;

/// Fillings are sought until the program is within this part of what the prices prove.
const GAP: f64 = 0.002;
const GAP_OF_WHOLE: f64 = 0.001;

/// Rounds of seeking in one program at most.
const ROUNDS_MAX: usize = 120;

/// How far to go from the best prices to those of the program; further where nothing is found.
pub const STEPS: [f64; 3] = [0.3, 0.7, 1.0];

/// A column is found when it is worth more than its price by this part.
pub const FOUND: f64 = 1e-5;

/// Of one bin in so many, and of this many at least, the best whole pieces are sought where there is no need of a proof: those that
/// are worth most in parts.
const BINS_PER_SEARCHED: usize = 8;
const SEARCHED_MIN: usize = 32;

/// Columns that a program begins with are worth at least this part of their price.
const NEAR: f64 = 0.9;

/// Multiplications for each item of a bin that is looked at, for each that is filled, and for each step of a search for whole pieces.
const OF_AN_ESTIMATE: u64 = 6;
const OF_A_FILLING: u64 = 20;
const OF_A_STEP: u64 = 40;

/// Best prices of a demand as far as they are known, and what they prove.
#[derive(Clone)]
pub struct Generation<'a> {
    items: &'a [Item],
    /// By bin, none of them 0.
    bin_prices: &'a [f64],
    /// By bin, each with no more of an item than is left.
    fillings: Vec<Filling>,
    /// By item: pieces that are to be covered.
    pub left: Vec<f64>,
    /// By item: what one piece is worth.
    pub prices: Vec<f64>,
    /// What covering all that is left costs at least.
    pub bound: f64,
    /// Multiplications that may still be done, of which some 10^9 take a second.
    pub work: u64,
}

impl<'a> Generation<'a> {
    /// `start` are any positive prices, the nearer to the best the sooner it ends.
    pub fn new(items: &'a [Item], bins: &[Bin], bin_prices: &'a [f64], start: &[f64], work: u64) -> Self {
        Self {
            items,
            bin_prices,
            fillings: bins.iter().map(|bin| Filling::new(bin, items)).collect(),
            left: items.iter().map(|item| item.count).collect(),
            prices: start.to_vec(),
            bound: 0.0,
            work,
        }
    }

    pub fn price(&self, filled_bin: &FilledBin) -> f64 {
        self.bin_prices[filled_bin.bin]
    }

    /// For what is left: bins hold no more of an item, and nothing is proven yet.
    pub fn start_again(&mut self) {
        self.bound = 0.0;
        self.fillings.iter_mut().for_each(|filling| filling.hold_no_more_than(&self.left, &self.prices));
    }

    /// Columns known from the start and those that are found on the way, and how often each is taken.
    pub fn solve(&mut self, known: Vec<FilledBin>, pieces: Pieces) -> Vec<(FilledBin, f64)> {
        let (rows, mut filled) = self.alone();
        let mut row_of = vec![0; self.items.len()];
        rows.iter().enumerate().for_each(|(row, item)| row_of[*item] = row);
        let demand: Vec<f64> = rows.iter().map(|item| self.left[*item]).collect();
        let columns: Vec<Option<Column>> =
            filled.iter().map(|filled_bin| Some(self.column(filled_bin, &row_of))).collect();
        let mut program = Covering::new(&demand, &columns);
        let mut more = known;
        let gap = if matches!(pieces, Pieces::Whole(_)) { GAP_OF_WHOLE } else { GAP };
        for _ in 0..ROUNDS_MAX {
            more.iter().for_each(|filled_bin| program.add(&self.column(filled_bin, &row_of)));
            filled.append(&mut more);
            program.solve(&mut self.work);
            let mut exact = vec![0.0; self.items.len()];
            rows.iter().zip(program.prices()).for_each(|(item, price)| exact[*item] = price.max(0.0));
            if self.work == 0 || self.worth_of_all(&exact) <= self.bound * (1.0 + gap) {
                break;
            }
            more = self.seek_towards(&exact, pieces);
            if more.is_empty() {
                break;
            }
        }
        let mut amounts = vec![0.0; filled.len()];
        program.taken().into_iter().for_each(|(filled_bin, amount)| amounts[filled_bin] = amount);
        filled.into_iter().zip(amounts).collect()
    }

    /// The part of the price of what is taken that bins stand for which few pieces fill, one of them in part.
    pub fn part_of_parts(&self, taken: &[(FilledBin, f64)]) -> f64 {
        let spent = |(filled_bin, amount): &&(FilledBin, f64)| amount * self.price(filled_bin);
        let is_of_parts = |(filled_bin, _): &&(FilledBin, f64)| self.fillings[filled_bin.bin].is_of_parts();
        let all: f64 = taken.iter().map(|taken| spent(&taken)).sum();
        taken.iter().filter(is_of_parts).map(|taken| spent(&taken)).sum::<f64>() / all.max(f64::MIN_POSITIVE)
    }

    /// Columns near the best prices, for a start.
    pub fn near(&mut self, pieces: Pieces) -> Vec<FilledBin> {
        let prices = self.prices.clone();
        self.seek(&prices, &prices, NEAR, pieces)
    }

    /// Items that are left and that some bin holds, and for each the bin that is cheapest with it alone.
    fn alone(&self) -> (Vec<usize>, Vec<FilledBin>) {
        let mut cheapest: Vec<Option<(f64, FilledBin)>> = vec![None; self.items.len()];
        for (position, (price, filling)) in self.bin_prices.iter().zip(&self.fillings).enumerate() {
            for (item, most) in filling.items() {
                let each = price / most;
                if cheapest[*item].as_ref().is_none_or(|(least, _)| each < *least) {
                    cheapest[*item] = Some((each, FilledBin { bin: position, items: vec![(*item, *most)] }));
                }
            }
        }
        let held = cheapest.into_iter().enumerate().filter_map(|(item, cheapest)| Some((item, cheapest?.1)));
        held.unzip()
    }

    fn column(&self, filled_bin: &FilledBin, row_of: &[usize]) -> Column {
        let entries = filled_bin.items.iter().map(|(item, count)| (row_of[*item], *count)).collect();
        Column { price: self.price(filled_bin), entries }
    }

    fn worth_of_all(&self, prices: &[f64]) -> f64 {
        self.left.iter().zip(prices).map(|(left, price)| left * price).sum()
    }

    /// Seeks between the best prices and the exact ones of the program.
    fn seek_towards(&mut self, exact: &[f64], pieces: Pieces) -> Vec<FilledBin> {
        for step in STEPS {
            let found = self.seek(&between(step, exact, &self.prices), exact, 1.0 + FOUND, pieces);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Fillings at some prices that are worth at least a part of their bin at the exact ones, best first. Prices that prove more
    /// than the best ones take their place.
    pub fn seek(&mut self, prices: &[f64], exact: &[f64], least: f64, pieces: Pieces) -> Vec<FilledBin> {
        let mut most = f64::MIN_POSITIVE;
        let mut worth_filling: Vec<(f64, usize)> = Vec::new();
        for bin in 0..self.fillings.len() {
            let (ratio, is_filled) = self.fill(bin, prices, least);
            if is_filled {
                worth_filling.push((ratio, bin));
            } else {
                most = most.max(ratio);
            }
        }
        worth_filling.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        if matches!(pieces, Pieces::Whole(_)) {
            worth_filling.truncate((self.fillings.len() / BINS_PER_SEARCHED).max(SEARCHED_MIN));
        }
        let found_most = found_most(self.items.len());
        let mut found = Vec::new();
        for (_, bin) in worth_filling {
            // Without need of a proof, those that follow promise less.
            if matches!(pieces, Pieces::Whole(_)) && found.len() >= found_most {
                break;
            }
            let (ratio, filled_bin) = self.content(bin, prices, least, pieces);
            most = most.max(ratio);
            let worth = worth(&filled_bin.items, exact) / self.bin_prices[bin];
            if worth > least {
                found.push((worth, filled_bin));
            }
        }
        let bound = self.worth_of_all(prices) / most;
        if bound > self.bound {
            self.prices = prices.iter().map(|price| price / most).collect();
            self.bound = bound;
        }
        found.sort_by(|one, two| two.0.total_cmp(&one.0));
        found.truncate(found_most);
        found.into_iter().map(|(_, filled_bin)| filled_bin).collect()
    }

    /// What a bin is worth at most for its price, and whether that is more than was asked for.
    fn fill(&mut self, bin: usize, prices: &[f64], least: f64) -> (f64, bool) {
        let (filling, price) = (&mut self.fillings[bin], self.bin_prices[bin]);
        let items = filling.items().len() as u64;
        let mut spent = OF_AN_ESTIMATE * items;
        let is_filled = items > 0 && filling.fill_if_above(prices, price * least) && filling.worth > price * least;
        if is_filled {
            spent += OF_A_FILLING * items;
        }
        self.work = self.work.saturating_sub(spent);
        (filling.worth / price, is_filled)
    }

    /// What a bin is filled with, and what that is worth for its price.
    fn content(&mut self, bin: usize, prices: &[f64], least: f64, pieces: Pieces) -> (f64, FilledBin) {
        let (filling, price) = (&mut self.fillings[bin], self.bin_prices[bin]);
        let (items, steps) = match pieces {
            Pieces::InParts => (filling.taken(), 0),
            Pieces::WholeIfProven(steps_max) => {
                // Whether it is worth more than it costs is all that a proof asks.
                let steps = filling.make_whole(prices, least.min(1.0) * price, steps_max);
                (filling.taken(), steps)
            }
            Pieces::Whole(steps_max) => filling.of_whole_pieces(prices, least * price, steps_max),
        };
        self.work = self.work.saturating_sub(OF_A_STEP * steps as u64);
        let filled_bin = FilledBin { bin, items };
        let is_proof = !matches!(pieces, Pieces::Whole(_));
        (if is_proof { filling.worth / price } else { least.max(worth(&filled_bin.items, prices) / price) }, filled_bin)
    }
}

/// Prices so far on the way from the best ones to the exact ones of a program.
pub fn between(step: f64, exact: &[f64], best: &[f64]) -> Vec<f64> {
    exact.iter().zip(best).map(|(exact, best)| step * exact + (1.0 - step) * best).collect()
}

/// How many columns a round adds to a program of so many items, those worth most.
pub fn found_most(items: usize) -> usize {
    items / 2 + 10
}

/// What so many pieces of items are worth.
pub fn worth(amounts: &[(usize, f64)], prices: &[f64]) -> f64 {
    amounts.iter().map(|(item, amount)| amount * prices[*item]).sum()
}
