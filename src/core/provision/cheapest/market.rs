//! What could be bought, for whom, and what a pod is worth on it.

use std::borrow::Borrow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::{HourlyPrice, IndexVec};
use crate::programs::dual::{Effort, dual_prices};
use crate::programs::filling::{Bin, Item};
use crate::programs::prices::{Prices, Share};
use crate::programs::{as_number, number};
use crate::scheduler::Demand;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::offerings::{OfferingSet, Slots, TypeEntry, TypeIndex, alone, bits};
use crate::scheduler::template::{Template, TemplateIndex};
use crate::scheduler::vectors::{self, Vector};
use crate::scheduler::{ClassIndex, Engine, HostIndex, Problem};
use cutlist_api::keys;

use super::kinds::{DomainChoice, SizeClass, kinds};
use super::weights::weights;

/// A type of a template that could be bought, in the slots in which it has one price.
#[derive(Clone, Debug)]
pub struct Offer {
    pub template: TemplateIndex,
    pub instance_type: TypeIndex,
    /// With what a node costs beside it, where that counts.
    pub price: HourlyPrice,
    pub slots: Slots,
    /// Allocatable less DaemonSets.
    pub room: Vector,
    /// By [`SizeClass::compatibility`], ascending: slots in which such kinds may be, if there are any.
    allowed: Vec<(usize, Slots)>,
    /// Whether there are only so many nodes of it, for next to nothing.
    pub reserved: bool,
}

impl Offer {
    /// The slots in which a kind may be.
    pub fn allowed(&self, kind: &SizeClass) -> Slots {
        self.allowed_for(kind.compatibility)
    }

    fn allowed_for(&self, compatibility: usize) -> Slots {
        self.allowed
            .binary_search_by_key(&compatibility, |(compatibility, _)| *compatibility)
            .map_or(0, |found| self.allowed[found].1)
    }

    /// A node that exists as an offer with this room, to see what it could be filled with.
    pub fn of_node(
        problem: &Problem<'_>,
        kinds: &[SizeClass],
        node: HostIndex,
        price: HourlyPrice,
        room: Vector,
    ) -> Self {
        let fit = kinds.iter().filter(|kind| kind.variants.iter().any(|it| problem.fits_node(*it, node)));
        let compatibilities: BTreeSet<usize> = fit.map(|kind| kind.compatibility).collect();
        let allowed = compatibilities.into_iter().map(|compatibility| (compatibility, 1)).collect();
        Self {
            template: TemplateIndex::default(),
            instance_type: TypeIndex::default(),
            price,
            slots: 1,
            room,
            allowed,
            reserved: false,
        }
    }

    /// What is free on a node that exists.
    pub fn of_free_room(engine: &Engine<'_, '_>, kinds: &[SizeClass], host: HostIndex) -> Self {
        let room = engine.headroom(host).iter().map(|room| (*room).max(0)).collect();
        Self::of_node(engine.problem, kinds, host, HourlyPrice::ZERO, room)
    }

    /// Divided where its slots are not alike for all kinds, so that a pod of one zone and a pod of another do not share a
    /// node that can be in either.
    fn divided(self) -> impl Iterator<Item = Self> {
        let mut alike: BTreeMap<Vec<bool>, Slots> = BTreeMap::new();
        for slot in bits(self.slots) {
            let compatibility = self.allowed.iter().map(|(_, allowed)| allowed & alone(slot) != 0).collect();
            *alike.entry(compatibility).or_default() |= alone(slot);
        }
        alike.into_values().map(move |slots| Self {
            slots,
            room: self.room.clone(),
            allowed: within(&self.allowed, slots),
            ..self
        })
    }
}

/// What is allowed in some slots, of what is allowed in all.
fn within(allowed: &[(usize, Slots)], slots: Slots) -> Vec<(usize, Slots)> {
    let within = allowed.iter().map(|(compatibility, allowed)| (*compatibility, allowed & slots));
    within.filter(|(_, allowed)| *allowed != 0).collect()
}

/// What is wanted of offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nodes are bought from them: what a cheaper one can not replace under limits and topology is kept.
    Buying,
    /// The linear program, which knows neither, is made of them.
    Pricing,
}

/// What of a node counts as its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Its instance and what it costs beside that, which decides what is bought.
    WholeNode,
    /// Its instance alone.
    Instance,
}

impl Counted {
    fn beside(self, template: &Template) -> HourlyPrice {
        match self {
            Self::WholeNode => template.cost_beside,
            Self::Instance => HourlyPrice::ZERO,
        }
    }

