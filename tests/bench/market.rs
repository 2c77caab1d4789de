//! What is for sale, in the exchange form of catalogs.

#![cfg(test)]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::random::Random;

const DATE: &str = "2026-07-06";
const REGION: &str = "us-east-1";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Market {
    /// The 400 types of the reference's own benchmark: `i` CPUs, twice as many GiB, ten times as many pods, one price in
    /// all zones (reference, section 9.4).
    Invented,
    /// The built-in catalog: what EC2 sells in us-east-1.
    BuiltIn,
    /// The same, with spot prices that differ: 35 to 65 % of on-demand, drawn for each type and zone.
    BuiltInWithSpotPrices,
}

impl Market {
    pub fn catalog(self, cutlist: &Path) -> Value {
        match self {
            Self::Invented => invented(),
            Self::BuiltIn => built_in(cutlist),
            Self::BuiltInWithSpotPrices => with_spot_prices(built_in(cutlist)),
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Invented => "400 types",
            Self::BuiltIn => "EC2",
            Self::BuiltInWithSpotPrices => "EC2, spot prices",
        }
    }
}

fn built_in(cutlist: &Path) -> Value {
    let output = Command::new(cutlist).args(["catalog", "--region", REGION, "-o", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn with_spot_prices(mut catalog: Value) -> Value {
    let mut random = Random::new(11);
    for instance_type in catalog["instanceTypes"].as_array_mut().unwrap() {
        let offerings = instance_type["offerings"].as_array_mut().unwrap();
        let on_demand = offerings.iter().find(|it| it["capacityType"] == "on-demand").map(|it| it["price"].clone());
        let Some(on_demand) = on_demand.and_then(|price| price.as_f64()) else { continue };
        for offering in offerings.iter_mut().filter(|it| it["capacityType"] == "spot") {
            let thousandths = 350 + i32::try_from(random.below(301)).unwrap();
            let price = on_demand * f64::from(thousandths) / 1000.0;
            offering["price"] = json!((price * 1e6).round() / 1e6);
        }
    }
    catalog
}

fn invented() -> Value {
    let offerings = |price: f64| {
        let zones = [("spot", 1), ("spot", 2), ("on-demand", 1), ("on-demand", 2), ("on-demand", 3)];
        zones.map(|(kind, zone)| json!({ "zone": format!("test-zone-{zone}"), "capacityType": kind, "price": price }))
    };
    let instance_type = |number: u32| {
        let cpus = number + 1;
        let gibibytes = 2 * cpus;
        let price = 0.1 * f64::from(cpus) + 0.1 * f64::from(gibibytes) * f64::from(1u32 << 30) / 1e9;
        let name = format!("fake-it-{number}");
        json!({
            "name": name,
            "requirements": {
                "node.kubernetes.io/instance-type": [name],
                "kubernetes.io/arch": ["amd64"],
                "kubernetes.io/os": ["darwin", "linux", "windows"],
                "topology.kubernetes.io/zone": ["test-zone-1", "test-zone-2", "test-zone-3"],
                "karpenter.sh/capacity-type": ["on-demand", "spot"],
            },
            "capacity": {
                "cpu": cpus.to_string(), "memory": format!("{gibibytes}Gi"), "pods": (10 * cpus).to_string(),
                "ephemeral-storage": "20Gi",
            },
            "overhead": { "cpu": "100m", "memory": "10Mi" },
            "offerings": offerings((price * 1e6).round() / 1e6),
        })
    };
    json!({
        "version": 1, "region": "test-region", "date": DATE,
        "instanceTypes": (0..400).map(instance_type).collect::<Vec<_>>(),
    })
}
