//! NodeOverlays on the offer: other prices by offering, more resources by instance type, for each pool.
//! Behaviour: reference, section 3.13, with its quirk that equal prices conflict too, and equal capacities do not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{InstanceType, Offering};
use crate::inputs::Inputs;
use crate::model::requirements::label;
use crate::model::resources::MEMORY;
use crate::model::{HourlyPrice, Requirements, Resources};
use crate::plan::{Note, NoteCode};
use crate::prepare::preview_prices::overlays_in_force;
use cutlist_api::keys;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_pool::{NodePool, NodeSelectorRequirement};

use super::adjustment::Adjustment;

/// Position of a pool in the inputs, of a type in the catalog, and of an offering in the type.
type Touched = (usize, usize, usize);

/// What the overlays that apply change.
#[derive(Debug, Default)]
pub(super) struct Overlays {
    prices: BTreeMap<Touched, HourlyPrice>,
    /// By pool and type.
    capacities: BTreeMap<(usize, usize), Resources>,
    pub notes: Vec<Note>,
}

/// An overlay, read.
struct Reading<'a> {
    name: &'a str,
    weight: i32,
    requirements: Requirements,
    price: Option<Adjustment>,
    capacity: Resources,
}

/// What was settled by overlays before, with the weight of the last that had a say.
#[derive(Default)]
struct Settled<'a> {
    prices: BTreeMap<Touched, (i32, &'a str)>,
    /// By pool, type and resource; the amount that the last one wanted.
    capacities: BTreeMap<(usize, usize, String), (i32, i64, &'a str)>,
}

impl Overlays {
    /// O(overlays x pools x offerings).
    pub(super) fn new(inputs: &Inputs<'_>) -> Self {
        let mut overlays = Self::default();
        let mut readings: Vec<Reading<'_>> = overlays_in_force(inputs).into_iter().filter_map(Reading::new).collect();
        if readings.is_empty() {
            return overlays;
        }
        if !inputs.policy.feature_gates.node_overlay {
            let names: Vec<&str> = readings.iter().map(|reading| reading.name).collect();
            let text = format!("spec.featureGates.NodeOverlay is off: NodeOverlay {} is not applied", names.join(", "));
            overlays.notes.push(Note::new(NoteCode::FeatureGateOff, text));
            return overlays;
        }
        readings.sort_by_key(|reading| (Reverse(reading.weight), Reverse(reading.name)));
        let mut settled = Settled::default();
        for reading in &readings {
            let touched = touched(reading, inputs);
            match settled.conflict(reading, &touched, inputs) {
                Some(text) => overlays.note(reading.name, NoteCode::NodeOverlayConflict, text),
                None => overlays.apply(reading, &touched, inputs, &mut settled),
            }
        }
        overlays
    }

    fn note(&mut self, overlay: &str, code: NoteCode, text: String) {
        self.notes.push(Note::new(code, text).about("NodeOverlay", overlay));
    }

    fn apply<'a>(
        &mut self,
        reading: &Reading<'a>,
        touched: &[Touched],
        inputs: &Inputs<'_>,
        settled: &mut Settled<'a>,
    ) {
        let mut changed: BTreeSet<usize> = BTreeSet::new();
        let types = &inputs.catalog.instance_types;
        for place @ (pool, instance_type, offering) in touched.iter().copied() {
            if let Some(adjustment) = &reading.price {
                if !settled.prices.contains_key(&place) {
                    let price = types[instance_type].offerings[offering].price;
                    self.prices.insert(place, adjustment.of(price));
                    changed.insert(instance_type);
                }
                settled.prices.insert(place, (reading.weight, reading.name));
            }
            for (resource, amount) in reading.capacity.iter() {
                let key = (pool, instance_type, resource.to_owned());
                if !settled.capacities.contains_key(&key) {
                    self.capacities.entry((pool, instance_type)).or_default().set(resource, amount);
                    changed.insert(instance_type);
                }
                settled.capacities.insert(key, (reading.weight, amount, reading.name));
            }
        }
        let name = reading.name;
        match changed.len() {
            0 if touched.is_empty() => {
                self.note(
                    name,
                    NoteCode::NodeOverlayUnused,
                    format!("NodeOverlay {name} matches no instance type of any NodePool"),
                );
            }
            0 => {
                self.note(
                    name,
                    NoteCode::NodeOverlayUnused,
                    format!("NodeOverlay {name} changes nothing: others weigh more"),
                );
            }
            count => {
                let what = match (&reading.price, reading.capacity.is_empty()) {
                    (Some(adjustment), true) => format!("price {adjustment}"),
                    (Some(adjustment), false) => format!("price {adjustment} and capacity"),
                    (None, _) => "capacity".to_owned(),
                };
                let types = if count == 1 { "instance type" } else { "instance types" };
                self.note(
                    name,
                    NoteCode::NodeOverlayApplied,
                    format!("NodeOverlay {name} is applied: {what} of {count} {types}"),
                );
            }
        }
    }

    /// Whether a pool has types of its own because of them.
    pub(super) fn change(&self, pool: usize) -> bool {
        self.prices.keys().any(|(changed, ..)| *changed == pool) || self.capacities.keys().any(|(it, _)| *it == pool)
    }

    /// Changes the types of a pool, which are in the order of the catalog.
    pub(super) fn change_types(&self, pool: usize, types: &mut [InstanceType]) {
        for ((_, instance_type, offering), price) in self.prices.range((pool, 0, 0)..(pool + 1, 0, 0)) {
            types[*instance_type].offerings[*offering].price = *price;
        }
        for ((_, position), added) in self.capacities.range((pool, 0)..(pool + 1, 0)) {
            add(&mut types[*position], added);
        }
    }
}

