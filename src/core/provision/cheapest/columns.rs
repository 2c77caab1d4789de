//! Whole nodes by column generation (Gilmore and Gomory 1961): a column is one node of an offering with whole pods on it.
//!
//! A linear program says how often each known column is taken and what one more pod of each class would cost; at these prices
//! every offering is asked for a filling that is worth more than the node; those become columns, until there are none. Then the
//! columns taken at least once are bought, and the nearly whole ones, and the program is made again for what is left. Prices
//! swing while few columns are known, so that fillings are sought near the best prices so far, in the direction of those of the
//! program (Wentges 1997). They begin as those of [`super::dual`], and so do the columns: fillings at these prices, shaken.

use std::collections::{BTreeMap, BTreeSet};

use super::covering::{Column, Covering};
use super::filling::{Bin, Filling, Item, WHOLE_STEPS_MAX};
use super::market::number;

/// One node: position of its bin, and positions of items with how many whole pods of each.
#[derive(Clone, Debug)]
pub struct Node {
    pub bin: usize,
    pub items: Vec<(usize, f64)>,
}

/// With more rows than this the inverse of the basis grows too large.
const ROWS_MAX: usize = 400;

/// The part of what is left that is bought before the program is made again: by attempt, of which the cheapest counts, since what
/// rounding loses is a matter of luck. A new one is made as long as those before took less than this part of the work.
const PARTS_BOUGHT: [f64; 2] = [0.35, 0.5];
const ATTEMPTS_PART: u64 = 20;

/// A column that is taken in part is bought whole when its pods are worth this part of its price.
const WORTH_LEAST: f64 = 0.97;

/// Columns worth less than this part of their price are forgotten.
const REMEMBERED_WORTH_LEAST: f64 = 0.9;

/// A program begins with so many columns for each row at most; more slow it down more than they tell.
const KNOWN_PER_ROW: usize = 10;

/// Fillings are sought until the program is within this part of what the prices prove.
const GAP: f64 = 0.004;

/// Rounds of seeking in one program at most.
const ROUNDS_MAX: usize = 30;

/// How far to go from the best prices to those of the program; further where nothing is found.
const STEPS: [f64; 3] = [0.2, 0.5, 1.0];

/// A column is found when it is worth more than its price by this part.
const FOUND: f64 = 1e-4;

/// How often prices are shaken for the first columns, by up to which part, and what the fillings must be worth at those that were
/// not shaken.
const SHAKES: u32 = 10;
const SHAKEN_BY: f64 = 0.1;
const SHAKEN_WORTH_LEAST: f64 = 0.97;

/// Nothing costs less than this, for the sake of divisions.
const PRICE_LEAST: f64 = 1e-6;

#[derive(Clone)]
struct Search<'a> {
    items: &'a [Item],
    /// By bin.
    node_prices: &'a [f64],
    /// By bin, each with no more of an item than is left.
    fillings: Vec<Filling>,
    /// By item: pods that have no node yet.
    left: Vec<f64>,
    /// By item: what one pod is worth, as far as is known.
    prices: Vec<f64>,
    known: Vec<Node>,
    part_bought: f64,
    /// Number of the first shake, so that each attempt shakes otherwise.
    first_shake: u32,
    /// Multiplications that may still be done.
    work: u64,
}

/// Nodes for the items, which take each pod once; what no bin takes, or no work is left for, is on none of them. `start` is what the
/// items are worth by [`super::dual`]. `work` bounds the multiplications, of which some 10^9 take a second. Items that share no bin,
/// as those of other teams or zones, are programs of their own. `None` where one of them would be too large.
pub fn nodes(items: &[Item], bins: &[Bin], start: &[f64], work: u64) -> Option<Vec<Node>> {
    let parts = parts(items.len(), bins);
    if parts.iter().any(|part| part.items.len() > ROWS_MAX) {
        return None;
    }
    let of_all = |part: &Part| work / (items.len() as u64).max(1) * part.items.len() as u64;
    Some(parts.iter().flat_map(|part| part.nodes(items, bins, start, of_all(part))).collect())
}

/// Items that have bins in common, over any number of steps; positions of both, ascending.
#[derive(Default)]
struct Part {
    items: Vec<usize>,
    bins: Vec<usize>,
}

