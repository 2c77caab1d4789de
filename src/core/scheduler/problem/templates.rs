//! The pools that can be planned with, compiled.

use std::rc::Rc;

use crate::inputs::Inputs;
use crate::model::{IndexVec, Requirement, Requirements, Resources};
use crate::offer::{NothingOffered, Offer, Types};
use crate::scheduler::beside::cost_beside;
use crate::scheduler::daemons::{Daemon, DaemonIndex, is_met};
use crate::scheduler::offerings::{OfferingSet, Offerings};
use crate::scheduler::rooms::Rooms;
use crate::scheduler::template::{DaemonPorts, Neighbour, Replicas, Template, TemplateIndex};
use crate::scheduler::vectors::{self, Dimensions};
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::settings::Packing;

use super::divided::{divided, slots_of_term};
use super::fits::offering_set;

/// Types that were compiled once, for all pools and problems that have the same.
#[derive(Clone, Debug)]
pub(super) struct CompiledTypes {
    types: Types,
    zones: Option<Vec<String>>,
    offerings: Rc<Offerings>,
}

/// Those of these types in these zones, compiled if they are not yet.
fn compiled(
    known: &mut Vec<CompiledTypes>,
    types: &Types,
    region: &str,
    zones: Option<&[String]>,
    dimensions: &Dimensions,
) -> Rc<Offerings> {
    let is_it = |it: &&CompiledTypes| Rc::ptr_eq(&it.types, types) && it.zones.as_deref() == zones;
    if let Some(known) = known.iter().find(is_it) {
        return Rc::clone(&known.offerings);
    }
    let offerings = Rc::new(Offerings::new(types, region, zones, dimensions));
    let (types, zones) = (Rc::clone(types), zones.map(<[String]>::to_vec));
    known.push(CompiledTypes { types, zones, offerings: Rc::clone(&offerings) });
    offerings
}