fn add(instance_type: &mut InstanceType, added: &Resources) {
    for (resource, amount) in added.iter() {
        instance_type.capacity.set(resource, amount);
        if resource.starts_with("hugepages-") {
            // The kubelet takes huge pages out of what pods can have of memory.
            let kept = instance_type.overhead.get(MEMORY).saturating_add(amount);
            instance_type.overhead.set(MEMORY, kept);
        }
    }
}

/// What overlays say of the nodes of pools, for those who launch them and add up what they cost.
#[derive(Debug, Default)]
pub struct OverlaidOffer {
    /// By the names of pool and instance type.
    added: BTreeMap<(String, String), Resources>,
    /// By the same, with the prices of the overlays.
    offerings: BTreeMap<(String, String), Vec<Offering>>,
}

impl OverlaidOffer {
    /// O(overlays x pools x offerings).
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let Overlays { prices, capacities, .. } = Overlays::new(inputs);
        let name = |pool: usize, position: usize| {
            let pool = inputs.node_pools[pool].metadata.name.clone().unwrap_or_default();
            (pool, inputs.catalog.instance_types[position].name.clone())
        };
        let added = capacities.into_iter().map(|((pool, position), added)| (name(pool, position), added)).collect();
        let mut offerings: BTreeMap<(String, String), Vec<Offering>> = BTreeMap::new();
        for ((pool, position, offering), price) in prices {
            let offering = &inputs.catalog.instance_types[position].offerings[offering];
            offerings.entry(name(pool, position)).or_default().push(Offering { price, ..offering.clone() });
        }
        Self { added, offerings }
    }

    /// The instance type as nodes of the pool have it.
    pub fn of_pool(&self, pool: &str, mut instance_type: InstanceType) -> InstanceType {
        if let Some(added) = self.added.get(&(pool.to_owned(), instance_type.name.clone())) {
            add(&mut instance_type, added);
        }
        instance_type
    }

    /// `None` where no overlay says another price than the catalog.
    pub fn price(&self, pool: &str, instance_type: &str, (zone, capacity_type): (&str, &str)) -> Option<HourlyPrice> {
        let mut of_type = self.offerings.get(&(pool.to_owned(), instance_type.to_owned()))?.iter();
        of_type.find(|it| it.zone == zone && it.capacity_type == capacity_type).map(|it| it.price)
    }
}

impl<'a> Reading<'a> {
    /// `None` for what lint refuses: an adjustment or an amount that can not be read changes nothing.
    fn new(overlay: &'a NodeOverlay) -> Option<Self> {
        let spec = &overlay.spec;
        let requirements: Vec<NodeSelectorRequirement> = spec.requirements.iter().map(Into::into).collect();
        let price = match (&spec.price, &spec.price_adjustment) {
            (Some(price), _) => Some(Adjustment::price(price)?),
            (None, Some(text)) => Some(text.parse().ok()?),
            (None, None) => None,
        };
        let capacity = spec.capacity.iter().map(|(name, amount)| (name.as_str(), amount.to_string()));
        Some(Self {
            name: overlay.metadata.name.as_deref().unwrap_or_default(),
            weight: spec.weight.unwrap_or(0),
            requirements: Requirements::from_entries(&requirements),
            price,
            capacity: Resources::parse(capacity).ok()?,
        })
    }