    /// The same for a node that exists.
    pub fn beside_node(self, problem: &Problem<'_>, host: HostIndex) -> HourlyPrice {
        match self {
            Self::WholeNode => problem.nodes[host].cost_beside,
            Self::Instance => HourlyPrice::ZERO,
        }
    }
}

/// Types of the templates (of one weight, if given), without those that another one beats in price and every dimension and for
/// every kind. O(types x kept x compatibilities).
pub fn offers(
    problem: &Problem<'_>,
    kinds: &[SizeClass],
    weight: Option<i32>,
    counted: Counted,
    purpose: Purpose,
) -> Vec<Offer> {
    let slots_matter = purpose == Purpose::Buying && slots_matter(problem);
    let of_weight = |template: &&(TemplateIndex, &Template)| weight.is_none_or(|weight| template.1.weight == weight);
    let templates: Vec<(TemplateIndex, &Template)> = problem.templates.enumerated().collect();
    let by_compatibility: BTreeMap<usize, &SizeClass> =
        kinds.iter().rev().map(|kind| (kind.compatibility, kind)).collect();
    let one_each: Vec<&SizeClass> = by_compatibility.into_values().collect();
    let mut kept: Vec<Offer> = Vec::new();
    for (position, template) in templates.iter().filter(of_weight) {
        let mut offers = all_offers(problem, &one_each, *position, counted);
        if purpose == Purpose::Pricing {
            offers = offers.into_iter().flat_map(Offer::divided).collect();
        }
        offers.sort_by_key(|offer| (offer.price, offer.instance_type));
        let first = kept.len();
        for offer in offers {
            let can_replace = |better: &Offer| {
                dominates(better, &offer, slots_matter)
                    && (purpose == Purpose::Pricing
                        || takes_no_more(template, better.instance_type, offer.instance_type))
            };
            if !kept[first..].iter().any(can_replace) {
                kept.push(offer);
            }
        }
    }
    kept
}

/// Everything that a template sells to some kind; `kinds` has one for each compatibility, in their order.
fn all_offers(problem: &Problem<'_>, kinds: &[&SizeClass], index: TemplateIndex, counted: Counted) -> Vec<Offer> {
    let template = &problem.templates[index];
    let beside = counted.beside(template);
    let mut sets: Vec<(usize, Vec<&OfferingSet>, Slots)> = Vec::new();
    for kind in kinds {
        let purchasable = kind.variants.iter().filter_map(|variant| problem.purchasable(*variant, index).ok());
        let purchasable: Vec<&OfferingSet> = purchasable.collect();
        if !purchasable.is_empty() {
            // Those of the zone that is meant, if one is.
            sets.push((kind.compatibility, purchasable, slots_in(template, &kind.place)));
        }
    }
    let mut offers = Vec::new();
    for (position, entry) in template.offerings.offered(&template.set) {
        let slots = |set: &&OfferingSet| if set.has_type(position) { set.slots & entry.available } else { 0 };
        let any_of = |sets: &Vec<&OfferingSet>| sets.iter().map(slots).fold(0, |all, slots| all | slots);
        let allowed = sets.iter().map(|(compatibility, sets, zone)| (*compatibility, any_of(sets) & zone));
        let allowed: Vec<(usize, Slots)> = allowed.collect();
        let usable = allowed.iter().fold(0, |all, (_, slots)| all | slots);
        for (price, slots) in by_price(entry, usable) {
            offers.push(Offer {
                template: index,
                instance_type: position,
                price: price + beside,
                slots,
                room: template.room[position].clone(),
                allowed: within(&allowed, slots),
                reserved: template.is_reserved(),
            });
        }
    }
    offers
}

/// The slots of a template that are in a place.
pub fn slots_in(template: &Template, place: &DomainChoice) -> Slots {
    place.iter().fold(Slots::MAX, |slots, (key, domain)| slots & template.reach[*key].slots_of(*domain))
}

/// The slots of a type by what it costs there.
fn by_price(entry: &TypeEntry, slots: Slots) -> BTreeMap<HourlyPrice, Slots> {
    let mut by_price: BTreeMap<HourlyPrice, Slots> = BTreeMap::new();
    for slot in bits(slots) {
        *by_price.entry(entry.price(slot)).or_default() |= alone(slot);
    }
    by_price
}

/// Whether some pod looks at zones or capacity types, so that a cheaper slot can not stand in for another.
fn slots_matter(problem: &Problem<'_>) -> bool {
    let of_slots = [keys::ZONE, keys::ZONE_ID, keys::CAPACITY_TYPE, keys::REGION];
    of_slots.iter().any(|key| problem.domains.find(key).is_some())
}

