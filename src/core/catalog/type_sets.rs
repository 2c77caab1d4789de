//! Sets of instance types, and indices by which they are found without a look at each type: many pools of a fleet ask for the same few
//! things. Each index depends on the catalog alone, and is made once, when it is asked for first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fixedbitset::FixedBitSet;

use super::{InstanceType, Offering};
use crate::model::Requirement;

/// So many requirements on one label are remembered with their types, and further ones are worked out each time. People write a dozen
/// bounds on one label; more come only from who wants to fill the memory.
const REMEMBERED_MAX: usize = 512;

/// Some of the instance types of a catalog.
#[derive(Clone, Debug)]
pub struct TypeSet<'a> {
    types: &'a [InstanceType],
    positions: FixedBitSet,
}

impl<'a> TypeSet<'a> {
    pub(super) fn new(types: &'a [InstanceType], positions: FixedBitSet) -> Self {
        Self { types, positions }
    }

    /// In the order of the catalog. O(types / 64 + those that are in the set).
    pub fn iter(&self) -> impl Iterator<Item = &'a InstanceType> {
        let types = self.types;
        self.positions.ones().filter_map(move |position| types.get(position))
    }

    /// O(types / 64).
    pub fn is_empty(&self) -> bool {
        self.positions.is_clear()
    }

    fn contains(&self, position: usize) -> bool {
        self.positions.contains(position)
    }
}

/// Which instance types have which value of one label, by their positions.
#[derive(Debug, Default)]
pub(super) struct TypesByValue<'a> {
    types: BTreeMap<&'a str, Vec<usize>>,
    without: Vec<usize>,
    /// Those that a requirement lets in which names no values.
    remembered: Mutex<BTreeMap<Requirement, Arc<FixedBitSet>>>,
}

impl<'a> TypesByValue<'a> {
    /// O(types).
    pub(super) fn new(types: &'a [InstanceType], key: &str) -> Self {
        let mut by_value = Self::default();
        for (position, instance_type) in types.iter().enumerate() {
            match instance_type.requirements.get(key).filter(|values| !values.is_empty()) {
                Some(values) => values.iter().for_each(|it| by_value.types.entry(it).or_default().push(position)),
                None => by_value.without.push(position),
            }
        }
        by_value
    }

    /// O(values that the requirement names + types that are allowed). Where it names none, as a bound, or those that it does not want:
    /// O(values of the label + types that are allowed) when it is met first, and no more than finding it from then on.
    pub(super) fn allowed(&self, requirement: &Requirement, types: usize) -> Arc<FixedBitSet> {
        let Some(named) = requirement.values() else { return self.remembered(requirement, types) };
        let with_value = named.iter().filter(|value| requirement.allows(value));
        let with_value = with_value.filter_map(|value| self.types.get(value.as_str()));
        Arc::new(self.set(with_value, requirement, types))
    }

    fn remembered(&self, requirement: &Requirement, types: usize) -> Arc<FixedBitSet> {
        let known = || self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(allowed) = known().get(requirement) {
            return Arc::clone(allowed);
        }
        let with_value = self.types.iter().filter(|(value, _)| requirement.allows(value)).map(|(_, types)| types);
        let allowed = Arc::new(self.set(with_value, requirement, types));
        let mut known = known();
        if known.len() < REMEMBERED_MAX {
            known.insert(requirement.clone(), Arc::clone(&allowed));
        }
        allowed
    }

    fn set<'t>(
        &self,
        with_value: impl Iterator<Item = &'t Vec<usize>>,
        requirement: &Requirement,
        types: usize,
    ) -> FixedBitSet {
        let mut allowed = FixedBitSet::with_capacity(types);
        allowed.extend(with_value.flatten().copied());
        if requirement.allows_absence() {
            allowed.extend(self.without.iter().copied());
        }
        allowed
    }

    /// The values that types of the set have, in their order. O(values x their types) at worst; most values are settled by their first type.
    pub(super) fn values_in(&self, set: &TypeSet<'_>) -> impl Iterator<Item = &'a str> {
        let is_in = |types: &[usize]| types.iter().any(|position| set.contains(*position));
        self.types.iter().filter(move |(_, types)| is_in(types)).map(|(value, _)| *value)
    }
}

/// Which types are sold in which way: there are few ways, and each type is sold in several.
#[derive(Debug)]
pub(super) struct TypesByOffering<'a>(Vec<(&'a Offering, FixedBitSet)>);

impl<'a> TypesByOffering<'a> {
    /// O(offerings).
    pub(super) fn new(types: &'a [InstanceType]) -> Self {
        let mut ways: BTreeMap<_, (&Offering, FixedBitSet)> = BTreeMap::new();
        for (position, instance_type) in types.iter().enumerate() {
            for offering in &instance_type.offerings {
                let way = (&offering.zone, &offering.zone_id, &offering.capacity_type);
                let empty = || (offering, FixedBitSet::with_capacity(types.len()));
                ways.entry(way).or_insert_with(empty).1.insert(position);
            }
        }
        Self(ways.into_values().collect())
    }

    /// Types that are sold in one of the allowed ways. O(ways x types / 64).
    pub(super) fn allowed(&self, is_allowed: impl Fn(&Offering) -> bool, types: usize) -> FixedBitSet {
        let mut sold = FixedBitSet::with_capacity(types);
        self.0.iter().filter(|(offering, _)| is_allowed(offering)).for_each(|(_, types)| sold.union_with(types));
        sold
    }
}

/// The types in the order of how much of a resource they have, and of their names.
#[derive(Debug)]
pub(super) struct TypesByAmount<'a> {
    types: &'a [InstanceType],
    ordered: BTreeMap<&'a str, OnceLock<Vec<usize>>>,
}

impl<'a> TypesByAmount<'a> {
    /// O(types x resources).
    pub(super) fn new(types: &'a [InstanceType]) -> Self {
        let resources: BTreeSet<&str> =
            types.iter().flat_map(|it| it.capacity.iter()).map(|(resource, _)| resource).collect();
        Self { types, ordered: resources.into_iter().map(|resource| (resource, OnceLock::new())).collect() }
    }

    /// O(types) at worst, where those of the set stand last; O(types x log types) when the resource is asked for first.
    pub(super) fn least(&self, resource: &str, set: &TypeSet<'_>) -> Option<(i64, &'a str)> {
        let in_set = self.ordered(resource)?.iter().filter(|position| set.contains(**position));
        in_set.filter_map(|position| self.amount(resource, *position)).find(|(amount, _)| *amount > 0)
    }

    /// The same.
    pub(super) fn most(&self, resource: &str, set: &TypeSet<'_>) -> Option<(i64, &'a str)> {
        let last = self.ordered(resource)?.iter().rev().find(|position| set.contains(**position))?;
        self.amount(resource, *last)
    }

    fn ordered(&self, resource: &str) -> Option<&Vec<usize>> {
        let ordered = || {
            let mut positions: Vec<usize> = (0..self.types.len()).collect();
            positions.sort_by_key(|position| self.amount(resource, *position));
            positions
        };
        self.ordered.get(resource).map(|known| known.get_or_init(ordered))
    }

    fn amount(&self, resource: &str, position: usize) -> Option<(i64, &'a str)> {
        self.types.get(position).map(|it| (it.capacity.get(resource), it.name.as_str()))
    }
}
