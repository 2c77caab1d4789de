//! Who gets the room that is there, where not all find any: those that would cost most on new nodes for the room that they take.
//!
//! In the order of their size, pods of much processor and little memory may fill nodes that lack no memory, and others of much memory and
//! little processor be bought for. A linear program of all free room as one says how many of each kind go in ([`Filling`]), and what the
//! room is worth by resource; node by node whole pods are then sought that leave least of that.

use std::collections::BTreeSet;

use crate::programs::filling::{Bin, Filling, WHOLE_STEPS};
use crate::programs::number;
use crate::scheduler::Demand;
use crate::scheduler::{ClassIndex, Engine, HostIndex};

use super::greedy::Markets;
use super::market::{Market, Offer};

/// Rounds of filling, each without the classes that topology refused in those before.
const ROUNDS_MAX: usize = 3;

/// It is chosen where what is left could then be bought for this part of the money.
const GAIN_MIN: f64 = 0.98;

/// Fills nodes that exist with the pods that cost most elsewhere, and then as `in_order` was left by; gives what is left. `None` where
/// that would not be cheaper, and the engine is as it was.
pub fn fill_if_cheaper<'p, 'a>(
    engine: &mut Engine<'p, 'a>,
    level: usize,
    wanted: &Demand,
    in_order: &Demand,
    fill_in_order: impl Fn(&mut Engine<'p, 'a>, &mut Demand),
) -> Option<Demand> {
    let start = engine.mark();
    let markets = Markets::new(engine.problem, level, wanted);
    let market = markets.widest()?;
    let mut left = wanted.clone();
    fill(engine, market, &mut left);
    fill_in_order(engine, &mut left);
    if worth(market, &left) <= GAIN_MIN * worth(market, in_order) {
        return Some(left);
    }
    engine.revert(start);
    None
}

/// What pods that are left would cost on new nodes, dollars per hour, but for topology and rounding.
fn worth(market: &Market, left: &Demand) -> f64 {
    let worth = |(class, count): (&ClassIndex, &usize)| {
        market.kind_of.get(class).map_or(0.0, |kind| number(*count) * market.worth[*kind])
    };
    left.iter().map(worth).sum()
}

/// Fills nodes that exist with pods of the market; what is left found no room yet. O(rounds x nodes x kinds).
fn fill(engine: &mut Engine<'_, '_>, market: &Market, wanted: &mut Demand) {
    let hosts: Vec<HostIndex> = engine.existing_hosts().filter(|host| !engine.is_closed(*host)).collect();
    let mut room = FreeRoom { market, wanted, refused: BTreeSet::new() };
    for _ in 0..ROUNDS_MAX {
        let refused = room.refused.len();
        room.fill(engine, &hosts);
        if room.refused.len() == refused {
            return;
        }
    }
}

/// Who waits for it.
struct FreeRoom<'m> {
    market: &'m Market,
    wanted: &'m mut Demand,
    /// Classes that topology has refused somewhere.
    refused: BTreeSet<ClassIndex>,
}

impl FreeRoom<'_> {
    fn fill(&mut self, engine: &mut Engine<'_, '_>, hosts: &[HostIndex]) {
        let Self { market, .. } = self;
        let mut left = vec![0.0; market.kinds.len()];
        for (class, count) in self.wanted.iter().filter(|(class, _)| !self.refused.contains(class)) {
            if let Some(kind) = market.kind_of.get(class) {
                left[*kind] += number(*count);
            }
        }
        let mut together = Filling::new(&all_room(engine, market, hosts, &left), &market.items);
        together.fill(&market.worth);
        let mut prices = market.worth.clone();
        // What a pod is worth beyond the room that it takes it is worth on every node.
        together.advantages().for_each(|(kind, advantage)| prices[kind] -= advantage);
        left.fill(0.0);
        together.taken().into_iter().for_each(|(kind, pods)| left[kind] = pods.ceil());
        for host in hosts {
            self.fill_node(engine, *host, &mut left, &prices);
        }
    }

    /// What topology refuses here is left for others, and the node filled with what is next best. `left`: by kind pods that may yet go on
    /// nodes that exist.
    fn fill_node(&mut self, engine: &mut Engine<'_, '_>, host: HostIndex, left: &mut [f64], prices: &[f64]) {
        let mut open = left.to_vec();
        loop {
            let mut filling = Filling::new(&bin_of(engine, self.market, host), &self.market.items);
            filling.hold_no_more_than(&open, prices);
            filling.fill(prices);
            let mut is_refused = false;
            for (kind, pods) in filling.of_whole_pieces(prices, 0.0, WHOLE_STEPS).0 {
                let placed = self.place(engine, kind, host, pods);
                left[kind] -= placed;
                open[kind] -= placed;
                if placed < pods {
                    open[kind] = 0.0;
                    is_refused = true;
                }
            }
            if !is_refused {
                return;
            }
        }
    }

    /// So many pods of a kind, as far as they are wanted and the node takes them; says how many those are.
    fn place(&mut self, engine: &mut Engine<'_, '_>, kind: usize, host: HostIndex, pods: f64) -> f64 {
        let mut placed = 0.0;
        for class in &self.market.kinds[kind].classes {
            let variant = self.market.variants[class];
            let Some(count) = self.wanted.get_mut(class) else { continue };
            while placed < pods && *count > 0 {
                if !engine.fits_existing(*class, variant, host) {
                    self.refused.insert(*class);
                    break;
                }
                engine.place_on_existing(*class, host);
                *count -= 1;
                placed += 1.0;
            }
        }
        self.wanted.retain(|_, count| *count > 0);
        placed
    }
}

/// All nodes as one, with as many pods of each kind as there are and its nodes hold.
fn all_room(engine: &Engine<'_, '_>, market: &Market, hosts: &[HostIndex], count: &[f64]) -> Bin {
    let mut room = vec![0.0; market.items.first().map_or(0, |item| item.request.len())];
    let mut most = vec![0.0; count.len()];
    for host in hosts {
        let bin = bin_of(engine, market, *host);
        room.iter_mut().zip(&bin.room).for_each(|(all, room)| *all += room);
        bin.items.iter().for_each(|(kind, pods)| most[*kind] += pods);
    }
    let items = most.into_iter().zip(count).map(|(most, count)| most.min(*count)).enumerate();
    Bin { price: 0.0, room, items: items.filter(|(_, most)| *most > 0.0).collect() }
}

fn bin_of(engine: &Engine<'_, '_>, market: &Market, host: HostIndex) -> Bin {
    let kinds = &market.kinds;
    let offer = Offer::of_free_room(engine, kinds, host);
    offer.bin(kinds, &market.items, 0..kinds.len(), |kind| kinds[kind].count)
}
