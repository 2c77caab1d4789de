//! What one bin is filled with when pieces have prices, in parts of pieces: the most that a bin can be worth.
//!
//! A linear program of a few rows, one for each resource, and a bounded column for each class, solved by the simplex method with
//! bounds on its variables (Dantzig 1955). A filling remembers its basis from one set of prices to the next, which differ little in
//! a search: most often it takes no pivot at all. The worth that is reported is that of the dual, what the room is worth by resource
//! and what pieces are worth beyond the room that they take: it bounds the worth of the bin whatever rounding does to the basis.

use super::number;
use super::whole_pieces::{BestFilling, Choice, search};

/// A class: how many pieces, and what one of them asks for.
#[derive(Clone, Debug)]
pub struct Item {
    pub count: f64,
    pub request: Vec<f64>,
}

/// An offering: what it costs, and what there is room for.
#[derive(Clone, Debug)]
pub struct Bin {
    pub price: f64,
    pub room: Vec<f64>,
    /// Positions of the items it may hold, with the most of each on one bin.
    pub items: Vec<(usize, f64)>,
}

/// With more pieces on a bin than this it hardly matters that they are whole.
pub const WHOLE_PIECES_MAX: usize = 12;

/// Steps of a search for whole pieces that are to be bought: what is found later is hardly better.
pub const WHOLE_STEPS: usize = 250;

/// Pivots of one filling at most, for each row and each item: rounding can not keep it from coming to an end.
const PIVOTS_PER_VARIABLE: usize = 4;

/// After so many pivots the basis is built anew, since each leaves some rounding behind.
const PIVOTS_OF_A_BASIS: usize = 200;

/// Sums that do not wait for each other.
const LANES: usize = 4;

/// Smaller numbers are taken for the rounding of zero, and prices that differ by less than this part of the largest for the same.
const ZERO: f64 = 1e-9;

/// Where a variable of the program stands: at one of its bounds, or in a row of the basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariableState {
    Out,
    Full,
    Basic,
}

/// The most worth that a bin can be filled with.
#[derive(Clone, Debug)]
pub struct Filling {
    /// What may go in: positions of items, and the most of each.
    items: Vec<(usize, f64)>,
    /// By resource that some item asks for, and then by what may go in: the part of the room that one piece takes.
    parts: Vec<Vec<f64>>,
    /// By what may go in, then by resource, whose free room is a variable, too.
    standings: Vec<VariableState>,
    /// By row: position of the variable.
    basis: Vec<usize>,
    /// By row: how much of it is taken.
    amounts: Vec<f64>,
    /// By row, then by resource: of the basis.
    inverse: Vec<Vec<f64>>,
    pivots: usize,
    /// By resource: what the whole room is worth.
    values: Vec<f64>,
    /// By what may go in: what one piece is worth beyond the room that it takes.
    advantages: Vec<f64>,
    /// Of the best filling in parts, or of the best with whole pieces, or a bound on it where the bin was not filled.
    pub worth: f64,
    content: Content,
}

/// What is known of the filling.
#[derive(Clone, Debug)]
enum Content {
    /// Only a bound on its worth.
    Unknown,
    /// As the basis says.
    Parts,
    /// Positions of what may go in, and how many of each.
    Whole(Vec<(usize, f64)>),
}

impl Filling {
    pub fn new(bin: &Bin, items: &[Item]) -> Self {
        let is_asked = |dimension: &usize| {
            bin.room[*dimension] > 0.0 && bin.items.iter().any(|(item, _)| items[*item].request[*dimension] > 0.0)
        };
        let asked: Vec<usize> = (0..bin.room.len()).filter(is_asked).collect();
        let parts = |dimension: &usize| {
            let part = |(item, _): &(usize, f64)| items[*item].request[*dimension] / bin.room[*dimension];
            bin.items.iter().map(part).collect()
        };
        let mut filling = Self {
            items: bin.items.clone(),
            parts: asked.iter().map(parts).collect(),
            standings: Vec::new(),
            basis: Vec::new(),
            amounts: Vec::new(),
            inverse: Vec::new(),
            pivots: 0,
            values: vec![1.0; asked.len()],
            advantages: vec![0.0; bin.items.len()],
            worth: 0.0,
            content: Content::Unknown,
        };
        filling.empty();
        filling
    }

