//! A lower bound on the price of a fleet: no way to buy for the same pods can cost less.
//!
//! Two bounds, of which the larger counts. For one class alone, covering n pods with nodes that hold k each is solved
//! exactly by dynamic programming, whole nodes included. For all classes together, the linear program of
//! [`crate::programs::dual`] bounds the fleet from below; where a spread makes certain how many pods each zone has at least, as kinds
//! by zone, which cost more where a type is cheap in one zone alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::HourlyPrice;
use crate::programs::filling::{Bin, Filling, Item};
use crate::programs::{as_number, number};
use crate::scheduler::vectors::{self, Vector};
use crate::scheduler::{ClassIndex, HostIndex, Problem};
use crate::snapshot::PodIndex;

use super::cheapest::kinds::{DomainChoice, SizeClass, kinds};
use super::cheapest::market::{Counted, Offer, Purpose, item, offers, prices, unlimited};
use super::cheapest::weights::weights;
use super::cheapest::zones::{self, Counts};

/// More pods than this of one class are bounded by the linear program alone: its error shrinks as they grow.
const EXACT_PODS_MAX: usize = 20_000;

/// Multiplications, of which some 10^9 take a second.
const BOUND_WORK: u64 = 100_000_000;

/// The same where zones count, of which there are several times as many prices.
const ZONES_WORK: u64 = 4 * BOUND_WORK;

/// The part of the bound that pods must cost more in their zones for zones to be worth looking at.
const DEARER_MIN: f64 = 0.003;

/// A node that may go, or stay for its price.
#[derive(Clone, Debug)]
pub struct OpenNode {
    pub host: HostIndex,
    /// Of its instance.
    pub price: HourlyPrice,
    /// Positions of the pods on it that would have to move.
    pub pods: Vec<PodIndex>,
}

/// The least that nodes for the demand can cost, new ones and any number like those in `open`, when other nodes that exist (but
/// those removed) give all their free room for nothing. The demand has the pods of the open nodes, too. `spreads_hold`: over zones
/// they are over all that pools have. `counted`: what of each node counts as its cost. `None` when a class can
/// not be hosted at all. O(classes x offers + pods of the largest class x offers).
pub fn lower_bound(
    problem: &Problem<'_>,
    demand: &BTreeMap<ClassIndex, usize>,
    removed: &BTreeSet<HostIndex>,
    open: &[OpenNode],
    spreads_hold: bool,
    counted: Counted,
) -> Option<HourlyPrice> {
    // Alternative terms of node affinity are variants, too, so a class may end up as any of them.
    let variants = demand.keys().map(|class| (*class, problem.classes[*class].variants.clone())).collect();
    let (kinds, places) = kinds(problem, demand, &variants);
    let start: Option<Vec<f64>> = weights(problem, &kinds).into_iter().collect();
    let start = start?;
    let offers = all_offers(problem, &kinds, open, counted);
    let taken = removed.iter().copied().chain(open.iter().map(|open| open.host)).collect();
    let mut free = free_room(problem, &taken);
    let pods: usize = demand.values().sum();
    let reserved = reserved_room(problem);
    free.extend(reserved.iter().flat_map(|(count, room)| std::iter::repeat_n(room, pods.min(*count))));
    let mut best = HourlyPrice::ZERO;
    for kind in &kinds {
        let elsewhere: usize = free.iter().map(|free| vectors::copies(&kind.request, free, kind.count)).sum();
        let left = kind.count.saturating_sub(elsewhere);
        if left <= EXACT_PODS_MAX {
            best = best.max(exact(&offers, kind, left));
        }
    }
    let program = Program { problem, places, open, free: &free, counted };
    let (per_pod, mut proven) = program.solve(&kinds, &offers, &start, BOUND_WORK);
    if let Some(counts) = zones::certain(problem, &kinds, demand).filter(|_| spreads_hold) {
        proven = proven.max(program.proven_by_zone(&kinds, &counts, &per_pod, proven));
    }
    for resource in short(&kinds, &free) {
        let per_pod = prices_of_one_resource(&kinds, &offers, resource);
        let worth: f64 = kinds.iter().zip(&per_pod).map(|(kind, price)| number(kind.count) * price).sum();
        proven = proven.max(worth - worth_of_free(&kinds, &per_pod, &free));
    }
    // Rounded down by more than the arithmetic can be off, so that it stays a bound.
    let bound = proven.max(0.0) * (1.0 - 1e-9);
    Some(best.max(HourlyPrice::from_dollars(bound).unwrap_or(HourlyPrice::ZERO)))
}