/// Pools that can be planned with, highest weight first, then by name descending as the reference does; static ones last.
/// Before each its capacity reservations, cheapest type first. Divided where not all of its slots have the same DaemonSets.
pub(super) fn templates(
    inputs: &Inputs<'_>,
    offer: &Offer,
    machines: &[Machine<'_>],
    dimensions: &Dimensions,
    daemons: &[Daemon],
    known: &mut Vec<CompiledTypes>,
) -> IndexVec<TemplateIndex, Template> {
    let region = inputs.catalog.region.as_str();
    let mut templates: IndexVec<TemplateIndex, Template> = IndexVec::new();
    for (position, pool) in inputs.node_pools.iter().enumerate() {
        let replicas = Replicas::of(pool, machines);
        let is_planned = replicas.is_none() || inputs.policy.feature_gates.static_capacity;
        let Some(types) = offer.of_pool(position).filter(|_| is_planned) else { continue };
        let zones = offer.zones_of_pool(position);
        let offerings = compiled(known, types, region, zones, dimensions);
        let cost_beside = cost_beside(inputs, offer.costs_of_pool(pool));
        let mut template = Template { replicas, cost_beside, ..Template::new(position, pool, offerings) };
        if template.set.types().is_clear() {
            template.nothing_offered = Some(Rc::new(NothingOffered::of(inputs, pool, types)));
        }
        templates.push(template);
        for reserved in offer.reserved_of_pool(position) {
            let offerings = Rc::new(Offerings::new(&reserved.types, region, zones, dimensions));
            let mut template = Template { replicas, cost_beside, ..Template::new(position, pool, offerings) };
            if !template.set.types().is_clear() {
                template.reservation = Some(Rc::clone(&reserved.reservation));
                templates.push(template);
            }
        }
    }
    templates.sort_by(|one, two| {
        let order = |it: &Template| (it.is_static(), std::cmp::Reverse(it.weight));
        let within = |it: &Template| it.reservation.as_ref().map(|it| (it.price, it.id.clone()));
        let reserved_first = || (!one.is_reserved(), within(one)).cmp(&(!two.is_reserved(), within(two)));
        order(one).cmp(&order(two)).then_with(|| two.name.cmp(&one.name)).then_with(reserved_first)
    });
    match inputs.policy.packing {
        Packing::Cheapest => templates.into_iter().flat_map(|template| divided(template, daemons)).collect(),
        Packing::Karpenter => templates,
    }
}

pub(super) fn set_daemon_overhead(
    template: &mut Template,
    daemons: &[Daemon],
    dimensions: &Dimensions,
    packing: Packing,
) {
    let offerings = Rc::clone(&template.offerings);
    template.daemon_overhead = IndexVec::repeat(dimensions.vector(&Resources::new()), offerings.types.len());
    // A DaemonSet that a node has no room for takes none from others. Nodes that are bought for pods are never so small.
    let may_lack_room = template.is_static() && packing == Packing::Cheapest;
    // The reference counts those of all zones of a type in each of them.
    let is_near = |term: &&Requirements| {
        packing == Packing::Karpenter || slots_of_term(term, &offerings) & template.set.slots != 0
    };
    let tolerating = daemons.iter().enumerate().filter(|(_, daemon)| daemon.tolerates(&template.taints));
    let near = tolerating.map(|(number, it)| (number.into(), it, it.requirements.iter().filter(is_near).collect()));
    let near: Vec<(DaemonIndex, &Daemon, Vec<&Requirements>)> = near.collect();
    for position in template.set.each_type() {
        let entry = &offerings.types[position];
        for (number, daemon, terms) in &near {
            let defined = |key: &str, requirement: &Requirement| match entry.requirements.get(key) {
                Some(values) => values.iter().any(|value| requirement.allows(value)),
                None => template.requirements.get(key).is_some() || requirement.allows_absence() || is_of_slot(key),
            };
            if !terms.iter().any(|term| is_met(term, &template.requirements, &defined)) {
                continue;
            }
            let mut taken = template.daemon_overhead[position].clone();
            vectors::add(&mut taken, &dimensions.vector(&daemon.requests), 1);
            if may_lack_room && vectors::shortage(&taken, &entry.allocatable).is_some() {
                template.without_room.entry(position).or_default().push(*number);
            } else {
                template.daemon_overhead[position] = taken;
            }
        }
    }
    let allocatable = offerings.types.iter().map(|entry| entry.allocatable.clone());
    template.room = allocatable.collect();
    for (room, overhead) in template.room.iter_mut().zip(&template.daemon_overhead) {
        vectors::add(room, overhead, -1);
    }
    let taking = daemons.iter().filter(|daemon| !daemon.host_ports.is_empty());
    let taken = taking.map(|daemon| DaemonPorts { ports: daemon.host_ports.clone(), on: nodes_of(daemon, template) });
    template.daemon_ports = taken.filter(|taken| !taken.on.is_empty()).collect();
}

/// The DaemonSets that others look at, with the nodes of the template that they run on.
pub(super) fn neighbours(template: &Template, daemons: &IndexVec<DaemonIndex, Daemon>) -> Vec<Neighbour> {
    let looked_at = daemons.enumerated().filter(|(_, daemon)| daemon.is_looked_at());
    let neighbours = looked_at.map(|(number, daemon)| Neighbour { daemon: number, on: nodes_of(daemon, template) });
    neighbours.filter(|neighbour| !neighbour.on.is_empty()).collect()
}

/// The nodes of a template that a DaemonSet runs on: any of these sets.
fn nodes_of(daemon: &Daemon, template: &Template) -> Vec<OfferingSet> {
    if !daemon.tolerates(&template.taints) {
        return Vec::new();
    }
    daemon.requirements.iter().filter_map(|term| offering_set(term, template).ok()).collect()
}

/// Indexes the room of each template; templates with the same types and DaemonSets share one index.
pub(super) fn set_rooms(templates: &mut [Template], dimensions: usize) {
    for position in 0..templates.len() {
        let (before, rest) = templates.split_at_mut(position);
        let Some(template) = rest.first_mut() else { continue };
        let alike = before.iter().find(|other| other.room == template.room);
        template.rooms =
            alike.map_or_else(|| Rc::new(Rooms::new(&template.room, dimensions)), |other| Rc::clone(&other.rooms));
        template.room_most = template.rooms.most(template.set.types());
    }
}

/// Labels of slots, and the host name: a node of any type may have them.
fn is_of_slot(key: &str) -> bool {
    matches!(key, keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE | keys::REGION | keys::HOSTNAME)
}