/// Whether a type takes no more of limits than another, so that it can stand in for it wherever limits are near.
fn takes_no_more(template: &Template, one: TypeIndex, other: TypeIndex) -> bool {
    let (one, other) = (template.limited_capacity.get(one), template.limited_capacity.get(other));
    one.zip(other).is_none_or(|(one, other)| one.iter().zip(other.iter()).all(|(one, other)| one <= other))
}

/// Not dearer, and at least as roomy and as compatibility to every kind.
fn dominates(one: &Offer, other: &Offer, slots_matter: bool) -> bool {
    let as_compatible = |one: Slots, other: Slots| if slots_matter { one & other == other } else { one != 0 };
    one.price <= other.price
        && one.room.iter().zip(&other.room).all(|(one, other)| one >= other)
        && other.allowed.iter().all(|(compatibility, slots)| as_compatible(one.allowed_for(*compatibility), *slots))
}

/// The offers that say what pods cost: those that are not reserved, unless there is a kind that can be nowhere else.
pub fn unlimited<'o>(kinds: &[SizeClass], offers: &'o [Offer]) -> impl Iterator<Item = &'o Offer> {
    let takes = |offer: &Offer, kind: &SizeClass| {
        offer.allowed(kind) != 0 && vectors::copies(&kind.request, &offer.room, 1) > 0
    };
    let is_compatible =
        |kind: &SizeClass, reserved: bool| offers.iter().any(|offer| offer.reserved == reserved && takes(offer, kind));
    let any_reserved = offers.iter().any(|offer| offer.reserved);
    let needs_reserved =
        any_reserved && kinds.iter().any(|kind| is_compatible(kind, true) && !is_compatible(kind, false));
    offers.iter().filter(move |offer| needs_reserved || !offer.reserved)
}

/// Multiplications to find prices that purchases begin with, which need not be exact; some 10^9 take a second.
pub const PRICE_WORK: u64 = 20_000_000;

/// The same where they are all that purchases go by.
pub const EXACT_PRICE_WORK: u64 = 100_000_000;

/// What a part of the demand should be bought from, by the linear program.
#[derive(Clone, Debug)]
pub struct Allotment {
    pub template: TemplateIndex,
    pub instance_type: TypeIndex,
    pub slots: Slots,
    /// Positions of kinds, and how many pods of each.
    pub kinds: Vec<(usize, usize)>,
}

/// A kind in the linear program; `places` is the number of exclusive places.
pub fn item(kind: &SizeClass, places: usize) -> Item {
    let mut request: Vec<f64> = kind.request.iter().copied().map(as_number).collect();
    request.extend((0..places).map(|place| if kind.exclusive.contains(&place) { 1.0 } else { 0.0 }));
    Item { count: number(kind.count), request }
}

impl Offer {
    /// The offer in the linear program, for these kinds, of which there are only so many.
    pub fn bin(
        &self,
        kinds: &[SizeClass],
        items: &[Item],
        among: impl Iterator<Item = usize>,
        available: impl Fn(usize) -> usize,
    ) -> Bin {
        let held = among.filter(|position| self.allowed(&kinds[*position]) != 0).map(|position| {
            let kind = &kinds[position];
            let most = vectors::copies(&kind.request, &self.room, available(position).min(kind.most_per_node));
            (position, number(most))
        });
        let places = items.first().map_or(0, |item| item.request.len() - self.room.len());
        let room = self.room.iter().copied().map(as_number);
        Bin {
            price: self.price.dollars(),
            items: held.filter(|(_, most)| *most > 0.0).collect(),
            room: room.chain((0..places).map(|_| 1.0)).collect(),
        }
    }
}

/// The offers that hold some kind, and what each is in the linear program. `items` are the kinds in the program.
pub fn with_bins<O: Borrow<Offer>>(
    kinds: &[SizeClass],
    items: &[Item],
    offers: impl Iterator<Item = O>,
) -> (Vec<O>, Vec<Bin>) {
    let mut of_compatibility: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (position, kind) in kinds.iter().enumerate() {
        of_compatibility.entry(kind.compatibility).or_default().push(position);
    }
    let bin = |offer: &Offer| {
        let compatibility = offer.allowed.iter().filter_map(|(compatibility, _)| of_compatibility.get(compatibility));
        let mut compatibility: Vec<usize> = compatibility.flatten().copied().collect();
        compatibility.sort_unstable();
        offer.bin(kinds, items, compatibility.into_iter(), |kind| kinds[kind].count)
    };
    let with_bin = |offer: O| {
        let bin = bin(offer.borrow());
        (offer, bin)
    };
    offers.map(with_bin).filter(|(_, bin)| !bin.items.is_empty()).unzip()
}