/// New nodes, and any number like those that are open.
fn all_offers(problem: &Problem<'_>, kinds: &[SizeClass], open: &[OpenNode], counted: Counted) -> Vec<Offer> {
    let new = offers(problem, kinds, None, counted, Purpose::Pricing);
    unlimited(kinds, &new).cloned().chain(like_those_open(problem, kinds, open, counted)).collect()
}

/// The linear program, for one way or another to look at kinds.
struct Program<'p> {
    problem: &'p Problem<'p>,
    /// Exclusive places.
    places: usize,
    open: &'p [OpenNode],
    free: &'p [&'p Vector],
    counted: Counted,
}

impl Program<'_> {
    /// What a pod of each kind is worth, and what that proves beside the free room. `start` is where the search for prices begins.
    fn solve(&self, kinds: &[SizeClass], offers: &[Offer], start: &[f64], work: u64) -> (Vec<f64>, f64) {
        let items: Vec<Item> = kinds.iter().map(|kind| item(kind, self.places)).collect();
        let (priced, _) = prices(kinds, &items, offers, start, work);
        let proven = priced.bound - worth_of_free(kinds, &priced.per_piece, self.free);
        (priced.per_piece, proven)
    }

    /// What is proven when zones count. `per_pod` is what pods are worth, and `proven` what that proves, when they do not; with it
    /// this ends where the pods that must be in certain zones, each zone by itself, cost hardly more than that.
    fn proven_by_zone(&self, kinds: &[SizeClass], counts: &Counts, per_pod: &[f64], proven: f64) -> f64 {
        let mut in_zones = counts.clone();
        in_zones.retain(|(_, place), _| !place.is_empty());
        let solve = |counts: &Counts, start: &[f64], work: u64| {
            let divided = zones::divided(kinds, counts);
            self.solve(&divided, &all_offers(self.problem, &divided, self.open, self.counted), start, work)
        };
        let start: Vec<f64> = in_zones.keys().map(|(kind, _)| per_pod[*kind]).collect();
        let (alone, _) = solve(&in_zones, &start, BOUND_WORK);
        let dearer = in_zones.values().zip(&alone).zip(&start);
        let dearer: f64 = dearer.map(|((count, alone), start)| number(*count) * (alone - start)).sum();
        if dearer < DEARER_MIN * proven {
            return proven;
        }
        let alone: BTreeMap<(usize, DomainChoice), f64> = in_zones.into_keys().zip(alone).collect();
        let start = |it: &(usize, DomainChoice)| alone.get(it).copied().unwrap_or(0.0).max(per_pod[it.0]);
        let start: Vec<f64> = counts.keys().map(start).collect();
        solve(counts, &start, ZONES_WORK).1
    }
}

/// One offer for all open nodes that are alike.
fn like_those_open(problem: &Problem<'_>, kinds: &[SizeClass], open: &[OpenNode], counted: Counted) -> Vec<Offer> {
    let mut alike: BTreeMap<(HourlyPrice, usize, Vector), HostIndex> = BTreeMap::new();
    for OpenNode { host, price, pods } in open {
        let price = *price + counted.beside_node(problem, *host);
        let mut room = problem.nodes[*host].free.clone();
        for class in pods.iter().filter_map(|pod| problem.class_of_pod[*pod]) {
            vectors::add(&mut room, &problem.classes[class].request, 1);
        }
        alike.entry((price, problem.nodes[*host].group, room)).or_insert(*host);
    }
    let offer = |((price, _, room), host)| Offer::of_node(problem, kinds, host, price, room);
    alike.into_iter().map(offer).collect()
}

/// Of nodes that neither go nor are counted with their pods.
fn free_room<'p>(problem: &'p Problem<'_>, taken: &BTreeSet<HostIndex>) -> Vec<&'p Vector> {
    let staying = problem.nodes.enumerated().filter(|(host, node)| !node.being_removed && !taken.contains(host));
    staying.map(|(_, node)| &node.free).collect()
}

