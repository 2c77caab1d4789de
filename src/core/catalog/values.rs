//! The values that labels have in a catalog, and what is near to one that none has: for lint, and for pods that stay pending.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::suggest::{Hint, did_you_mean, nearest};
use crate::model::{Quantity, Requirement};
use cutlist_api::keys;
use cutlist_api::node_pool::Operator;

use super::labels::AWS_PREFIX;
use super::{InstanceType, labels, regions};

/// Every value of every label of instance types and offerings.
#[derive(Debug, Default)]
pub struct Values<'a> {
    pub region: &'a str,
    by_key: BTreeMap<&'a str, Label<'a>>,
}

#[derive(Debug, Default)]
struct Label<'a> {
    values: BTreeSet<&'a str>,
    /// Those of them that are whole numbers, in their order.
    numbers: Vec<i64>,
    /// How many types have it, and how many have not.
    types: usize,
    types_without: usize,
}

/// Why a requirement matches nothing, or is not what it seems to be, when it stands alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The value that is wrong, by its place in the list; `None`: the operator.
    pub value: Option<usize>,
    pub message: String,
    pub hint: Option<Hint>,
    /// What may have been meant.
    pub near: Vec<String>,
    /// Whether the requirement matches nothing for it; else the value counts for nothing.
    pub matches_nothing: bool,
}

/// Labels whose numbers have a unit, with the larger one that people think in, and how many of the one make the other.
const UNITS: [(&str, &str, &str, i64); 6] = [
    (keys::INSTANCE_MEMORY, "MiB", "GiB", 1024),
    ("karpenter.k8s.aws/instance-gpu-memory", "MiB", "GiB", 1024),
    ("karpenter.k8s.aws/instance-ebs-bandwidth", "Mbps", "Gbps", 1000),
    (labels::NETWORK_BANDWIDTH, "Mbps", "Gbps", 1000),
    ("karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz", "MHz", "GHz", 1000),
    (labels::LOCAL_NVME, "GB", "TB", 1000),
];

/// So many values are listed where nothing is near.
const LISTED_MAX: usize = 32;

/// So many values of one list are explained.
const EXPLAINED_MAX: usize = 100;

/// What people write for a value that is called otherwise.
const SYNONYMS: [(&str, &str); 6] = [
    ("x86_64", "amd64"),
    ("x86", "amd64"),
    ("aarch64", "arm64"),
    ("arm", "arm64"),
    ("ondemand", "on-demand"),
    ("on_demand", "on-demand"),
];

impl<'a> Values<'a> {
    /// O(types x labels).
    pub fn new(types: &'a [InstanceType], region: &'a str) -> Self {
        let mut by_key: BTreeMap<&str, Label<'a>> = BTreeMap::new();
        for instance_type in types {
            for (key, values) in instance_type.requirements.iter().filter(|(_, values)| !values.is_empty()) {
                let label = by_key.entry(key).or_default();
                label.types += 1;
                label.values.extend(values.iter().map(String::as_str));
            }
            for offering in &instance_type.offerings {
                let zone_id = offering.zone_id.as_deref().map(|id| (keys::ZONE_ID, id));
                let of_offering =
                    [(keys::ZONE, offering.zone.as_str()), (keys::CAPACITY_TYPE, &offering.capacity_type)];
                for (key, value) in of_offering.into_iter().chain(zone_id) {
                    by_key.entry(key).or_default().values.insert(value);
                }
            }
        }
        for label in by_key.values_mut() {
            label.types_without = types.len().saturating_sub(label.types);
            label.numbers = numbers(&label.values);
        }
        Self { region, by_key }
    }

    /// Of one label alone, which some types may lack.
    pub fn of_label(region: &'a str, key: &'a str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().collect();
        let label = Label { numbers: numbers(&values), values, types: 0, types_without: 0 };
        Self { region, by_key: BTreeMap::from([(key, label)]) }
    }

