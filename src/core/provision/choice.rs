//! Which type, zone and capacity type an open node becomes, and what it could be instead.

use std::collections::HashMap;

use crate::model::HourlyPrice;
use crate::model::shared::Shared;
use crate::plan::Alternative;
use crate::scheduler::offerings::{OfferingSet, SlotIndex, Slots, TypeIndex, bits};
use crate::scheduler::quota::LimitedCapacity;
use crate::scheduler::template::{Template, TemplateIndex};
use crate::scheduler::{Engine, HostIndex, OpenNode};
use cutlist_api::keys;

/// Launch requests carry at most this many types, as the reference's do: EC2 Fleet takes 300 overrides, type x zone.
const LAUNCH_TYPES_MAX: usize = 60;

/// What an open node becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub instance_type: TypeIndex,
    pub slot: SlotIndex,
    pub price: HourlyPrice,
}

/// The cheapest type and slot that an open node may still become; of equals the first by price order of the catalog,
/// then the first zone by name. `None` when nothing is left, which the engine does not let happen.
pub fn choose(engine: &Engine<'_, '_>, open: &OpenNode) -> Option<Choice> {
    let template = &engine.problem.templates[open.template];
    let (instance_type, slot, price) = template.offerings.cheapest(&open.set)?;
    Some(Choice { instance_type, slot, price })
}

/// Everything that could hold the pods of an open node: the types with room in the slots that its zone allows, within
/// the limits of the pool; at least what the node is set to now.
pub fn alternatives_of(engine: &Engine<'_, '_>, host: HostIndex) -> Option<OfferingSet> {
    let open = engine.open_node(host)?;
    let template = &engine.problem.templates[open.template];
    let mut set = open.allowed.clone();
    set.slots = slots_like(engine, open, set.slots);
    if depends_on_type(engine) {
        set.keep_types(open.set.types());
    }
    set.keep_types(&template.rooms.fitting(&open.requested, set.types()));
    set = engine.with_same_neighbours(host, open, set);
    engine.keep_within_limits(open, &mut set, |position| open.set.has_type(position));
    let is_offered = template.offerings.offered(&set).next().is_some();
    is_offered.then_some(set)
}

/// Slots that do not change what topology has counted: all of them where no pod looks at zones or capacity types.
fn slots_like(engine: &Engine<'_, '_>, open: &OpenNode, slots: Slots) -> Slots {
    let domains = &engine.problem.domains;
    let looked_at = |label: &str| domains.find(label).is_some();
    let template = &engine.problem.templates[open.template];
    let (zones, capacity_types) = (looked_at(keys::ZONE) || looked_at(keys::ZONE_ID), looked_at(keys::CAPACITY_TYPE));
    template.offerings.slots_alike(open.set.slots, zones, capacity_types) & slots
}

/// Whether some pod looks at a label that belongs to the type, so that another type would be another domain.
fn depends_on_type(engine: &Engine<'_, '_>) -> bool {
    let domains = &engine.problem.domains;
    domains.keys().any(|key| {
        let name = domains.name(key);
        let of_slot = matches!(name, keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE | keys::REGION);
        !domains.is_hostname(key)
            && !of_slot
            && engine.problem.templates.iter().any(|template| template.offerings.defines(name))
    })
}

/// Launch lists by what they are made from: many nodes have the same, and a list is longer than all else that is known of a node.
#[derive(Debug, Default)]
pub struct LaunchLists {
    known: HashMap<(TemplateIndex, OfferingSet, TypeIndex, SlotIndex), Shared<Vec<Alternative>>>,
}

impl LaunchLists {
    /// The list for a node of the template that becomes the choice and could be anything of the set.
    pub fn list(
        &mut self,
        engine: &Engine<'_, '_>,
        template: TemplateIndex,
        set: OfferingSet,
        choice: &Choice,
    ) -> Shared<Vec<Alternative>> {
        let compiled = &engine.problem.templates[template];
        let list = self.known.entry((template, set, choice.instance_type, choice.slot));
        list.or_insert_with_key(|(_, set, ..)| launch_list(compiled, set, choice).into()).clone()
    }
}

/// The launch list: types cheapest first, each with its slots cheapest first, of the capacity type of the choice.
fn launch_list(template: &Template, set: &OfferingSet, choice: &Choice) -> Vec<Alternative> {
    let capacity_type = &template.offerings.slots[choice.slot].capacity_type;
    let mut types: Vec<(HourlyPrice, TypeIndex)> = template
        .offerings
        .offered(set)
        .filter_map(|(position, entry)| Some((entry.cheapest(set.slots)?.1, position)))
        .collect();
    types.sort_unstable();
    // The choice comes first, also where another type costs the same.
    types.sort_by_key(|(_, position)| *position != choice.instance_type);
    types.truncate(LAUNCH_TYPES_MAX);
    let mut list = Vec::new();
    for (_, position) in types {
        let entry = &template.offerings.types[position];
        let mut slots: Vec<SlotIndex> = bits(set.slots & entry.available)
            .filter(|slot| template.offerings.slots[*slot].capacity_type == *capacity_type)
            .collect();
        slots.sort_by_key(|slot| (position == choice.instance_type && *slot != choice.slot, entry.price(*slot), *slot));
        list.extend(slots.into_iter().map(|slot| Alternative {
            instance_type: entry.name.clone(),
            zone: template.offerings.slots[slot].zone.clone(),
            capacity_type: capacity_type.clone(),
            price_per_hour: entry.price(slot),
        }));
    }
    list
}

/// For each limited resource the most that any type which the node may become takes: the reference's pessimistic count.
pub fn most_capacity(engine: &Engine<'_, '_>, open: &OpenNode) -> LimitedCapacity {
    let template = &engine.problem.templates[open.template];
    let mut most = engine.problem.limited.nothing().to_vec();
    if template.is_limited() {
        for (position, _) in template.offerings.offered(&open.set) {
            let capacity = &template.limited_capacity[position];
            most.iter_mut().zip(capacity.iter()).for_each(|(most, amount)| *most = (*most).max(*amount));
        }
    }
    most.into()
}

/// The capacity of one type, as far as limits count it.
pub fn capacity_of(engine: &Engine<'_, '_>, open: &OpenNode, choice: &Choice) -> LimitedCapacity {
    let template = &engine.problem.templates[open.template];
    template.limited_capacity.get(choice.instance_type).cloned().unwrap_or_else(|| engine.problem.limited.nothing())
}

/// What an open node would cost, with what it costs beside its instance: the figure by which all nodes that could be bought are
/// compared.
pub fn cost_of(engine: &Engine<'_, '_>, host: HostIndex) -> HourlyPrice {
    let Some(open) = engine.open_node(host) else { return HourlyPrice::ZERO };
    let beside = engine.problem.templates[open.template].cost_beside;
    choose(engine, open).map_or(HourlyPrice::ZERO, |choice| choice.price + beside)
}

/// The same for all open nodes together.
pub fn cost_of_open(engine: &Engine<'_, '_>) -> HourlyPrice {
    engine.open_hosts().filter(|host| !engine.is_closed(*host)).map(|host| cost_of(engine, host)).sum()
}
