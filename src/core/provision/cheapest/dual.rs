//! Prices per pod from the dual of the linear program of buying whole nodes for whole classes.
//!
//! The program: buy x of each offering at its price; put y pods of each class on nodes of each offering, no more than fit
//! in each resource and no more than `most` on one node; place every pod. Its dual asks for a price per pod of each class
//! such that no offering can be filled with pods worth more than it costs. Any such prices bound the cost of the fleet
//! from below, and they are what the greedy choice needs to know: what else each pod would cost.
//!
//! Solved by mirror ascent on the bound itself: prices move from what the most profitable offering would be filled with
//! towards what is in demand. How much an offering can be filled with is bounded through a surrogate constraint (a
//! weighted sum of its resources, Glover 1968), whose weights are kept for each offering and improved only where they
//! decide; any weights give a valid bound.

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
}

/// Rounds of ascent at most; after some hundreds the bound moves in the fourth digit.
const ROUNDS_MAX: usize = 300;

/// How often the weights of the deciding offering are improved in one round.
const REFINEMENTS: usize = 12;

/// Maximises the bound from the given start. `work` limits the number of (bin, item) pairs looked at, so the result
/// depends on the inputs alone. O(rounds x bins x items x log items).
pub fn dual_prices(items: &[Item], bins: &[Bin], start: &[f64], work: u64) -> Prices {
    let mut fillings: Vec<Filling> = bins.iter().map(Filling::new).collect();
    let mut prices = start.to_vec();
    let mut best = Prices { per_pod: start.to_vec(), bound: 0.0 };
    let pairs: usize = bins.iter().map(|bin| bin.items.len()).sum();
    let rounds = usize::try_from(work / (pairs as u64).max(1)).unwrap_or(ROUNDS_MAX).clamp(1, ROUNDS_MAX);
    for round in 0..rounds {
        let demand_worth: f64 = items.iter().zip(&prices).map(|(item, price)| item.count * price).sum();
        let Some((ratio, decisive)) = most_profitable(items, bins, &mut fillings, &prices) else { break };
        if ratio <= 0.0 || demand_worth <= 0.0 {
            break;
        }
        let bound = demand_worth / ratio;
        if bound > best.bound {
            best = Prices { per_pod: prices.iter().map(|price| price / ratio).collect(), bound };
        }
        // The gradient of the logarithm of the bound: share of each class in what is asked less its share in the filling.
        let filling = &fillings[decisive];
        let step = STEP_FIRST / (1.0 + STEP_DECAY * number(round)).sqrt();
        let mut shares: Vec<f64> =
            items.iter().zip(&prices).map(|(item, price)| item.count * price / demand_worth).collect();
        for (item, amount) in &filling.taken {
            shares[*item] -= amount * prices[*item] / filling.worth.max(f64::MIN_POSITIVE);
        }
        for (price, share) in prices.iter_mut().zip(shares) {
            *price *= (step * share).exp();
        }
    }
    best
}

/// The first step changes a price by at most some 35 %; later ones by less, so that the prices settle.
const STEP_FIRST: f64 = 0.3;
const STEP_DECAY: f64 = 0.15;

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// The bin with the most worth per price, after the weights that decide were improved.
fn most_profitable(items: &[Item], bins: &[Bin], fillings: &mut [Filling], prices: &[f64]) -> Option<(f64, usize)> {
    for (bin, filling) in bins.iter().zip(fillings.iter_mut()) {
        filling.fill(items, bin, prices);
    }
    let ratio =
        |fillings: &[Filling], position: usize| fillings[position].worth / bins[position].price.max(f64::MIN_POSITIVE);
    let largest = |fillings: &[Filling]| {
        (0..bins.len()).max_by(|one, two| ratio(fillings, *one).total_cmp(&ratio(fillings, *two)).then(two.cmp(one)))
    };
    let mut position = largest(fillings)?;
    for _ in 0..REFINEMENTS {
        fillings[position].refine(items, &bins[position], prices);
        let next = largest(fillings)?;
        if next == position {
            break;
        }
        position = next;
    }
    Some((ratio(fillings, position), position))
}

/// The most worth that a bin can be filled with, bounded with one weighted sum of its resources.
#[derive(Clone, Debug)]
pub struct Filling {
    weights: Vec<f64>,
    pub worth: f64,
    /// Items of the best filling under that sum, the last one in part.
    taken: Vec<(usize, f64)>,
}

impl Filling {
    pub fn new(bin: &Bin) -> Self {
        let useful = bin.room.iter().filter(|room| **room > 0.0).count();
        let weights = bin.room.iter().map(|room| if *room > 0.0 { 1.0 / number(useful.max(1)) } else { 0.0 }).collect();
        Self { weights, worth: 0.0, taken: Vec::new() }
    }

    /// Takes items by worth for their weighted size until the bin is full; what is beyond is not worth more.
    pub fn fill(&mut self, items: &[Item], bin: &Bin, prices: &[f64]) {
        let mut by_density: Vec<(f64, f64, usize, f64)> = Vec::with_capacity(bin.items.len());
        for (item, most) in &bin.items {
            let size = self.size(&items[*item], bin);
            let density = if size > 0.0 { prices[*item] / size } else { f64::INFINITY };
            by_density.push((density, size, *item, *most));
        }
        by_density.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.2.cmp(&two.2)));
        self.taken.clear();
        self.worth = 0.0;
        let mut left = 1.0;
        for (_, size, item, most) in by_density {
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
        let dimensions = item.request.iter().zip(&bin.room).zip(&self.weights);
        dimensions
            .filter(|((request, room), _)| **request > 0.0 && **room > 0.0)
            .map(|((request, room), weight)| weight * request / room)
            .sum()
    }

    /// Shifts weight to the resources that the filling overuses, as long as that lowers the worth.
    pub fn refine(&mut self, items: &[Item], bin: &Bin, prices: &[f64]) {
        let mut best = self.clone();
        for step in [0.6, 0.6, 0.3, 0.3, 0.15, 0.08] {
            let mut used = vec![0.0; bin.room.len()];
            for (item, amount) in &self.taken {
                for (dimension, request) in items[*item].request.iter().enumerate() {
                    if bin.room[dimension] > 0.0 {
                        used[dimension] += amount * request / bin.room[dimension];
                    }
                }
            }
            let mut total = 0.0;
            for (weight, used) in self.weights.iter_mut().zip(&used) {
                *weight *= (step * (used - 1.0).clamp(-2.0, 2.0)).exp();
                total += *weight;
            }
            self.weights.iter_mut().for_each(|weight| *weight /= total.max(f64::MIN_POSITIVE));
            self.fill(items, bin, prices);
            if self.worth < best.worth {
                best = self.clone();
            }
        }
        *self = best;
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