    /// The labels that instance types or offerings have.
    pub fn labels(&self) -> impl Iterator<Item = &'a str> {
        self.by_key.keys().copied()
    }

    /// Whether instance types or offerings have this label.
    pub fn defines(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// The values there are.
    pub fn of(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.by_key.get(key).into_iter().flat_map(|label| label.values.iter().copied())
    }

    /// What is wrong with one requirement by itself; nothing where the catalog does not know the label.
    pub fn faults(&self, key: &str, operator: Operator, values: &[String]) -> Vec<Fault> {
        let Some(label) = self.by_key.get(key) else { return Vec::new() };
        match operator {
            Operator::In => self.unknown_values(key, label, values),
            Operator::NotIn => self.slips(key, label, values),
            Operator::Exists => Vec::new(),
            Operator::DoesNotExist => {
                let message = format!("every instance type has the label {key}");
                let fault = Fault { value: None, message, hint: None, near: Vec::new(), matches_nothing: true };
                if label.types > 0 && label.types_without == 0 { vec![fault] } else { Vec::new() }
            }
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => {
                bound_fault(key, label, operator, values).into_iter().collect()
            }
        }
    }

    fn unknown_values(&self, key: &str, label: &Label<'a>, values: &[String]) -> Vec<Fault> {
        let unknown = values.iter().enumerate().filter(|(_, value)| !label.values.contains(value.as_str()));
        let unknown: Vec<(usize, &String)> = unknown.collect();
        let matches_nothing = unknown.len() == values.len();
        let fault = |(index, value): (usize, &String)| {
            let (message, hint, near) = self.explain(key, label, value);
            Fault { value: Some(index), message, hint, near, matches_nothing }
        };
        let more = unknown.len().saturating_sub(EXPLAINED_MAX);
        let mut faults: Vec<Fault> = unknown.into_iter().take(EXPLAINED_MAX).map(fault).collect();
        if let Some(last) = faults.last_mut().filter(|_| more > 0) {
            last.message.push_str(&format!(", nor the {more} after it that it has not either"));
        }
        faults
    }

    /// To leave out what does not exist is no mistake, unless something that does was meant.
    fn slips(&self, key: &str, label: &Label<'a>, values: &[String]) -> Vec<Fault> {
        let is_number = |text: &str| text.parse::<i64>().is_ok();
        let unknown = values.iter().enumerate().filter(|(_, value)| !label.values.contains(value.as_str()));
        let faults = unknown.filter(|(_, value)| !is_number(value)).take(EXPLAINED_MAX).filter_map(|(index, value)| {
            let (message, hint, near) = self.explain(key, label, value);
            let fault = Fault { value: Some(index), message, hint, near, matches_nothing: false };
            (!fault.near.is_empty() && !is_newer(key, value)).then_some(fault)
        });
        faults.collect()
    }

    /// What is said of a value that nothing has: message, hint, what is near.
    fn explain(&self, key: &str, label: &Label<'a>, value: &str) -> (String, Option<Hint>, Vec<String>) {
        if key == keys::INSTANCE_TYPE {
            return self.explain_type(label, value);
        }
        if let Some(message) = self.of_another_place(key, value) {
            return (message, None, Vec::new());
        }
        let name = short(key);
        let message = format!("no instance type of the catalog has the {name} `{value}`");
        let numbers = &label.numbers;
        if numbers.len() == label.values.len() && !numbers.is_empty() {
            let Ok(number) = value.parse::<i64>() else {
                let hint = in_unit(key, value).unwrap_or_else(|| "the values are whole numbers".to_owned());
                return (message, Some(hint.into()), Vec::new());
            };
            let below = numbers.iter().filter(|other| **other < number).max();
            let above = numbers.iter().filter(|other| **other > number).min();
            let near: Vec<String> = below.into_iter().chain(above).map(i64::to_string).collect();
            let hint = unit_hint(key, number, numbers, |scaled| numbers.contains(&scaled));
            let verb = if near.len() == 1 { "is" } else { "are" };
            let hint = hint.unwrap_or_else(|| format!("near {verb} {}", near.join(" and ")));
            return (message, Some(hint.into()), near);
        }
        let synonym = SYNONYMS.iter().find(|(other, _)| *other == value).map(|(_, meant)| *meant);
        let synonym = synonym.filter(|meant| label.values.contains(meant));
        let nearest = match key {
            keys::INSTANCE_FAMILY => nearest_family(value, label.values.iter().copied()),
            _ => nearest(value, label.values.iter().copied()),
        };
        match synonym.or(nearest) {
            Some(near) if is_newer(key, value) => (message, Some(meant_or_newer(near)), vec![near.to_owned()]),
            Some(near) => {
                let question = match synonym {
                    Some(_) => Hint::question(&[near]),
                    None => ask(value, near, label.values.iter().copied()),
                };
                (message, Some(question), vec![near.to_owned()])
            }
            None if label.values.len() <= LISTED_MAX => {
                let there_are: Vec<&str> = label.values.iter().copied().filter(|value| !value.is_empty()).collect();
                let hint = (!there_are.is_empty()).then(|| format!("there are {}", there_are.join(", ")).into());
                (message, hint, Vec::new())
            }
            None => (message, is_newer(key, value).then(newer), Vec::new()),
        }
    }

    /// Of a zone that is in another region, or is a local one.
    fn of_another_place(&self, key: &str, value: &str) -> Option<String> {
        if !matches!(key, keys::ZONE | keys::ZONE_ID) {
            return None;
        }
        match regions::of_zone(value)? {
            region if region != self.region => Some(format!("the zone {value} is in {region}, not in {}", self.region)),
            region if regions::is_local(value) => {
                Some(format!("{value} is a local zone of {region}: the catalog does not say what is sold there"))
            }
            _ => None,
        }
    }

    /// A type: of a family that is known, or not.
    fn explain_type(&self, label: &Label<'a>, value: &str) -> (String, Option<Hint>, Vec<String>) {
        let message = format!("the catalog has no instance type `{value}`");
        let Some((family, size)) = value.split_once('.') else {
            let in_family = label.values.iter().find(|name| name.split_once('.').is_some_and(|(of, _)| of == value));
            let hint = match in_family {
                Some(example) => {
                    Some(format!("`{value}` is a family: its types are called such as `{example}`").into())
                }
                None => did_you_mean(value, label.values.iter().copied()),
            };
            return (message, hint, Vec::new());
        };
        let of_family = |name: &&&str| name.split_once('.').is_some_and(|(of, _)| of == family);
        let mut sizes: Vec<&str> = label.values.iter().filter(of_family).copied().collect();
        if sizes.is_empty() {
            let message = format!("the catalog has no instance type `{value}`, nor any other of the family {family}");
            let families = self.of(keys::INSTANCE_FAMILY);
            let meant = nearest_family(family, families).map(|family| format!("{family}.{size}"));
            return match meant.filter(|meant| label.values.contains(meant.as_str())) {
                Some(meant) if is_newer(keys::INSTANCE_FAMILY, family) => {
                    (message, Some(meant_or_newer(&meant)), vec![meant])
                }
                Some(meant) => (message, Some(ask(value, &meant, label.values.iter().copied())), vec![meant]),
                None => (message, Some(newer()), Vec::new()),
            };
        }
        // A size that other families have is no slip of the fingers.
        let known_size = self.of(keys::INSTANCE_SIZE).any(|other| other == size);
        let slip = nearest(value, sizes.iter().copied()).filter(|_| !known_size);
        if let Some(near) = slip {
            return (message, Some(ask(value, near, sizes.iter().copied())), vec![near.to_owned()]);
        }
        sizes.sort_by_key(|name| (scale(name), *name));
        let near = closest_in_size(value, &sizes).map(str::to_owned);
        let sizes: Vec<&str> = sizes.iter().filter_map(|name| name.split_once('.')).map(|(_, size)| size).collect();
        (message, Some(format!("{family} has {}", sizes.join(", ")).into()), near.into_iter().collect())
    }
}

