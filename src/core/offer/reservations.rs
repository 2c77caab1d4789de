//! Capacity reservations: instances that are paid for whether or not they run, so that they are used up first.
//! Behaviour: reference, sections 1.3, 3.10, 6.5 and 6.7.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::catalog::{Catalog, InstanceType, Offering};
use crate::inputs::Inputs;
use crate::lifecycle::interruption::is_over;
use crate::model::HourlyPrice;
use crate::plan::{Note, NoteCode};
use cutlist_api::ec2_node_class::{CapacityReservation, CapacityReservationSelectorTerm, EC2NodeClass};
use cutlist_api::keys;

/// By how much a reserved instance is cheaper than one on demand, so that it always comes first and, of several, the
/// smallest that does. Source: the reference.
const RESERVED_DIVISOR: i64 = 10_000_000;

/// A capacity reservation that nodes can be launched into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    /// `default` or `capacity-block`.
    pub reservation_type: String,
    /// Instances that can still be launched into it.
    pub available: usize,
    /// Next to nothing, by the price on demand.
    pub price: HourlyPrice,
}

/// What a reserved instance counts for.
pub(super) fn reserved_price(on_demand: HourlyPrice) -> HourlyPrice {
    let nanodollars = on_demand.nanodollars().saturating_add(RESERVED_DIVISOR / 2) / RESERVED_DIVISOR;
    HourlyPrice::from_nanodollars(nanodollars)
}

/// The offering of this type on demand in a zone, whether or not it is available.
pub(super) fn on_demand<'c>(catalog: &'c Catalog, name: &str, zone: &str) -> Option<(&'c InstanceType, &'c Offering)> {
    let types = &catalog.instance_types;
    // Catalogs are sorted by name where they are read; one made otherwise is searched.
    let sorted = types.binary_search_by(|instance_type| instance_type.name.as_str().cmp(name)).ok();
    let sold = &types[sorted.or_else(|| types.iter().position(|instance_type| instance_type.name == name))?];
    let mut offerings = sold.offerings.iter();
    let offering = offerings.find(|it| it.zone == zone && it.capacity_type == keys::ON_DEMAND)?;
    Some((sold, offering))
}

/// The reservations of each class, and what is to be said about them.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    of_class: BTreeMap<String, Vec<Rc<Reservation>>>,
    pub notes: Vec<Note>,
}

impl Reservations {
    /// What the status of each class lists and the catalog has. O(classes x reservations + offerings).
    pub(super) fn new(inputs: &Inputs<'_>) -> Self {
        let mut reservations = Self::default();
        let with_terms = |class: &&EC2NodeClass| !class.spec.capacity_reservation_selector_terms.is_empty();
        if !inputs.node_classes.iter().any(|class| with_terms(&class)) {
            return reservations;
        }
        if !inputs.policy.feature_gates.reserved_capacity {
            for name in inputs.node_classes.iter().filter(with_terms).filter_map(|class| class.metadata.name.as_deref())
            {
                let gate = "spec.featureGates.ReservedCapacity is off";
                reservations
                    .note(name, format!("{gate}: the capacity reservations of EC2NodeClass {name} are not used"));
            }
            return reservations;
        }
        let counted = counted(&inputs.catalog.instance_types);
        for class in inputs.node_classes.iter().filter(with_terms) {
            reservations.add(class, &counted, inputs);
        }
        reservations.agree_on_counts();
        reservations
    }

    fn note(&mut self, class: &str, text: String) {
        self.notes.push(Note::new(NoteCode::ReservationsNotPlanned, text).about("EC2NodeClass", class));
    }

