//! The requirements algebra: for each label key, which values are allowed.
//! Behaviour: Karpenter `pkg/scheduling/requirement.go` and `requirements.go`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use cutlist_api::keys;
use cutlist_api::node_pool::{NodeSelectorRequirement, Operator};

/// The values one key may have: a set, or everything but a set; both within optional integer bounds. And whether the key
/// may be absent, which the values do not say: `Exists` with `NotIn [a]` asks for a value, `NotIn [a]` alone does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    complement: bool,
    values: BTreeSet<String>,
    at_least: Option<i64>,
    at_most: Option<i64>,
    absence: bool,
    pub min_values: Option<u32>,
}

impl Requirement {
    /// What Kubernetes would not admit (`NotIn` without values, a bound that is not one integer) allows nothing.
    pub fn new(operator: Operator, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let values: Vec<String> = values.into_iter().map(Into::into).collect();
        let bound = if let [bound] = values.as_slice() { bound.parse::<i64>().ok() } else { None };
        let values = BTreeSet::from_iter(values);
        let nothing = Self::of_values(BTreeSet::new());
        let anything = Self { complement: true, ..nothing.clone() };
        let bounded = |at_least: Option<i64>, at_most: Option<i64>| match (at_least, at_most) {
            (None, None) => nothing.clone(),
            (at_least, at_most) => Self { at_least, at_most, ..anything.clone() },
        };
        match operator {
            Operator::In => Self { values, ..nothing },
            Operator::NotIn if values.is_empty() => nothing,
            Operator::NotIn => Self { values, absence: true, ..anything },
            Operator::Exists => anything,
            Operator::DoesNotExist => Self { absence: true, ..nothing },
            Operator::Gt => bounded(bound.and_then(|bound| bound.checked_add(1)), None),
            Operator::Lt => bounded(None, bound.and_then(|bound| bound.checked_sub(1))),
            Operator::Gte => bounded(bound, None),
            Operator::Lte => bounded(None, bound),
        }
    }

    fn of_values(values: BTreeSet<String>) -> Self {
        Self { complement: false, values, at_least: None, at_most: None, absence: false, min_values: None }
    }

    pub fn is_in(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::of_values(values.into_iter().map(Into::into).collect())
    }

    /// Whether this value is allowed.
    pub fn allows(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && self.within_bounds(value)
    }

    /// Whether a node without the label satisfies this: NotIn and DoesNotExist do, alone and together.
    pub fn allows_absence(&self) -> bool {
        self.absence
    }

    /// Whether no value at all is allowed.
    pub fn allows_nothing(&self) -> bool {
        !self.complement && self.values.is_empty()
    }

    /// Whether neither a value nor absence is allowed, so that no node can satisfy this.
    pub fn is_contradiction(&self) -> bool {
        self.allows_nothing() && !self.absence
    }

    /// Whether a node can be made that satisfies this.
    pub fn can_be_met(&self) -> bool {
        self.absence || self.value_for(0).is_some()
    }

    /// The allowed values when they can be listed.
    pub fn values(&self) -> Option<&BTreeSet<String>> {
        (!self.complement).then_some(&self.values)
    }