/// In their order.
fn numbers(values: &BTreeSet<&str>) -> Vec<i64> {
    let mut numbers: Vec<i64> = values.iter().filter_map(|value| value.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The question whether `near` was meant; where another is as near, whether one of both was.
fn ask<'c>(value: &str, near: &str, candidates: impl Iterator<Item = &'c str>) -> Hint {
    let both = did_you_mean(value, candidates).filter(|question| question.meant.len() > 1);
    both.unwrap_or_else(|| Hint::question(&[near]))
}

/// A family that goes on where this ends, such as p4d for p4; else one that is like it. Whoever writes p wants no c: the first letter says what
/// the types are for.
fn nearest_family<'f>(family: &str, families: impl Iterator<Item = &'f str>) -> Option<&'f str> {
    let of_letter = |other: &&str| other.chars().next() == family.chars().next();
    let alike: Vec<&str> = families.filter(of_letter).collect();
    let longer = alike.iter().filter(|other| other.len() > family.len() && other.starts_with(family));
    longer.min_by_key(|other| (other.len(), **other)).copied().or_else(|| nearest(family, alike.iter().copied()))
}

/// What the numbers of a label are counted in.
pub fn unit_of(key: &str) -> Option<&'static str> {
    UNITS.iter().find(|(of, ..)| *of == key).map(|(_, unit, ..)| *unit)
}

