//! A node to be created, as data: everything that a step needs, and nothing of the engine.

use std::collections::BTreeSet;

use crate::model::requirements::is_well_known;
use crate::model::shared::Shared;
use crate::model::{HourlyPrice, Requirement, Requirements, Resources};
use crate::plan::Alternative;
use crate::scheduler::template::{Template, TemplateIndex};
use crate::scheduler::vectors;
use crate::scheduler::{Engine, HostIndex};
use crate::snapshot::PodIndex;
use cutlist_api::keys;

use super::choice::{LaunchLists, alternatives_of, choose};

#[derive(Clone, Debug)]
pub struct Purchase {
    pub template: TemplateIndex,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub price: HourlyPrice,
    /// Type and zone in the order in which they are to be tried; the first is the one above.
    pub alternatives: Shared<Vec<Alternative>>,
    /// Labels of the pool, as far as the pods narrowed them: each with one value, or with those that the node's is chosen from.
    pub custom: Requirements,
    pub allocatable: Resources,
    /// Requests of the pods and DaemonSets that it will carry.
    pub requested: Resources,
    /// Positions of its pods in the snapshot.
    pub pods: Vec<PodIndex>,
    /// `minValues` that were lowered to what there is.
    pub lowered: Vec<Lowered>,
}

/// A label of which a launch offers fewer values than the pool asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    pub key: String,
    pub asked: usize,
    pub there: usize,
}

impl Purchase {
    /// Settles an open node. `None` when it is none, or nothing is left that it could become.
    pub fn new(engine: &Engine<'_, '_>, host: HostIndex, pods: Vec<PodIndex>, lists: &mut LaunchLists) -> Option<Self> {
        let open = engine.open_node(host)?;
        let choice = choose(engine, open)?;
        let template = &engine.problem.templates[open.template];
        let entry = &template.offerings.types[choice.instance_type];
        let slot = &template.offerings.slots[choice.slot];
        let set = alternatives_of(engine, host).unwrap_or_else(|| open.set.clone());
        let mut requested = open.requested.clone();
        vectors::add(&mut requested, &template.daemon_overhead[choice.instance_type], 1);
        let alternatives = lists.list(engine, open.template, set, &choice);
        let lowered = if engine.lowers_min_values() { too_few(template, &alternatives) } else { Vec::new() };
        Some(Self {
            template: open.template,
            instance_type: entry.name.clone(),
            zone: slot.zone.clone(),
            capacity_type: slot.capacity_type.clone(),
            price: choice.price,
            alternatives,
            custom: settled(&open.custom, &template.requirements),
            allocatable: entry.allocatable_resources.clone(),
            requested: engine.problem.dimensions.resources(&requested),
            pods,
            lowered,
        })
    }

    /// Leaves only such alternatives, and is the first of them.
    pub fn keep(&mut self, engine: &Engine<'_, '_>, is_kept: impl Fn(&Alternative) -> bool) {
        self.alternatives.retain(is_kept);
        let Some(first) = self.alternatives.first().cloned() else { return };
        let mut types = engine.problem.templates[self.template].offerings.types.iter();
        if let Some(entry) = types.find(|entry| entry.name == first.instance_type) {
            self.allocatable = entry.allocatable_resources.clone();
        }
        (self.instance_type, self.zone, self.capacity_type) = (first.instance_type, first.zone, first.capacity_type);
        self.price = first.price_per_hour;
    }
}

/// Labels that are still open take the first value that is listed, so that the node is the same each time. Where none is listed the
/// node gets one all the same, or it would lack what the pool asks for.
fn settled(narrowed: &Requirements, pool: &Requirements) -> Requirements {
    let mut settled = Requirements::new();
    // A node gets these when it has come that far; on a new claim they would say that it has.
    let is_stage = |key: &str| [keys::REGISTERED, keys::INITIALIZED, keys::HOSTNAME].contains(&key);
    // Of tenancy the launch takes the usual one of those that are left.
    settled.extend(&narrowed_tenancy(narrowed));
    for (key, requirement) in pool.iter().filter(|(key, _)| !is_well_known(key) && !is_stage(key)) {
        let requirement = narrowed.get(key).unwrap_or(requirement);
        match requirement.values() {
            Some(values) => values.first().into_iter().for_each(|value| settled.add(key, Requirement::is_in([value]))),
            None => settled.add(key, requirement.clone()),
        }
    }
    settled
}

fn narrowed_tenancy(narrowed: &Requirements) -> Requirements {
    let mut tenancy = Requirements::new();
    if let Some(requirement) = narrowed.get(keys::TENANCY).filter(|requirement| requirement.single_value().is_some()) {
        tenancy.add(keys::TENANCY, requirement.clone());
    }
    tenancy
}

/// Labels of which the alternatives offer fewer values than the pool's `minValues` ask for.
pub fn too_few(template: &Template, alternatives: &[Alternative]) -> Vec<Lowered> {
    let too_few = |(key, asked): &(String, usize)| {
        let mut values: BTreeSet<&str> = BTreeSet::new();
        for alternative in alternatives {
            match key.as_str() {
                keys::ZONE => values.extend([alternative.zone.as_str()]),
                keys::CAPACITY_TYPE => values.extend([alternative.capacity_type.as_str()]),
                key => {
                    let position = template.offerings.position(&alternative.instance_type);
                    let of_type = position.and_then(|it| template.offerings.types[it].requirements.get(key));
                    values.extend(of_type.into_iter().flatten().map(String::as_str));
                }
            }
        }
        (values.len() < *asked).then(|| Lowered { key: key.clone(), asked: *asked, there: values.len() })
    };
    template.min_values.iter().filter_map(too_few).collect()
}

/// Whether the types that a launch may use offer as many values of each label as the pool's `minValues` ask for.
pub fn is_varied_enough(engine: &Engine<'_, '_>, host: HostIndex) -> bool {
    let Some(template) = engine.open_node(host).map(|open| &engine.problem.templates[open.template]) else {
        return true;
    };
    if template.min_values.is_empty() {
        return true;
    }
    let purchase = Purchase::new(engine, host, Vec::new(), &mut LaunchLists::default());
    purchase.is_some_and(|purchase| too_few(template, &purchase.alternatives).is_empty())
}