    /// Items that are asked for less often than they fit: `left` is by position of the item, and so are the prices, by which the
    /// search for the next filling begins.
    pub fn hold_no_more_than(&mut self, left: &[f64], prices: &[f64]) {
        if self.items.iter().all(|(item, most)| *most <= left[*item]) {
            return;
        }
        self.items.iter_mut().for_each(|(item, most)| *most = most.min(left[*item]));
        let is_left: Vec<bool> = self.items.iter().map(|(_, most)| *most >= 1.0).collect();
        for parts in &mut self.parts {
            let mut is_left = is_left.iter();
            parts.retain(|_| is_left.next() == Some(&true));
        }
        self.items.retain(|(_, most)| *most >= 1.0);
        self.start(prices);
    }

    /// Worth per dollar.
    pub fn ratio(&self, bin: &Bin) -> f64 {
        self.worth / bin.price.max(f64::MIN_POSITIVE)
    }

    /// What may go in: positions of items, and the most of each.
    pub fn items(&self) -> &[(usize, f64)] {
        &self.items
    }

    /// Positions of items, and how many of each; nothing where only a bound is known.
    pub fn taken(&self) -> Vec<(usize, f64)> {
        let item = |(position, amount): &(usize, f64)| (self.items[*position].0, *amount);
        match &self.content {
            Content::Unknown => Vec::new(),
            Content::Parts => self.in_parts().iter().map(item).collect(),
            Content::Whole(taken) => taken.iter().map(item).collect(),
        }
    }

    /// Positions of what may go in, and how much of each.
    fn in_parts(&self) -> Vec<(usize, f64)> {
        let full = (0..self.items.len()).filter(|position| self.standings[*position] == VariableState::Full);
        let full = full.map(|position| (position, self.items[position].1));
        let basic = self.basis.iter().copied().zip(self.amounts.iter().copied());
        full.chain(basic.filter(|(variable, amount)| *variable < self.items.len() && *amount > ZERO)).collect()
    }

    /// Fills the bin only where it could then be worth more than `least`, and says whether it did; else the worth is a bound, and
    /// hardly more than what would be found where prices have hardly moved since the last time.
    pub fn fill_if_above(&mut self, prices: &[f64], least: f64) -> bool {
        let at_most = self.appraise(prices);
        if at_most > least {
            self.fill(prices);
        } else {
            self.worth = at_most;
            self.content = Content::Unknown;
        }
        at_most > least
    }

    /// Fills the bin if its worth is only a bound.
    pub fn fill_if_estimated(&mut self, prices: &[f64]) {
        if matches!(self.content, Content::Unknown) {
            self.fill(prices);
        }
    }

    /// By position of the item: what a piece is worth beyond what the room for it is, where the bin was filled last.
    pub fn advantages(&self) -> impl Iterator<Item = (usize, f64)> {
        self.items.iter().zip(&self.advantages).map(|((item, _), advantage)| (*item, *advantage))
    }

    /// The best filling in parts. O(resources x items) for each pivot.
    pub fn fill(&mut self, prices: &[f64]) {
        let zero = ZERO * self.items.iter().map(|(item, _)| prices[*item]).fold(0.0, f64::max);
        let pivots_max = PIVOTS_PER_VARIABLE * (self.items.len() + self.parts.len());
        if self.pivots > PIVOTS_OF_A_BASIS {
            self.start(prices);
        }
        self.worth = self.appraise(prices);
        for _ in 0..pivots_max {
            let Some(entering) = self.entering(zero) else { break };
            if !self.pivot(entering) {
                self.start(prices);
            }
            self.worth = self.worth.min(self.appraise(prices));
        }
        self.content = Content::Parts;
    }

    /// Whether few pieces fill the bin, one of them in part.
    pub fn is_of_parts(&self) -> bool {
        let taken = self.in_parts();
        let is_in_part = |amount: f64| (amount - amount.round()).abs() > ZERO;
        let pieces: f64 = taken.iter().map(|(_, amount)| amount).sum();
        pieces <= number(WHOLE_PIECES_MAX) && taken.iter().any(|(_, amount)| is_in_part(*amount))
    }

