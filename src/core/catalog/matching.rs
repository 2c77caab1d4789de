//! Which instance types a list of requirements leaves, and if none, which of the requirements is to blame.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Requirement;
use crate::model::requirements::normalized;
use cutlist_api::keys;
use cutlist_api::node_pool::{NodePool, NodeSelectorRequirement, Operator};

use super::type_sets::{TypeSet, TypesByAmount, TypesByOffering, TypesByValue};
use super::values::{Fault, Values, short};
use super::{InstanceType, Offering, regions};

/// One requirement, as it is written.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its current name, where the label had another one.
    pub key: String,
    pub operator: Operator,
    pub values: Vec<String>,
    requirement: Requirement,
}

/// Why a list of requirements matches no instance type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmatchedRequirements {
    /// How many requirements there are on labels that instance types have.
    pub requirements: usize,
    /// How many of them some instance type matches, each by itself.
    pub matching: usize,
    /// Those that none matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_nothing: Vec<UnmatchedRequirement>,
    /// Labels on which they exclude each other, where each matches some type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_each_other: Vec<UnmatchedRequirement>,
    /// The one of all whose removal lets the most instance types in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relax: Option<Relaxation>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmatchedRequirement {
    pub key: String,
    pub operator: Operator,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Values that there are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<String>,
    /// What is wrong with each value, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Relaxation {
    pub key: String,
    pub instance_types: usize,
}

/// Pairs are tried for lists of at most so many requirements; longer ones are narrowed down one by one.
const PAIRS_OF_MAX: usize = 24;

/// So many faults of one requirement are said.
const FAULTS_SAID_MAX: usize = 3;

impl Entry {
    pub fn new(entry: &NodeSelectorRequirement) -> Self {
        Self {
            key: normalized(&entry.key).to_owned(),
            operator: entry.operator,
            values: entry.values.clone(),
            requirement: Requirement::new(entry.operator, entry.values.iter().cloned()),
        }
    }

    pub fn of_label(key: &str, value: &str) -> Self {
        Self {
            key: normalized(key).to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
            requirement: Requirement::is_in([value]),
        }
    }

    /// Requirements and labels of a pool.
    pub fn of_pool(pool: &NodePool) -> Vec<Self> {
        let template = &pool.spec.template;
        let labels = template.metadata.labels.iter().map(|(key, value)| Self::of_label(key, value));
        template.spec.requirements.iter().map(Self::new).chain(labels).collect()
    }

    /// `instance-family m5, m6i`, `instance-cpu Gt 4`.
    pub fn text(&self) -> String {
        let values = self.values.join(", ");
        match self.operator {
            Operator::In => format!("{} {values}", short(&self.key)),
            operator if values.is_empty() => format!("{} {operator:?}", short(&self.key)),
            operator => format!("{} {operator:?} {values}", short(&self.key)),
        }
    }

    /// Whether the entry allows this value of its label.
    pub fn allows(&self, value: &str) -> bool {
        self.requirement.allows(value)
    }

    pub fn allows_type(&self, instance_type: &InstanceType) -> bool {
        match instance_type.requirements.get(&self.key) {
            Some(values) if !values.is_empty() => values.iter().any(|value| self.requirement.allows(value)),
            _ => self.requirement.allows_absence(),
        }
    }

    /// `None` for a label of types.
    pub fn allows_offering(&self, offering: &Offering) -> Option<bool> {
        let value = match self.key.as_str() {
            keys::ZONE => Some(&offering.zone),
            keys::ZONE_ID => offering.zone_id.as_ref(),
            keys::CAPACITY_TYPE => Some(&offering.capacity_type),
            _ => return None,
        };
        Some(value.map_or(self.requirement.allows_absence(), |value| self.requirement.allows(value)))
    }

    fn is_of_offering(&self) -> bool {
        matches!(self.key.as_str(), keys::ZONE | keys::ZONE_ID | keys::CAPACITY_TYPE)
    }

    /// Whether it asks for nothing but capacity reservations, of which a catalog need not know.
    pub fn is_of_reservations(&self) -> bool {
        self.key == keys::CAPACITY_TYPE
            && self.requirement.allows(keys::RESERVED)
            && ![keys::ON_DEMAND, keys::SPOT].into_iter().any(|other| self.requirement.allows(other))
    }
}

/// Instance types of one region, with the values of their labels.
#[derive(Debug)]
pub struct Matching<'a> {
    types: &'a [InstanceType],
    pub values: Values<'a>,
    // Each is made when it is asked for first.
    by_label: BTreeMap<&'a str, OnceLock<TypesByValue<'a>>>,
    by_offering: OnceLock<TypesByOffering<'a>>,
    by_amount: OnceLock<TypesByAmount<'a>>,
}

