//! Which nodes are worth keeping, when all of them are looked at together.
//!
//! Where half of all nodes could go, room is worth less than on new nodes, so what a node is good for can not be read off the prices of
//! the market: it is the dual of a linear program over nodes and pods that says it ([`program`]), and where pods go is its solution in
//! whole pods ([`mod@solve`]). Topology is left out but for zones: all this is a guide, and the engine allows or refuses each move.

mod ascent;
mod fleet;
mod program;
mod solve;

use std::collections::{BTreeMap, BTreeSet};

use crate::disrupt::rehome::{Allotments, Guide, Target};
use crate::model::IndexVec;
use crate::programs::filling::{Bin, Item};
use crate::provision::cheapest::greedy::Markets;
use crate::provision::cheapest::market::Market;
use crate::provision::cheapest::market::Offer;
use crate::scheduler::topology::{Domain, KeyIndex};
use crate::scheduler::{ClassIndex, Engine, HostIndex};
use crate::snapshot::PodIndex;
use cutlist_api::keys;

use super::Source;

use solve::{ExistingBin, Solved, least_cost, solve};

/// Multiplications, of which some 3 * 10^9 take a second. Clusters of 400 nodes ask for twice that, most others for much less; where the
/// program is not solved to its end, plans move more pods and save less.
const WORK: u64 = 8_000_000_000;

/// What the program says.
pub(super) struct Kept {
    /// By source, in dollars per hour: what it is worth beyond its price, negative where it is better done without.
    pub gains: Vec<f64>,
    /// By source: whether it goes.
    pub goes: Vec<bool>,
    /// Where pods that move find the room that is worth least to others.
    pub guide: Guide,
    /// Where pods of those that go should go.
    pub allotments: Allotments,
}

/// Hosts are told apart by so many degrees of preference.
const DEGREES: usize = 4;

