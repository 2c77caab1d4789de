//! The linear program: keep a part of each node for that part of its price, with that part of its pods; put other pods into the free
//! room of what is kept, or on new nodes, each for the cost of a move; every pod has a place.
//!
//! Solved by column generation, as [`crate::programs::generation`] buys: a column is a node that is kept, with its own
//! pods and a filling of its free room, or a new node with a filling. Of each node that exists there is one, which is a row of the
//! program that takes away.

use std::collections::BTreeMap;

use crate::programs::covering::{Column, Covering};
use crate::programs::generation::{FOUND, STEPS, between, found_most, worth};

use super::fleet::{ExistingBinIndex, Fleet};

/// Fillings are sought until the program is within this part of the start's price of what its prices prove.
const GAP: f64 = 0.001;

/// Rounds of seeking in one program at most.
const ROUNDS_MAX: usize = 150;

/// A program begins with new nodes that are worth at least this part of their price.
const NEAR: f64 = 0.8;

/// Multiplications for each item of a node that is filled.
const OF_A_FILLING: u64 = 20;

/// A node, new or not, with pods on it.
#[derive(Clone, Debug)]
pub struct Filled {
    pub node: Node,
    pub items: Vec<(usize, f64)>,
}

/// Positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Host(ExistingBinIndex),
    Offer(usize),
}

pub struct Program<'f, 'a> {
    pub fleet: &'f mut Fleet<'a>,
    /// By item: what one pod is worth, the best prices that are known.
    pub prices: Vec<f64>,
    /// What is proven by them that is left costs at least.
    pub bound: f64,
    /// Dollars per hour that do not matter.
    tolerance: f64,
    /// Multiplications that may still be done.
    work: u64,
}

/// Which rows there are: first the items that are left, then the hosts.
struct Rows {
    items: Vec<usize>,
    /// By item.
    of_item: Vec<Option<usize>>,
    hosts: usize,
}

impl<'f, 'a> Program<'f, 'a> {
    /// `start` are any positive prices.
    pub fn new(fleet: &'f mut Fleet<'a>, start: &[f64], work: u64) -> Self {
        let price: f64 = fleet.hosts.iter().map(|host| host.cost).sum();
        Self { fleet, prices: start.to_vec(), bound: 0.0, tolerance: GAP * price, work }
    }

    /// Columns known from the start and those that are found on the way, and how much of each is taken; those that are not are left
    /// out.
    pub fn solve(&mut self, known: Vec<Filled>) -> Vec<(Filled, f64)> {
        self.bound = f64::NEG_INFINITY;
        let rows = self.rows();
        let (mut all, mut program) = self.begin(&rows);
        let (start, of_hosts) = (self.prices.clone(), vec![0.0; rows.hosts]);
        let mut more = known;
        more.extend(self.seek(&start, &start, &of_hosts, NEAR));
        for _ in 0..ROUNDS_MAX {
            more.iter().for_each(|filled| program.add(&self.column(filled, &rows)));
            all.append(&mut more);
            program.solve(&mut self.work);
            let prices = program.prices();
            let mut exact = vec![0.0; rows.of_item.len()];
            rows.items.iter().zip(&prices).for_each(|(item, price)| exact[*item] = price.max(0.0));
            let of_hosts: Vec<f64> = prices[rows.items.len()..].iter().map(|price| price.max(0.0)).collect();
            let cost = self.worth_of_all(&exact) - of_hosts.iter().sum::<f64>();
            if self.work == 0 || cost <= self.bound + self.tolerance {
                break;
            }
            more = self.seek_towards(&exact, &of_hosts);
            if more.is_empty() {
                break;
            }
        }
        program.taken().into_iter().map(|(column, amount)| (all[column].clone(), amount)).collect()
    }

    fn rows(&self) -> Rows {
        let left = &self.fleet.left;
        let items: Vec<usize> = (0..left.len()).filter(|item| left[*item] > 0.0).collect();
        let mut of_item = vec![None; left.len()];
        items.iter().enumerate().for_each(|(row, item)| of_item[*item] = Some(row));
        Rows { items, of_item, hosts: self.fleet.hosts.len() }
    }

