//! What could be bought, for whom, and what a pod is worth on it.

use std::collections::BTreeMap;

use crate::api::keys;
use crate::core::model::HourlyPrice;
use crate::core::scheduler::Problem;
use crate::core::scheduler::class::VariantIndex;
use crate::core::scheduler::offerings::{Slots, TypeEntry, bits};
use crate::core::scheduler::template::TemplateIndex;
use crate::core::scheduler::vectors::{self, Vector};

use super::dual::{Bin, Item, Prices, dual_prices};
use super::kinds::Kind;
use super::weights::as_number;

/// A type of a template that could be bought, in the slots in which it has one price.
#[derive(Clone, Debug)]
pub struct Offer {
    pub template: TemplateIndex,
    pub instance_type: usize,
    /// With what every node costs beside it.
    pub price: HourlyPrice,
    pub slots: Slots,
    /// Allocatable less DaemonSets.
    pub room: Vector,
    /// Slots in which each kind may be, by position in the list of kinds; 0 where it may not.
    pub allowed: Vec<Slots>,
    /// Whether there are only so many nodes of it, for next to nothing.
    pub reserved: bool,
}

/// Types of the templates (of one weight, if given), without those that another one beats in price and every dimension and for
/// every kind. `per_node` is added to every price. O(types x kept).
pub fn offers(problem: &Problem<'_>, kinds: &[Kind], weight: Option<i32>, per_node: HourlyPrice) -> Vec<Offer> {
    let slots_matter = slots_matter(problem);
    let mut kept: Vec<Offer> = Vec::new();
    for (template_index, template) in problem
        .templates
        .iter()
        .enumerate()
        .filter(|(_, template)| weight.is_none_or(|weight| template.weight == weight))
    {
        let mut offers: Vec<Offer> = Vec::new();
        for (position, entry) in template.offerings.offered(&template.set) {
            let slots = |variant: &VariantIndex| match problem.purchasable(*variant, template_index) {
                Ok(set) if set.types().contains(position) => set.slots & entry.available,
                _ => 0,
            };
            let any_variant = |kind: &Kind| kind.variants.iter().map(slots).fold(0, |all, slots| all | slots);
            let allowed: Vec<Slots> = kinds.iter().map(any_variant).collect();
            let usable = allowed.iter().fold(0, |all, slots| all | slots);
            for (price, slots) in by_price(entry, usable) {
                offers.push(Offer {
                    template: template_index,
                    instance_type: position,
                    price: price + per_node,
                    slots,
                    room: template.room[position].clone(),
                    allowed: allowed.iter().map(|allowed| allowed & slots).collect(),
                    reserved: template.is_reserved(),
                });
            }
        }
        offers.sort_by_key(|offer| (offer.price, offer.instance_type));
        let first = kept.len();
        for offer in offers {
            if !template.is_limited() && kept[first..].iter().any(|better| dominates(better, &offer, slots_matter)) {
                continue;
            }
            kept.push(offer);
        }
    }
    kept
}

/// The slots of a type by what it costs there.
fn by_price(entry: &TypeEntry, slots: Slots) -> BTreeMap<HourlyPrice, Slots> {
    let mut by_price: BTreeMap<HourlyPrice, Slots> = BTreeMap::new();
    for slot in bits(slots) {
        *by_price.entry(entry.price(slot)).or_default() |= 1 << slot;
    }
    by_price
}

/// Whether some pod looks at zones or capacity types, so that a cheaper slot can not stand in for another.
fn slots_matter(problem: &Problem<'_>) -> bool {
    let of_slots = [keys::ZONE, keys::ZONE_ID, keys::CAPACITY_TYPE, keys::REGION];
    (0..problem.domains.key_count()).any(|key| of_slots.contains(&problem.domains.name(key)))
}

/// Not dearer, and at least as roomy and as welcome to every kind.
fn dominates(one: &Offer, other: &Offer, slots_matter: bool) -> bool {
    let as_welcome =
        |one: Slots, other: Slots| if slots_matter { one & other == other } else { other == 0 || one != 0 };
    one.price <= other.price
        && one.room.iter().zip(&other.room).all(|(one, other)| one >= other)
        && one.allowed.iter().zip(&other.allowed).all(|(one, other)| as_welcome(*one, *other))
}

/// The offers that say what pods cost: those that are not reserved, unless there is a kind that can be nowhere else.
pub fn unlimited<'o>(kinds: &[Kind], offers: &'o [Offer]) -> impl Iterator<Item = &'o Offer> {
    let takes = |offer: &Offer, kind: usize| {
        offer.allowed[kind] != 0 && vectors::copies(&kinds[kind].request, &offer.room, 1) > 0
    };
    let is_welcome =
        |kind: usize, reserved: bool| offers.iter().any(|offer| offer.reserved == reserved && takes(offer, kind));
    let needs_reserved = (0..kinds.len()).any(|kind| is_welcome(kind, true) && !is_welcome(kind, false));
    offers.iter().filter(move |offer| needs_reserved || !offer.reserved)
}

/// Pairs of offers and classes looked at to find prices; some tenths of a second in a release build.
pub const PRICE_WORK: u64 = 6_000_000;

/// What one pod of each kind is worth, and the bound on the fleet's price that this proves. `places` is the number of
/// exclusive places, `start` where the search begins, `work` where it ends.
pub fn prices(kinds: &[Kind], places: usize, offers: &[Offer], start: &[f64], work: u64) -> Prices {
    let item = |kind: &Kind| {
        let mut request: Vec<f64> = kind.request.iter().copied().map(as_number).collect();
        request.extend((0..places).map(|place| if kind.exclusive.contains(&place) { 1.0 } else { 0.0 }));
        Item { count: number(kind.count), request }
    };
    let items: Vec<Item> = kinds.iter().map(item).collect();
    let bin = |offer: &Offer| {
        let held = kinds.iter().enumerate().filter(|(position, _)| offer.allowed[*position] != 0);
        let most = |kind: &Kind| vectors::copies(&kind.request, &offer.room, kind.count.min(kind.most_per_node));
        let held = held.map(|(position, kind)| (position, number(most(kind))));
        let room = offer.room.iter().copied().map(as_number);
        Bin {
            price: offer.price.dollars(),
            room: room.chain((0..places).map(|_| 1.0)).collect(),
            items: held.filter(|(_, most)| *most > 0.0).collect(),
        }
    };
    let bins: Vec<Bin> = unlimited(kinds, offers).map(bin).filter(|bin| !bin.items.is_empty()).collect();
    dual_prices(&items, &bins, start, work)
}

pub fn number(count: usize) -> f64 {
    as_number(i64::try_from(count).unwrap_or(i64::MAX))
}