impl Kept {
    /// `None` where nothing can be bought at all. `moving` is what the move of one pod counts, as dollars per hour. Pods that topology
    /// binds to zones are items of their zone, since they hardly can leave it.
    pub(super) fn new(
        engine: &Engine<'_, '_>,
        sources: &[Source<'_>],
        targets: &IndexVec<HostIndex, Target>,
        markets: &Markets,
        moving: f64,
    ) -> Option<Self> {
        let program = Program::new(engine, markets.widest()?, sources);
        let (hosts, existing_bins) = program.existing_bins(sources, targets);
        let solved = solve(&program.items, &existing_bins, &program.offers(), &program.start, moving, WORK);
        let guide = program.guide(&hosts, &solved);
        let allotments = program.allotments(&hosts, &solved);
        let goes = solved.takes[..sources.len()].iter().map(Option::is_none).collect();
        let mut gains = solved.gains;
        gains.truncate(sources.len());
        Some(Self { gains, goes, guide, allotments })
    }
}

/// By price of a move: what nodes and moves cost together at least, in dollars per hour. `None` where nothing can be bought.
pub(super) fn least_costs(
    engine: &Engine<'_, '_>,
    sources: &[Source<'_>],
    targets: &IndexVec<HostIndex, Target>,
    markets: &Markets,
    moving: &[f64],
) -> Option<Vec<f64>> {
    let program = Program::new(engine, markets.widest()?, sources);
    let (_, existing_bins) = program.existing_bins(sources, targets);
    let offers = program.offers();
    let least = |moving: &f64| least_cost(&program.items, &existing_bins, &offers, &program.start, *moving, WORK);
    Some(moving.iter().map(least).collect())
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

    /// The sources, then the other nodes that may take their pods.
    fn existing_bins(
        &self,
        sources: &[Source<'_>],
        targets: &IndexVec<HostIndex, Target>,
    ) -> (Vec<HostIndex>, Vec<ExistingBin>) {
        let existing_bin = |source: &Source<'_>| {
            let host = source.candidate.host;
            let mut own: BTreeMap<usize, f64> = BTreeMap::new();
            for item in source.candidate.displaced().filter_map(|pod| self.item_of(pod, host)) {
                *own.entry(item).or_default() += 1.0;
            }
            let price = source.cost().dollars();
            ExistingBin { price, own: own.into_iter().collect(), bin: self.bin_of_host(host) }
        };
        let going: BTreeSet<HostIndex> = sources.iter().map(|source| source.candidate.host).collect();
        let stays = |host: &HostIndex| targets[*host].is_open_to_consolidation() && !going.contains(host);
        let staying: Vec<HostIndex> = self.engine.existing_hosts().filter(stays).collect();
        let of_staying = |host: &HostIndex| ExistingBin { price: 0.0, own: Vec::new(), bin: self.bin_of_host(*host) };
        let existing_bins = sources.iter().map(existing_bin).chain(staying.iter().map(of_staying)).collect();
        (sources.iter().map(|source| source.candidate.host).chain(staying).collect(), existing_bins)
    }

    fn identity(&self, pod: PodIndex, host: HostIndex) -> Option<(usize, Option<Domain>)> {
        let class = self.engine.problem.class_of_pod[pod]?;
        let kind = *self.market.kind_of.get(&class)?;
        let key = self.zone.filter(|key| self.engine.is_divided(*key, class, self.market.variants[&class]));
        Some((kind, key.map(|key| self.zone_of(key, host))))
    }

    fn zone_of(&self, key: KeyIndex, host: HostIndex) -> Domain {
        let problem = self.engine.problem;
        problem.domains.of_labels(key, &problem.nodes[host].labels, host)
    }

    fn item_of(&self, pod: PodIndex, host: HostIndex) -> Option<usize> {
        self.positions.get(&self.identity(pod, host)?).copied()
    }

    fn bin_of_host(&self, host: HostIndex) -> Bin {
        let offer = Offer::of_free_room(self.engine, &self.market.kinds, host);
        let mut there: BTreeMap<usize, usize> = BTreeMap::new();
        for (class, pods) in &self.engine.host(host).pods {
            if let Some(kind) = self.market.kind_of.get(class) {
                *there.entry(*kind).or_default() += usize::try_from(*pods).unwrap_or(usize::MAX);
            }
        }
        self.bin(&offer, self.zone.map(|key| self.zone_of(key, host)), &there)
    }

    /// By kind the hosts on which the room for a pod is worth least beside what the pod is worth; of a kind that is bound to zones, in
    /// whichever zone.
    fn guide(&self, hosts: &[HostIndex], solved: &Solved) -> Guide {
        let mut ranked: Vec<Vec<(f64, HostIndex)>> = vec![Vec::new(); self.market.kinds.len()];
        let kinds = self.kinds();
        for (host, advantages) in hosts.iter().zip(&solved.advantages) {
            for (item, advantage) in advantages {
                ranked[kinds[item]].push((*advantage, *host));
            }
        }
        let sets = ranked.into_iter().map(|mut hosts| {
            hosts.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
            let degree = hosts.len().div_ceil(DEGREES).max(1);
            hosts.chunks(degree).map(|hosts| hosts.iter().map(|(_, host)| usize::from(*host)).collect()).collect()
        });
        Guide { kind_of: self.kind_of(), preferred: sets.collect() }
    }

    /// By kind what the hosts take.
    fn allotments(&self, hosts: &[HostIndex], solved: &Solved) -> Allotments {
        let kinds = self.kinds();
        let taken = hosts.iter().zip(&solved.takes).flat_map(|(host, takes)| {
            takes.iter().flatten().map(|(item, pods)| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a number of pods, and whole"
                )]
                let pods = *pods as usize;
                (kinds[item], *host, pods)
            })
        });
        Allotments::new(self.kind_of(), taken)
    }

    fn kind_of(&self) -> BTreeMap<ClassIndex, usize> {
        self.market.kind_of.iter().map(|(class, kind)| (*class, *kind)).collect()
    }

    /// By item.
    fn kinds(&self) -> BTreeMap<usize, usize> {
        self.positions.iter().map(|((kind, _), item)| (*item, *kind)).collect()
    }

    /// New nodes, in each zone that pods are bound to.
    fn offers(&self) -> Vec<Bin> {
        let mut zones: BTreeSet<Option<Domain>> = self.positions.keys().map(|(_, zone)| *zone).collect();
        if zones.len() > 1 {
            zones.remove(&None);
        }
        let all = zones
            .iter()
            .flat_map(|zone| self.market.offers.iter().map(|offer| self.bin(offer, *zone, &BTreeMap::new())));
        all.filter(|bin| !bin.items.is_empty()).collect()
    }

    /// What an offer may hold in a zone, by kind beside so many pods that are there.
    fn bin(&self, offer: &Offer, zone: Option<Domain>, there: &BTreeMap<usize, usize>) -> Bin {
        let (kinds, items) = (&self.market.kinds, &self.market.items);
        let more = |kind: usize| {
            let most = kinds[kind].most_per_node.saturating_sub(there.get(&kind).copied().unwrap_or(0));
            most.min(kinds[kind].count)
        };
        let all = offer.bin(kinds, items, 0..kinds.len(), more);
        let of_kind = |(kind, most): &(usize, f64)| {
            let here = [Some((*kind, None)), zone.map(|zone| (*kind, Some(zone)))];
            let held = here.into_iter().flatten().filter_map(|identity| self.positions.get(&identity));
            held.map(|item| (*item, *most)).collect::<Vec<_>>()
        };
        Bin { items: all.items.iter().flat_map(of_kind).collect(), ..all }
    }
}