fn parts(items: usize, bins: &[Bin]) -> Vec<Part> {
    let mut nearer: Vec<usize> = (0..items).collect();
    for bin in bins {
        let Some((first, _)) = bin.items.first() else { continue };
        for (item, _) in &bin.items {
            let (one, other) = (last(&mut nearer, *first), last(&mut nearer, *item));
            nearer[one.max(other)] = one.min(other);
        }
    }
    let mut parts: BTreeMap<usize, Part> = BTreeMap::new();
    for item in 0..items {
        parts.entry(last(&mut nearer, item)).or_default().items.push(item);
    }
    for (position, bin) in bins.iter().enumerate() {
        if let Some((item, _)) = bin.items.first() {
            parts.entry(last(&mut nearer, *item)).or_default().bins.push(position);
        }
    }
    parts.into_values().collect()
}

/// The first item of those that an item is known to belong to, found in fewer steps the next time.
fn last(nearer: &mut [usize], mut item: usize) -> usize {
    while nearer[item] != item {
        nearer[item] = nearer[nearer[item]];
        item = nearer[item];
    }
    item
}

impl Part {
    fn nodes(&self, items: &[Item], bins: &[Bin], start: &[f64], work: u64) -> Vec<Node> {
        let position: BTreeMap<usize, usize> = self.items.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let bin = |old: &usize| Bin {
            price: bins[*old].price.max(PRICE_LEAST),
            room: bins[*old].room.clone(),
            items: bins[*old].items.iter().map(|(item, most)| (position[item], *most)).collect(),
        };
        let own: Vec<Item> = self.items.iter().map(|item| items[*item].clone()).collect();
        let own_bins: Vec<Bin> = self.bins.iter().map(bin).collect();
        let node_prices: Vec<f64> = own_bins.iter().map(|bin| bin.price).collect();
        let search = Search {
            items: &own,
            node_prices: &node_prices,
            fillings: own_bins.iter().map(|bin| Filling::new(bin, &own)).collect(),
            left: own.iter().map(|item| item.count).collect(),
            prices: self.items.iter().map(|item| start[*item]).collect(),
            known: Vec::new(),
            part_bought: 0.0,
            first_shake: 0,
            work,
        };
        let nodes = search.cheapest_attempt().into_iter();
        let renamed = |node: Node| Node {
            bin: self.bins[node.bin],
            items: node.items.into_iter().map(|(item, count)| (self.items[item], count)).collect(),
        };
        nodes.map(renamed).collect()
    }
}

/// A number between 0 and 1 that is hardly related to those of other positions and times (Roberts 2018).
fn scattered(position: usize, time: u32) -> f64 {
    let (position, time) = (number(position + 1), f64::from(time + 1));
    (position * 0.618_033_988_749_895 + time * 0.754_877_666_246_693 + position * time * 0.569_840_290_998_053).fract()
}