/// What one pod of each kind is worth, what to buy for whom, and the bound on the fleet's price that this proves. `items` are the
/// kinds in the program, `start` is where the search begins, `work` where it ends.
pub fn prices(
    kinds: &[SizeClass],
    items: &[Item],
    offers: &[Offer],
    start: &[f64],
    work: u64,
) -> (Prices, Vec<Allotment>) {
    let (offers, bins) = with_bins(kinds, items, unlimited(kinds, offers));
    let prices = dual_prices(items, &bins, start, Effort::exact(work));
    let allotments = prices.shares.iter().map(|share| allotment(offers[share.bin], share)).collect();
    (prices, allotments)
}

/// Whole pods, rounded down: what is left over is bought for like everything else.
fn allotment(offer: &Offer, share: &Share) -> Allotment {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "amounts are positive and no larger than the number of pods"
    )]
    let whole = |amount: f64| (amount + 1e-6).floor() as usize;
    Allotment {
        template: offer.template,
        instance_type: offer.instance_type,
        slots: offer.slots,
        kinds: share.items.iter().map(|(kind, amount)| (*kind, whole(*amount))).filter(|(_, pods)| *pods > 0).collect(),
    }
}

/// How many pods of each kind go on one node, by position of the kind.
pub type Pattern = Vec<(usize, usize)>;

/// What each pool of one weight sells, and what the pods are worth there.
pub struct Market {
    /// Largest request first.
    pub kinds: Vec<SizeClass>,
    pub kind_of: BTreeMap<ClassIndex, usize>,
    pub variants: BTreeMap<ClassIndex, VariantIndex>,
    /// Kinds that the requirements of a template allow, largest request first.
    pub kinds_of_template: IndexVec<TemplateIndex, Vec<usize>>,
    pub offers: Vec<Offer>,
    /// By kind: dollars per hour that one pod is worth.
    pub worth: Vec<f64>,
    /// By kind, as the linear program has it.
    pub items: Vec<Item>,
    /// Of the pools that sell here.
    pub weight_of_pools: i32,
    /// By offer: kinds by worth for their largest share of it, best first.
    pub by_worth: Vec<OnceCell<Vec<usize>>>,
    /// What the linear program would buy for whom.
    pub allotments: Vec<Allotment>,
    /// Dollars per hour: nothing that is sold here hosts the demand for less.
    pub bound: f64,
}

impl Market {
    /// Prices the demand at one level of preferences, with this much work, on the pools of one weight.
    pub fn new(problem: &Problem<'_>, level: usize, demand: &Demand, weight_of_pools: i32, work: u64) -> Self {
        let variants: BTreeMap<ClassIndex, VariantIndex> =
            demand.keys().filter_map(|class| Some((*class, *problem.classes[*class].variants.get(level)?))).collect();
        let only = variants.iter().map(|(class, variant)| (*class, vec![*variant])).collect();
        let (all, places) = kinds(problem, demand, &only);
        // What nothing can host is not shopped for.
        let hosted = weights(problem, &all).into_iter().zip(all).filter_map(|(weight, kind)| Some((weight?, kind)));
        let (alone, kinds): (Vec<f64>, Vec<SizeClass>) = hosted.unzip();
        let market = |purpose| offers(problem, &kinds, Some(weight_of_pools), Counted::WholeNode, purpose);
        let items: Vec<Item> = kinds.iter().map(|kind| item(kind, places)).collect();
        let (priced, allotments) = prices(&kinds, &items, &market(Purpose::Pricing), &alone, work);
        let (worth, bound) = (priced.per_piece, priced.bound);
        let offers = market(Purpose::Buying);
        let is_compatible = |template: TemplateIndex, kind: &SizeClass| {
            kind.variants.iter().any(|variant| problem.purchasable(*variant, template).is_ok())
        };
        let of_template = |template| (0..kinds.len()).filter(|kind| is_compatible(template, &kinds[*kind])).collect();
        let kinds_of_template = problem.templates.indices().map(of_template).collect();
        let numbered = kinds.iter().enumerate();
        let kind_of = numbered.flat_map(|(position, kind)| kind.classes.iter().map(move |class| (*class, position)));
        let kind_of = kind_of.collect();
        let by_worth = offers.iter().map(|_| OnceCell::new()).collect();
        Self {
            kinds,
            kind_of,
            variants,
            kinds_of_template,
            offers,
            worth,
            items,
            weight_of_pools,
            by_worth,
            allotments,
            bound,
        }
    }
}
