//! The catalog compiled: requirements become a set of instance types and a set of slots.
//!
//! A slot is a zone with a capacity type. Labels either belong to the type (architecture, family ...) or to the slot
//! (zone, zone id, capacity type), so a conjunction of requirements is exactly a set of types times a set of slots, and
//! intersecting two conjunctions is a few dozen word operations.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use fixedbitset::FixedBitSet;

use crate::catalog::InstanceType;
use crate::model::requirements::{is_well_known, normalized};
use crate::model::resources::{CPU, NODES};
use crate::model::shared::Shared;
use crate::model::{HourlyPrice, IndexVec, Requirement, Requirements, Resources};
use cutlist_api::keys;

use super::vectors::{Dimensions, Vector};

pub use super::indices::{SlotIndex, TypeIndex};

/// A set of slots, one bit each.
pub type Slots = u128;

const SLOTS_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    pub zone: String,
    pub zone_id: Option<String>,
    pub capacity_type: String,
}

/// Instance types in the order of their cheapest price, then name.
#[derive(Debug)]
pub struct Offerings {
    pub types: IndexVec<TypeIndex, TypeEntry>,
    pub slots: IndexVec<SlotIndex, Slot>,
    pub region: String,
    /// For each label of types, which of them have it: found when it is first asked for, since most labels never are.
    labels: BTreeMap<String, OnceCell<Label>>,
    /// The types available in each.
    available: IndexVec<SlotIndex, FixedBitSet>,
}

/// The types that have a label.
#[derive(Debug)]
struct Label {
    with_any: FixedBitSet,
    /// By value.
    with: BTreeMap<String, FixedBitSet>,
}

#[derive(Debug)]
pub struct TypeEntry {
    pub name: String,
    pub allocatable: Vector,
    /// What a limit counts; with `nodes: 1`.
    pub capacity: Resources,
    pub allocatable_resources: Resources,
    pub requirements: Shared<BTreeMap<String, Vec<String>>>,
    /// Slots in which this type is offered and available.
    pub available: Slots,
    /// `HourlyPrice::MAX` where there is no price.
    prices: IndexVec<SlotIndex, HourlyPrice>,
    /// In any slot; `HourlyPrice::MAX` when it is not available.
    cheapest_price: HourlyPrice,
}

impl TypeEntry {
    pub fn price(&self, slot: SlotIndex) -> HourlyPrice {
        self.prices[slot]
    }

    /// Whether it is sold in some of these slots, and for none of them anybody knows at what price: then it is not available, as in the
    /// reference.
    pub fn is_without_price(&self, slots: Slots) -> bool {
        let mut prices =
            bits(slots).map(|slot| self.prices[slot]).filter(|price| *price != HourlyPrice::MAX).peekable();
        self.available & slots == 0 && prices.peek().is_some() && prices.all(|price| price == HourlyPrice::ZERO)
    }

    /// The cheapest of these slots that is available; the first of equals, so the zone that sorts first.
    pub fn cheapest(&self, slots: Slots) -> Option<(SlotIndex, HourlyPrice)> {
        bits(slots & self.available).map(|slot| (slot, self.prices[slot])).min_by_key(|(slot, price)| (*price, *slot))
    }
}

/// What a conjunction of requirements leaves: types, and slots. Types are shared until they change: most nodes differ in
/// slots and requests, not in types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OfferingSet {
    types: Rc<FixedBitSet>,
    pub slots: Slots,
}

impl OfferingSet {
    pub fn new(types: FixedBitSet, slots: Slots) -> Self {
        Self { types: Rc::new(types), slots }
    }

    pub fn types(&self) -> &FixedBitSet {
        &self.types
    }

    /// Its types, cheapest first.
    pub fn each_type(&self) -> impl Iterator<Item = TypeIndex> {
        self.types.ones().map(TypeIndex::from)
    }

    pub fn has_type(&self, instance_type: TypeIndex) -> bool {
        self.types.contains(instance_type.into())
    }

    /// One type only, in these slots.
    pub fn only(&self, instance_type: TypeIndex, slots: Slots) -> Self {
        let mut types = FixedBitSet::with_capacity(self.types.len());
        types.insert(instance_type.into());
        Self::new(types, slots)
    }

    /// The same types in other slots.
    pub fn in_slots(&self, slots: Slots) -> Self {
        Self { types: Rc::clone(&self.types), slots }
    }