    /// For each item the new node that is cheapest with it alone. An item that no new node takes may stay without a place.
    fn begin(&self, rows: &Rows) -> (Vec<Filled>, Covering) {
        let mut alone: Vec<Option<(f64, Filled)>> = vec![None; rows.items.len()];
        for (offer, (price, filling)) in self.fleet.offers.iter().enumerate() {
            for (item, most) in filling.items() {
                let Some(row) = rows.of_item[*item] else { continue };
                if alone[row].as_ref().is_none_or(|(least, _)| price / most < *least) {
                    let filled = Filled { node: Node::Offer(offer), items: vec![(*item, *most)] };
                    alone[row] = Some((price / most, filled));
                }
            }
        }
        let demanded =
            |(row, alone): (usize, &Option<_>)| alone.as_ref().map_or(-1.0, |_| self.fleet.left[rows.items[row]]);
        let of_hosts = std::iter::repeat_n(-1.0, rows.hosts);
        let demand: Vec<f64> = alone.iter().enumerate().map(demanded).chain(of_hosts).collect();
        let mut columns: Vec<Option<Column>> =
            alone.iter().map(|alone| alone.as_ref().map(|(_, filled)| self.column(filled, rows))).collect();
        columns.resize(demand.len(), None);
        (alone.into_iter().flatten().map(|(_, filled)| filled).collect(), Covering::new(&demand, &columns))
    }

    fn column(&self, filled: &Filled, rows: &Rows) -> Column {
        let (price, own, host) = match filled.node {
            Node::Host(host) => {
                let state = &self.fleet.hosts[host];
                (state.cost, state.own.as_slice(), Some((rows.items.len() + usize::from(host), -1.0)))
            }
            Node::Offer(offer) => (self.fleet.offers[offer].0, [].as_slice(), None),
        };
        let mut entries: BTreeMap<usize, f64> = BTreeMap::new();
        for (item, amount) in own.iter().chain(&filled.items) {
            if let Some(row) = rows.of_item[*item] {
                *entries.entry(row).or_default() += amount;
            }
        }
        Column { price, entries: entries.into_iter().chain(host).collect() }
    }

    fn worth_of_all(&self, prices: &[f64]) -> f64 {
        self.fleet.left.iter().zip(prices).map(|(left, price)| left * price).sum()
    }

    /// Seeks between the best prices and the exact ones of the program.
    fn seek_towards(&mut self, exact: &[f64], of_hosts: &[f64]) -> Vec<Filled> {
        for step in STEPS {
            let found = self.seek(&between(step, exact, &self.prices), exact, of_hosts, 1.0 + FOUND);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Fillings at some prices that are worth more than their node at the exact ones, where new nodes count that are worth `least` of
    /// their price. Prices that prove more than the best ones take their place.
    fn seek(&mut self, prices: &[f64], exact: &[f64], of_hosts: &[f64], least: f64) -> Vec<Filled> {
        let (mut offers, most) = self.seek_offers(prices, exact, least);
        let mut bound = self.worth_of_all(prices) / most;
        let mut found = Vec::new();
        self.fleet.fill_hosts(prices);
        for ((position, host), of_host) in self.fleet.hosts.enumerated().zip(of_hosts) {
            self.work = self.work.saturating_sub(OF_A_FILLING * host.filling.items().len() as u64);
            let gain = (worth(&host.own, prices) + host.filling.worth) / most - host.cost;
            bound -= gain.max(0.0);
            let items = host.filling.taken();
            let saving = host.own_gain(exact) + worth(&items, exact) - of_host;
            let unit = if host.cost > 0.0 { host.cost } else { 1.0 };
            if saving > FOUND * unit {
                found.push(Filled { node: Node::Host(position), items });
            }
        }
        if bound > self.bound {
            self.bound = bound;
            self.prices = prices.iter().map(|price| price / most).collect();
        }
        found.append(&mut offers);
        found
    }

    /// The best new nodes, and the most that one is worth for its price: at least 1.
    fn seek_offers(&mut self, prices: &[f64], exact: &[f64], least: f64) -> (Vec<Filled>, f64) {
        let mut most: f64 = 1.0;
        let mut found = Vec::new();
        for (offer, (price, filling)) in self.fleet.offers.iter_mut().enumerate() {
            let is_filled = filling.fill_if_above(prices, *price * least);
            most = most.max(filling.worth / *price);
            if is_filled {
                let items = filling.taken();
                let worth = worth(&items, exact) / *price;
                if worth > least {
                    found.push((worth, Filled { node: Node::Offer(offer), items }));
                }
            }
        }
        found.sort_by(|one, two| two.0.total_cmp(&one.0));
        found.truncate(found_most(self.fleet.left.len()));
        (found.into_iter().map(|(_, filled)| filled).collect(), most)
    }
}