    /// Where few pieces fill the bin, the most that whole ones are worth, or `least` if that is more: what parts of pieces promise is not to
    /// be had. Says how many steps it took, of so many at most.
    pub fn make_whole(&mut self, prices: &[f64], least: f64, steps: usize) -> usize {
        if !self.is_of_parts() {
            return 0;
        }
        let found = self.searched(prices, least, steps);
        self.worth = self.worth.min(found.at_most);
        if found.worth >= found.at_most {
            self.content = Content::Whole(found.taken);
        }
        found.steps
    }

    /// The best filling with whole pieces that so many steps find, after [`Self::fill`] at the same prices, if it is worth more than
    /// `least`: positions of items, and how many; and how many steps it took.
    pub fn of_whole_pieces(&self, prices: &[f64], least: f64, steps: usize) -> (Vec<(usize, f64)>, usize) {
        let found = self.searched(prices, least, steps);
        (self.items_of(&found), found.steps)
    }

    fn items_of(&self, found: &BestFilling) -> Vec<(usize, f64)> {
        found.taken.iter().map(|(position, count)| (self.items[*position].0, *count)).collect()
    }

    fn searched(&self, prices: &[f64], least: f64, steps: usize) -> BestFilling {
        let all = self.items.iter().zip(&self.advantages).enumerate();
        let choices = all.map(|(position, ((item, most), advantage))| Choice {
            position,
            price: prices[*item],
            advantage: *advantage,
            most: *most,
        });
        search(choices.collect(), &self.parts, self.worth_of_room(), least, steps)
    }

    /// Nothing goes in: the basis is what is free.
    fn empty(&mut self) {
        let (items, rows) = (self.items.len(), self.parts.len());
        let unit = |row: usize| (0..rows).map(|other| f64::from(u8::from(row == other))).collect();
        self.content = Content::Unknown;
        self.pivots = 0;
        self.advantages = vec![0.0; items];
        self.standings = vec![VariableState::Out; items];
        self.standings.resize(items + rows, VariableState::Basic);
        self.basis = (items..items + rows).collect();
        self.amounts = vec![1.0; rows];
        self.inverse = (0..rows).map(unit).collect();
    }

    /// A new basis: what is worth most for its room goes in, as far as all of it fits, and the rest is free.
    fn start(&mut self, prices: &[f64]) {
        self.empty();
        let size =
            |position: usize| self.values.iter().zip(&self.parts).map(|(value, parts)| value * parts[position]).sum();
        let density =
            |position: usize| -> f64 { prices[self.items[position].0] / f64::max(size(position), f64::MIN_POSITIVE) };
        let all = 0..self.items.len();
        let mut order: Vec<(f64, usize)> = all.map(|position| (density(position), position)).collect();
        order.sort_unstable_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
        for (_, position) in order {
            let most = self.items[position].1;
            if self.parts.iter().zip(&self.amounts).all(|(parts, free)| parts[position] * most <= *free) {
                self.standings[position] = VariableState::Full;
                self.amounts.iter_mut().zip(&self.parts).for_each(|(free, parts)| *free -= parts[position] * most);
            }
        }
    }

    /// Brings what the room is worth and the advantages up to date, and says what the bin is worth at most by them.
    fn appraise(&mut self, prices: &[f64]) -> f64 {
        self.values.fill(0.0);
        for (variable, inverse) in self.basis.iter().zip(&self.inverse) {
            if let Some((item, _)) = self.items.get(*variable) {
                self.values.iter_mut().zip(inverse).for_each(|(value, part)| *value += prices[*item] * part);
            }
        }
        let rounding = ZERO * self.values.iter().map(|value| value.abs()).sum::<f64>();
        self.values.iter_mut().filter(|value| value.abs() < rounding).for_each(|value| *value = 0.0);
        self.advantages.iter_mut().zip(&self.items).for_each(|(advantage, (item, _))| *advantage = prices[*item]);
        for (value, parts) in self.values.iter().zip(&self.parts).filter(|(value, _)| **value != 0.0) {
            self.advantages.iter_mut().zip(parts).for_each(|(advantage, part)| *advantage -= value * part);
        }
        self.worth_of_room() + self.worth_beyond_room()
    }