    pub fn intersect(&mut self, other: &Self) {
        if !Rc::ptr_eq(&self.types, &other.types) {
            self.keep_types(&other.types);
        }
        self.slots &= other.slots;
    }

    /// Leaves out all types but these.
    pub fn keep_types(&mut self, kept: &FixedBitSet) {
        if !self.types.is_subset(kept) {
            Rc::make_mut(&mut self.types).intersect_with(kept);
        }
    }

    /// Leaves out what is in the other one. Where that is neither all types of some slots nor all slots of some types, the types go.
    pub fn remove(&mut self, other: &Self) {
        if self.slots & other.slots == 0 || self.types.is_disjoint(&other.types) {
            return;
        }
        if self.types.is_subset(&other.types) {
            self.slots &= !other.slots;
        } else {
            Rc::make_mut(&mut self.types).difference_with(&other.types);
        }
    }

    pub fn remove_type(&mut self, instance_type: TypeIndex) {
        if self.has_type(instance_type) {
            Rc::make_mut(&mut self.types).remove(instance_type.into());
        }
    }
}

/// Positions of the set bits, ascending.
pub fn bits(mut set: Slots) -> impl Iterator<Item = SlotIndex> {
    std::iter::from_fn(move || {
        let position = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (position < SLOTS_MAX).then(|| position.into())
    })
}

/// The set of one slot.
#[inline]
pub fn alone(slot: SlotIndex) -> Slots {
    1 << usize::from(slot)
}

impl Offerings {
    /// Compiles instance types. `zones` restricts to zones with a subnet; slots beyond 128 are left out, dearest last,
    /// which no region comes near (zones times capacity types). O(types x labels) comparisons.
    pub fn new(
        instance_types: &[InstanceType],
        region: &str,
        zones: Option<&[String]>,
        dimensions: &Dimensions,
    ) -> Self {
        let has_subnet = |zone: &str| zones.is_none_or(|zones| zones.iter().any(|allowed| allowed == zone));
        let mut slots = distinct_slots(instance_types);
        slots.retain(|slot| has_subnet(&slot.zone));
        slots.sort();
        slots.dedup_by(|one, two| one.zone == two.zone && one.capacity_type == two.capacity_type);
        slots.truncate(SLOTS_MAX);
        let mut types: Vec<TypeEntry> =
            instance_types.iter().map(|instance_type| entry(instance_type, &slots, dimensions)).collect();
        // Of types of one price, as an overlay may give them, the one that takes least of the limits.
        let order = |it: &TypeEntry| (it.cheapest_price, it.capacity.get(CPU));
        types.sort_by(|one, two| order(one).cmp(&order(two)).then_with(|| one.name.cmp(&two.name)));
        let labels = labels(&types);
        let (types, slots) = (types.into(), slots.into());
        let mut offerings = Self { types, slots, region: region.to_owned(), labels, available: IndexVec::new() };
        offerings.index_slots();
        offerings
    }

    fn index_slots(&mut self) {
        self.available = IndexVec::repeat(FixedBitSet::with_capacity(self.types.len()), self.slots.len());
        for (position, entry) in self.types.iter().enumerate() {
            bits(entry.available).for_each(|slot| self.available[slot].insert(position));
        }
    }

    /// O(types) for a label that is asked for the first time.
    fn label(&self, key: &str) -> Option<&Label> {
        let found = self.labels.get(key)?;
        Some(found.get_or_init(|| {
            let none = FixedBitSet::with_capacity(self.types.len());
            let mut with_any = none.clone();
            let mut with: BTreeMap<&str, FixedBitSet> = BTreeMap::new();
            for (position, entry) in self.types.iter().enumerate() {
                for value in entry.requirements.get(key).into_iter().flatten() {
                    with_any.insert(position);
                    with.entry(value).or_insert_with(|| none.clone()).insert(position);
                }
            }
            let with = with.into_iter().map(|(value, types)| (value.to_owned(), types)).collect();
            Label { with_any, with }
        }))
    }

    /// Everything there is.
    pub fn all(&self) -> OfferingSet {
        let mut types = FixedBitSet::with_capacity(self.types.len());
        types.insert_range(..);
        let slots = if self.slots.len() >= SLOTS_MAX { Slots::MAX } else { (1 << self.slots.len()) - 1 };
        OfferingSet::new(types, slots)
    }

    /// Whether offerings define this label, so that a requirement on it is a set of types or slots.
    pub fn defines(&self, key: &str) -> bool {
        let key = normalized(key);
        is_slot_label(key) || self.labels.contains_key(key) || (is_well_known(key) && !is_pool_label(key))
    }

