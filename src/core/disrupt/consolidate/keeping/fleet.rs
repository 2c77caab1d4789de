//! What is decided so far: which nodes are kept, with which pods in their free room, and which pods have no place yet.

use rayon::prelude::*;

use crate::model::index::{IndexVec, index};
use crate::programs::filling::{Bin, Filling, Item, WHOLE_STEPS};
use crate::programs::generation::worth;

index! {
    /// Position of a node that exists in what is decided here, not of a host of the engine.
    pub struct ExistingBinIndex;
}

/// A node that exists.
#[derive(Clone, Debug)]
pub struct ExistingBin {
    /// Dollars per hour that are saved when it goes; 0 for a node that stays anyway.
    pub price: f64,
    /// Positions of items, and how many pods of each would have to move.
    pub own: Vec<(usize, f64)>,
    /// Its free room; the price is not looked at.
    pub bin: Bin,
}

impl ExistingBin {
    /// How many would have to move.
    pub fn pods(&self) -> f64 {
        self.own.iter().map(|(_, amount)| amount).sum()
    }

    /// Its room, and its own pods as items of which it takes no more.
    pub fn of_all_pods(&self) -> Bin {
        let mut bin = self.bin.clone();
        for (item, _) in &self.own {
            if !bin.items.iter().any(|(held, _)| held == item) {
                bin.items.push((*item, 0.0));
            }
        }
        bin
    }
}

/// A node that costs no more than this part of its price beyond the moves that keeping it spares is kept.
const COST_MIN: f64 = 0.001;

/// Prices of room are at least this, so that what is left goes where it fits although room is worth nothing.
const PRICE_MIN: f64 = 1e-6;

/// Fewer are not worth the way to another processor.
const HOSTS_OF_A_PROCESSOR: usize = 64;

/// An existing bin, and what became of it.
pub struct Host {
    /// Dollars per hour that it costs to keep it, beyond the moves that this spares; 0 when it is kept.
    pub cost: f64,
    /// Pods that need a place unless it is kept; none when it is.
    pub own: Vec<(usize, f64)>,
    pub is_kept: bool,
    /// Whole pods of others that it takes.
    pub takes: Vec<(usize, f64)>,
    /// The room beside its own pods.
    bin: Bin,
    /// Of the room that is left.
    pub filling: Filling,
}

impl Host {
    /// Dollars per hour that keeping it is worth at these prices, but for its free room.
    pub fn own_gain(&self, prices: &[f64]) -> f64 {
        worth(&self.own, prices) - self.cost
    }

    fn find_room_left(&mut self, items: &[Item]) {
        let Bin { mut room, items: mut most, price } = self.bin.clone();
        for (item, amount) in &self.takes {
            room.iter_mut().zip(&items[*item].request).for_each(|(room, request)| *room -= amount * request);
            most.iter_mut().filter(|(held, _)| held == item).for_each(|(_, most)| *most -= amount);
        }
        most.iter_mut().for_each(|(item, most)| *most = most.min(fitting(&items[*item], &room)));
        most.retain(|(_, most)| *most >= 1.0);
        self.filling = Filling::new(&Bin { room, items: most, price }, items);
    }
}

/// Nodes that exist, and new ones.
pub struct Fleet<'a> {
    items: &'a [Item],
    /// By item: pods that have no place on a node that is kept.
    pub left: Vec<f64>,
    pub hosts: IndexVec<ExistingBinIndex, Host>,
    /// Price and filling of each.
    pub offers: Vec<(f64, Filling)>,
}