    /// Summed in lanes: in one sum each addition waits for the one before, which took a fifth of the time of large programs.
    fn worth_beyond_room(&self) -> f64 {
        let beyond = |((_, most), advantage): (&(usize, f64), &f64)| most * advantage.max(0.0);
        let (items, advantages) = (self.items.chunks_exact(LANES), self.advantages.chunks_exact(LANES));
        let rest: f64 = items.remainder().iter().zip(advantages.remainder()).map(beyond).sum();
        let mut lanes = [0.0; LANES];
        for of_lanes in items.zip(advantages) {
            let values = of_lanes.0.iter().zip(of_lanes.1).map(beyond);
            lanes.iter_mut().zip(values).for_each(|(lane, value)| *lane += value);
        }
        lanes.iter().sum::<f64>() + rest
    }

    /// Room that would be worth less than nothing stays free; what pieces are worth beyond it is then rather too much than too little.
    fn worth_of_room(&self) -> f64 {
        self.values.iter().map(|value| value.max(0.0)).sum()
    }

    /// The variable that is worth most to move, all of it, and whether there will be more of it.
    fn entering(&self, zero: f64) -> Option<(usize, bool)> {
        let mut best = (0.0, None);
        for (position, (advantage, (_, most))) in self.advantages.iter().zip(&self.items).enumerate() {
            let (gain, is_more) = match self.standings[position] {
                VariableState::Out => (*advantage, true),
                VariableState::Full => (-advantage, false),
                VariableState::Basic => continue,
            };
            if gain > zero && gain * most > best.0 {
                best = (gain * most, Some((position, is_more)));
            }
        }
        for (resource, value) in self.values.iter().enumerate() {
            let variable = self.items.len() + resource;
            if self.standings[variable] == VariableState::Out && -value > zero.max(best.0) {
                best = (-value, Some((variable, true)));
            }
        }
        best.1
    }

    /// The most there can be of a variable.
    fn most(&self, variable: usize) -> f64 {
        self.items.get(variable).map_or(f64::INFINITY, |(_, most)| *most)
    }

    /// Moves one variable as far as it goes: to its other bound, or into the basis in the place of another one. False where rounding
    /// has spoilt the basis.
    fn pivot(&mut self, (entering, is_more): (usize, bool)) -> bool {
        self.pivots += 1;
        let direction = self.direction(entering);
        let sign = if is_more { 1.0 } else { -1.0 };
        let mut leaving: Option<(usize, VariableState)> = None;
        let mut step = self.most(entering);
        for (row, part) in direction.iter().enumerate().filter(|(_, part)| part.abs() > ZERO) {
            let (room, standing) = if sign * part > 0.0 {
                (self.amounts[row], VariableState::Out)
            } else {
                (self.most(self.basis[row]) - self.amounts[row], VariableState::Full)
            };
            let ratio = room.max(0.0) / part.abs();
            if ratio < step {
                (leaving, step) = (Some((row, standing)), ratio);
            }
        }
        if !step.is_finite() {
            return false;
        }
        self.amounts.iter_mut().zip(&direction).for_each(|(amount, part)| *amount -= sign * step * part);
        match leaving {
            None => self.standings[entering] = if is_more { VariableState::Full } else { VariableState::Out },
            Some((row, standing)) => {
                self.standings[self.basis[row]] = standing;
                self.standings[entering] = VariableState::Basic;
                self.basis[row] = entering;
                self.amounts[row] = if is_more { step } else { self.most(entering) - step };
                self.replace(row, &direction);
            }
        }
        true
    }

    /// By row: what one of a variable takes the place of.
    fn direction(&self, variable: usize) -> Vec<f64> {
        let of_slack = variable.checked_sub(self.items.len());
        let part = |inverse: &Vec<f64>| match of_slack {
            Some(resource) => inverse[resource],
            None => inverse.iter().zip(&self.parts).map(|(value, parts)| value * parts[variable]).sum(),
        };
        self.inverse.iter().map(part).collect()
    }

    /// The inverse after another variable has taken a row of the basis.
    fn replace(&mut self, row: usize, direction: &[f64]) {
        let mut own = std::mem::take(&mut self.inverse[row]);
        own.iter_mut().for_each(|value| *value /= direction[row]);
        for (inverse, part) in self.inverse.iter_mut().zip(direction).filter(|(inverse, _)| !inverse.is_empty()) {
            inverse.iter_mut().zip(&own).for_each(|(value, own)| *value -= part * own);
        }
        self.inverse[row] = own;
    }
}

