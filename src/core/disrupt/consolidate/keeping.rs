//! Which nodes are worth keeping, when each may be kept with its pods, filled up, or done without.
//!
//! A linear program: keep a part of each node for that part of its price, with that part of its pods; put other pods into the free
//! room of what is kept, or on new nodes, each for the cost of a move; every pod has a place. Where half of all nodes could go, room
//! is worth less than on new nodes, so what a node is good for can not be read off the prices of the market: it is the dual of this
//! program that says it. Solved by ascent on that dual: the worth of room rises where kinds of pods are short of it and falls where
//! there is more than enough, never above what new nodes cost; a node is kept in part where it hardly matters, less and less so
//! from round to round. Topology is left out: the order is a guide, and the engine allows or refuses each move.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::keys;
use crate::core::disrupt::rehome::{Preferences, Target};
use crate::core::model::HourlyPrice;
use crate::core::provision::cheapest::dual::Missed;
use crate::core::provision::cheapest::filling::{Bin, Filling, Item};
use crate::core::provision::cheapest::greedy::{Market, Markets};
use crate::core::provision::cheapest::market::{Offer, number};
use crate::core::scheduler::topology::{Domain, KeyIndex};
use crate::core::scheduler::{Engine, HostIndex};

use super::Source;

/// Pairs of bins and items looked at.
const WORK: u64 = 3_000_000;

/// What the program says.
pub(super) struct Kept {
    /// By source, in dollars per hour: what it is worth beyond its price, negative where it is better done without.
    pub gains: Vec<f64>,
    /// Where pods that move find the room that is worth least to others.
    pub preferences: Preferences,
}

/// Hosts are told apart by so many degrees of preference.
const DEGREES: usize = 4;

impl Kept {
    /// `None` where nothing can be bought at all. `moving` is what the move of one pod counts, as dollars per hour. Pods that topology
    /// binds to zones are items of their zone, since they hardly can leave it.
    pub(super) fn new(
        engine: &Engine<'_, '_>,
        sources: &[Source<'_>],
        targets: &[Target],
        markets: &Markets,
        moving: f64,
    ) -> Option<Self> {
        let market = markets.widest()?;
        let program = Program::new(engine, market, sources);
        let stock = |source: &Source<'_>| {
            let host = source.candidate.host;
            let mut own: BTreeMap<usize, f64> = BTreeMap::new();
            for item in source.candidate.displaced().filter_map(|pod| program.item_of(pod, host)) {
                *own.entry(item).or_default() += 1.0;
            }
            let price = (source.price + engine.problem.per_node).dollars();
            Stock { price, own: own.into_iter().collect(), bin: program.bin_of_host(host) }
        };
        let stocks: Vec<Stock> = sources.iter().map(stock).collect();
        let going: BTreeSet<HostIndex> = sources.iter().map(|source| source.candidate.host).collect();
        let stays = |host: &HostIndex| targets[*host].is_open() && !targets[*host].restless && !going.contains(host);
        let staying: Vec<HostIndex> = engine.existing_hosts().filter(stays).collect();
        let of_staying: Vec<Bin> = staying.iter().map(|host| program.bin_of_host(*host)).collect();
        let solved = solve(&program.items, &stocks, &of_staying, &program.offers(), &program.start, moving, WORK);
        let hosts = sources.iter().map(|source| source.candidate.host).chain(staying);
        let preferences = program.preferences(&hosts.collect::<Vec<_>>(), &solved);
        Some(Self { gains: solved.gains, preferences })
    }
}

/// Kinds of the market by zone, where topology binds their pods to it.
struct Program<'e, 'p, 'a, 'm> {
    engine: &'e Engine<'p, 'a>,
    market: &'m Market,
    zone: Option<KeyIndex>,
    /// By kind and zone: position of the item.
    positions: BTreeMap<(usize, Option<Domain>), usize>,
    items: Vec<Item>,
    /// By item: what one pod costs on new nodes.
    start: Vec<f64>,
}