    /// The allowed values where they are few enough to be listed: those named, or the numbers between two bounds. O(values) for bounds.
    pub fn listed(&self) -> Option<Cow<'_, BTreeSet<String>>> {
        if !self.complement {
            return Some(Cow::Borrowed(&self.values));
        }
        let (least, most) = (self.at_least?.max(0), self.at_most?);
        let is_few = most.checked_sub(least).is_some_and(|more| more < LISTED_MAX);
        let numbers = || (least..=most).map(|number| number.to_string()).filter(|value| !self.values.contains(value));
        is_few.then(|| Cow::Owned(numbers().collect()))
    }

    /// The only allowed value, if there is just one.
    pub fn single_value(&self) -> Option<&str> {
        self.values().filter(|values| values.len() == 1)?.first().map(String::as_str)
    }

    /// A value that is allowed: of those listed the first, else a number that depends on `choice` alone. `None` where there is
    /// none that a label can have. O(values that are not allowed).
    pub fn value_for(&self, choice: u64) -> Option<String> {
        self.value_beside(choice, &BTreeSet::new())
    }

    /// The same, and none of those taken; `None` as well where nothing else is left. O(values that are not allowed or taken) at worst.
    pub fn value_beside(&self, choice: u64, taken: &BTreeSet<String>) -> Option<String> {
        if !self.complement {
            return self.values.iter().find(|value| !taken.contains(*value)).cloned();
        }
        // A label has no sign.
        let least = self.at_least.unwrap_or(0).max(0);
        let most = self.at_most.unwrap_or(least.saturating_add(CHOSEN_MAX));
        let count = u64::try_from(most.checked_sub(least)?).ok()?.saturating_add(1);
        let in_the_way = self.values.len().saturating_add(taken.len());
        let tried = count.min(u64::try_from(in_the_way).ok()?.saturating_add(1));
        let number = |step: u64| least.checked_add_unsigned(choice.wrapping_add(step) % count);
        let mut numbers = (0..tried).filter_map(number).map(|number| number.to_string());
        numbers.find(|value| !self.values.contains(value) && !taken.contains(value))
    }

    fn within_bounds(&self, value: &str) -> bool {
        if self.at_least.is_none() && self.at_most.is_none() {
            return true;
        }
        value.parse::<i64>().is_ok_and(|number| {
            self.at_least.is_none_or(|bound| number >= bound) && self.at_most.is_none_or(|bound| number <= bound)
        })
    }

    /// What both allow. Crossed bounds and sets without a common value allow no value.
    ///
    /// The reference turns these into `DoesNotExist`, and `Exists` with `NotIn` into `NotIn`; so a pod that contradicts itself
    /// fits its nodes without the label, where kube-scheduler never puts it.
    pub fn intersection(&self, other: &Self) -> Self {
        let at_least = self.at_least.max(other.at_least);
        let at_most = match (self.at_most, other.at_most) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        let absence = self.absence && other.absence;
        let nothing =
            Self { absence, min_values: self.min_values.max(other.min_values), ..Self::of_values(BTreeSet::new()) };
        if at_least.zip(at_most).is_some_and(|(least, most)| least > most) {
            return nothing;
        }
        if self.complement && other.complement {
            let bounds = Self { complement: true, at_least, at_most, ..nothing };
            let values = self.values.union(&other.values).filter(|value| bounds.within_bounds(value));
            return Self { values: values.cloned().collect(), ..bounds };
        }
        let (listed, filter) = if self.complement { (other, self) } else { (self, other) };
        let values =
            listed.values.iter().filter(|value| filter.allows(value) && listed.allows(value)).cloned().collect();
        Self { values, ..nothing }
    }

    /// Whether some value is allowed by both, or both allow absence.
    pub fn intersects(&self, other: &Self) -> bool {
        !self.intersection(other).is_contradiction()
    }

    /// As entries of a requirements list that mean the same: up to three, as bounds and exceptions are entries of their own.
    pub fn to_entries(&self, key: &str) -> Vec<NodeSelectorRequirement> {
        let entry = |operator, values: Vec<String>| NodeSelectorRequirement {
            key: key.to_owned(),
            operator,
            values,
            min_values: self.min_values,
        };
        let values = || self.values.iter().cloned().collect();
        if !self.complement {
            let absent = self.values.is_empty() && self.absence;
            return vec![entry(if absent { Operator::DoesNotExist } else { Operator::In }, values())];
        }
        let mut entries = Vec::new();
        entries.extend(self.at_least.map(|bound| entry(Operator::Gte, vec![bound.to_string()])));
        entries.extend(self.at_most.map(|bound| entry(Operator::Lte, vec![bound.to_string()])));
        if entries.is_empty() && !self.absence {
            entries.push(entry(Operator::Exists, Vec::new()));
        }
        if !self.values.is_empty() {
            entries.push(entry(Operator::NotIn, values()));
        }
        entries
    }
}

