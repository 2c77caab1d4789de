//! What one node is filled with when pods have prices: in parts, which bounds what it can be worth, and with whole pods.
//!
//! How much a node can be filled with is bounded through a surrogate constraint (a weighted sum of its resources, Glover 1968):
//! any weights give a valid bound, and it is the least where the resources that the filling overuses weigh more. A filling
//! remembers its weights and its order from one set of prices to the next, which differ little in a search.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// With more pods on a node than this it hardly matters that they are whole.
pub const WHOLE_PODS_MAX: usize = 12;

/// How often a filling with whole pods takes one more pod at most; beyond, parts of pods have to do.
pub const WHOLE_STEPS_MAX: usize = 250;

/// How often the weights of two resources are halved towards where both are used alike.
const HALVINGS: usize = 12;

/// The most worth that a bin can be filled with, bounded with one weighted sum of its resources.
#[derive(Clone, Debug)]
pub struct Filling {
    /// What may go in: positions of items, and the most of each.
    items: Vec<(usize, f64)>,
    /// By resource that some item asks for, and then by what may go in: the part of the room that one pod takes.
    parts: Vec<Vec<f64>>,
    /// By resource; their sum is 1.
    weights: Vec<f64>,
    /// By what may go in: the part that one pod takes of the weighted sum of resources.
    sizes: Vec<f64>,
    /// Worth for the size of what was taken last, when the bin was filled last; 0 if all went in.
    level: f64,
    /// Of the best filling under that sum, or a bound on it where the bin was not filled.
    pub worth: f64,
    /// The best filling under that sum: positions of what may go in, and how many of each; the last one in part.
    taken: Vec<(usize, f64)>,
    /// Used again from filling to filling.
    heap: BinaryHeap<Choice>,
}

/// Something that may go in, by worth for its size; of equals the first is larger.
type Choice = (u64, Reverse<usize>);