    /// Whether each node gets a value of this label that is chosen for it, and has not the one of its type or zone.
    pub fn leaves_open(&self, key: &str) -> bool {
        key == keys::TENANCY || !self.defines(key)
    }

    /// Whether some type of the set can have this value of a label that is left open; any can where types do not define it.
    pub fn may_have(&self, set: &OfferingSet, key: &str, value: &str) -> bool {
        !self.defines(key) || self.types_by_value(key).any(|(of, types)| of == value && !types.is_disjoint(set.types()))
    }

    /// The types and slots that satisfy the requirements on labels which offerings define; others are not looked at.
    pub fn compile(&self, requirements: &Requirements) -> OfferingSet {
        let mut set = self.all();
        for (key, requirement) in requirements.iter().filter(|(key, _)| self.defines(key)) {
            self.restrict(&mut set, key, requirement);
        }
        set
    }

    /// Narrows the set to what satisfies one requirement. O(values of the label x types / 64).
    pub fn restrict(&self, set: &mut OfferingSet, key: &str, requirement: &Requirement) {
        match normalized(key) {
            keys::ZONE => set.slots &= self.slots_where(|slot| requirement.allows(&slot.zone)),
            keys::ZONE_ID => {
                set.slots &= self.slots_where(|slot| match &slot.zone_id {
                    Some(zone_id) => requirement.allows(zone_id),
                    None => requirement.allows_absence(),
                });
            }
            keys::CAPACITY_TYPE => set.slots &= self.slots_where(|slot| requirement.allows(&slot.capacity_type)),
            keys::REGION => {
                if !requirement.allows(&self.region) {
                    set.slots = 0;
                }
            }
            key => set.keep_types(&self.types_where(key, requirement)),
        }
    }

    fn slots_where(&self, allowed: impl Fn(&Slot) -> bool) -> Slots {
        let allowed = self.slots.enumerated().filter(|(_, slot)| allowed(slot));
        allowed.fold(0, |set, (slot, _)| set | alone(slot))
    }

    fn types_where(&self, key: &str, requirement: &Requirement) -> FixedBitSet {
        let label = self.label(key);
        let mut allowed = FixedBitSet::with_capacity(self.types.len());
        if requirement.allows_absence() {
            allowed.insert_range(..);
            label.iter().for_each(|label| allowed.difference_with(&label.with_any));
        }
        let by_value = label.into_iter().flat_map(|label| &label.with);
        for (_, types) in by_value.filter(|(value, _)| requirement.allows(value)) {
            allowed.union_with(types);
        }
        allowed
    }