/// More numbers than these between two bounds are not listed.
const LISTED_MAX: i64 = 256;
/// A number that nothing bounds above is at most this much above the least: enough that two nodes rarely have the same.
const CHOSEN_MAX: i64 = 999_999_999;

/// Requirements by label key. A key that is absent is not restricted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirements(BTreeMap<String, Requirement>);

impl Requirements {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let mut requirements = Self::new();
        for (key, value) in labels {
            requirements.add(key, Requirement::is_in([value.as_str()]));
        }
        requirements
    }

    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a NodeSelectorRequirement>) -> Self {
        let mut requirements = Self::new();
        for entry in entries {
            let mut requirement = Requirement::new(entry.operator, entry.values.iter().cloned());
            requirement.min_values = entry.min_values;
            requirements.add(&entry.key, requirement);
        }
        requirements
    }

    /// Narrows one key. Old names of well-known labels become their current ones.
    pub fn add(&mut self, key: &str, requirement: Requirement) {
        let key = normalized(key);
        match self.0.get_mut(key) {
            Some(existing) => *existing = existing.intersection(&requirement),
            None => {
                self.0.insert(key.to_owned(), requirement);
            }
        }
    }

    pub fn extend(&mut self, other: &Self) {
        for (key, requirement) in other.iter() {
            self.add(key, requirement.clone());
        }
    }

    pub fn get(&self, key: &str) -> Option<&Requirement> {
        self.0.get(normalized(key))
    }

    pub fn remove(&mut self, key: &str) {
        self.0.remove(normalized(key));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Requirement)> {
        self.0.iter().map(|(key, requirement)| (key.as_str(), requirement))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys on which nothing is allowed by both; the first one explains a refusal.
    pub fn conflict<'a>(&self, other: &'a Self) -> Option<&'a str> {
        other
            .iter()
            .find(|(key, requirement)| self.get(key).is_some_and(|mine| !mine.intersects(requirement)))
            .map(|(key, _)| key)
    }

    /// Whether labels satisfy all of this; a missing label only satisfies NotIn and DoesNotExist.
    pub fn allow_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.iter().all(|(key, requirement)| match label(labels, key) {
            Some(value) => requirement.allows(value),
            None => requirement.allows_absence(),
        })
    }

    /// The first key on which `pod` asks for something that a node of these requirements can not have, or that
    /// these requirements do not define. Well-known keys may be undefined here: an instance type will define them.
    pub fn refusal<'a>(&self, pod: &'a Self) -> Option<&'a str> {
        pod.iter()
            .find(|(key, requirement)| match self.get(key) {
                Some(mine) => !mine.intersects(requirement),
                None => !requirement.allows_absence() && !is_well_known(key),
            })
            .map(|(key, _)| key)
    }
}

/// The value of a label, also under its old name.
pub fn label<'a>(labels: &'a BTreeMap<String, String>, key: &str) -> Option<&'a str> {
    labels.get(key).map(String::as_str).or_else(|| {
        ALIASES.iter().filter(|(_, current)| *current == key).find_map(|(old, _)| labels.get(*old).map(String::as_str))
    })
}

const ALIASES: [(&str, &str); 6] = [
    ("failure-domain.beta.kubernetes.io/zone", keys::ZONE),
    ("failure-domain.beta.kubernetes.io/region", keys::REGION),
    ("beta.kubernetes.io/arch", keys::ARCHITECTURE),
    ("beta.kubernetes.io/os", keys::OPERATING_SYSTEM),
    ("beta.kubernetes.io/instance-type", keys::INSTANCE_TYPE),
    ("topology.ebs.csi.aws.com/zone", keys::ZONE),
];