/// Positive numbers have the order of their bits.
fn choice(worth: f64, size: f64, position: usize) -> Choice {
    let density = if size > 0.0 { worth / size } else { f64::INFINITY };
    (density.max(0.0).to_bits(), Reverse(position))
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
            weights: vec![1.0 / number(asked.len()); asked.len()],
            sizes: Vec::new(),
            level: 0.0,
            worth: 0.0,
            taken: Vec::new(),
            heap: BinaryHeap::new(),
        };
        filling.weigh();
        filling
    }

    /// Items that are asked for less often than they fit: `left` is by position of the item.
    pub fn hold_no_more_than(&mut self, left: &[f64]) {
        self.items.iter_mut().for_each(|(item, most)| *most = most.min(left[*item]));
        let is_left: Vec<bool> = self.items.iter().map(|(_, most)| *most >= 1.0).collect();
        if is_left.contains(&false) {
            let keep = |values: &mut Vec<f64>| {
                let mut is_left = is_left.iter();
                values.retain(|_| is_left.next() == Some(&true));
            };
            self.parts.iter_mut().for_each(keep);
            keep(&mut self.sizes);
            self.items.retain(|(_, most)| *most >= 1.0);
        }
        self.taken.clear();
    }

    /// Worth per dollar.
    pub fn ratio(&self, bin: &Bin) -> f64 {
        self.worth / bin.price.max(f64::MIN_POSITIVE)
    }

    /// What may go in: positions of items, and the most of each.
    pub fn items(&self) -> &[(usize, f64)] {
        &self.items
    }

    /// Positions of items, and how many of each.
    pub fn taken(&self) -> impl Iterator<Item = (usize, f64)> {
        self.taken.iter().map(|(position, amount)| (self.items[*position].0, *amount))
    }

    /// No less than the worth that [`Self::fill`] would find, and hardly more where prices have hardly moved since: what is worth
    /// more for its size than what was taken last goes in, whether there is room or not (the program's dual).
    fn at_most(&self, prices: &[f64]) -> f64 {
        let beyond = self.items.iter().zip(&self.sizes);
        let beyond = beyond.map(|((item, most), size)| most * (prices[*item] - self.level * size).max(0.0));
        self.level + beyond.sum::<f64>()
    }

    /// Fills the bin only where it could then be worth more than `least`, and says whether it did; else the worth is a bound.
    pub fn fill_if_above(&mut self, prices: &[f64], least: f64) -> bool {
        let at_most = self.at_most(prices);
        if at_most > least {
            self.fill(prices);
        } else {
            self.worth = at_most;
            self.taken.clear();
        }
        at_most > least
    }

    /// Fills the bin if its worth is only a bound.
    pub fn fill_if_estimated(&mut self, prices: &[f64]) {
        if self.taken.is_empty() {
            self.fill(prices);
        }
    }

    /// By position of the item: what a pod is worth beyond what the room for it is, where the bin was filled last.
    pub fn advantages(&self, prices: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        self.items.iter().zip(&self.sizes).map(|((item, _), size)| (*item, prices[*item] - self.level * size))
    }

    /// Takes items by worth for their weighted size until the bin is full; what is beyond is not worth more.
    pub fn fill(&mut self, prices: &[f64]) {
        let mut choices = std::mem::take(&mut self.heap).into_vec();
        choices.clear();
        let all = self.items.iter().zip(&self.sizes).enumerate();
        choices.extend(all.map(|(position, ((item, _), size))| choice(prices[*item], *size, position)));
        self.heap = BinaryHeap::from(choices);
        self.taken.clear();
        self.worth = 0.0;
        self.level = 0.0;
        let mut left = 1.0;
        while let Some((density, Reverse(position))) = self.heap.pop() {
            let (size, (item, most)) = (self.sizes[position], self.items[position]);
            let amount = if size > 0.0 { (left / size).min(most) } else { most };
            left -= amount * size;
            self.worth += amount * prices[item];
            self.taken.push((position, amount));
            if left <= 0.0 || amount < most {
                self.level = f64::from_bits(density);
                break;
            }
        }
    }

    /// Sizes from weights.
    fn weigh(&mut self) {
        self.sizes.clear();
        self.sizes.resize(self.items.len(), 0.0);
        for (weight, parts) in self.weights.iter().zip(&self.parts) {
            self.sizes.iter_mut().zip(parts).for_each(|(size, part)| *size += weight * part);
        }
    }

    /// Shifts weight between the resources that the filling overuses most and least, `times` times, to where the worth is
    /// lowest. A filling that overuses nothing is possible as it is, so no weights can bound it lower.
    pub fn refine(&mut self, prices: &[f64], times: usize) {
        for _ in 0..times {
            let used = self.used();
            let by_use = |one: &usize, two: &usize| used[*one].total_cmp(&used[*two]);
            let Some(over) = (0..used.len()).max_by(by_use) else { return };
            let others = (0..used.len()).filter(|other| *other != over && self.weights[*other] > 1e-9);
            let Some(under) = others.min_by(by_use).filter(|_| used[over] > 1.0 + 1e-9) else { return };
            self.balance(prices, over, under);
        }
    }

    /// Along the line between two weights the worth falls and then rises; it turns where both resources are used alike.
    fn balance(&mut self, prices: &[f64], over: usize, under: usize) {
        let (own, given) = (self.weights[over], self.weights[under]);
        let (mut best, mut best_part) = (self.worth, 0.0);
        let (mut low, mut high, mut part) = (0.0, 1.0, 1.0);
        for _ in 0..HALVINGS {
            self.shift(prices, (over, own + part * given), (under, (1.0 - part) * given));
            if self.worth < best {
                (best, best_part) = (self.worth, part);
            }
            if self.used_of(over) <= self.used_of(under) {
                high = part;
            } else if part < 1.0 {
                low = part;
            } else {
                break;
            }
            part = (low + high) / 2.0;
        }
        if self.worth > best {
            self.shift(prices, (over, own + best_part * given), (under, (1.0 - best_part) * given));
        }
    }

    fn shift(&mut self, prices: &[f64], over: (usize, f64), under: (usize, f64)) {
        self.weights[over.0] = over.1;
        self.weights[under.0] = under.1;
        self.weigh();
        self.fill(prices);
    }

    /// By resource: the part of the room that the filling takes.
    fn used(&self) -> Vec<f64> {
        (0..self.weights.len()).map(|resource| self.used_of(resource)).collect()
    }

    fn used_of(&self, resource: usize) -> f64 {
        self.taken.iter().map(|(position, amount)| amount * self.parts[resource][*position]).sum()
    }

    /// Whether few pods fill the bin, one of them in part.
    pub fn is_of_parts(&self) -> bool {
        let pods: f64 = self.taken.iter().map(|(_, amount)| amount).sum();
        pods <= number(WHOLE_PODS_MAX) && self.taken.iter().any(|(_, amount)| amount.fract() != 0.0)
    }

    /// Where few pods fill the bin, the most that whole ones are worth: what parts of pods promise is not to be had.
    pub fn make_whole(&mut self, prices: &[f64]) {
        if !self.is_of_parts() {
            return;
        }
        let WholePods { best, best_taken, steps_left, .. } = WholePods::searched(self, prices);
        if steps_left > 0 && best < self.worth {
            self.worth = best;
            self.taken = best_taken;
        }
    }

    /// The best filling with whole pods that a short search finds under the weights as they are, after [`Self::fill`] at the same
    /// prices: positions of items, and how many.
    pub fn of_whole_pods(&self, prices: &[f64]) -> Vec<(usize, f64)> {
        let best = WholePods::searched(self, prices).best_taken.into_iter();
        best.map(|(position, count)| (self.items[position].0, count)).collect()
    }
}