/// The last part of a label.
pub fn short(key: &str) -> &str {
    key.strip_prefix(AWS_PREFIX).unwrap_or_else(|| key.rsplit('/').next().unwrap_or(key))
}

fn newer() -> Hint {
    "the catalog may be older than it: then no plan chooses it".into()
}

/// It names nothing as meant: nobody should write what is near over the name of a new family.
fn meant_or_newer(near: &str) -> Hint {
    let text = format!("{} Else {}", Hint::question(&[near]), newer());
    Hint { text, asks: true, meant: Vec::new() }
}

/// Whether a family looks like the next generation of one, rather than like a slip: `m9g`.
fn is_newer(key: &str, value: &str) -> bool {
    let letters = value.bytes().take_while(u8::is_ascii_lowercase).count();
    let digits = value.bytes().skip(letters).take_while(u8::is_ascii_digit).count();
    let rest = value.bytes().skip(letters + digits);
    let is_rest = rest.clone().count() <= 4 && rest.clone().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    key == keys::INSTANCE_FAMILY && (1..=4).contains(&letters) && (1..=2).contains(&digits) && is_rest
}

/// How large a size is, in `xlarge` times 100; sizes of metal come last.
fn scale(name: &str) -> u32 {
    let size = name.split_once('.').map_or(name, |(_, size)| size);
    match size {
        "nano" => 3,
        "micro" => 6,
        "small" => 12,
        "medium" => 25,
        "large" => 50,
        "xlarge" => 100,
        _ => {
            let times = size.strip_suffix("xlarge").and_then(|times| times.parse::<u32>().ok());
            times.map_or(u32::MAX, |times| times.saturating_mul(100))
        }
    }
}

fn closest_in_size<'n>(value: &str, sizes: &[&'n str]) -> Option<&'n str> {
    sizes.iter().copied().min_by_key(|name| (scale(name).abs_diff(scale(value)), *name))
}

/// A text with a unit, such as `16Gi`, as the number that the label would have.
fn in_unit(key: &str, value: &str) -> Option<String> {
    let (_, unit, _, factor) = UNITS.iter().find(|(of, ..)| *of == key)?;
    let text = value.trim().trim_end_matches("bps").trim_end_matches(['B', 'b']).trim();
    let quantity: Quantity = text.parse().ok()?;
    let million = if *factor == 1024 { 1 << 20 } else { 1_000_000 };
    let number = quantity.units().checked_div(million).filter(|number| *number > 0)?;
    Some(format!("the values are whole numbers of {unit}: {value} is {number}"))
}