/// The labels that a node on AWS has under other names too: of older versions of Kubernetes, and of the CSI driver.
pub fn add_other_names(labels: &mut BTreeMap<String, String>) {
    for (other, current) in ALIASES {
        if let Some(value) = labels.get(current).cloned() {
            labels.entry(other.to_owned()).or_insert(value);
        }
    }
}

/// The current name of a label that had another one.
pub fn normalized(key: &str) -> &str {
    ALIASES.iter().find(|(old, _)| *old == key).map_or(key, |(_, current)| current)
}

/// Labels that instance types and offerings define, so that a pool need not.
pub fn is_well_known(key: &str) -> bool {
    matches!(
        key,
        keys::NODE_POOL
            | keys::CAPACITY_TYPE
            | keys::ZONE
            | keys::REGION
            | keys::ZONE_ID
            | keys::INSTANCE_TYPE
            | keys::ARCHITECTURE
            | keys::OPERATING_SYSTEM
            | keys::WINDOWS_BUILD
    ) || key.strip_prefix("karpenter.k8s.aws/").is_some_and(|name| AWS_LABELS.contains(&name))
        || key.strip_prefix("karpenter.kwok.sh/").is_some_and(|name| KWOK_LABELS.contains(&name))
}

/// Labels that no template may set, because the controller does. Source: reference, section 2.3; as the rules of NodePool in
/// `api::validation` have it.
pub fn is_restricted(key: &str) -> bool {
    let (domain, name) = key.split_once('/').unwrap_or((key, ""));
    matches!(key, keys::NODE_POOL | keys::HOSTNAME)
        || (domain.ends_with("karpenter.sh") && key != keys::CAPACITY_TYPE)
        || (domain.ends_with("karpenter.k8s.aws") && !(domain == "karpenter.k8s.aws" && AWS_LABELS.contains(&name)))
}

/// Labels under `karpenter.kwok.sh/` that types of Karpenter's provider for tests have.
const KWOK_LABELS: [&str; 4] = ["instance-cpu", "instance-family", "instance-memory", "instance-size"];

