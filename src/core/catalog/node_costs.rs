//! What a node costs beside its instance, as its EC2NodeClass says: volumes, a public address, detailed monitoring.
//!
//! The prices are those of one region (`data/node-costs.tsv`). Not counted: snapshots, the volumes of an image whose class names none,
//! a volume whose size only its snapshot says, and what pods have attached.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::sync::OnceLock;

use crate::model::{HourlyPrice, Quantity};
use cutlist_api::ec2_node_class::{BlockDevice, EC2NodeClassSpec};

use super::arithmetic::GIBIBYTE;
use super::node_class::default_volumes;
use super::tables::rows;

const TABLE: &str = include_str!("data/node-costs.tsv");

const HOURS_PER_MONTH: i128 = 730;

/// What an instance with detailed monitoring reports to CloudWatch, as its price page counts.
const METRICS_OF_AN_INSTANCE: i64 = 7;

/// Of a mapping that names no type. Source: EC2, `EbsBlockDevice`.
const TYPE_IF_NONE_IS_NAMED: &str = "gp2";

const PER_GIBIBYTE: &str = "GiB-month";
const PER_OPERATION: &str = "IOPS-month";
const PER_THROUGHPUT: &str = "MiB/s-month";

/// US dollars per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCosts {
    pub volumes: HourlyPrice,
    /// Public IPv4 addresses.
    pub addresses: HourlyPrice,
    /// Detailed monitoring.
    pub monitoring: HourlyPrice,
}

impl NodeCosts {
    /// Of one node of this class. What the class says and nobody can read counts as nothing.
    pub fn of_class(class: &EC2NodeClassSpec) -> Self {
        let per_month = |what, unit, amount| Rate::of(what, unit).nanodollars(amount);
        let has_address = class.associate_public_ip_address == Some(true);
        let is_monitored = class.detailed_monitoring == Some(true);
        let metrics = if is_monitored { METRICS_OF_AN_INSTANCE } else { 0 };
        Self {
            volumes: per_hour(volumes_per_month(class)),
            addresses: price(per_month("public-ipv4", "hour", i64::from(has_address))),
            monitoring: per_hour(per_month("detailed-monitoring", "metric-month", metrics)),
        }
    }

    pub fn total(&self) -> HourlyPrice {
        self.volumes + self.addresses + self.monitoring
    }
}

impl Add for NodeCosts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            volumes: self.volumes + other.volumes,
            addresses: self.addresses + other.addresses,
            monitoring: self.monitoring + other.monitoring,
        }
    }
}

impl AddAssign for NodeCosts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for NodeCosts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// What so much of something costs.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    nanodollars_each: i64,
    free: i64,
}

impl Rate {
    /// Nothing where the table has no such row.
    fn of(what: &str, unit: &str) -> Self {
        static RATES: OnceLock<BTreeMap<(&str, &str), Rate>> = OnceLock::new();
        let rates = RATES.get_or_init(|| rows(TABLE).filter_map(|row| parse(&row)).collect());
        rates.get(&(what, unit)).copied().unwrap_or_default()
    }

    fn nanodollars(self, amount: i64) -> i128 {
        i128::from(self.nanodollars_each) * i128::from(amount.saturating_sub(self.free).max(0))
    }
}

fn parse<'t>(row: &[&'t str]) -> Option<((&'t str, &'t str), Rate)> {
    let [what, unit, dollars, free] = row else { return None };
    let each = HourlyPrice::from_dollars(dollars.parse().ok()?)?;
    Some(((*what, *unit), Rate { nanodollars_each: each.nanodollars(), free: free.parse().ok()? }))
}

/// Those of the class, else those of its image family.
fn volumes_per_month(class: &EC2NodeClassSpec) -> i128 {
    let gp3 = |gibibytes: i64| Rate::of("gp3", PER_GIBIBYTE).nanodollars(gibibytes);
    if class.block_device_mappings.is_empty() {
        let volumes = default_volumes(class.resolved_ami_family()).iter();
        return volumes.map(|(_, gibibytes)| gp3(i64::from(*gibibytes))).sum();
    }
    class.block_device_mappings.iter().filter_map(|mapping| mapping.ebs.as_ref()).map(volume_per_month).sum()
}

fn volume_per_month(volume: &BlockDevice) -> i128 {
    let kind = volume.volume_type.as_deref().unwrap_or(TYPE_IF_NONE_IS_NAMED);
    let cost = |unit: &str, amount: i64| Rate::of(kind, unit).nanodollars(amount);
    cost(PER_GIBIBYTE, gibibytes(volume))
        + cost(PER_OPERATION, volume.iops.unwrap_or(0))
        + cost(PER_THROUGHPUT, volume.throughput.unwrap_or(0))
}

/// Half a GiB is one, as EC2 counts.
fn gibibytes(volume: &BlockDevice) -> i64 {
    let size = volume.volume_size.as_ref().and_then(|size| size.text().parse::<Quantity>().ok());
    size.map_or(0, |size| {
        let bytes = size.units().max(0);
        bytes / GIBIBYTE + i64::from(bytes % GIBIBYTE > 0)
    })
}