impl<'e, 'p, 'a, 'm> Program<'e, 'p, 'a, 'm> {
    fn new(engine: &'e Engine<'p, 'a>, market: &'m Market, sources: &[Source<'_>]) -> Self {
        let zone = engine.problem.domains.find(keys::ZONE);
        let mut program =
            Self { engine, market, zone, positions: BTreeMap::new(), items: Vec::new(), start: Vec::new() };
        for source in sources {
            for pod in source.candidate.displaced() {
                let Some(identity) = program.identity(pod, source.candidate.host) else { continue };
                let next = program.items.len();
                let item = *program.positions.entry(identity).or_insert(next);
                if item == next {
                    program.items.push(Item { count: 0.0, ..market.items[identity.0].clone() });
                    program.start.push(market.worth[identity.0]);
                }
                program.items[item].count += 1.0;
            }
        }
        program
    }

    fn identity(&self, pod: usize, host: HostIndex) -> Option<(usize, Option<Domain>)> {
        let class = self.engine.problem.class_of_pod[pod]?;
        let kind = *self.market.kind_of.get(&class)?;
        let key = self.zone.filter(|key| self.engine.is_divided(*key, class, self.market.variants[&class]));
        Some((kind, key.map(|key| self.zone_of(key, host))))
    }

    fn zone_of(&self, key: KeyIndex, host: HostIndex) -> Domain {
        let problem = self.engine.problem;
        problem.domains.of_labels(key, &problem.nodes[host].labels, host)
    }

    fn item_of(&self, pod: usize, host: HostIndex) -> Option<usize> {
        self.positions.get(&self.identity(pod, host)?).copied()
    }

    fn bin_of_host(&self, host: HostIndex) -> Bin {
        let room = self.engine.headroom(host).iter().map(|room| (*room).max(0)).collect();
        let offer = Offer::of_node(self.engine.problem, &self.market.kinds, host, HourlyPrice::ZERO, room);
        self.bin(&offer, self.zone.map(|key| self.zone_of(key, host)))
    }

    /// By kind the hosts on which the room for a pod is worth least beside what the pod is worth; of a kind that is bound to zones, in
    /// whichever zone.
    fn preferences(&self, hosts: &[HostIndex], solved: &Solved) -> Preferences {
        let mut ranked: Vec<Vec<(f64, HostIndex)>> = vec![Vec::new(); self.market.kinds.len()];
        let kinds: BTreeMap<usize, usize> = self.positions.iter().map(|((kind, _), item)| (*item, *kind)).collect();
        for (host, filling) in hosts.iter().zip(&solved.fillings) {
            for (item, advantage) in filling.advantages(&solved.room) {
                ranked[kinds[&item]].push((advantage, *host));
            }
        }
        let sets = ranked.into_iter().map(|mut hosts| {
            hosts.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
            let degree = hosts.len().div_ceil(DEGREES).max(1);
            hosts.chunks(degree).map(|hosts| hosts.iter().map(|(_, host)| *host).collect()).collect()
        });
        let of_class = self.market.kind_of.iter().map(|(class, kind)| (*class, *kind)).collect();
        Preferences { sets: sets.collect(), of_class }
    }

    /// New nodes, in each zone that pods are bound to.
    fn offers(&self) -> Vec<Bin> {
        let mut zones: BTreeSet<Option<Domain>> = self.positions.keys().map(|(_, zone)| *zone).collect();
        if zones.len() > 1 {
            zones.remove(&None);
        }
        let all = zones.iter().flat_map(|zone| self.market.offers.iter().map(|offer| self.bin(offer, *zone)));
        all.filter(|bin| !bin.items.is_empty()).collect()
    }

    /// What an offer may hold in a zone.
    fn bin(&self, offer: &Offer, zone: Option<Domain>) -> Bin {
        let (kinds, items) = (&self.market.kinds, &self.market.items);
        let all = offer.bin(kinds, items, 0..kinds.len(), |kind| kinds[kind].count);
        let of_kind = |(kind, most): &(usize, f64)| {
            let here = [Some((*kind, None)), zone.map(|zone| (*kind, Some(zone)))];
            let held = here.into_iter().flatten().filter_map(|identity| self.positions.get(&identity));
            held.map(|item| (*item, *most)).collect::<Vec<_>>()
        };
        Bin { items: all.items.iter().flat_map(of_kind).collect(), ..all }
    }
}

/// A node that may go.
#[derive(Clone, Debug)]
struct Stock {
    /// Dollars per hour.
    pub price: f64,
    /// Positions of items, and how many pods of each would have to move.
    pub own: Vec<(usize, f64)>,
    /// Its free room; the price is not looked at.
    pub bin: Bin,
}

/// Rounds of ascent at most.
const ROUNDS_MAX: u64 = 200;

/// The part by which the worth of room moves in one round, at most, in the first round and in the last.
const STEP: (f64, f64) = (0.2, 0.01);

/// A node is kept by half when it is worth its price, and to seven tenths when it is worth more by this part.
const SOFTNESS: (f64, f64) = (0.2, 0.01);

/// The last of so many parts of the rounds counts: their mean.
const COUNTED_PART: usize = 4;

/// Nodes this near to being worth their price, in parts of it, are filled with better weights.
const NEAR: f64 = 0.3;

/// The dual of the program.
struct Solved {
    /// By stock, in dollars per hour: what it is worth beyond its price.
    gains: Vec<f64>,
    /// By item: what room for a pod is worth.
    room: Vec<f64>,
    /// Of the stocks and then of the nodes that stay.
    fillings: Vec<Filling>,
}

/// `items` count the pods of the stocks, `staying` is the free room of nodes that do not go, `offers` are new nodes, `start` is what
/// a pod would cost on those, `moving` what a move counts, as dollars per hour. `work` bounds the pairs of bins and items that are
/// looked at. O(rounds x bins x items).
fn solve(
    items: &[Item],
    stocks: &[Stock],
    staying: &[Bin],
    offers: &[Bin],
    start: &[f64],
    moving: f64,
    work: u64,
) -> Solved {
    let filled = |bin: &Bin| Filling::new(bin, items);
    let mut of_stocks: Vec<Filling> = stocks.iter().map(|stock| filled(&stock.bin)).collect();
    let mut of_staying: Vec<Filling> = staying.iter().map(filled).collect();
    let mut of_offers: Vec<Filling> = offers.iter().map(filled).collect();
    let bins = stocks.iter().map(|stock| &stock.bin).chain(staying).chain(offers);
    let pairs: usize = bins.map(|bin| bin.items.len() + 1).sum();
    let rounds = usize::try_from((work / (pairs as u64).max(1)).clamp(1, ROUNDS_MAX)).unwrap_or(1);
    let mut room: Vec<f64> = start.to_vec();
    let mut missed = Missed::new(items.len());
    let mut gains = vec![0.0; stocks.len()];
    let first_counted = rounds - rounds.div_ceil(COUNTED_PART);
    for round in 0..rounds {
        let progress = number(round + 1) / number(rounds);
        let between = |(first, last): (f64, f64)| first * (last / first).powf(progress);
        cap(&mut room, offers, &mut of_offers);
        let mut supply = vec![0.0; items.len()];
        for filling in &mut of_staying {
            filling.fill(&room);
            filling.taken().for_each(|(item, amount)| supply[item] += amount);
        }
        for ((stock, filling), mean) in stocks.iter().zip(&mut of_stocks).zip(&mut gains) {
            let gain = gain(stock, filling, &room, moving);
            let price = stock.price.max(f64::MIN_POSITIVE);
            let kept = 1.0 / (1.0 + (-gain / (between(SOFTNESS) * price)).exp());
            let held = stock.own.iter().copied().chain(filling.taken());
            held.for_each(|(item, amount)| supply[item] += kept * amount);
            if round >= first_counted {
                *mean += gain / number(rounds - first_counted);
            }
        }
        for (position, item) in items.iter().enumerate() {
            let short = (item.count - supply[position]) / item.count.max(1.0);
            room[position] *= (between(STEP) * missed.direction(position, short)).exp();
        }
    }
    of_stocks.append(&mut of_staying);
    Solved { gains, room, fillings: of_stocks }
}

/// What a stock is worth beyond its price: its own pods need no move, and others find room.
fn gain(stock: &Stock, filling: &mut Filling, room: &[f64], moving: f64) -> f64 {
    let own: f64 = stock.own.iter().map(|(item, amount)| amount * (room[*item] + moving)).sum();
    filling.fill(room);
    if (own + filling.worth - stock.price).abs() < NEAR * stock.price {
        filling.refine(room, 1);
    }
    own + filling.worth - stock.price
}

/// Room is worth no more than on new nodes.
fn cap(room: &mut [f64], offers: &[Bin], fillings: &mut [Filling]) {
    let mut most: f64 = 1.0;
    for (bin, filling) in offers.iter().zip(fillings) {
        if filling.fill_if_above(room, bin.price * most) {
            filling.refine(room, 1);
            most = most.max(filling.ratio(bin));
        }
    }
    room.iter_mut().for_each(|worth| *worth /= most);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(price: f64, room: f64) -> Bin {
        Bin { price, room: vec![room], items: vec![(0, room)] }
    }

    fn stock(price: f64, own: f64, free: f64) -> Stock {
        Stock { price, own: vec![(0, own)], bin: bin(0.0, free) }
    }

    fn items(count: f64) -> [Item; 1] {
        [Item { count, request: vec![1.0] }]
    }

    #[test]
    fn the_fuller_half_of_equal_nodes_is_kept() {
        let stocks: Vec<Stock> =
            (0..10).map(|node| stock(1.0, 3.0 + number(node % 2) * 3.0, 5.0 - number(node % 2) * 3.0)).collect();
        let Solved { gains, .. } = solve(&items(45.0), &stocks, &[], &[bin(1.0, 8.0)], &[0.125], 0.02, 1_000_000);
        for (node, gain) in gains.iter().enumerate() {
            assert_eq!(*gain > 0.0, node % 2 == 1, "{gains:?}");
        }
    }

    #[test]
    fn what_fits_beside_nodes_that_stay_is_not_worth_a_node() {
        let Solved { gains, .. } =
            solve(&items(4.0), &[stock(1.0, 4.0, 4.0)], &[bin(0.0, 8.0)], &[bin(1.0, 8.0)], &[0.125], 0.001, 1_000_000);
        assert!(gains[0] < 0.0, "{gains:?}");
    }

    #[test]
    fn a_node_that_costs_less_than_new_ones_is_kept_and_a_dearer_one_goes() {
        let stocks = [stock(0.8, 8.0, 0.0), stock(1.5, 8.0, 0.0)];
        let Solved { gains, .. } = solve(&items(16.0), &stocks, &[], &[bin(1.0, 8.0)], &[0.125], 0.001, 1_000_000);
        assert!(gains[0] > 0.0 && gains[1] < 0.0, "{gains:?}");
    }
}