/// The best filling of one node with whole pods that a short search finds, at these prices: positions of items, and how many.
pub fn whole_pods(items: &[Item], bin: &Bin, prices: &[f64]) -> Vec<(usize, f64)> {
    let mut filling = Filling::new(bin, items);
    filling.fill(prices);
    filling.refine(prices, 2);
    filling.of_whole_pods(prices)
}

/// Branch and bound over whole pods, best for their size first; what is left of the weighted sum bounds what is left to gain
/// (Kolesar 1967).
struct WholePods {
    /// What may go in, best for its size first.
    choices: Vec<WholeChoice>,
    /// By choice and then by resource: the part that one pod takes.
    parts: Vec<f64>,
    /// By resource: the part that is free.
    room: Vec<f64>,
    /// Positions of choices.
    taken: Vec<(usize, f64)>,
    best: f64,
    best_taken: Vec<(usize, f64)>,
    steps_left: usize,
}

struct WholeChoice {
    position: usize,
    density: f64,
    size: f64,
    price: f64,
    most: f64,
}

/// Of what is full to the last part, this much is the rounding of the arithmetic.
const ROUNDING: f64 = 1e-9;

impl WholePods {
    fn searched(filling: &Filling, prices: &[f64]) -> Self {
        let all = filling.items.iter().zip(&filling.sizes).enumerate();
        let mut order: Vec<Choice> =
            all.map(|(position, ((item, _), size))| choice(prices[*item], *size, position)).collect();
        order.sort_unstable_by(|one, two| two.cmp(one));
        let whole = |(density, Reverse(position)): &Choice| WholeChoice {
            position: *position,
            density: f64::from_bits(*density),
            size: filling.sizes[*position],
            price: prices[filling.items[*position].0],
            most: filling.items[*position].1,
        };
        let parts = order.iter().flat_map(|(_, Reverse(position))| filling.parts.iter().map(|part| part[*position]));
        let mut search = Self {
            parts: parts.collect(),
            choices: order.iter().map(whole).collect(),
            room: vec![1.0; filling.weights.len()],
            taken: Vec::new(),
            best: 0.0,
            best_taken: Vec::new(),
            steps_left: WHOLE_STEPS_MAX,
        };
        search.go_on(0, 0.0, 1.0);
        let position = |(choice, count): (usize, f64)| (search.choices[choice].position, count);
        search.best_taken = std::mem::take(&mut search.best_taken).into_iter().map(position).collect();
        search
    }