impl Search<'_> {
    /// The nodes of the cheapest of some attempts, each from the start.
    fn cheapest_attempt(self) -> Vec<Node> {
        let mut best: Option<(f64, Vec<Node>)> = None;
        let mut work = self.work;
        for (attempt, part_bought) in (0..).zip(PARTS_BOUGHT) {
            let mut search = Self { part_bought, first_shake: attempt * SHAKES, work, ..self.clone() };
            let nodes = search.all();
            let price: f64 = nodes.iter().map(|node| self.node_prices[node.bin]).sum();
            let rest: f64 = search.left.iter().zip(&self.prices).map(|(left, price)| left * price).sum();
            if best.as_ref().is_none_or(|(least, _)| price + rest < *least) {
                best = Some((price + rest, nodes));
            }
            work = search.work;
            if work < self.work - self.work / ATTEMPTS_PART {
                break;
            }
        }
        best.map_or_else(Vec::new, |(_, nodes)| nodes)
    }

    fn all(&mut self) -> Vec<Node> {
        self.shake();
        let mut nodes = Vec::new();
        while self.work > 0 {
            let taken = self.solve();
            let bought = self.buy(&taken);
            if bought.is_empty() {
                break;
            }
            nodes.extend(bought);
        }
        nodes
    }

    /// The first columns: what offerings are filled with at prices near those that are known, less and less far away.
    fn shake(&mut self) {
        let exact = self.prices.clone();
        for filling in &mut self.fillings {
            filling.fill(&exact);
            filling.refine(&exact, 2);
            self.work = self.work.saturating_sub(2 * OF_A_REFINEMENT * filling.items().len() as u64);
        }
        let mut seen: BTreeSet<(usize, Vec<(usize, u64)>)> = BTreeSet::new();
        let first = self.first_shake;
        for time in 0..SHAKES {
            let by = SHAKEN_BY * (1.0 - f64::from(time) / f64::from(SHAKES));
            let shaken =
                |(position, price): (usize, &f64)| price * (1.0 + by * (2.0 * scattered(position, first + time) - 1.0));
            let prices: Vec<f64> = exact.iter().enumerate().map(shaken).collect();
            let (found, _) = self.seek(&prices, &exact, SHAKEN_WORTH_LEAST);
            let is_new = |node: &Node| {
                let items = node.items.iter().map(|(item, count)| (*item, count.to_bits())).collect();
                seen.insert((node.bin, items))
            };
            self.known.extend(found.into_iter().filter(is_new));
        }
    }

    /// How often each column is taken in the program for what is left.
    fn solve(&mut self) -> Vec<(Node, f64)> {
        self.forget_what_is_taken();
        let (rows, mut nodes) = self.alone();
        let mut row_of = vec![0; self.items.len()];
        rows.iter().enumerate().for_each(|(row, item)| row_of[*item] = row);
        let demand: Vec<f64> = rows.iter().map(|item| self.left[*item]).collect();
        let columns: Vec<Column> = nodes.iter().map(|node| self.column(node, &row_of)).collect();
        let mut program = Covering::new(&demand, &columns);
        let prices = self.prices.clone();
        let (near, mut bound) = self.seek(&prices, &prices, REMEMBERED_WORTH_LEAST);
        let known = std::mem::take(&mut self.known);
        let mut more = self.best_of(near.into_iter().chain(known).collect(), KNOWN_PER_ROW * rows.len());
        for _ in 0..ROUNDS_MAX {
            for node in &more {
                program.add(&self.column(node, &row_of));
            }
            nodes.append(&mut more);
            program.solve(&mut self.work);
            let mut exact = vec![0.0; self.items.len()];
            rows.iter().zip(program.prices()).for_each(|(item, price)| exact[*item] = price.max(0.0));
            if self.work == 0 || self.worth_of_all(&exact) <= bound * (1.0 + GAP) {
                break;
            }
            more = self.seek_towards(&exact, &mut bound);
            if more.is_empty() {
                break;
            }
        }
        let amount = |(position, spent): (usize, f64)| {
            let node: &Node = &nodes[position];
            (node.clone(), spent / self.node_prices[node.bin])
        };
        let taken = program.taken().into_iter().map(amount).collect();
        self.known = nodes;
        taken
    }

    /// Those worth most for their price, at most so many, best first.
    fn best_of(&self, nodes: Vec<Node>, most: usize) -> Vec<Node> {
        let ranked = nodes.into_iter().map(|node| (worth(&node, &self.prices) / self.node_prices[node.bin], node));
        let mut ranked: Vec<(f64, Node)> = ranked.collect();
        ranked.sort_by(|one, two| two.0.total_cmp(&one.0));
        ranked.truncate(most);
        ranked.into_iter().map(|(_, node)| node).collect()
    }

    /// Bins and columns hold no more of an item than is left, and columns that are then worth too little go.
    fn forget_what_is_taken(&mut self) {
        self.fillings.iter_mut().for_each(|filling| filling.hold_no_more_than(&self.left));
        let mut known: Vec<Node> = self.known.iter().map(|node| self.cut(node)).collect();
        known.retain(|node| {
            let least = REMEMBERED_WORTH_LEAST * self.node_prices[node.bin];
            node.items.len() > 1 && worth(node, &self.prices) >= least
        });
        self.known = known;
    }

    /// Items that are left and that some bin holds, and for each the node that is cheapest with it alone.
    fn alone(&self) -> (Vec<usize>, Vec<Node>) {
        let mut cheapest: Vec<Option<(f64, Node)>> = vec![None; self.items.len()];
        for (position, (price, filling)) in self.node_prices.iter().zip(&self.fillings).enumerate() {
            for (item, most) in filling.items() {
                let each = price / most;
                if cheapest[*item].as_ref().is_none_or(|(least, _)| each < *least) {
                    cheapest[*item] = Some((each, Node { bin: position, items: vec![(*item, *most)] }));
                }
            }
        }
        let held = cheapest.into_iter().enumerate().filter_map(|(item, cheapest)| Some((item, cheapest?.1)));
        held.unzip()
    }

    fn column(&self, node: &Node, row_of: &[usize]) -> Column {
        Column {
            price: self.node_prices[node.bin],
            entries: node.items.iter().map(|(item, count)| (row_of[*item], *count)).collect(),
        }
    }

    /// What is left of a node when it holds no more of an item than is left.
    fn cut(&self, node: &Node) -> Node {
        let items = node.items.iter().map(|(item, count)| (*item, count.min(self.left[*item])));
        Node { bin: node.bin, items: items.filter(|(_, count)| *count >= 1.0).collect() }
    }

    fn worth_of_all(&self, prices: &[f64]) -> f64 {
        self.left.iter().zip(prices).map(|(left, price)| left * price).sum()
    }

    /// Seeks between the best prices and the exact ones of the program, and keeps those that prove more than `bound`.
    fn seek_towards(&mut self, exact: &[f64], bound: &mut f64) -> Vec<Node> {
        for step in STEPS {
            let between = exact.iter().zip(&self.prices).map(|(exact, best)| step * exact + (1.0 - step) * best);
            let between: Vec<f64> = between.collect();
            let (found, proven) = self.seek(&between, exact, 1.0 + FOUND);
            if proven > *bound {
                // No filling is then worth more than its node, as far as was seen.
                let most = self.worth_of_all(&between) / proven;
                self.prices = between.iter().map(|price| price / most).collect();
                *bound = proven;
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Fillings at some prices that are worth at least a part of their node at the exact ones; and what all that is left costs at
    /// least by these prices, as far as a short search for fillings can prove it.
    fn seek(&mut self, prices: &[f64], exact: &[f64], least: f64) -> (Vec<Node>, f64) {
        let mut found = Vec::new();
        let mut most = f64::MIN_POSITIVE;
        let bins = self.node_prices.iter().zip(&mut self.fillings).enumerate();
        for (position, (price, filling)) in bins.filter(|(_, (_, filling))| !filling.items().is_empty()) {
            let enough = price * least;
            let items = filling.items().len() as u64;
            let mut spent = OF_AN_ESTIMATE * items;
            if filling.fill_if_above(prices, enough) {
                spent += OF_A_FILLING * items;
                if filling.worth > enough {
                    filling.refine(prices, 1);
                    spent += OF_A_REFINEMENT * items;
                }
            }
            self.work = self.work.saturating_sub(spent);
            if filling.worth <= enough {
                most = most.max(filling.worth / price);
                continue;
            }
            self.work = self.work.saturating_sub(OF_A_STEP * WHOLE_STEPS_MAX as u64);
            let node = Node { bin: position, items: filling.of_whole_pods(prices) };
            most = most.max(worth(&node, prices) / price);
            if worth(&node, exact) > enough {
                found.push(node);
            }
        }
        (found, self.worth_of_all(prices) / most)
    }

    /// Takes what is whole, and then what is most nearly so, until enough is bought.
    fn buy(&mut self, taken: &[(Node, f64)]) -> Vec<Node> {
        let mut bought = Vec::new();
        for (node, amount) in taken {
            let mut whole = (amount + NEARLY).floor();
            while whole >= 1.0 && self.cut(node).items == node.items {
                self.take(node, &mut bought);
                whole -= 1.0;
            }
        }
        let mut in_part: Vec<&(Node, f64)> = taken.iter().filter(|(_, amount)| amount.fract() > NEARLY).collect();
        in_part.sort_by(|one, two| two.1.fract().total_cmp(&one.1.fract()));
        let enough = self.part_bought * taken.iter().map(|(_, amount)| amount).sum::<f64>();
        for (node, _) in in_part {
            if number(bought.len()) >= enough.max(1.0) {
                break;
            }
            let node = self.cut(node);
            let is_worth_it = worth(&node, &self.prices) >= WORTH_LEAST * self.node_prices[node.bin];
            if !node.items.is_empty() && (is_worth_it || bought.is_empty()) {
                self.take(&node, &mut bought);
            }
        }
        bought
    }

    fn take(&mut self, node: &Node, bought: &mut Vec<Node>) {
        for (item, count) in &node.items {
            self.left[*item] -= count;
        }
        bought.push(node.clone());
    }
}

/// Multiplications for each item of a bin that is looked at, for each that is filled, for each that is filled again with other weights,
/// and for each step of the search for whole pods.
const OF_AN_ESTIMATE: u64 = 2;
const OF_A_FILLING: u64 = 8;
const OF_A_REFINEMENT: u64 = 100;
const OF_A_STEP: u64 = 4;

/// Amounts are off by less than this.
const NEARLY: f64 = 1e-3;

fn worth(node: &Node, prices: &[f64]) -> f64 {
    node.items.iter().map(|(item, count)| count * prices[*item]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(count: f64, request: [f64; 2]) -> Item {
        Item { count, request: request.to_vec() }
    }

    fn bin(price: f64, room: [f64; 2], most: &[f64]) -> Bin {
        Bin { price, room: room.to_vec(), items: most.iter().copied().enumerate().collect() }
    }

    fn price(nodes: &[Node], bins: &[Bin]) -> f64 {
        nodes.iter().map(|node| bins[node.bin].price).sum()
    }

    #[test]
    fn nodes_are_mixed_where_that_is_cheaper() {
        // Cores and memory: two of each kind fill a node of 1 dollar, and alone each would leave half of one resource.
        let items = [item(20.0, [3.0, 1.0]), item(20.0, [1.0, 3.0])];
        let bins = [bin(1.0, [8.0, 8.0], &[2.0, 2.0]), bin(0.8, [4.0, 4.0], &[1.0, 1.0])];
        let nodes = nodes(&items, &bins, &[0.25, 0.25], 1_000_000_000).unwrap();
        assert!((price(&nodes, &bins) - 10.0).abs() < 1e-9, "{nodes:?}");
        let held = |which: usize| {
            nodes
                .iter()
                .flat_map(|node| &node.items)
                .filter(|(item, _)| *item == which)
                .map(|(_, count)| count)
                .sum::<f64>()
        };
        assert!((held(0) - 20.0).abs() < 1e-9 && (held(1) - 20.0).abs() < 1e-9, "{nodes:?}");
    }

    #[test]
    fn what_fits_nowhere_is_left() {
        let items = [item(3.0, [1.0, 1.0]), item(2.0, [9.0, 9.0])];
        let bins = [bin(1.0, [4.0, 4.0], &[3.0])];
        let nodes = nodes(&items, &bins, &[0.3, 1.0], 1_000_000_000).unwrap();
        assert_eq!(nodes.len(), 1, "{nodes:?}");
        assert_eq!(nodes[0].items.len(), 1, "{nodes:?}");
    }

    #[test]
    fn without_work_nothing_is_bought() {
        let nodes = nodes(&[item(3.0, [1.0, 1.0])], &[bin(1.0, [4.0, 4.0], &[3.0])], &[0.3], 0).unwrap();
        assert!(nodes.is_empty(), "{nodes:?}");
    }

    #[test]
    fn what_shares_no_bin_is_bought_apart() {
        let items: Vec<Item> = (0..900).map(|_| item(2.0, [1.0, 1.0])).collect();
        let of = |item: usize, most: f64| Bin { price: 1.0, room: vec![4.0, 4.0], items: vec![(item, most)] };
        let bins: Vec<Bin> = (0..900).map(|item| of(item, 2.0)).collect();
        let bought = nodes(&items, &bins, &vec![0.5; 900], 1_000_000_000).unwrap();
        assert_eq!(bought.len(), 900);
        assert!(bought.iter().all(|node| node.items == [(node.bin, 2.0)]), "{:?}", bought.first());
        let shared = Bin { items: (0..900).map(|item| (item, 2.0)).collect(), ..of(0, 2.0) };
        assert!(nodes(&items, &[shared], &vec![0.5; 900], 1_000_000_000).is_none());
    }
}
