//! What labels and their values may be, from the catalog in this program.

use super::place::EditPlace;
use crate::api::keys;
use crate::api::node_pool::{NodeSelectorRequirement, Operator};
use crate::core::catalog::labels::AWS_PREFIX;
use crate::core::catalog::matching::Entry;
use crate::core::catalog::regions::{self, Locality};
use crate::core::catalog::values::unit_of;
use crate::core::model::requirements::{AWS_LABELS, normalized};
use crate::definitions::rules::types_left::MATCHING;

/// Labels that the domains of Kubernetes and Karpenter have for nodes.
const OF_NODES: [&str; 8] = [
    keys::INSTANCE_TYPE,
    keys::CAPACITY_TYPE,
    keys::ARCHITECTURE,
    keys::OPERATING_SYSTEM,
    keys::ZONE,
    keys::ZONE_ID,
    keys::REGION,
    keys::WINDOWS_BUILD,
];

/// Of which operating system nodes are, their class decides; the catalog has those of Linux.
const OPERATING_SYSTEMS: [&str; 2] = ["linux", "windows"];

/// The labels that a requirement may be about, those of Kubernetes first.
pub fn labels() -> Vec<String> {
    let of_aws = AWS_LABELS.iter().map(|name| format!("{AWS_PREFIX}{name}"));
    OF_NODES.iter().map(|key| (*key).to_owned()).chain(of_aws).collect()
}

/// The values of a label, in an order for people; places are those of the region.
pub fn of_label(key: &str, region: &str) -> Vec<&'static str> {
    let of_auto_mode = key.strip_prefix(keys::AUTO_MODE_PREFIX).map(|name| format!("{AWS_PREFIX}{name}"));
    let key = of_auto_mode.as_deref().unwrap_or_else(|| normalized(key));
    let mut values: Vec<&str> = match key {
        keys::ZONE => regions::names(Locality::Zone, region),
        keys::ZONE_ID => regions::names(Locality::ZoneId, region),
        keys::REGION => regions::names(Locality::Region, region),
        keys::OPERATING_SYSTEM => OPERATING_SYSTEMS.to_vec(),
        keys::CAPACITY_TYPE => vec![keys::ON_DEMAND, keys::SPOT, keys::RESERVED],
        _ => MATCHING.as_ref().map(|matching| matching.values.of(key).collect()).unwrap_or_default(),
    };
    values.retain(|value| !value.is_empty());
    if values.iter().all(|value| value.parse::<u64>().is_ok()) {
        values.sort_by_key(|value| value.parse::<u64>().unwrap_or_default());
    }
    values
}

/// What a requirement's key, or one of its values, means for instance types; `None` for other places and for labels that types do not have.
pub fn meaning(place: &EditPlace, region: &str) -> Option<String> {
    match place.path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., "requirements", _, "key"] => of_key(normalized(&place.word), region),
        [.., "requirements", _, "values", _] => of_value(place.around(1)?.get("key")?, &place.word),
        _ => None,
    }
}

fn of_key(key: &str, region: &str) -> Option<String> {
    /// The rest is counted.
    const NAMED_MAX: usize = 8;
    let values = of_label(key, region);
    let named = values.get(..NAMED_MAX.min(values.len())).filter(|named| !named.is_empty())?;
    let unit = unit_of(key).map_or_else(String::new, |unit| format!(", in {unit}"));
    let rest = match values.len() - named.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    Some(format!("`{key}`{unit}: {}{rest}\n", named.join(", ")))
}

fn of_value(key: &str, value: &str) -> Option<String> {
    /// The rest is counted.
    const NAMED_MAX: usize = 3;
    let matching = MATCHING.as_ref()?;
    let requirement = NodeSelectorRequirement {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
        min_values: None,
    };
    let entries = [Entry::new(&requirement)];
    let relevant = matching.relevant(&entries);
    // A label that no type has leaves all of them.
    let types: Vec<&str> = matching.types(&relevant).iter().map(|it| it.name.as_str()).collect();
    let named = types.get(..NAMED_MAX.min(types.len())).filter(|named| !named.is_empty() && !relevant.is_empty())?;
    let unit = unit_of(normalized(key)).map_or_else(String::new, |unit| format!(" {unit}"));
    let count = types.len();
    let verb = if count == 1 { "instance type of the catalog has" } else { "instance types of the catalog have" };
    Some(format!("{count} {verb} `{value}`{unit}, such as {}\n", named.join(", ")))
}

/// The regions there are.
pub fn regions() -> Vec<&'static str> {
    regions::names(Locality::Region, regions::DEFAULT_REGION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_catalog() {
        assert!(of_label(keys::INSTANCE_TYPE, "us-east-1").contains(&"m7i.large"));
        assert!(of_label(keys::ZONE, "ap-northeast-2").contains(&"ap-northeast-2b"));
        assert_eq!(of_label(keys::ARCHITECTURE, "us-east-1"), ["amd64", "arm64"]);
        let generations = of_label(keys::INSTANCE_GENERATION, "us-east-1");
        assert!(generations.first() == Some(&"1") && generations.is_sorted_by_key(|it| it.parse::<u64>().unwrap()));
        assert!(of_label("eks.amazonaws.com/instance-family", "us-east-1").contains(&"c7i"));
        assert!(of_label("example.com/team", "us-east-1").is_empty());
        assert!(labels().contains(&keys::INSTANCE_FAMILY.to_owned()));
    }

    #[test]
    fn says_what_keys_and_values_mean() {
        let memory = of_key(keys::INSTANCE_MEMORY, "us-east-1").unwrap();
        assert!(
            memory.starts_with("`karpenter.k8s.aws/instance-memory`, in MiB: ") && memory.ends_with("more\n"),
            "{memory}"
        );
        assert_eq!(of_key(keys::ARCHITECTURE, "us-east-1").as_deref(), Some("`kubernetes.io/arch`: amd64, arm64\n"));
        assert_eq!(of_key("example.com/team", "us-east-1"), None);
        let types = of_value(keys::INSTANCE_MEMORY, "8192").unwrap();
        assert!(types.contains("instance types of the catalog have `8192` MiB, such as "), "{types}");
        assert_eq!(of_value(keys::INSTANCE_MEMORY, "8Gi"), None);
        assert_eq!(of_value("example.com/team", "web"), None);
    }
}