    fn go_on(&mut self, first: usize, worth: f64, left: f64) {
        if worth > self.best {
            self.best = worth;
            self.best_taken.clone_from(&self.taken);
        }
        for choice in first..self.choices.len() {
            let WholeChoice { density, size, price, most, .. } = self.choices[choice];
            if self.steps_left == 0 || worth + density * left <= self.best {
                return;
            }
            let mut count = self.fits(choice, most);
            while count >= 1.0 && self.steps_left > 0 {
                self.steps_left -= 1;
                self.take(choice, count);
                self.taken.push((choice, count));
                self.go_on(choice + 1, worth + count * price, left - count * size);
                self.taken.pop();
                self.take(choice, -count);
                count -= 1.0;
            }
        }
    }

    /// What one pod takes of each resource, and what is free of it.
    fn takes(&self, choice: usize) -> impl Iterator<Item = (f64, f64)> {
        let first = choice * self.room.len();
        self.parts[first..first + self.room.len()].iter().copied().zip(self.room.iter().copied())
    }

    /// How many fit, at most `most`.
    fn fits(&self, choice: usize, most: f64) -> f64 {
        if self.takes(choice).any(|(part, room)| part > room + ROUNDING) {
            return 0.0;
        }
        let parts = self.takes(choice).filter(|(part, _)| *part > 0.0);
        parts.map(|(part, room)| (room / part + ROUNDING).floor()).fold(most, f64::min)
    }

    fn take(&mut self, choice: usize, count: f64) {
        let parts = &self.parts[choice * self.room.len()..];
        self.room.iter_mut().zip(parts).for_each(|(room, part)| *room -= count * part);
    }
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
    fn an_estimate_is_never_below_a_filling() {
        let prices =
            |turn: usize| -> Vec<f64> { (0..4).map(|item| 1.0 + number((turn * 7 + item * 5) % 11) / 4.0).collect() };
        for before in 0..11 {
            for now in 0..11 {
                let mut filling = filling();
                filling.fill(&prices(before));
                filling.refine(&prices(before), 3);
                let estimate = filling.at_most(&prices(now));
                filling.fill(&prices(now));
                assert!(estimate >= filling.worth - 1e-9, "{estimate} {filling:?}");
                let again = filling.at_most(&prices(now));
                assert!((again - filling.worth).abs() < 1e-9, "{again} {filling:?}");
            }
        }
    }

    #[test]
    fn refined_weights_bound_lower_and_whole_pods_fit() {
        let prices = [1.0, 1.0, 0.2, 0.6];
        let mut filling = filling();
        filling.fill(&prices);
        let first = filling.worth;
        filling.refine(&prices, 3);
        assert!(filling.worth <= first, "{filling:?}");
        let whole = filling.of_whole_pods(&prices);
        let sum = |of: &dyn Fn(usize) -> f64| whole.iter().map(|(item, count)| count * of(*item)).sum::<f64>();
        assert!(
            sum(&|item| items()[item].request[0]) <= 8.0 && sum(&|item| items()[item].request[1]) <= 8.0,
            "{whole:?}"
        );
        assert!(sum(&|item| prices[item]) <= filling.worth + 1e-9 && sum(&|item| prices[item]) > 3.9, "{whole:?}");
    }

    #[test]
    fn what_is_no_longer_asked_for_is_not_held() {
        let mut filling = filling();
        filling.hold_no_more_than(&[0.0, 1.0, 9.0, 9.0]);
        filling.fill(&[9.0, 1.0, 0.1, 0.1]);
        assert!(filling.taken().all(|(item, amount)| item != 0 && (item != 1 || amount <= 1.0)), "{filling:?}");
    }
}
