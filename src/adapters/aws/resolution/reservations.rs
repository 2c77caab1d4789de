//! The capacity reservations that a class selects, and its placement group: lists that are short, so all of what is active is asked for
//! once, and matched here. Source: reference, sections 1.3 and 6.7.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::api::instances::{CapacityReservation, PlacementGroup};
use super::selection::matches;
use crate::api::ec2_node_class::{self as class_api, CapacityReservationSelectorTerm, EC2NodeClassSpec};

/// A block of capacity is left by its nodes so long before its end; EC2 takes it back half an hour before.
const BLOCK_EXPIRES_BEFORE: SignedDuration = SignedDuration::from_mins(40);

const BLOCK: &str = "capacity-block";

fn selects(term: &CapacityReservationSelectorTerm, one: &CapacityReservation) -> bool {
    if let Some(id) = &term.id {
        return one.id == *id;
    }
    let has = |(key, value): (&String, &String)| one.tags.get(key).is_some_and(|found| matches(value, found));
    let is_of_owner = term.owner_id.as_ref().is_none_or(|owner| one.owner_id == *owner);
    let criteria = term.instance_match_criteria.as_ref();
    let is_met = criteria.is_none_or(|criteria| one.instance_match_criteria == *criteria);
    let says_something = !term.tags.is_empty() || criteria.is_some();
    says_something && is_of_owner && is_met && term.tags.iter().all(has)
}

/// Those that any term selects, by id.
pub fn select(class: &EC2NodeClassSpec, all: &[CapacityReservation]) -> Vec<CapacityReservation> {
    let terms = &class.capacity_reservation_selector_terms;
    let selected = all.iter().filter(|one| terms.iter().any(|term| selects(term, one)));
    let mut selected: Vec<CapacityReservation> = selected.cloned().collect();
    selected.sort_by(|one, other| one.id.cmp(&other.id));
    selected.dedup_by(|one, other| one.id == other.id);
    selected
}

/// As the status of a class says it.
pub fn status(one: &CapacityReservation, now: Timestamp) -> class_api::CapacityReservation {
    let is_expiring =
        one.reservation_type == BLOCK && one.ends_at.is_some_and(|end| end.duration_since(now) <= BLOCK_EXPIRES_BEFORE);
    class_api::CapacityReservation {
        id: one.id.clone(),
        instance_type: one.instance_type.clone(),
        availability_zone: one.zone.clone(),
        instance_match_criteria: Some(one.instance_match_criteria.clone()),
        owner_id: Some(one.owner_id.clone()),
        end_time: one.ends_at.map(Time),
        reservation_type: Some(one.reservation_type.clone()),
        interruptible: one.is_interruptible.then_some(true),
        state: Some(if is_expiring { "expiring" } else { "active" }.to_owned()),
        available_instance_count: Some(i32::try_from(one.available_count).unwrap_or(i32::MAX)),
    }
}

/// The placement group that a class selects; `None` where it selects none, and an error in words where there is none such.
pub fn placement_group(class: &EC2NodeClassSpec, all: &[PlacementGroup]) -> Result<Option<PlacementGroup>, String> {
    let Some(selector) = &class.placement_group_selector else { return Ok(None) };
    let (id, name) = (selector.id.as_deref(), selector.name.as_deref());
    let is_it = |group: &&PlacementGroup| id.map_or(name == Some(group.name.as_str()), |id| group.id == id);
    let wanted = id.or(name).unwrap_or_default();
    let found = all.iter().find(is_it).cloned();
    found.map(Some).ok_or_else(|| format!("no placement group {wanted} is available in this region"))
}