    /// Whether it is for this offering of the type in the pool.
    fn is_for(&self, pool: &NodePool, instance_type: &InstanceType, offering: &Offering) -> bool {
        self.requirements.iter().all(|(key, requirement)| {
            let own = label(&pool.spec.template.metadata.labels, key);
            match key {
                keys::NODE_POOL => requirement.allows(pool.metadata.name.as_deref().unwrap_or_default()),
                keys::ZONE => requirement.allows(&offering.zone),
                keys::CAPACITY_TYPE => requirement.allows(&offering.capacity_type),
                keys::ZONE_ID => match &offering.zone_id {
                    Some(zone_id) => requirement.allows(zone_id),
                    None => requirement.allows_absence(),
                },
                key => match (own, instance_type.requirements.get(key)) {
                    (Some(value), _) => requirement.allows(value),
                    (None, Some(values)) => values.iter().any(|value| requirement.allows(value)),
                    (None, None) if key == keys::INSTANCE_TYPE => requirement.allows(&instance_type.name),
                    (None, None) => requirement.allows_absence(),
                },
            }
        })
    }
}

/// What two overlays of one weight both settle.
struct Clash<'s> {
    place: Touched,
    /// `None`: its price.
    resource: Option<&'s str>,
    other: &'s str,
}

impl Settled<'_> {
    /// Why the overlay can not be applied beside one of the same weight: the first thing that both settle, and how much there is of it.
    fn conflict(&self, reading: &Reading<'_>, touched: &[Touched], inputs: &Inputs<'_>) -> Option<String> {
        let clashes: Vec<Clash<'_>> = touched.iter().filter_map(|place| self.clash(reading, *place)).collect();
        let Clash { place: (pool, instance_type, offering), resource, other } = clashes.first()?;
        let name = &inputs.catalog.instance_types[*instance_type].name;
        let what = match resource {
            Some(resource) => format!("{resource} of {name}"),
            None => {
                let Offering { zone, capacity_type, .. } =
                    &inputs.catalog.instance_types[*instance_type].offerings[*offering];
                format!("the price of {name} {capacity_type} in {zone}")
            }
        };
        let pool = inputs.node_pools[*pool].metadata.name.as_deref().unwrap_or_default();
        let pools = clashes.iter().map(|clash| clash.place.0).collect::<BTreeSet<_>>().len();
        let and_pools = if pools > 1 { format!(" and {} more", pools - 1) } else { String::new() };
        let types = clashes.iter().map(|clash| clash.place.1).collect::<BTreeSet<_>>().len();
        let in_all = if types > 1 { format!(", {types} instance types in all") } else { String::new() };
        Some(format!(
            "NodeOverlay {} is not applied: NodeOverlay {other} of the same weight sets {what} for NodePool {pool}{and_pools} as well{in_all}",
            reading.name
        ))
    }

    /// What another overlay of the same weight settled at this place.
    fn clash<'s>(&'s self, reading: &'s Reading<'_>, place: Touched) -> Option<Clash<'s>> {
        let of_price =
            self.prices.get(&place).filter(|(weight, _)| reading.price.is_some() && *weight == reading.weight);
        if let Some((_, other)) = of_price {
            return Some(Clash { place, resource: None, other });
        }
        let (pool, instance_type, _) = place;
        reading.capacity.iter().find_map(|(resource, amount)| {
            let (weight, other_amount, other) = self.capacities.get(&(pool, instance_type, resource.to_owned()))?;
            let clashes = *weight == reading.weight && *other_amount != amount;
            clashes.then_some(Clash { place, resource: Some(resource), other })
        })
    }
}

/// Every offering that the overlay is for, in the order of pools.
fn touched(reading: &Reading<'_>, inputs: &Inputs<'_>) -> Vec<Touched> {
    let mut touched = Vec::new();
    for (position, pool) in inputs.node_pools.iter().enumerate() {
        for (number, instance_type) in inputs.catalog.instance_types.iter().enumerate() {
            let offerings = instance_type.offerings.iter().enumerate();
            let meant = offerings.filter(|(_, offering)| reading.is_for(pool, instance_type, offering));
            touched.extend(meant.map(|(offering, _)| (position, number, offering)));
        }
    }
    touched
}
