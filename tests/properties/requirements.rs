//! The requirements algebra against the plainest reading there is: a requirement is the set of values it allows, and
//! absence is one of the values.

use std::collections::{BTreeMap, BTreeSet};

use cutlist::api::keys;
use cutlist::api::node_pool::{NodeSelectorRequirement, Operator};
use cutlist::core::model::requirements::{is_well_known, normalized};
use cutlist::core::model::{Requirement, Requirements};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{BoxedStrategy, Just, Strategy, prop_oneof};
use proptest::sample::select;

use super::holds;

/// What requirements are made of: words, integers near the bounds, the ends of what an integer can be, and beyond.
const NAMED: [&str; 14] = [
    "a",
    "b",
    "1.5",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "",
];

/// Values that no requirement names: one for all words, an integer from each gap between the named ones, and each named integer
/// written in another way. What is true of these and of the named ones is true of all values.
const UNNAMED: [&str; 11] = [
    "z",
    "-2",
    "4",
    "-01",
    "00",
    "01",
    "02",
    "03",
    "09223372036854775806",
    "09223372036854775807",
    "-09223372036854775808",
];

/// A label's value, or that it is not there.
type Value = Option<&'static str>;

fn universe() -> impl Iterator<Item = Value> {
    std::iter::once(None).chain(NAMED.into_iter().chain(UNNAMED).map(Some))
}

/// What one entry allows, straight from the documentation of the operators.
fn allowed_by(entry: &NodeSelectorRequirement, value: Value) -> bool {
    let listed = value.is_some_and(|value| entry.values.iter().any(|it| it == value));
    let compare = |holds: fn(i64, i64) -> bool| {
        let [bound] = entry.values.as_slice() else { return false };
        let numbers = value.and_then(|value| value.parse().ok()).zip(bound.parse().ok());
        numbers.is_some_and(|(value, bound)| holds(value, bound))
    };
    match entry.operator {
        Operator::In => listed,
        Operator::NotIn => !entry.values.is_empty() && !listed,
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => compare(|value, bound| value > bound),
        Operator::Lt => compare(|value, bound| value < bound),
        Operator::Gte => compare(|value, bound| value >= bound),
        Operator::Lte => compare(|value, bound| value <= bound),
    }
}

/// What all entries allow together.
fn set(entries: &[NodeSelectorRequirement]) -> BTreeSet<Value> {
    universe().filter(|value| entries.iter().all(|entry| allowed_by(entry, *value))).collect()
}

fn compiled(entries: &[NodeSelectorRequirement]) -> Requirement {
    let requirements = Requirements::from_entries(entries);
    let key = entries.first().map_or("", |entry| entry.key.as_str());
    requirements.get(key).cloned().unwrap_or_else(|| Requirement::new(Operator::Exists, [""; 0]))
}

fn allows(requirement: &Requirement, value: Value) -> bool {
    value.map_or(requirement.allows_absence(), |value| requirement.allows(value))
}

fn entry(key: impl Strategy<Value = &'static str> + 'static) -> BoxedStrategy<NodeSelectorRequirement> {
    let operator = select(vec![
        Operator::In,
        Operator::NotIn,
        Operator::Exists,
        Operator::DoesNotExist,
        Operator::Gt,
        Operator::Lt,
        Operator::Gte,
        Operator::Lte,
    ]);
    let values = prop_oneof![3 => vec(select(NAMED.to_vec()), 1..2), 2 => vec(select(NAMED.to_vec()), 0..5)];
    (key, operator, values, weighted(0.2, 1..50_u32))
        .prop_map(|(key, operator, values, min_values)| {
            let without_values = matches!(operator, Operator::Exists | Operator::DoesNotExist);
            let values = values.into_iter().filter(|_| !without_values).map(str::to_owned).collect();
            NodeSelectorRequirement { key: key.to_owned(), operator, values, min_values }
        })
        .boxed()
}

/// Entries about one label.
fn entries() -> BoxedStrategy<Vec<NodeSelectorRequirement>> {
    vec(entry(Just("team")), 1..4).boxed()
}

/// Entries about several labels: ones that any pool may have, ones that instance types define, and old names of these.
fn mixed_entries() -> BoxedStrategy<Vec<NodeSelectorRequirement>> {
    let keys = vec![
        "team",
        "rack",
        keys::ZONE,
        "failure-domain.beta.kubernetes.io/zone",
        "topology.ebs.csi.aws.com/zone",
        keys::ARCHITECTURE,
        "beta.kubernetes.io/arch",
        keys::INSTANCE_CATEGORY,
    ];
    vec(entry(select(keys)), 0..5).boxed()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, naive: &T) -> Result<(), String> {
    if ours == naive { Ok(()) } else { Err(format!("{what}: {ours:?}, by hand {naive:?}")) }
}