/// By reservation how many nodes can be launched into it, and the most room that such a node has in any pool: what is reserved
/// counts as free.
fn reserved_room(problem: &Problem<'_>) -> Vec<(usize, Vector)> {
    let mut rooms: BTreeMap<&str, (usize, Vector)> = BTreeMap::new();
    for template in problem.templates.iter().filter(|template| !template.is_static()) {
        let Some(reservation) = &template.reservation else { continue };
        let known = rooms.entry(&reservation.id);
        let (_, most) = known.or_insert_with(|| (reservation.available, template.room_most.clone()));
        most.iter_mut().zip(&template.room_most).for_each(|(most, room)| *most = (*most).max(*room));
    }
    rooms.into_values().collect()
}

/// The cheapest whole nodes that hold `count` pods of one class.
fn exact(offers: &[Offer], kind: &SizeClass, count: usize) -> HourlyPrice {
    let mut by_size: BTreeMap<usize, HourlyPrice> = BTreeMap::new();
    for offer in offers.iter().filter(|offer| offer.allowed(kind) != 0) {
        let holds = vectors::copies(&kind.request, &offer.room, count.min(kind.most_per_node));
        let price = by_size.entry(holds).or_insert(HourlyPrice::MAX);
        *price = (*price).min(offer.price);
    }
    // A larger node for no more money makes a smaller one superfluous.
    let mut useful: Vec<(usize, HourlyPrice)> = Vec::new();
    for (holds, price) in by_size.into_iter().rev().filter(|(holds, _)| *holds > 0) {
        if useful.last().is_none_or(|(_, larger)| price < *larger) {
            useful.push((holds, price));
        }
    }
    let mut least = vec![HourlyPrice::ZERO; count + 1];
    for pods in 1..=count {
        let options = useful.iter().map(|(holds, price)| least[pods.saturating_sub(*holds)] + *price);
        least[pods] = options.min().unwrap_or(HourlyPrice::MAX);
    }
    least[count]
}

/// Resources of which pods ask for more than is free, where some is.
fn short(kinds: &[SizeClass], free: &[&Vector]) -> Vec<usize> {
    let resources = 0..free.first().map_or(0, |room| room.len());
    let asked = |resource: usize| -> f64 {
        kinds.iter().map(|kind| number(kind.count) * as_number(kind.request[resource])).sum()
    };
    let is_free = |resource: usize| -> f64 { free.iter().map(|room| as_number(room[resource].max(0))).sum() };
    resources.filter(|resource| asked(*resource) > is_free(*resource)).collect()
}

/// What each pod asks of one resource, at what it costs where that is cheapest: prices that hold whatever else is on a node. Those of
/// the linear program count every free room for pods of which there are not enough to fill them all; where nodes that exist lack
/// one resource and have plenty of the others, as accelerators, these prove more.
fn prices_of_one_resource(kinds: &[SizeClass], offers: &[Offer], resource: usize) -> Vec<f64> {
    let with_any = offers.iter().filter(|offer| offer.room[resource] > 0);
    let unit = with_any.map(|offer| offer.price.dollars() / as_number(offer.room[resource])).min_by(f64::total_cmp);
    kinds.iter().map(|kind| unit.unwrap_or(0.0) * as_number(kind.request[resource])).collect()
}

/// The most that the room that is there could be filled with, at these prices: each room by itself, where as many pods of a kind may be
/// in every one of them, or all of it as one room, where no pod is twice.
fn worth_of_free(kinds: &[SizeClass], per_pod: &[f64], free: &[&Vector]) -> f64 {
    let request = |kind: &SizeClass| kind.request.iter().copied().map(as_number).collect();
    let items: Vec<Item> = kinds.iter().map(|kind| Item { count: 0.0, request: request(kind) }).collect();
    let worth = |room: &Vector| {
        let held = kinds.iter().enumerate();
        let held = held.map(|(position, kind)| (position, number(vectors::copies(&kind.request, room, kind.count))));
        let bin = Bin {
            price: 0.0,
            room: room.iter().copied().map(as_number).collect(),
            items: held.filter(|(_, most)| *most > 0.0).collect(),
        };
        let mut filling = Filling::new(&bin, &items);
        filling.fill(per_pod);
        filling.worth
    };
    let of_each: f64 = free.iter().copied().map(worth).sum();
    let Some(mut together) = free.first().map(|room| (*room).clone()) else { return 0.0 };
    together.iter_mut().for_each(|room| *room = 0);
    for room in free {
        together.iter_mut().zip(room.iter()).for_each(|(all, room)| *all = all.saturating_add((*room).max(0)));
    }
    of_each.min(worth(&together))
}