    /// Types of the set that are offered in one of its slots, cheapest first.
    pub fn offered<'a>(&'a self, set: &'a OfferingSet) -> impl Iterator<Item = (TypeIndex, &'a TypeEntry)> {
        set.each_type()
            .map(|position| (position, &self.types[position]))
            .filter(|(_, entry)| entry.available & set.slots != 0)
    }

    /// The cheapest type and slot of the set, with its price; of equals the first type, then the first slot. Stops at types
    /// whose cheapest slot of all costs more.
    pub fn cheapest(&self, set: &OfferingSet) -> Option<(TypeIndex, SlotIndex, HourlyPrice)> {
        let mut best: Option<(TypeIndex, SlotIndex, HourlyPrice)> = None;
        for (position, entry) in self.offered(set) {
            if best.is_some_and(|(_, _, price)| entry.cheapest_price >= price) {
                break;
            }
            let Some((slot, price)) = entry.cheapest(set.slots) else { continue };
            if best.is_none_or(|(_, _, least)| price < least) {
                best = Some((position, slot, price));
            }
        }
        best
    }

    /// Leaves out types that no slot of the set offers, and slots that offer no type of it, so that what is left is what a
    /// node may really become. False when nothing is left. O(slots x types / 64).
    pub fn prune(&self, set: &mut OfferingSet) -> bool {
        for slot in bits(set.slots).filter(|slot| *slot < self.slots.end()) {
            if set.types.is_disjoint(&self.available[slot]) {
                set.slots &= !alone(slot);
            }
        }
        let slots = set.slots;
        let offered = |position: usize| {
            let of_slots = bits(slots).filter_map(|slot| self.available.get(slot)?.as_slice().get(position));
            of_slots.fold(0, |types, of_slot| types | of_slot)
        };
        // Nearly always nothing has to go, and then the types stay shared.
        let mut words = set.types.as_slice().iter().enumerate();
        if words.any(|(position, types)| types & !offered(position) != 0) {
            let words = Rc::make_mut(&mut set.types).as_mut_slice().iter_mut().enumerate();
            words.for_each(|(position, types)| *types &= offered(position));
        }
        set.slots != 0
    }

    /// The types that have each value of a label of types, by value.
    pub fn types_by_value(&self, key: &str) -> impl Iterator<Item = (&str, &FixedBitSet)> {
        let label = self.label(normalized(key));
        label.into_iter().flat_map(|label| &label.with).map(|(value, types)| (value.as_str(), types))
    }

    /// The values that nodes from this set may have for a label that offerings define.
    pub fn values_of(&self, set: &OfferingSet, key: &str) -> Vec<&str> {
        let slot_values = |value: fn(&Slot) -> Option<&str>| {
            let mut values: Vec<&str> = bits(set.slots).filter_map(|slot| value(&self.slots[slot])).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        match normalized(key) {
            keys::ZONE => slot_values(|slot| Some(&slot.zone)),
            keys::ZONE_ID => slot_values(|slot| slot.zone_id.as_deref()),
            keys::CAPACITY_TYPE => slot_values(|slot| Some(&slot.capacity_type)),
            keys::REGION => vec![&self.region],
            key => {
                let by_value = self.label(key).into_iter().flat_map(|label| &label.with);
                by_value.filter(|(_, types)| !types.is_disjoint(&set.types)).map(|(value, _)| value.as_str()).collect()
            }
        }
    }

    pub fn position(&self, name: &str) -> Option<TypeIndex> {
        self.label(keys::INSTANCE_TYPE)?.with.get(name)?.ones().next().map(TypeIndex::from)
    }

    /// The slots that are in the zone, or of the capacity type, or both, of one of these, as far as each counts.
    pub fn slots_alike(&self, slots: Slots, zones_count: bool, capacity_types_count: bool) -> Slots {
        bits(slots).fold(0, |alike, position| {
            if alike & alone(position) != 0 {
                return alike;
            }
            let now = &self.slots[position];
            alike
                | self.slots_where(|slot| {
                    (!zones_count || now.zone == slot.zone)
                        && (!capacity_types_count || now.capacity_type == slot.capacity_type)
                })
        })
    }

    pub fn slot(&self, zone: &str, capacity_type: &str) -> Option<SlotIndex> {
        self.slots.position(|slot| slot.zone == zone && slot.capacity_type == capacity_type)
    }
}

/// Whether the label belongs to the slot, so that its values are sets of slots.
pub fn is_slot_label(key: &str) -> bool {
    matches!(key, keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE | keys::REGION)
}

/// Well-known labels that come from the pool and not from what EC2 offers.
fn is_pool_label(key: &str) -> bool {
    matches!(key, keys::NODE_POOL | keys::EC2_NODE_CLASS)
}

/// Every label of types.
fn labels(types: &[TypeEntry]) -> BTreeMap<String, OnceCell<Label>> {
    let labels = types.iter().flat_map(|entry| entry.requirements.iter());
    let with_values = labels.filter(|(key, values)| !values.is_empty() && !is_slot_label(key));
    // Thirty labels, each of a thousand types.
    let keys: HashSet<&String> = with_values.map(|(key, _)| key).collect();
    keys.into_iter().map(|key| (key.clone(), OnceCell::new())).collect()
}

/// Each slot that some type is offered in, once.
fn distinct_slots(instance_types: &[InstanceType]) -> Vec<Slot> {
    let (mut slots, mut next) = (Vec::new(), 0);
    for offering in instance_types.iter().flat_map(|instance_type| &instance_type.offerings) {
        let is_it = |slot: &Slot| {
            slot.zone == offering.zone
                && slot.capacity_type == offering.capacity_type
                && slot.zone_id == offering.zone_id
        };
        next = 1 + find_from(next, &slots, is_it).unwrap_or_else(|| {
            slots.push(Slot {
                zone: offering.zone.clone(),
                zone_id: offering.zone_id.clone(),
                capacity_type: offering.capacity_type.clone(),
            });
            slots.len() - 1
        });
    }
    slots
}

