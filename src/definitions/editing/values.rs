//! What labels and their values may be, from the catalog in this program.

use crate::api::keys;
use crate::core::catalog::labels::AWS_PREFIX;
use crate::core::catalog::regions::{self, Locality};
use crate::core::model::requirements::{AWS_LABELS, normalized};
use crate::definitions::rules::requirements::MATCHING;

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
}
