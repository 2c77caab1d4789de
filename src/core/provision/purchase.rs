//! A node to be created, as data: everything that a step needs, and nothing of the engine.

use std::collections::BTreeSet;

use crate::api::keys;
use crate::core::model::requirements::is_well_known;
use crate::core::model::{HourlyPrice, Requirement, Requirements, Resources};
use crate::core::plan::Alternative;
use crate::core::scheduler::template::TemplateIndex;
use crate::core::scheduler::vectors;
use crate::core::scheduler::{Engine, HostIndex, OpenNode};

use super::choice::{alternatives_of, choose, launch_list};

#[derive(Clone, Debug)]
pub struct Purchase {
    pub template: TemplateIndex,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub price: HourlyPrice,
    /// Type and zone in the order in which they are to be tried; the first is the one above.
    pub alternatives: Vec<Alternative>,
    /// Labels of the pool that have several values, as far as the pods narrowed them.
    pub custom: Requirements,
    pub allocatable: Resources,
    /// Requests of the pods and DaemonSets that it will carry.
    pub requested: Resources,
    /// Positions of its pods in the snapshot.
    pub pods: Vec<usize>,
}

impl Purchase {
    /// Settles an open node. `None` when it is none, or nothing is left that it could become.
    pub fn new(engine: &Engine<'_, '_>, host: HostIndex, pods: Vec<usize>) -> Option<Self> {
        let open = engine.open_node(host)?;
        let choice = choose(engine, open)?;
        let template = &engine.problem.templates[open.template];
        let entry = &template.offerings.types[choice.instance_type];
        let slot = &template.offerings.slots[choice.slot];
        let set = alternatives_of(engine, host).unwrap_or_else(|| open.set.clone());
        let widest = OpenNode { set, ..open.clone() };
        let mut requested = open.requested.clone();
        vectors::add(&mut requested, &template.daemon_overhead[choice.instance_type], 1);
        Some(Self {
            template: open.template,
            instance_type: entry.name.clone(),
            zone: slot.zone.clone(),
            capacity_type: slot.capacity_type.clone(),
            price: choice.price,
            alternatives: launch_list(engine, open, &widest.set, &choice),
            custom: settled(&open.custom, &template.requirements),
            allocatable: entry.allocatable_resources.clone(),
            requested: engine.problem.dimensions.resources(&requested),
            pods,
        })
    }
}

/// Labels that are still open take their first value, so that the node is the same each time.
fn settled(narrowed: &Requirements, pool: &Requirements) -> Requirements {
    let mut settled = Requirements::new();
    // A node gets these two when it has come that far; on a new claim they would say that it has.
    let is_stage = |key: &str| [keys::REGISTERED, keys::INITIALIZED].contains(&key);
    for (key, requirement) in pool.iter().filter(|(key, _)| !is_well_known(key) && !is_stage(key)) {
        let requirement = narrowed.get(key).unwrap_or(requirement);
        if let Some(value) = requirement.values().and_then(|values| values.first()) {
            settled.add(key, Requirement::is_in([value.as_str()]));
        }
    }
    settled
}

/// Whether the types that a launch may use offer as many values of each label as the pool's `minValues` ask for.
pub fn is_varied_enough(engine: &Engine<'_, '_>, host: HostIndex) -> bool {
    let Some(template) = engine.open_node(host).map(|open| &engine.problem.templates[open.template]) else {
        return true;
    };
    if template.min_values.is_empty() {
        return true;
    }
    let Some(purchase) = Purchase::new(engine, host, Vec::new()) else { return false };
    template.min_values.iter().all(|(key, least)| {
        let types = purchase
            .alternatives
            .iter()
            .filter_map(|alternative| template.offerings.position(&alternative.instance_type));
        let values = types.filter_map(|position| template.offerings.types[position].requirements.get(key)).flatten();
        values.collect::<BTreeSet<&String>>().len() >= *least
    })
}
