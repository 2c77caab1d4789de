//! A part of a launch as calls of CreateFleet: one for each capacity type, in the order in which the plan wants them tried.
//!
//! Behaviour: reference, section 6.5. Source of limits: EC2's API reference, `CreateFleet` and `FleetLaunchTemplateConfigRequest`, and the EC2
//! user guide, "Quotas for EC2 Fleet".

use std::collections::BTreeMap;

use crate::adapters::aws::api::launch::{Config, FleetRequest, Override, Strategy, Target};
use crate::adapters::aws::launch_templates::{Group, Market, ReservationUse};
use crate::api::keys;
use crate::ports::Offering;

use super::{LaunchPart, client_token, number};

/// Launch templates of one call.
const CONFIGS_MAX: usize = 50;

/// Overrides of all templates of one call. EC2 has this limit for fleets that stay; for instant ones it has that of the body's size, which users
/// have met (A#5776).
const OVERRIDES_MAX: usize = 300;

/// Who decides between offerings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// EC2: by price, and for spot by how much there is as well.
    Price,
    /// The plan: by its order, for spot as far as capacity allows.
    Plan,
}

/// What besides the claims a call is made of.
#[derive(Clone, Debug)]
pub struct Surroundings<'s> {
    /// Of each zone the subnet to launch into. One: EC2 takes no two subnets of a zone in one call.
    pub subnets: &'s BTreeMap<String, String>,
    pub order: Order,
    /// [`super::super::launch_templates::tags::of_launch`].
    pub tags: &'s BTreeMap<String, String>,
    /// `spec.context` of the class.
    pub context: Option<&'s str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// To be made one after the other, each for what is still lacking.
    pub requests: Vec<FleetRequest>,
    pub not_asked: Vec<(Offering, NotAsked)>,
}

/// Why an offering of the plan stands in no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// The class has no subnet in the zone, or none with room.
    NoSubnet,
    /// EC2's limits: those that the plan likes least are left out.
    TooMany,
}

/// The calls for a part whose templates are `groups`. `attempts` calls were made for it before.
pub fn requests(part: &LaunchPart<'_>, groups: &[Group], attempts: u32, surroundings: &Surroundings<'_>) -> Requests {
    let mut order: Vec<(&str, &ReservationUse)> = Vec::new();
    for group in in_order(groups) {
        let key = (group.capacity_type.as_str(), &group.template.reservation);
        if !order.contains(&key) {
            order.push(key);
        }
    }
    let mut tags = surroundings.tags.clone();
    tags.insert(keys::LAUNCH.to_owned(), part.launch_id.to_owned());
    if number(&part.specification) > 0 {
        tags.insert(keys::LAUNCH_PART.to_owned(), number(&part.specification).to_string());
    }
    let mut made = Requests::default();
    for (capacity_type, reservation) in order {
        let is_of_it =
            |group: &&&Group| group.capacity_type == capacity_type && group.template.reservation == *reservation;
        let groups: Vec<&Group> = in_order(groups).iter().filter(is_of_it).copied().collect();
        let configs = configs(&groups, surroundings, &mut made.not_asked);
        if configs.is_empty() {
            continue;
        }
        let attempt = attempts.saturating_add(u32::try_from(made.requests.len()).unwrap_or(u32::MAX));
        let target = target(capacity_type, reservation);
        made.requests.push(FleetRequest {
            client_token: client_token(part.launch_id, &part.specification, attempt),
            capacity_type: capacity_type.to_owned(),
            target,
            count: u32::try_from(part.claims.len()).unwrap_or(u32::MAX),
            strategy: strategy(target, surroundings.order),
            configs,
            tags: tags.clone(),
            context: surroundings.context.filter(|_| !part.specification.lowers_min_values).map(str::to_owned),
        });
    }
    made
}

/// By the place of their first offering.
fn in_order(groups: &[Group]) -> Vec<&Group> {
    let mut sorted: Vec<&Group> = groups.iter().collect();
    sorted.sort_by_key(|group| group.offerings.first().map(|(place, _)| *place));
    sorted
}

fn target(capacity_type: &str, reservation: &ReservationUse) -> Target {
    match reservation {
        ReservationUse::Only { market: Market::CapacityBlock, .. } => Target::CapacityBlock,
        ReservationUse::Only { market: Market::Interruptible, .. } => Target::ReservedCapacity,
        _ if capacity_type == keys::SPOT => Target::Spot,
        _ => Target::OnDemand,
    }
}

fn strategy(target: Target, order: Order) -> Option<Strategy> {
    match (target, order) {
        (Target::OnDemand, Order::Price) => Some(Strategy::LowestPrice),
        (Target::OnDemand, Order::Plan) => Some(Strategy::Prioritized),
        (Target::Spot, Order::Price) => Some(Strategy::PriceCapacityOptimized),
        (Target::Spot, Order::Plan) => Some(Strategy::CapacityOptimizedPrioritized),
        (Target::CapacityBlock | Target::ReservedCapacity, _) => None,
    }
}

/// Overrides by template, within EC2's limits; what the plan likes best comes first, and is the last to be left out.
fn configs(
    groups: &[&Group],
    surroundings: &Surroundings<'_>,
    not_asked: &mut Vec<(Offering, NotAsked)>,
) -> Vec<Config> {
    let mut offerings: Vec<(usize, &Offering, &Group)> = groups
        .iter()
        .flat_map(|group| group.offerings.iter().map(|(place, offering)| (*place, offering, *group)))
        .collect();
    offerings.sort_by_key(|(place, ..)| *place);
    let mut configs: Vec<Config> = Vec::new();
    let mut count = 0;
    for (place, offering, group) in offerings {
        let Some(subnet_id) = surroundings.subnets.get(&offering.zone) else {
            not_asked.push((offering.clone(), NotAsked::NoSubnet));
            continue;
        };
        let known = configs.iter().position(|config| config.template == group.name);
        if count == OVERRIDES_MAX || (known.is_none() && configs.len() == CONFIGS_MAX) {
            not_asked.push((offering.clone(), NotAsked::TooMany));
            continue;
        }
        let entry = Override {
            instance_type: offering.instance_type.clone(),
            zone: offering.zone.clone(),
            subnet_id: subnet_id.clone(),
            image_id: group.template.image_id.clone(),
            priority: u32::try_from(place).unwrap_or(u32::MAX),
        };
        count += 1;
        match known.and_then(|index| configs.get_mut(index)) {
            Some(config) => config.overrides.push(entry),
            None => configs.push(Config { template: group.name.clone(), overrides: vec![entry] }),
        }
    }
    configs
}

#[cfg(test)]
mod tests;