/// Position of a slot, sought from this one on and then from the first: all types name theirs in one order, so mostly it is the next.
fn find_from(next: usize, slots: &[Slot], is_it: impl Fn(&Slot) -> bool) -> Option<usize> {
    (next..slots.len()).chain(0..next.min(slots.len())).find(|position| is_it(&slots[*position]))
}

fn entry(instance_type: &InstanceType, slots: &[Slot], dimensions: &Dimensions) -> TypeEntry {
    let allocatable_resources = instance_type.allocatable();
    let mut prices = IndexVec::repeat(HourlyPrice::MAX, slots.len());
    let (mut available, mut next) = (0, 0);
    for offering in &instance_type.offerings {
        let is_it = |slot: &Slot| slot.zone == offering.zone && slot.capacity_type == offering.capacity_type;
        if let Some(position) = find_from(next, slots, is_it) {
            next = position + 1;
            let slot = SlotIndex::from(position);
            prices[slot] = offering.price;
            if offering.available {
                available |= alone(slot);
            }
        }
    }
    let mut requirements = instance_type.requirements.clone();
    if !requirements.contains_key(keys::INSTANCE_TYPE) {
        requirements.insert(keys::INSTANCE_TYPE.to_owned(), vec![instance_type.name.clone()]);
    }
    let mut capacity = instance_type.capacity.clone();
    capacity.set(NODES, 1);
    let cheapest_price = bits(available).map(|slot| prices[slot]).min().unwrap_or(HourlyPrice::MAX);
    TypeEntry {
        name: instance_type.name.clone(),
        allocatable: dimensions.room(&allocatable_resources, Some(&instance_type.name)),
        capacity,
        allocatable_resources,
        requirements,
        available,
        prices,
        cheapest_price,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Offering;
    use cutlist_api::node_pool::Operator;

    fn instance_type(name: &str, architecture: &str, zones: &[(&str, f64)]) -> InstanceType {
        let offering = |(zone, price): &(&str, f64)| Offering {
            zone: (*zone).to_owned(),
            zone_id: None,
            capacity_type: keys::ON_DEMAND.to_owned(),
            price: HourlyPrice::from_dollars(*price).unwrap(),
            available: true,
            reservation_id: None,
            available_instance_count: None,
        };
        InstanceType {
            name: name.to_owned(),
            requirements: BTreeMap::from([(keys::ARCHITECTURE.to_owned(), vec![architecture.to_owned()])]).into(),
            capacity: Resources::new(),
            overhead: Resources::new(),
            offerings: zones.iter().map(offering).collect::<Vec<_>>().into(),
        }
    }

    fn offerings() -> Offerings {
        let types = [
            instance_type("b", "arm64", &[("z1", 0.2), ("z2", 0.1)]),
            instance_type("a", "amd64", &[("z1", 0.3)]),
            instance_type("c", "amd64", &[]),
        ];
        Offerings::new(&types, "r", None, &Dimensions::default())
    }

    fn names(offerings: &Offerings, key: &str, requirement: Requirement) -> Vec<String> {
        let mut requirements = Requirements::new();
        requirements.add(key, requirement);
        let set = offerings.compile(&requirements);
        offerings.offered(&set).map(|(_, entry)| entry.name.clone()).collect()
    }

    #[test]
    fn requirements_become_types_and_slots() {
        let offerings = offerings();
        assert_eq!(names(&offerings, keys::ARCHITECTURE, Requirement::is_in(["amd64"])), ["a"]);
        assert_eq!(names(&offerings, keys::ZONE, Requirement::is_in(["z1"])), ["b", "a"]);
        assert_eq!(names(&offerings, keys::ZONE, Requirement::new(Operator::NotIn, ["z1"])), ["b"]);
        assert_eq!(names(&offerings, keys::CAPACITY_TYPE, Requirement::is_in([keys::SPOT])), Vec::<String>::new());
        let absent = Requirement::new(Operator::DoesNotExist, Vec::<String>::new());
        assert_eq!(names(&offerings, "karpenter.k8s.aws/instance-gpu-name", absent), ["b", "a"]);
    }

    #[test]
    fn the_cheapest_slot_is_the_first_of_equals() {
        let offerings = offerings();
        let (slot, price) = offerings.types[TypeIndex::from(0)].cheapest(Slots::MAX).unwrap();
        assert_eq!((offerings.slots[slot].zone.as_str(), price.dollars()), ("z2", 0.1));
        assert_eq!(offerings.types[TypeIndex::from(2)].cheapest(Slots::MAX), None);
    }
}