#[test]
fn entries_together_allow_what_each_of_them_allows() {
    holds(entries(), |entries| {
        let requirement = compiled(&entries);
        let ours = universe().filter(|value| allows(&requirement, *value)).collect();
        same("allowed", &ours, &set(&entries))?;
        let values: Vec<Value> = set(&entries).into_iter().collect();
        same("a contradiction", &requirement.is_contradiction(), &values.is_empty())?;
        same("allows no value", &requirement.allows_nothing(), &values.iter().all(Option::is_none))?;
        if let Some(listed) = requirement.values() {
            let by_hand: BTreeSet<String> = values.iter().flatten().map(|value| (*value).to_owned()).collect();
            same("listed values", listed, &by_hand)?;
        }
        same("minValues", &requirement.min_values, &entries.iter().filter_map(|entry| entry.min_values).max())
    });
}

#[test]
fn an_intersection_is_one_and_does_not_depend_on_the_order() {
    holds((entries(), entries(), entries()), |(one, two, three)| {
        let (a, b, c) = (compiled(&one), compiled(&two), compiled(&three));
        let both = a.intersection(&b);
        let common: BTreeSet<Value> = set(&one).intersection(&set(&two)).copied().collect();
        same("intersection", &universe().filter(|value| allows(&both, *value)).collect(), &common)?;
        same("intersects", &a.intersects(&b), &!common.is_empty())?;
        same("the other way round", &b.intersection(&a), &both)?;
        same("with itself", &a.intersection(&a), &a)?;
        same("in another order", &a.intersection(&b.intersection(&c)), &both.intersection(&c))
    });
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    holds(entries(), |entries| {
        let requirement = compiled(&entries);
        let written = requirement.to_entries("team");
        same("allowed", &set(&written), &set(&entries))?;
        same("read back", &compiled(&written), &requirement)
    });
}

/// The values that each label may have by these entries; labels that none names are absent.
fn sets_by_label(entries: &[NodeSelectorRequirement]) -> BTreeMap<&str, BTreeSet<Value>> {
    let mut by_label: BTreeMap<&str, BTreeSet<Value>> = BTreeMap::new();
    for entry in entries {
        let values = by_label.entry(normalized(&entry.key)).or_insert_with(|| universe().collect());
        values.retain(|value| allowed_by(entry, *value));
    }
    by_label
}

#[test]
fn a_pod_is_refused_where_no_value_suits_both_or_nobody_defines_the_label() {
    holds((mixed_entries(), mixed_entries()), |(pool, pod)| {
        let (pool_sets, pod_sets) = (sets_by_label(&pool), sets_by_label(&pod));
        let disjoint = |key: &&str| pool_sets.get(*key).is_some_and(|mine| mine.is_disjoint(&pod_sets[*key]));
        let undefined =
            |key: &&str| !pool_sets.contains_key(*key) && !is_well_known(key) && !pod_sets[*key].contains(&None);
        let refused = pod_sets.keys().copied().find(|key| disjoint(key) || undefined(key));
        let (pool, pod) = (Requirements::from_entries(&pool), Requirements::from_entries(&pod));
        same("refused for", &pool.refusal(&pod), &refused)?;
        same("conflict", &pool.conflict(&pod), &pod_sets.keys().copied().find(disjoint))
    });
}

#[test]
fn labels_suit_when_each_has_an_allowed_value() {
    let labels = vec((select(vec!["team", keys::ZONE, "beta.kubernetes.io/arch"]), select(NAMED.to_vec())), 0..4);
    holds((mixed_entries(), labels), |(entries, labels)| {
        let labels: BTreeMap<&str, &'static str> = labels.into_iter().collect();
        let current: BTreeMap<&str, &'static str> =
            labels.iter().map(|(key, value)| (normalized(key), *value)).collect();
        let suits = entries.iter().all(|entry| allowed_by(entry, current.get(normalized(&entry.key)).copied()));
        let owned = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        same("suits", &Requirements::from_entries(&entries).allow_labels(&owned), &suits)
    });
}

#[test]
fn an_old_name_means_the_current_one() {
    holds(mixed_entries(), |entries| {
        let mut renamed = entries.clone();
        renamed.iter_mut().for_each(|entry| entry.key = normalized(&entry.key).to_owned());
        let requirements = Requirements::from_entries(&entries);
        same("renamed", &requirements, &Requirements::from_entries(&renamed))?;
        let old_name = entries.iter().find(|entry| requirements.get(&entry.key).is_none());
        same("not found under the name it was given by", &old_name, &None)
    });
}

#[test]
fn a_requirement_of_labels_allows_these_labels_and_no_others() {
    let labels = |text: &str| BTreeMap::from([("team".to_owned(), text.to_owned())]);
    holds((select(NAMED.to_vec()), select(NAMED.to_vec())), |(one, two)| {
        let requirements = Requirements::from_labels(&labels(one));
        same("allows", &requirements.allow_labels(&labels(two)), &(one == two))?;
        same("single value", &requirements.get("team").and_then(Requirement::single_value), &Some(one))
    });
}