impl<'a> Fleet<'a> {
    /// `moving` is what a move counts, as dollars per hour.
    pub fn new(items: &'a [Item], existing_bins: &[ExistingBin], offers: &[Bin], moving: f64) -> Self {
        let host = |existing_bin: &ExistingBin| Host {
            cost: existing_bin.price - moving * existing_bin.pods(),
            own: existing_bin.own.clone(),
            is_kept: false,
            takes: Vec::new(),
            bin: existing_bin.bin.clone(),
            filling: Filling::new(&existing_bin.bin, items),
        };
        let mut fleet = Self {
            items,
            left: items.iter().map(|item| item.count).collect(),
            hosts: existing_bins.iter().map(host).collect(),
            offers: offers.iter().map(|bin| (bin.price, Filling::new(bin, items))).collect(),
        };
        for (host, existing_bin) in fleet.hosts.indices().zip(existing_bins) {
            if fleet.hosts[host].cost <= COST_MIN * existing_bin.price {
                fleet.keep(host);
            }
        }
        fleet
    }

    /// Each node is filled by itself, on whichever processor is free.
    pub fn fill_hosts(&mut self, prices: &[f64]) {
        self.hosts.par_iter_mut().with_min_len(HOSTS_OF_A_PROCESSOR).for_each(|host| host.filling.fill(prices));
    }

    /// Its own pods stay where they are, and other nodes take none for them.
    pub fn keep(&mut self, host: ExistingBinIndex) {
        let host = &mut self.hosts[host];
        host.is_kept = true;
        host.cost = 0.0;
        for (item, amount) in std::mem::take(&mut host.own) {
            self.left[item] -= amount;
            if self.left[item] < 0.0 {
                self.take_back(item);
            }
        }
    }

    /// From nodes that take more of an item than have to move.
    fn take_back(&mut self, item: usize) {
        for host in self.hosts.iter_mut().rev() {
            let mut is_less = false;
            for (_, amount) in host.takes.iter_mut().filter(|(taken, _)| *taken == item) {
                let back = amount.min(-self.left[item]).max(0.0);
                *amount -= back;
                self.left[item] += back;
                is_less |= back > 0.0;
            }
            if is_less {
                host.takes.retain(|(_, amount)| *amount > 0.0);
                host.find_room_left(self.items);
            }
            if self.left[item] >= 0.0 {
                return;
            }
        }
    }

    /// Puts whole pods into a node, as many of them as fit and are left. Says whether there were any.
    pub fn give(&mut self, host: ExistingBinIndex, pods: impl IntoIterator<Item = (usize, f64)>) -> bool {
        let host = &mut self.hosts[host];
        let before = host.takes.len();
        for (item, amount) in pods {
            let amount = amount.min(self.left[item]).floor();
            if amount >= 1.0 {
                self.left[item] -= amount;
                host.takes.push((item, amount));
            }
        }
        let is_given = host.takes.len() > before;
        if is_given {
            host.find_room_left(self.items);
        }
        is_given
    }

    /// Nothing is filled with more of an item than is left.
    pub fn hold_no_more_than_left(&mut self, prices: &[f64]) {
        let left = &self.left;
        self.hosts.iter_mut().for_each(|host| host.filling.hold_no_more_than(left, prices));
        self.offers.iter_mut().for_each(|(_, filling)| filling.hold_no_more_than(left, prices));
    }

    /// Puts what is left into the room of nodes that are kept, each filled with what is worth most.
    pub fn fill_up(&mut self, prices: &[f64]) {
        let prices: Vec<f64> = prices.iter().map(|price| price.max(PRICE_MIN)).collect();
        for host in self.hosts.indices().filter(|host| self.hosts[*host].is_kept).collect::<Vec<_>>() {
            let filling = &mut self.hosts[host].filling;
            filling.hold_no_more_than(&self.left, &prices);
            filling.fill(&prices);
            let (pods, _) = filling.of_whole_pieces(&prices, 0.0, WHOLE_STEPS);
            self.give(host, pods);
        }
    }
}

/// How many pods fit into room.
fn fitting(item: &Item, room: &[f64]) -> f64 {
    let asked = room.iter().zip(&item.request).filter(|(_, request)| **request > 0.0);
    asked.map(|(room, request)| (room / request).floor()).fold(f64::INFINITY, f64::min)
}