/// The best filling of one bin with whole pieces that a short search finds at these prices, if it is worth more than `least`: positions
/// of items, and how many; and how many looks at items it took.
pub fn whole_pieces(items: &[Item], bin: &Bin, prices: &[f64], least: f64) -> (Vec<(usize, f64)>, u64) {
    let mut filling = Filling::new(bin, items);
    filling.fill(prices);
    let found = filling.searched(prices, least, WHOLE_STEPS);
    (filling.items_of(&found), found.looks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        let item = |request: [f64; 2]| Item { count: 9.0, request: request.to_vec() };
        vec![item([3.0, 1.0]), item([1.0, 3.0]), item([0.5, 0.5]), item([0.0, 2.0])]
    }

    fn filling() -> Filling {
        let bin = Bin { price: 1.0, room: vec![8.0, 8.0], items: vec![(0, 2.0), (1, 2.0), (2, 9.0), (3, 4.0)] };
        Filling::new(&bin, &items())
    }

    #[test]
    fn a_filling_that_goes_on_from_another_is_as_good_as_a_new_one() {
        let prices =
            |turn: usize| -> Vec<f64> { (0..4).map(|item| 1.0 + number((turn * 7 + item * 5) % 11) / 4.0).collect() };
        for before in 0..11 {
            for now in 0..11 {
                let mut filling = filling();
                filling.fill(&prices(before));
                let estimate = filling.clone().fill_if_above(&prices(now), f64::INFINITY);
                assert!(!estimate);
                filling.fill(&prices(now));
                let mut new = self::filling();
                new.fill(&prices(now));
                assert!((filling.worth - new.worth).abs() < 1e-9, "{filling:?} {new:?}");
                assert_is_possible(&filling, &prices(now));
            }
        }
    }

    /// It fits, and is worth what it is said to be worth: no filling is worth more.
    fn assert_is_possible(filling: &Filling, prices: &[f64]) {
        let taken = filling.taken();
        let sum = |of: &dyn Fn(usize) -> f64| taken.iter().map(|(item, amount)| amount * of(*item)).sum::<f64>();
        assert!((0..2).all(|resource| sum(&|item| items()[item].request[resource]) <= 8.0 + 1e-9), "{filling:?}");
        assert!((sum(&|item| prices[item]) - filling.worth).abs() < 1e-9, "{filling:?}");
    }

    #[test]
    fn an_estimate_is_never_below_a_filling() {
        let mut filling = filling();
        filling.fill(&[1.0, 2.0, 0.3, 0.6]);
        let prices = [2.0, 1.0, 0.3, 0.5];
        assert!(!filling.fill_if_above(&prices, 1e9), "{filling:?}");
        assert!(filling.taken().is_empty(), "{filling:?}");
        let estimate = filling.worth;
        filling.fill(&prices);
        assert!(estimate >= filling.worth, "{estimate} {filling:?}");
    }

    #[test]
    fn whole_pieces_fit_and_are_worth_no_more_than_parts() {
        let prices = [1.0, 1.0, 0.2, 0.6];
        let mut filling = filling();
        filling.fill(&prices);
        let (whole, _) = filling.of_whole_pieces(&prices, 0.0, WHOLE_STEPS);
        let sum = |of: &dyn Fn(usize) -> f64| whole.iter().map(|(item, count)| count * of(*item)).sum::<f64>();
        assert!((0..2).all(|resource| sum(&|item| items()[item].request[resource]) <= 8.0), "{whole:?}");
        assert!(sum(&|item| prices[item]) <= filling.worth + 1e-9 && sum(&|item| prices[item]) > 3.9, "{whole:?}");
    }

    #[test]
    fn what_is_no_longer_asked_for_is_not_held() {
        let prices = [9.0, 1.0, 0.1, 0.1];
        let mut filling = filling();
        filling.fill(&prices);
        filling.hold_no_more_than(&[0.0, 1.0, 9.0, 9.0], &prices);
        filling.fill(&prices);
        let taken = filling.taken();
        assert!(taken.iter().all(|(item, amount)| *item != 0 && (*item != 1 || *amount <= 1.0)), "{filling:?}");
        assert_is_possible(&filling, &prices);
    }
}