impl<'a> Matching<'a> {
    /// O(types x labels).
    pub fn new(types: &'a [InstanceType], region: &'a str) -> Self {
        let values = Values::new(types, region);
        let by_label = values.labels().map(|label| (label, OnceLock::new())).collect();
        Self { types, values, by_label, by_offering: OnceLock::new(), by_amount: OnceLock::new() }
    }

    /// The entries on labels that instance types have.
    pub fn relevant<'e>(&self, entries: &'e [Entry]) -> Vec<&'e Entry> {
        entries.iter().filter(|entry| self.values.defines(&entry.key)).collect()
    }

    /// Types of which some offering satisfies all entries, whether or not it can be launched now. O(entries x (values that the entry names
    /// + types / 64)), once the indices are made: what depends on the catalog alone is worked out at the first call.
    pub fn types(&self, entries: &[&Entry]) -> TypeSet<'a> {
        let (of_offering, of_type): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|it| it.is_of_offering());
        let is_allowed =
            |offering: &Offering| of_offering.iter().all(|entry| entry.allows_offering(offering).unwrap_or(true));
        let by_offering = self.by_offering.get_or_init(|| TypesByOffering::new(self.types));
        let mut left = by_offering.allowed(is_allowed, self.types.len());
        for entry in of_type {
            match self.of_label(&entry.key) {
                Some(types) => left.intersect_with(&types.allowed(&entry.requirement, self.types.len())),
                None if entry.requirement.allows_absence() => {}
                None => left.clear(),
            }
        }
        TypeSet::new(self.types, left)
    }

    fn of_label(&self, key: &str) -> Option<&TypesByValue<'a>> {
        let types = self.by_label.get(key)?;
        Some(types.get_or_init(|| TypesByValue::new(self.types, key)))
    }

    /// The values of a label that types of the set have, in their order.
    pub fn values_in<'s>(&'s self, key: &str, set: &'s TypeSet<'a>) -> impl Iterator<Item = &'a str> + use<'s, 'a> {
        self.of_label(key).into_iter().flat_map(move |types| types.values_in(set))
    }

    /// The least of a resource that a type of the set has, and the first of those types by name. Those without it do not count.
    pub fn least(&self, resource: &str, set: &TypeSet<'_>) -> Option<(i64, &'a str)> {
        self.by_amount().least(resource, set)
    }

    /// The most of a resource that a type of the set has, and the last of those types by name.
    pub fn most(&self, resource: &str, set: &TypeSet<'_>) -> Option<(i64, &'a str)> {
        self.by_amount().most(resource, set)
    }

    fn by_amount(&self) -> &TypesByAmount<'a> {
        self.by_amount.get_or_init(|| TypesByAmount::new(self.types))
    }

    fn any(&self, entries: &[&Entry]) -> bool {
        !self.types(entries).is_empty()
    }

    /// What keeps every instance type out; `None` when some type matches. O(entries^2) calls of [`Self::types`] where none does.
    pub fn unmatched(&self, entries: &[Entry]) -> Option<UnmatchedRequirements> {
        let relevant = self.relevant(entries);
        if relevant.iter().any(|entry| entry.is_of_reservations()) || self.any(&relevant) {
            return None;
        }
        let (matching, nothing): (Vec<&Entry>, Vec<&Entry>) =
            relevant.iter().copied().partition(|entry| self.any(&[*entry]));
        let mut unmatched = UnmatchedRequirements {
            requirements: relevant.len(),
            matching: matching.len(),
            match_nothing: nothing.iter().map(|entry| self.describe(entry)).collect(),
            exclude_each_other: Vec::new(),
            relax: None,
        };
        if nothing.is_empty() {
            let core = self.core(&matching);
            unmatched.exclude_each_other = core.iter().map(|entry| self.describe(entry)).collect();
            unmatched.relax = self.relaxation(&matching, &core);
        }
        Some(unmatched)
    }

    fn describe(&self, entry: &Entry) -> UnmatchedRequirement {
        let faults = self.values.faults(&entry.key, entry.operator, &entry.values);
        let faults: Vec<Fault> = faults.into_iter().filter(|fault| fault.matches_nothing).collect();
        if let Some(elsewhere) = self.elsewhere(entry, &faults) {
            return UnmatchedRequirement {
                key: entry.key.clone(),
                operator: entry.operator,
                values: entry.values.clone(),
                near: Vec::new(),
                because: vec![elsewhere],
            };
        }
        let mut because: Vec<String> = faults.iter().take(FAULTS_SAID_MAX).map(Fault::text).collect();
        let more = faults.len().saturating_sub(FAULTS_SAID_MAX);
        if more > 0 {
            because.push(format!("nor are {more} others known"));
        }
        if faults.is_empty() && !self.any(&[entry]) {
            because.push("no instance type that has it is sold in the region".to_owned());
        }
        UnmatchedRequirement {
            key: entry.key.clone(),
            operator: entry.operator,
            values: entry.values.clone(),
            near: faults.into_iter().flat_map(|fault| fault.near).collect(),
            because,
        }
    }

    /// Of zones that are all in other regions, said once.
    fn elsewhere(&self, entry: &Entry, faults: &[Fault]) -> Option<String> {
        let region = self.values.region;
        let foreign = |zone: &String| regions::of_zone(zone).is_some_and(|of| of != region);
        let all = matches!(entry.key.as_str(), keys::ZONE | keys::ZONE_ID) && faults.len() == entry.values.len();
        let noun = if entry.values.len() == 1 { "it is" } else { "they are" };
        (all && !faults.is_empty() && entry.values.iter().all(foreign)).then(|| format!("{noun} not in {region}"))
    }

    /// A smallest part of entries that still excludes every type: a pair where there is one, else what is left when everything went
    /// that could go.
    fn core<'e>(&self, entries: &[&'e Entry]) -> Vec<&'e Entry> {
        if entries.len() <= PAIRS_OF_MAX {
            for (position, one) in entries.iter().enumerate() {
                for two in entries.iter().skip(position + 1) {
                    if !self.any(&[*one, *two]) {
                        return vec![one, two];
                    }
                }
            }
        }
        let mut core: Vec<&Entry> = entries.to_vec();
        for entry in entries {
            let without: Vec<&Entry> = core.iter().copied().filter(|other| !std::ptr::eq(*other, *entry)).collect();
            if !without.is_empty() && !self.any(&without) {
                core = without;
            }
        }
        core
    }

    fn relaxation(&self, entries: &[&Entry], core: &[&Entry]) -> Option<Relaxation> {
        let counts = core.iter().map(|entry| {
            let without: Vec<&Entry> = entries.iter().copied().filter(|other| !std::ptr::eq(*other, *entry)).collect();
            (self.types(&without).iter().count(), *entry)
        });
        // Of equals the first.
        let most = counts.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
        (most.0 > 0).then(|| Relaxation { key: most.1.key.clone(), instance_types: most.0 })
    }
}