/// Where a number makes sense only in the larger unit: how to say it in the label's own. `numbers` ascend.
fn unit_hint(key: &str, number: i64, numbers: &[i64], makes_sense: impl Fn(i64) -> bool) -> Option<String> {
    let (_, unit, larger, factor) = UNITS.iter().find(|(of, ..)| *of == key)?;
    let scaled = number.checked_mul(*factor)?;
    let largest = numbers.last()?;
    let is_small = number.checked_mul(2).is_some_and(|double| double <= scaled) && number > 0 && scaled <= *largest;
    if is_small && makes_sense(scaled) {
        return Some(format!("the unit is {unit}: {number} {larger} is {scaled}"));
    }
    // Bytes, or bits, where the unit is a million of them.
    let million = if *factor == 1024 { 1 << 20 } else { 1_000_000 };
    let smaller = number / million;
    let is_large = number % million == 0 && smaller > 0 && smaller <= *largest && number > *largest;
    is_large.then(|| format!("the unit is {unit}: write {smaller}"))
}

/// A bound that leaves nothing; or, where the unit was probably taken for another, one that leaves everything.
fn bound_fault(key: &str, label: &Label<'_>, operator: Operator, values: &[String]) -> Option<Fault> {
    let [value] = values else { return None };
    let bound: i64 = value.parse().ok()?;
    let name = short(key);
    let (smallest, largest) = match label.numbers.as_slice() {
        [smallest, .., largest] => (*smallest, *largest),
        [only] => (*only, *only),
        _ => {
            let message = format!("{name} is no number, so nothing is {} {value}", words(operator));
            return Some(Fault { value: None, message, hint: None, near: Vec::new(), matches_nothing: true });
        }
    };
    let unit = UNITS.iter().find(|(of, ..)| *of == key).map_or(String::new(), |(_, unit, ..)| format!(" {unit}"));
    let requirement = Requirement::new(operator, [value.as_str()]);
    let upwards = matches!(operator, Operator::Gt | Operator::Gte);
    let (extreme, superlative) = if upwards { (largest, "largest") } else { (smallest, "smallest") };
    // At zero there is nothing to be had either way: `Gt 0` asks whether there is any.
    let scaled_makes_sense = |scaled: i64| scaled >= smallest && scaled <= largest;
    let unit_says = || unit_hint(key, bound, &label.numbers, scaled_makes_sense);
    let is_allowed = |number: i64| requirement.allows(&number.to_string());
    // Where a bound leaves out the number that is furthest on its side, it leaves out all.
    if !is_allowed(extreme) {
        let message = format!("no instance type of the catalog has {name} {} {value}", words(operator));
        let extreme_says = format!("the {superlative} there is has {extreme}{unit}");
        let hint = unit_says().map_or(extreme_says.clone(), |unit_says| format!("{extreme_says}; {unit_says}"));
        let near = vec![extreme.to_string()];
        return Some(Fault { value: Some(0), message, hint: Some(hint.into()), near, matches_nothing: true });
    }
    if upwards && bound < smallest && is_allowed(smallest) {
        let message = format!("{name} {} {value} leaves out no instance type of the catalog", words(operator));
        let hint = format!("the smallest there is has {smallest}{unit}; {}", unit_says()?);
        return Some(Fault {
            value: Some(0),
            message,
            hint: Some(hint.into()),
            near: Vec::new(),
            matches_nothing: false,
        });
    }
    None
}