    fn add(&mut self, class: &EC2NodeClass, counted: &BTreeMap<&str, CapacityReservation>, inputs: &Inputs<'_>) {
        let Some(name) = class.metadata.name.as_deref() else { return };
        let terms = &class.spec.capacity_reservation_selector_terms;
        let mut found: BTreeMap<&str, &CapacityReservation> = BTreeMap::new();
        // Tags are not in the status; what was selected by them is believed.
        let listed = inputs.snapshot.node_classes.iter().filter(|it| it.metadata.name.as_deref() == Some(name));
        let listed = listed.filter_map(|applied| applied.status.as_ref()).flat_map(|it| &it.capacity_reservations);
        found.extend(listed.filter(|it| terms.iter().any(|term| selects(term, it))).map(|it| (it.id.as_str(), it)));
        for id in terms.iter().filter_map(|term| term.id.as_deref()) {
            if let Some((id, reservation)) = counted.get_key_value(id) {
                found.entry(id).or_insert(reservation);
            }
        }
        if found.is_empty() {
            let text = "neither the snapshot (in its status) nor the catalog has one of them";
            self.note(name, format!("EC2NodeClass {name} selects capacity reservations, but {text}"));
        }
        for (id, reservation) in found {
            if is_over(reservation, inputs.now) {
                self.note(name, format!("capacity reservation {id} of EC2NodeClass {name} has ended or is about to"));
                continue;
            }
            let of_catalog = || counted.get(id).and_then(|it| it.available_instance_count);
            let Some(available) = reservation.available_instance_count.or_else(of_catalog) else {
                let text = "is not used: neither the class nor the catalog says how many instances are left";
                self.note(name, format!("capacity reservation {id} of EC2NodeClass {name} {text}"));
                continue;
            };
            let given_back = usize::from(inputs.policy.instance_back.as_deref() == Some(id));
            let CapacityReservation { instance_type, availability_zone: zone, .. } = reservation;
            let Some((_, on_demand)) = on_demand(inputs.catalog, instance_type, zone) else {
                let text = format!("is not used: the catalog has no {instance_type} in {zone}");
                self.note(name, format!("capacity reservation {id} of EC2NodeClass {name} {text}"));
                continue;
            };
            self.of_class.entry(name.to_owned()).or_default().push(Rc::new(Reservation {
                id: id.to_owned(),
                instance_type: instance_type.clone(),
                zone: zone.clone(),
                reservation_type: reservation.reservation_type.clone().unwrap_or_else(|| "default".to_owned()),
                available: usize::try_from(available).unwrap_or(0).saturating_add(given_back),
                price: reserved_price(on_demand.price),
            }));
        }
    }

    /// Of two classes that were looked at at different moments, the lower count is right.
    fn agree_on_counts(&mut self) {
        let mut least: BTreeMap<String, usize> = BTreeMap::new();
        for reservation in self.of_class.values().flatten() {
            let count = least.entry(reservation.id.clone()).or_insert(reservation.available);
            *count = reservation.available.min(*count);
        }
        for reservation in self.of_class.values_mut().flatten() {
            let available = least.get(&reservation.id).copied().unwrap_or(0);
            if available < reservation.available {
                *reservation = Rc::new(Reservation { available, ..Reservation::clone(reservation) });
            }
        }
    }

    pub(super) fn of_class(&self, name: &str) -> &[Rc<Reservation>] {
        self.of_class.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Each once, by id.
    pub(super) fn all(&self) -> Vec<Rc<Reservation>> {
        let by_id: BTreeMap<&str, &Rc<Reservation>> =
            self.of_class.values().flatten().map(|reservation| (reservation.id.as_str(), reservation)).collect();
        by_id.into_values().map(Rc::clone).collect()
    }
}

/// Those that the catalog offers, by id.
fn counted(types: &[InstanceType]) -> BTreeMap<&str, CapacityReservation> {
    let mut counted = BTreeMap::new();
    for instance_type in types {
        for offering in instance_type.offerings.iter().filter(|it| it.capacity_type == keys::RESERVED && it.available) {
            let Some(id) = offering.reservation_id.as_deref() else { continue };
            let count = offering.available_instance_count.map(|count| i32::try_from(count).unwrap_or(i32::MAX));
            let reservation = CapacityReservation {
                id: id.to_owned(),
                instance_type: instance_type.name.clone(),
                availability_zone: offering.zone.clone(),
                available_instance_count: count,
                ..CapacityReservation::default()
            };
            counted.insert(id, reservation);
        }
    }
    counted
}

/// Whether a term still selects what an earlier state of the class listed.
fn selects(term: &CapacityReservationSelectorTerm, reservation: &CapacityReservation) -> bool {
    let same = |asked: &Option<String>, has: &Option<String>| {
        asked.as_ref().zip(has.as_ref()).is_none_or(|(asked, has)| asked == has)
    };
    term.id.as_ref().is_none_or(|id| *id == reservation.id)
        && same(&term.owner_id, &reservation.owner_id)
        && same(&term.instance_match_criteria, &reservation.instance_match_criteria)
}

/// The type as it can be launched into a reservation: in its zone, with the labels that say so.
pub(super) fn offered(reservation: &Reservation, of_pool: &InstanceType, zone_id: Option<String>) -> InstanceType {
    let mut reserved = of_pool.clone();
    for (key, value) in [
        (keys::CAPACITY_RESERVATION_ID, &reservation.id),
        (keys::CAPACITY_RESERVATION_TYPE, &reservation.reservation_type),
    ] {
        reserved.requirements.insert(key.to_owned(), vec![value.clone()]);
    }
    reserved.offerings = vec![Offering {
        zone: reservation.zone.clone(),
        zone_id,
        capacity_type: keys::RESERVED.to_owned(),
        price: reservation.price,
        available: reservation.available > 0,
        reservation_id: Some(reservation.id.clone()),
        available_instance_count: u32::try_from(reservation.available).ok(),
    }]
    .into();
    reserved
}