fn per_hour(nanodollars_per_month: i128) -> HourlyPrice {
    price((nanodollars_per_month + HOURS_PER_MONTH / 2) / HOURS_PER_MONTH)
}

fn price(nanodollars: i128) -> HourlyPrice {
    HourlyPrice::from_nanodollars(i64::try_from(nanodollars).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(alias: &str, spec: Value) -> NodeCosts {
        let mut class = json!({ "subnetSelectorTerms": [], "securityGroupSelectorTerms": [],
            "amiSelectorTerms": [{ "alias": alias }] });
        class.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        NodeCosts::of_class(&serde_json::from_value(class).unwrap())
    }

    /// Dollars per month of the volumes.
    fn volumes(alias: &str, mappings: Value) -> f64 {
        of(alias, json!({ "blockDeviceMappings": mappings })).volumes.dollars_per_month()
    }

    fn is(dollars: f64, expected: f64) -> bool {
        (dollars - expected).abs() < 1e-6
    }

    #[test]
    fn every_row_of_the_table_is_read() {
        let rates: Vec<_> = rows(TABLE).filter_map(|row| parse(&row)).collect();
        assert_eq!(rates.len(), rows(TABLE).count(), "a row is malformed");
        let named: std::collections::BTreeSet<_> = rates.iter().map(|(of, _)| of).collect();
        assert_eq!(named.len(), rates.len(), "a row is there twice");
        assert!(rates.iter().all(|(_, rate)| rate.nanodollars_each > 0));
        let date = TABLE.lines().find_map(|line| line.strip_prefix("# date: ")).unwrap();
        assert!(date.parse::<jiff::civil::Date>().is_ok() && TABLE.lines().next().unwrap().contains(date));
    }

    #[test]
    fn a_class_that_names_no_volumes_has_those_of_its_family() {
        for (alias, gibibytes) in
            [("al2@latest", 20.0), ("al2023@latest", 20.0), ("bottlerocket@latest", 24.0), ("windows2022@latest", 50.0)]
        {
            let costs = of(alias, json!({}));
            assert!(is(costs.volumes.dollars_per_month(), 0.08 * gibibytes), "{alias}: {costs:?}");
            assert_eq!((costs.addresses, costs.monitoring), (HourlyPrice::ZERO, HourlyPrice::ZERO));
            assert_eq!(costs.total(), costs.volumes);
        }
        let custom = json!({ "amiFamily": "Custom", "amiSelectorTerms": [{ "id": "ami-1" }] });
        assert_eq!(of("", custom), NodeCosts::default(), "only the image knows");
    }

    #[test]
    fn volumes_cost_by_their_type_size_and_speed() {
        let volume = |ebs: Value| volumes("al2023@latest", json!([{ "deviceName": "/dev/xvda", "ebs": ebs }]));
        for (ebs, dollars) in [
            (json!({ "volumeType": "gp3", "volumeSize": "100Gi" }), 8.0),
            (json!({ "volumeType": "gp3", "volumeSize": "100Gi", "iops": 3000, "throughput": 125 }), 8.0),
            (json!({ "volumeType": "gp3", "volumeSize": "100Gi", "iops": 5000, "throughput": 250 }), 8.0 + 10.0 + 5.0),
            (json!({ "volumeType": "gp2", "volumeSize": "1Ti" }), 102.4),
            (json!({ "volumeSize": "10Gi" }), 1.0),
            (json!({ "volumeType": "io1", "volumeSize": "10Gi", "iops": 100 }), 1.25 + 6.5),
            (json!({ "volumeType": "io2", "volumeSize": "10Gi", "iops": 100 }), 1.25 + 6.5),
            (json!({ "volumeType": "st1", "volumeSize": "500Gi" }), 22.5),
            (json!({ "volumeType": "sc1", "volumeSize": "500Gi" }), 7.5),
            (json!({ "volumeType": "standard", "volumeSize": "1.5Gi" }), 0.1),
            (json!({ "volumeType": "gp3", "volumeSize": "many" }), 0.0),
            (json!({ "volumeType": "gp3", "snapshotID": "snap-1" }), 0.0),
        ] {
            assert!(is(volume(ebs.clone()), dollars), "{ebs}: {}", volume(ebs.clone()));
        }
        let two = json!([{ "ebs": { "volumeType": "gp3", "volumeSize": "20Gi" } },
            { "ebs": { "volumeType": "gp3", "volumeSize": "80Gi" } }, { "deviceName": "/dev/xvdz" }]);
        assert!(is(volumes("bottlerocket@latest", two), 8.0), "and none of the family");
    }

    #[test]
    fn an_address_and_monitoring_cost_where_the_class_asks_for_them() {
        let costs = of("al2023@latest", json!({ "associatePublicIPAddress": true, "detailedMonitoring": true }));
        assert_eq!(costs.addresses, HourlyPrice::from_dollars(0.005).unwrap());
        assert!(is(costs.monitoring.dollars_per_month(), 2.1), "{costs:?}");
        let neither = of("al2023@latest", json!({ "associatePublicIPAddress": false, "detailedMonitoring": false }));
        assert_eq!(neither, of("al2023@latest", json!({})));
    }
}
