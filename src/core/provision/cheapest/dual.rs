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
//! its own, by how much its demand has been missed so far (Kingma and Ba 2015), or rare classes would never arrive. How
//! much an offering can be filled with is bounded through a surrogate constraint (a weighted sum of its resources, Glover
//! 1968), whose weights are kept for each offering and improved only where they decide; any weights give a valid bound.
//! Where a dozen pods fill a node it matters that they are whole: there the prices climb on, against the best filling with whole
//! pods (branch and bound), which proves more than the linear program, and tells the buyer what small nodes are good for.
//! `tests/properties/lower_bound.rs` holds the result against a solver: no node can be filled with more than it costs, and the
//! bound is at least 97 % of the linear program's optimum.

use std::collections::BTreeMap;

use super::market::number;

/// A class: how many pods, and what one of them asks for.
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
    /// Positions of the items it may hold, with the most of each on one node.
    pub items: Vec<(usize, f64)>,
}

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
        for (item, amount) in &filling.taken {
            *self.held.entry((bin, *item)).or_default() += bins * amount;
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

/// Rounds of ascent at most; after some hundreds the bound moves in the fourth digit.
const ROUNDS_MAX: usize = 300;

/// The part of the bound that nodes must stand for which few pods fill, for whole pods to be worth looking at.
const OF_PARTS_LEAST: f64 = 0.2;

/// How often the weights of the deciding offering are improved in one round.
const REFINEMENTS: usize = 12;

/// One way to climb.
struct Stage {
    /// Of [`ROUNDS_MAX`], or of what the work allows.
    part_of_rounds: usize,
    /// How much sharper than a mean the maximum is taken: an offering that is one part in this less profitable than the best
    /// counts a third as much.
    sharpness: Schedule,
    /// The part by which a price moves in one round, at most.
    step: Schedule,
    /// Whether nodes that few pods fill are filled with whole ones.
    whole: bool,
}

const PARTS: Stage = Stage {
    part_of_rounds: 1,
    sharpness: Schedule { first: 40.0, last: 1500.0 },
    step: Schedule { first: 0.2, last: 0.005 },
    whole: false,
};

/// From the prices that parts of pods have led to; the first round proves as much as they did, or more.
const WHOLE: Stage = Stage {
    part_of_rounds: 2,
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
    let mut missed = Missed { mean: vec![0.0; items.len()], squares: vec![0.0; items.len()] };
    let pairs: usize = bins.iter().map(|bin| bin.items.len()).sum();
    let rounds = usize::try_from(work / (pairs as u64).max(1)).unwrap_or(ROUNDS_MAX).clamp(1, ROUNDS_MAX);
    let rounds = rounds.div_ceil(stage.part_of_rounds);
    for round in 0..rounds {
        let demand_worth: f64 = items.iter().zip(&prices).map(|(item, price)| item.count * price).sum();
        let Some((ratio, decisive)) = most_profitable(items, bins, fillings, &prices, stage.whole) else { break };
        if ratio <= 0.0 || demand_worth <= 0.0 || !ratio.is_finite() {
            break;
        }
        let bound = demand_worth / ratio;
        if bound > best.bound {
            let per_pod = prices.iter().map(|price| price / ratio).collect();
            best = Prices { per_pod, bound, shares: Vec::new() };
        }
        let progress = number(round) / number(rounds);
        let filled = shares_filled(items, bins, fillings, &prices, decisive, stage.sharpness.at(progress), stage.whole);
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
struct Missed {
    mean: Vec<f64>,
    squares: Vec<f64>,
}

impl Missed {
    /// Where the price should go, as a number around 1 however small the class is.
    fn direction(&mut self, position: usize, now: f64) -> f64 {
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
    items: &[Item],
    bins: &[Bin],
    fillings: &mut [Filling],
    prices: &[f64],
    decisive: usize,
    sharpness: f64,
    whole: bool,
) -> Filled {
    let most = fillings[decisive].ratio(&bins[decisive]);
    let mut shares = vec![0.0; items.len()];
    let mut total = 0.0;
    let mut by_bin: Vec<(usize, f64)> = Vec::new();
    for (position, (bin, filling)) in bins.iter().zip(fillings.iter_mut()).enumerate() {
        let weight = |filling: &Filling| (sharpness * (filling.ratio(bin) / most - 1.0)).exp();
        if position != decisive && weight(filling) > WORTH_REFINING {
            filling.refine(items, bin, prices, 1);
            if whole {
                filling.make_whole(items, bin, prices);
            }
        }
        let weight = weight(filling);
        if weight < WORTH_COUNTING {
            continue;
        }
        total += weight;
        by_bin.push((position, weight));
        for (item, amount) in &filling.taken {
            shares[*item] += weight * amount * prices[*item] / filling.worth.max(f64::MIN_POSITIVE);
        }
    }
    shares.iter_mut().for_each(|share| *share /= total.max(f64::MIN_POSITIVE));
    by_bin.iter_mut().for_each(|(_, weight)| *weight /= total.max(f64::MIN_POSITIVE));
    Filled { by_item: shares, by_bin }
}

/// The bin with the most worth per price, after the weights that decide were improved.
fn most_profitable(
    items: &[Item],
    bins: &[Bin],
    fillings: &mut [Filling],
    prices: &[f64],
    whole: bool,
) -> Option<(f64, usize)> {
    for (bin, filling) in bins.iter().zip(fillings.iter_mut()) {
        filling.fill(items, bin, prices);
    }
    let ratio = |fillings: &[Filling], position: usize| fillings[position].ratio(&bins[position]);
    let largest = |fillings: &[Filling]| {
        (0..bins.len()).max_by(|one, two| ratio(fillings, *one).total_cmp(&ratio(fillings, *two)).then(two.cmp(one)))
    };
    let mut position = largest(fillings)?;
    // What few pods fill promises more in parts than it keeps, so many have to be looked at.
    let refinements = if whole { bins.len().max(REFINEMENTS) } else { REFINEMENTS };
    for _ in 0..refinements {
        fillings[position].refine(items, &bins[position], prices, 2);
        if whole {
            fillings[position].make_whole(items, &bins[position], prices);
        }
        let next = largest(fillings)?;
        if next == position {
            break;
        }
        position = next;
    }
    Some((ratio(fillings, position), position))
}

/// How often the weights of two resources are halved towards where both are used alike.
const HALVINGS: usize = 12;

/// An item, as one bin looks at it.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// Worth of one pod for its size.
    density: f64,
    /// The part that one pod takes of the weighted sum of resources.
    size: f64,
    item: usize,
    /// As many fit.
    most: f64,
}

/// The most worth that a bin can be filled with, bounded with one weighted sum of its resources.
#[derive(Clone, Debug)]
pub struct Filling {
    weights: Vec<f64>,
    /// Resources that some item asks for.
    asked: Vec<usize>,
    pub worth: f64,
    /// Items of the best filling under that sum, the last one in part.
    taken: Vec<(usize, f64)>,
}

impl Filling {
    pub fn new(bin: &Bin, items: &[Item]) -> Self {
        let is_asked = |dimension: &usize| {
            bin.room[*dimension] > 0.0 && bin.items.iter().any(|(item, _)| items[*item].request[*dimension] > 0.0)
        };
        let asked: Vec<usize> = (0..bin.room.len()).filter(is_asked).collect();
        let mut weights = vec![0.0; bin.room.len()];
        asked.iter().for_each(|dimension| weights[*dimension] = 1.0 / number(asked.len()));
        Self { weights, asked, worth: 0.0, taken: Vec::new() }
    }

    /// Worth per dollar.
    fn ratio(&self, bin: &Bin) -> f64 {
        self.worth / bin.price.max(f64::MIN_POSITIVE)
    }

    /// What may go into the bin, best first.
    fn by_density(&self, items: &[Item], bin: &Bin, prices: &[f64]) -> Vec<Choice> {
        let mut by_density: Vec<Choice> = Vec::with_capacity(bin.items.len());
        for (item, most) in &bin.items {
            let size = self.size(&items[*item], bin);
            let density = if size > 0.0 { prices[*item] / size } else { f64::INFINITY };
            by_density.push(Choice { density, size, item: *item, most: *most });
        }
        by_density.sort_by(|one, two| two.density.total_cmp(&one.density).then(one.item.cmp(&two.item)));
        by_density
    }

    /// Takes items by worth for their weighted size until the bin is full; what is beyond is not worth more.
    pub fn fill(&mut self, items: &[Item], bin: &Bin, prices: &[f64]) {
        let by_density = self.by_density(items, bin, prices);
        self.taken.clear();
        self.worth = 0.0;
        let mut left = 1.0;
        for Choice { size, item, most, .. } in by_density {
            let amount = if size > 0.0 { (left / size).min(most) } else { most };
            if amount <= 0.0 {
                break;
            }
            left -= amount * size;
            self.worth += amount * prices[item];
            self.taken.push((item, amount));
        }
    }

    fn size(&self, item: &Item, bin: &Bin) -> f64 {
        self.asked
            .iter()
            .map(|dimension| self.weights[*dimension] * item.request[*dimension] / bin.room[*dimension])
            .sum()
    }

    /// Shifts weight between the resources that the filling overuses most and least, `times` times, to where the worth is
    /// lowest. A filling that overuses nothing is possible as it is, so no weights can bound it lower.
    pub fn refine(&mut self, items: &[Item], bin: &Bin, prices: &[f64], times: usize) {
        for _ in 0..times {
            let used = self.used(items, bin);
            let by_use = |one: &usize, two: &usize| used[*one].total_cmp(&used[*two]);
            let Some(over) = self.asked.iter().copied().max_by(by_use) else { return };
            let others = self.asked.iter().copied().filter(|other| *other != over && self.weights[*other] > 1e-9);
            let Some(under) = others.min_by(by_use).filter(|_| used[over] > 1.0 + 1e-9) else { return };
            self.balance(items, bin, prices, over, under);
        }
    }

    /// Along the line between two weights the worth falls and then rises; it turns where both resources are used alike.
    fn balance(&mut self, items: &[Item], bin: &Bin, prices: &[f64], over: usize, under: usize) {
        let (own, given) = (self.weights[over], self.weights[under]);
        let mut best = self.clone();
        let (mut low, mut high, mut part) = (0.0, 1.0, 1.0);
        for _ in 0..HALVINGS {
            self.weights[over] = own + part * given;
            self.weights[under] = (1.0 - part) * given;
            self.fill(items, bin, prices);
            if self.worth < best.worth {
                best = self.clone();
            }
            let used = self.used(items, bin);
            if used[over] <= used[under] {
                high = part;
            } else if part < 1.0 {
                low = part;
            } else {
                break;
            }
            part = (low + high) / 2.0;
        }
        *self = best;
    }

    /// Whether few pods fill the bin, one of them in part.
    fn is_of_parts(&self) -> bool {
        let pods: f64 = self.taken.iter().map(|(_, amount)| amount).sum();
        pods <= number(WHOLE_PODS_MAX) && self.taken.iter().any(|(_, amount)| amount.fract() != 0.0)
    }

    /// Where few pods fill the bin, the most that whole ones are worth: what parts of pods promise is not to be had.
    fn make_whole(&mut self, items: &[Item], bin: &Bin, prices: &[f64]) {
        if !self.is_of_parts() {
            return;
        }
        let WholePods { best, best_taken, steps_left, .. } = WholePods::searched(self, items, bin, prices);
        if steps_left > 0 && best < self.worth {
            self.worth = best;
            self.taken = best_taken;
        }
    }

    /// The best filling with whole pods that a short search finds under the weights as they are: positions of items, and how many.
    pub fn of_whole_pods(&self, items: &[Item], bin: &Bin, prices: &[f64]) -> Vec<(usize, f64)> {
        WholePods::searched(self, items, bin, prices).best_taken
    }

    /// By resource: the part of the room that the filling takes.
    fn used(&self, items: &[Item], bin: &Bin) -> Vec<f64> {
        let mut used = vec![0.0; bin.room.len()];
        for (item, amount) in &self.taken {
            for dimension in &self.asked {
                used[*dimension] += amount * items[*item].request[*dimension] / bin.room[*dimension];
            }
        }
        used
    }
}

/// With more pods on a node than this it hardly matters that they are whole.
pub const WHOLE_PODS_MAX: usize = 12;

/// How often a filling with whole pods takes one more pod at most; beyond, parts of pods have to do.
pub const WHOLE_STEPS_MAX: usize = 250;

/// Branch and bound over whole pods, best for their size first; what is left of the weighted sum bounds what is left to gain
/// (Kolesar 1967).
struct WholePods<'a> {
    items: &'a [Item],
    asked: &'a [usize],
    by_density: Vec<Choice>,
    prices: &'a [f64],
    room: Vec<f64>,
    taken: Vec<(usize, f64)>,
    best: f64,
    best_taken: Vec<(usize, f64)>,
    steps_left: usize,
}

/// The best filling of one node with whole pods that a short search finds, at these prices: positions of items, and how many.
pub fn whole_pods(items: &[Item], bin: &Bin, prices: &[f64]) -> Vec<(usize, f64)> {
    let mut filling = Filling::new(bin, items);
    filling.fill(items, bin, prices);
    filling.refine(items, bin, prices, 2);
    filling.of_whole_pods(items, bin, prices)
}

impl<'a> WholePods<'a> {
    fn searched(filling: &'a Filling, items: &'a [Item], bin: &Bin, prices: &'a [f64]) -> Self {
        let mut search = Self {
            items,
            asked: &filling.asked,
            by_density: filling.by_density(items, bin, prices),
            prices,
            room: bin.room.clone(),
            taken: Vec::new(),
            best: 0.0,
            best_taken: Vec::new(),
            steps_left: WHOLE_STEPS_MAX,
        };
        search.go_on(0, 0.0, 1.0);
        search
    }

    fn go_on(&mut self, first: usize, worth: f64, left: f64) {
        if worth > self.best {
            self.best = worth;
            self.best_taken.clone_from(&self.taken);
        }
        for position in first..self.by_density.len() {
            let Choice { density, size, item, most } = self.by_density[position];
            if self.steps_left == 0 || worth + density * left <= self.best {
                return;
            }
            let mut fits = most;
            for dimension in self.asked.iter().copied().filter(|it| self.items[item].request[*it] > 0.0) {
                fits = fits.min((self.room[dimension] / self.items[item].request[dimension] + 1e-9).floor());
            }
            let mut count = fits;
            while count >= 1.0 && self.steps_left > 0 {
                self.steps_left -= 1;
                self.take(item, count);
                self.taken.push((item, count));
                self.go_on(position + 1, worth + count * self.prices[item], left - count * size);
                self.taken.pop();
                self.take(item, -count);
                count -= 1.0;
            }
        }
    }

    fn take(&mut self, item: usize, count: f64) {
        for dimension in self.asked {
            self.room[*dimension] -= count * self.items[item].request[*dimension];
        }
    }
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