fn words(operator: Operator) -> &'static str {
    match operator {
        Operator::Gt => "above",
        Operator::Gte => "of at least",
        Operator::Lt => "below",
        Operator::Lte => "of at most",
        Operator::In | Operator::NotIn | Operator::Exists | Operator::DoesNotExist => "of",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn said(key: &str, operator: Operator, values: &[&str]) -> Vec<String> {
        let catalog = Catalog::built_in_anywhere().unwrap();
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let faults = Values::new(&catalog.instance_types, &catalog.region).faults(key, operator, &values);
        faults.into_iter().map(|fault| format!("{} ({})", fault.message, fault.hint.unwrap_or_default())).collect()
    }

    #[test]
    fn what_there_is_is_no_fault() {
        for (key, operator, values) in [
            (keys::INSTANCE_TYPE, Operator::In, &["m5.large", "u7i-12tb.224xlarge"] as &[&str]),
            (keys::INSTANCE_FAMILY, Operator::NotIn, &["m99g", "t1"]),
            (keys::INSTANCE_CPU, Operator::NotIn, &["3"]),
            (keys::INSTANCE_MEMORY, Operator::Gt, &["2047"]),
            (labels::GPU_COUNT, Operator::Gt, &["0"]),
            (labels::GPU_COUNT, Operator::DoesNotExist, &[]),
            (labels::HYPERVISOR, Operator::In, &["nitro", ""]),
            ("example.com/team", Operator::In, &["blue"]),
        ] {
            assert_eq!(said(key, operator, values), Vec::<String>::new(), "{key} {operator:?} {values:?}");
        }
    }

    #[test]
    fn units_are_told_in_the_number_that_was_meant() {
        let said = |key, operator, value| said(key, operator, &[value]).join("; ");
        for (operator, value, hint) in [
            (Operator::Lt, "64", "the smallest there is has 512 MiB; the unit is MiB: 64 GiB is 65536"),
            (Operator::Gt, "16", "the smallest there is has 512 MiB; the unit is MiB: 16 GiB is 16384"),
            (Operator::In, "8", "the unit is MiB: 8 GiB is 8192"),
            (Operator::In, "8Gi", "the values are whole numbers of MiB: 8Gi is 8192"),
            (Operator::In, "8589934592", "the unit is MiB: write 8192"),
        ] {
            let all = said(keys::INSTANCE_MEMORY, operator, value);
            assert!(all.contains(&format!("({hint})")), "{all}");
        }
        let bandwidth = said(labels::NETWORK_BANDWIDTH, Operator::Lt, "25");
        assert!(bandwidth.contains("the unit is Mbps: 25 Gbps is 25000"), "{bandwidth}");
    }

    #[test]
    fn a_hint_says_whether_it_asks_what_was_meant() {
        let catalog = Catalog::built_in_anywhere().unwrap();
        let hint = |key: &str, value: &str| {
            let values = Values::new(&catalog.instance_types, &catalog.region);
            let fault = values.faults(key, Operator::In, &[value.to_owned()]).into_iter().next().unwrap();
            fault.hint.map(|hint| (hint.asks, hint.only_meant().map(str::to_owned), hint.text))
        };
        let slip = hint(keys::ARCHITECTURE, "x86_64").unwrap();
        assert_eq!((slip.0, slip.1.as_deref()), (true, Some("amd64")), "{}", slip.2);
        let newer = hint(keys::INSTANCE_FAMILY, "m6ii").unwrap();
        assert_eq!((newer.0, newer.1.as_deref()), (true, None), "{}", newer.2);
        let number = hint(keys::INSTANCE_CPU, "3").unwrap();
        assert_eq!((number.0, number.1), (false, None), "{}", number.2);
    }

    #[test]
    fn long_lists_and_odd_values_have_an_end() {
        let long = "x".repeat(1 << 20);
        let mut values: Vec<String> = (0..10_000).map(|number| format!("m5.{number}xlrge")).collect();
        values.push(long);
        values.push("é.".to_owned());
        let catalog = Catalog::built_in_anywhere().unwrap();
        let of_catalog = Values::new(&catalog.instance_types, &catalog.region);
        let faults = of_catalog.faults(keys::INSTANCE_TYPE, Operator::In, &values);
        assert_eq!(faults.len(), EXPLAINED_MAX);
        assert!(faults[EXPLAINED_MAX - 1].message.contains("nor the 9902 after it"));
        assert!(of_catalog.faults(keys::ZONE, Operator::In, &values).len() <= EXPLAINED_MAX);
        let bounds = ["9223372036854775807", "-9223372036854775808", "1.5", ""];
        for bound in bounds {
            of_catalog.faults(keys::INSTANCE_MEMORY, Operator::Gt, &[bound.to_owned()]);
            of_catalog.faults(keys::INSTANCE_MEMORY, Operator::In, &[bound.to_owned()]);
        }
    }
}
