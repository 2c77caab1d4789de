//! What could be bought, for whom, and what a pod is worth on it.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::keys;
use crate::core::model::HourlyPrice;
use crate::core::scheduler::class::VariantIndex;
use crate::core::scheduler::offerings::{Slots, TypeEntry, bits};
use crate::core::scheduler::template::TemplateIndex;
use crate::core::scheduler::topology::{GroupIndex, GroupKind};
use crate::core::scheduler::vectors::{self, Vector};
use crate::core::scheduler::{ClassIndex, Problem};

use super::dual::{Bin, Item, Prices, dual_prices};
use super::weights::as_number;

/// A type of a template that could be bought, in the slots in which it has one price.
#[derive(Debug)]
pub struct Offer {
    pub template: TemplateIndex,
    pub instance_type: usize,
    pub price: HourlyPrice,
    pub slots: Slots,
    /// Allocatable less DaemonSets.
    pub room: Vector,
    /// Slots in which each class may be, by position in the list of classes; 0 where it may not.
    pub allowed: Vec<Slots>,
}

/// What one node may hold of a class by the class's own rules: host ports, anti-affinity and spread over host names.
pub fn most_per_node(problem: &Problem<'_>, class: ClassIndex, variant: VariantIndex) -> usize {
    let pods = &problem.classes[class];
    let mut most = if pods.host_ports.is_empty() { usize::MAX } else { 1 };
    for group in &problem.variants[variant].constraints {
        let compiled = &problem.groups[*group];
        let counts_itself = pods.counted_in.binary_search(group).is_ok();
        match &compiled.kind {
            GroupKind::AntiAffinity if counts_itself => most = 1,
            GroupKind::Spread(spread) if counts_itself && problem.domains.is_hostname(compiled.key) => {
                most = most.min(usize::try_from(spread.max_skew).unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }
    most
}

/// Types of the templates (of one weight, if given), without those that another one beats in price and every dimension and for
/// every class. A class may go where any of its `variants` may. O(types x kept).
pub fn offers(
    problem: &Problem<'_>,
    classes: &[ClassIndex],
    variants: &BTreeMap<ClassIndex, &[VariantIndex]>,
    weight: Option<i32>,
) -> Vec<Offer> {
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
            let any_variant = |class: &ClassIndex| variants[class].iter().map(slots).fold(0, |all, slots| all | slots);
            let allowed: Vec<Slots> = classes.iter().map(any_variant).collect();
            let usable = allowed.iter().fold(0, |all, slots| all | slots);
            for (price, slots) in by_price(entry, usable) {
                offers.push(Offer {
                    template: template_index,
                    instance_type: position,
                    price,
                    slots,
                    room: template.room[position].clone(),
                    allowed: allowed.iter().map(|allowed| allowed & slots).collect(),
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

/// Not dearer, and at least as roomy and as welcome to every class.
fn dominates(one: &Offer, other: &Offer, slots_matter: bool) -> bool {
    let as_welcome =
        |one: Slots, other: Slots| if slots_matter { one & other == other } else { other == 0 || one != 0 };
    one.price <= other.price
        && one.room.iter().zip(&other.room).all(|(one, other)| one >= other)
        && one.allowed.iter().zip(&other.allowed).all(|(one, other)| as_welcome(*one, *other))
}

/// Pairs of offers and classes looked at to find prices; some tenths of a second in a release build.
pub const PRICE_WORK: u64 = 6_000_000;

/// What one pod of each class is worth, by position in `classes`, and the bound on the fleet's price that this proves.
/// `start` is where the search begins, `work` where it ends.
pub fn prices(
    problem: &Problem<'_>,
    classes: &[ClassIndex],
    counts: &[usize],
    offers: &[Offer],
    most_per_node: &BTreeMap<ClassIndex, usize>,
    start: &[f64],
    work: u64,
) -> Prices {
    let exclusive = exclusive_places(problem, classes);
    let items: Vec<Item> = classes
        .iter()
        .zip(counts)
        .enumerate()
        .map(|(position, (class, count))| {
            let mut request: Vec<f64> = problem.classes[*class].request.iter().copied().map(as_number).collect();
            request.extend(exclusive.iter().map(|places| if places.contains(&position) { 1.0 } else { 0.0 }));
            Item { count: number(*count), request }
        })
        .collect();
    let bins: Vec<Bin> = offers
        .iter()
        .map(|offer| {
            let held = classes.iter().enumerate().filter(|(position, _)| offer.allowed[*position] != 0);
            let most = |position: usize, class: ClassIndex| {
                let own = most_per_node.get(&class).copied().unwrap_or(usize::MAX);
                vectors::copies(&problem.classes[class].request, &offer.room, counts[position].min(own))
            };
            let room = offer.room.iter().copied().map(as_number);
            Bin {
                price: offer.price.dollars(),
                room: room.chain(exclusive.iter().map(|_| 1.0)).collect(),
                items: held
                    .map(|(position, class)| (position, number(most(position, *class))))
                    .filter(|(_, most)| *most > 0.0)
                    .collect(),
            }
        })
        .filter(|bin| !bin.items.is_empty())
        .collect();
    dual_prices(&items, &bins, start, work)
}

/// Sets of classes, by position, of which one node can hold a single pod: they own the same anti-affinity term that selects
/// them all, or listen on the same port of the host. In the linear program each is a resource that a node has one of.
pub fn exclusive_places(problem: &Problem<'_>, classes: &[ClassIndex]) -> BTreeSet<BTreeSet<usize>> {
    let mut by_term: BTreeMap<GroupIndex, BTreeSet<usize>> = BTreeMap::new();
    let mut by_port: BTreeMap<(i32, &str), BTreeSet<usize>> = BTreeMap::new();
    for (position, class) in classes.iter().enumerate() {
        let pods = &problem.classes[*class];
        for term in pods.anti_affinity.iter().filter(|term| pods.counted_in.binary_search(term).is_ok()) {
            by_term.entry(*term).or_default().insert(position);
        }
        for port in pods.host_ports.iter().filter(|port| port.address.is_empty()) {
            by_port.entry((port.port, &port.protocol)).or_default().insert(position);
        }
    }
    // A class alone has its own bound on how many fit.
    by_term.into_values().chain(by_port.into_values()).filter(|places| places.len() > 1).collect()
}

pub fn number(count: usize) -> f64 {
    as_number(i64::try_from(count).unwrap_or(i64::MAX))
}