impl Fault {
    /// For one line: what is wrong, and what is near.
    pub fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }
}

impl UnmatchedRequirement {
    fn entry(&self) -> Entry {
        Entry {
            key: self.key.clone(),
            operator: self.operator,
            values: self.values.clone(),
            requirement: Requirement::new(self.operator, self.values.iter().cloned()),
        }
    }
}

impl UnmatchedRequirements {
    /// For one line.
    pub fn text(&self) -> String {
        let of_them = match self.requirements {
            1 => String::new(),
            all => format!("; {} of its {all} requirements match instance types", self.matching),
        };
        if self.match_nothing.is_empty() {
            return self.together_text();
        }
        let nothing = self.match_nothing.iter().map(|it| {
            let because = it.because.join("; ");
            format!("{} matches nothing: {because}", it.entry().text())
        });
        format!("its requirement {}{of_them}", nothing.collect::<Vec<_>>().join("; nor does the next: "))
    }

    /// What excludes each other, and what to give up.
    pub fn together_text(&self) -> String {
        let parts: Vec<String> = self.exclude_each_other.iter().map(|it| it.entry().text()).collect();
        let relax = self.relax.as_ref().map(|relax| {
            let types = if relax.instance_types == 1 { "type matches" } else { "types match" };
            format!("; without {} {} instance {types}", short(&relax.key), relax.instance_types)
        });
        format!("no instance type matches {} together{}", parts.join(" and "), relax.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn entry(key: &str, operator: Operator, values: &[&str]) -> Entry {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        Entry::new(&NodeSelectorRequirement { key: key.to_owned(), operator, values, min_values: None })
    }

    fn unmatched(entries: &[Entry]) -> Option<String> {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        Matching::new(&catalog.instance_types, &catalog.region).unmatched(entries).map(|unmatched| unmatched.text())
    }

    #[test]
    fn what_matches_is_not_explained() {
        let family = entry(keys::INSTANCE_FAMILY, Operator::In, &["m5"]);
        let size = entry(keys::INSTANCE_SIZE, Operator::In, &["large"]);
        assert_eq!(unmatched(&[family.clone(), size]), None);
        assert_eq!(unmatched(&[family, entry("example.com/team", Operator::In, &["blue"])]), None);
        assert_eq!(unmatched(&[]), None);
        assert_eq!(unmatched(&[entry(keys::CAPACITY_TYPE, Operator::In, &["reserved"])]), None, "the account has them");
    }

    #[test]
    fn the_smallest_part_that_excludes_everything_is_named() {
        let text = unmatched(&[
            entry(keys::CAPACITY_TYPE, Operator::In, &["on-demand"]),
            entry(keys::INSTANCE_FAMILY, Operator::In, &["m5", "m5d"]),
            entry(keys::ARCHITECTURE, Operator::In, &["arm64"]),
        ]);
        let text = text.unwrap();
        assert!(
            text.starts_with("no instance type matches instance-family m5, m5d and arch arm64 together; "),
            "{text}"
        );
        assert!(text.contains("without instance-family "), "{text}");
        // Each two of them match, all three do not.
        let three = unmatched(&[
            entry(keys::INSTANCE_CATEGORY, Operator::In, &["t"]),
            entry(keys::INSTANCE_GENERATION, Operator::In, &["4", "5"]),
            entry(keys::INSTANCE_SIZE, Operator::In, &["metal", "nano"]),
            entry(keys::ARCHITECTURE, Operator::In, &["amd64"]),
        ]);
        let three = three.unwrap();
        assert!(three.starts_with("no instance type matches "), "{three}");
    }

    #[test]
    fn the_indices_find_what_a_look_at_each_type_finds() {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        let matching = Matching::new(&catalog.instance_types, &catalog.region);
        let entries = [
            entry(keys::INSTANCE_FAMILY, Operator::In, &["m5", "c6g", "p5", "none"]),
            entry(keys::INSTANCE_FAMILY, Operator::NotIn, &["m5", "c6g"]),
            entry(keys::INSTANCE_TYPE, Operator::In, &["m5.large"]),
            entry(keys::INSTANCE_CPU, Operator::Gt, &["4"]),
            entry(keys::INSTANCE_MEMORY, Operator::Lte, &["8192"]),
            entry("karpenter.k8s.aws/instance-gpu-count", Operator::DoesNotExist, &[]),
            entry("karpenter.k8s.aws/instance-gpu-count", Operator::Exists, &[]),
            entry(keys::CAPACITY_TYPE, Operator::In, &["spot"]),
            entry(keys::ZONE, Operator::NotIn, &["us-east-1a"]),
            entry("example.com/team", Operator::In, &["blue"]),
        ];
        for both in entries.iter().flat_map(|one| entries.iter().map(move |other| [one, other])) {
            let is_sold = |offering: &Offering| both.iter().all(|it| it.allows_offering(offering).unwrap_or(true));
            let is_type = |it: &&InstanceType| {
                let mut of_type = both.iter().filter(|entry| !entry.is_of_offering());
                of_type.all(|entry| entry.allows_type(it)) && it.offerings.iter().any(is_sold)
            };
            let looked: Vec<&InstanceType> = catalog.instance_types.iter().filter(is_type).collect();
            let names = |types: &[&InstanceType]| types.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
            // The second time, what a bound lets in is remembered.
            for _ in 0..2 {
                let found: Vec<&InstanceType> = matching.types(&both).iter().collect();
                assert_eq!(names(&found), names(&looked), "{both:?}");
            }
            let set = matching.types(&both);
            for resource in ["cpu", "nvidia.com/gpu", "example.com/none"] {
                let amounts = || looked.iter().map(|it| (it.capacity.get(resource), it.name.as_str()));
                let least = amounts().filter(|(amount, _)| *amount > 0).min();
                assert_eq!(matching.least(resource, &set), least, "{both:?}");
                let most = amounts().max().filter(|_| resource != "example.com/none");
                assert_eq!(matching.most(resource, &set), most, "{both:?}");
            }
            let values = looked.iter().filter_map(|it| it.requirements.get(keys::INSTANCE_CPU)).flatten();
            let values: std::collections::BTreeSet<&str> = values.map(String::as_str).collect();
            assert_eq!(matching.values_in(keys::INSTANCE_CPU, &set).collect::<Vec<_>>(), Vec::from_iter(values));
        }
    }

    #[test]
    fn zones_of_other_regions_are_told_once() {
        let zones = entry(keys::ZONE, Operator::In, &["ap-southeast-1a", "ap-southeast-1b"]);
        let text = unmatched(&[zones, entry(keys::CAPACITY_TYPE, Operator::In, &["on-demand"])]).unwrap();
        let zones = "zone ap-southeast-1a, ap-southeast-1b matches nothing: they are not in us-east-1";
        assert_eq!(text, format!("its requirement {zones}; 1 of its 2 requirements match instance types"));
    }
}