/// Labels under `karpenter.k8s.aws/` that a requirement may use. Source: the definition that Karpenter 1.14.1 installs, as
/// `api::validation` and the table of versions have it.
pub const AWS_LABELS: [&str; 28] = [
    "ec2nodeclass",
    "instance-accelerator-count",
    "instance-accelerator-manufacturer",
    "instance-accelerator-name",
    "instance-capability-flex",
    "instance-category",
    "instance-cpu",
    "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-ebs-bandwidth",
    "instance-encryption-in-transit-supported",
    "instance-family",
    "instance-generation",
    "instance-gpu-count",
    "instance-gpu-manufacturer",
    "instance-gpu-memory",
    "instance-gpu-name",
    "instance-hypervisor",
    "instance-local-nvme",
    "instance-memory",
    "instance-network-bandwidth",
    "instance-size",
    "instance-tenancy",
    "capacity-reservation-id",
    "capacity-reservation-type",
    "capacity-reservation-interruptible",
    "placement-group-id",
    "placement-group-partition",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(operator: Operator, value: &str) -> Requirement {
        Requirement::new(operator, [value])
    }

    #[test]
    fn bounds_are_inclusive_inside_and_filter_sets() {
        let generation = bound(Operator::Gt, "5");
        assert!(generation.allows("6") && !generation.allows("5") && !generation.allows("six"));
        let set = Requirement::is_in(["4", "6", "7", "x"]);
        assert_eq!(set.intersection(&generation), Requirement::is_in(["6", "7"]));
        assert!(bound(Operator::Gt, "5").intersection(&bound(Operator::Lt, "6")).allows_nothing());
        assert!(bound(Operator::Gt, "9223372036854775807").allows_nothing());
        assert!(bound(Operator::Gt, "many").allows_nothing());
        assert!(Requirement::new(Operator::Gt, ["1", "2"]).is_contradiction(), "a bound is one number");
    }

    #[test]
    fn few_numbers_are_listed_and_those_taken_left_out() {
        let between = bound(Operator::Gt, "5").intersection(&bound(Operator::Lt, "8"));
        assert_eq!(between.listed().map(Cow::into_owned), Some(BTreeSet::from(["6".to_owned(), "7".to_owned()])));
        let but_six = between.intersection(&Requirement::new(Operator::NotIn, ["6"]));
        assert_eq!(but_six.listed().map(Cow::into_owned), Some(BTreeSet::from(["7".to_owned()])));
        assert_eq!(bound(Operator::Gt, "5").listed(), None);
        assert_eq!(bound(Operator::Gt, "5").intersection(&bound(Operator::Lt, "500")).listed(), None, "too many");
        let taken = BTreeSet::from(["6".to_owned()]);
        assert_eq!(between.value_beside(0, &taken).as_deref(), Some("7"));
        assert_eq!(bound(Operator::Gt, "5").value_beside(0, &taken).as_deref(), Some("7"));
        assert_eq!(Requirement::is_in(["6"]).value_beside(0, &taken), None);
    }

    #[test]
    fn a_value_is_found_wherever_there_is_one() {
        let exists = Requirement::new(Operator::Exists, [""; 0]);
        assert_eq!(exists.value_for(7).as_deref(), Some("7"));
        let between = bound(Operator::Gte, "3").intersection(&bound(Operator::Lte, "4"));
        for choice in [0, 1, 2, u64::MAX] {
            let value = between.value_for(choice).unwrap();
            assert!(between.allows(&value), "{value}");
            let but_three = between.intersection(&Requirement::new(Operator::NotIn, ["3"]));
            assert_eq!(but_three.value_for(choice).as_deref(), Some("4"));
        }
        let neither = between.intersection(&Requirement::new(Operator::NotIn, ["3", "4"]));
        assert_eq!(neither.value_for(0), None);
        assert_eq!(bound(Operator::Lt, "0").value_for(0), None, "a label has no sign");
        let high = bound(Operator::Gt, "9223372036854775806");
        assert_eq!(high.value_for(5).as_deref(), Some("9223372036854775807"));
        assert_eq!(bound(Operator::Gt, "9223372036854775807").value_for(0), None);
        assert_eq!(Requirement::is_in(["b", "a"]).value_for(9).as_deref(), Some("a"));
    }

    #[test]
    fn absence_satisfies_not_in_and_does_not_exist_only() {
        let labels = BTreeMap::new();
        for (operator, allowed) in
            [(Operator::In, false), (Operator::NotIn, true), (Operator::Exists, false), (Operator::DoesNotExist, true)]
        {
            let mut requirements = Requirements::new();
            requirements.add(
                "team",
                Requirement::new(
                    operator,
                    ["a"].into_iter().filter(|_| matches!(operator, Operator::In | Operator::NotIn)),
                ),
            );
            assert_eq!(requirements.allow_labels(&labels), allowed, "{operator:?}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_not_absence() {
        let both = Requirement::is_in(["a"]).intersection(&Requirement::is_in(["b"]));
        assert!(both.is_contradiction() && !both.allows_absence());
        let present =
            Requirement::new(Operator::Exists, [""; 0]).intersection(&Requirement::new(Operator::NotIn, ["a"]));
        assert!(present.allows("b") && !present.allows("a") && !present.allows_absence());
        let operators: Vec<Operator> = present.to_entries("team").iter().map(|entry| entry.operator).collect();
        assert_eq!(operators, [Operator::Exists, Operator::NotIn]);
    }

    #[test]
    fn a_pod_may_ask_for_what_an_instance_type_defines_but_not_for_an_unknown_label() {
        let pool = Requirements::new();
        let mut pod = Requirements::new();
        pod.add("beta.kubernetes.io/arch", Requirement::is_in(["arm64"]));
        assert_eq!(pool.refusal(&pod), None);
        pod.add("team", Requirement::is_in(["a"]));
        assert_eq!(pool.refusal(&pod), Some("team"));
    }
}
