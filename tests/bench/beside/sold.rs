//! What Karpenter's kwok provider sells here, in its own form and in that of a catalog.
//!
//! As it comes, every zone has the same price, and so has arm64, and the provider takes one of the cheapest by chance, which nobody can
//! foresee. So zones differ by a hundredth here, and arm64 costs a tenth less.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

const ZONE: &str = "topology.kubernetes.io/zone";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// The two files.
pub struct Sold {
    pub types: PathBuf,
    pub catalog: PathBuf,
}

impl Sold {
    /// Reads the types that come with the provider, and writes both files into the folder.
    pub fn write(come_with_it: &Path, folder: &Path) -> Self {
        let mut types: Value = serde_json::from_slice(&std::fs::read(come_with_it).unwrap()).unwrap();
        types.as_array_mut().unwrap().iter_mut().for_each(price_apart);
        let entries: Vec<Value> = types.as_array().unwrap().iter().map(entry).collect();
        let catalog = json!({
            "version": 1, "region": "test", "date": "2026-11-28",
            "nodeClass": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass" },
            "instanceTypes": entries,
        });
        std::fs::create_dir_all(folder).unwrap();
        let sold = Self { types: folder.join("instance-types.json"), catalog: folder.join("catalog.json") };
        std::fs::write(&sold.types, types.to_string()).unwrap();
        std::fs::write(&sold.catalog, catalog.to_string()).unwrap();
        sold
    }
}

fn price_apart(instance_type: &mut Value) {
    let of_architecture = if instance_type["architecture"] == "arm64" { 0.9 } else { 1.0 };
    for offering in instance_type["offerings"].as_array_mut().unwrap() {
        let zone = value(offering, ZONE);
        let of_zone = 1.0 + 0.01 * f64::from(zone.bytes().last().unwrap() - b'a');
        let price = offering["Price"].as_f64().unwrap() * of_zone * of_architecture;
        offering["Price"] = json!((price * 1e6).round() / 1e6);
    }
}

fn value(offering: &Value, key: &str) -> String {
    let mut requirements = offering["Requirements"].as_array().unwrap().iter();
    let requirement = requirements.find(|it| it["key"] == key).unwrap();
    requirement["values"][0].as_str().unwrap().to_owned()
}

/// As the provider makes a type of it: `newInstanceType` in `kwok/cloudprovider/helpers.go`.
fn entry(instance_type: &Value) -> Value {
    let name = instance_type["name"].as_str().unwrap();
    let resources = &instance_type["resources"];
    let offerings = instance_type["offerings"].as_array().unwrap();
    let distinct = |key: &str| {
        let mut values: Vec<String> = offerings.iter().map(|offering| value(offering, key)).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let sold: Vec<Value> = offerings
        .iter()
        .map(|offering| {
            json!({ "zone": value(offering, ZONE), "capacityType": value(offering, CAPACITY_TYPE), "price": offering["Price"] })
        })
        .collect();
    json!({
        "name": name,
        "requirements": {
            "node.kubernetes.io/instance-type": [name],
            "kubernetes.io/arch": [instance_type["architecture"]],
            "kubernetes.io/os": instance_type["operatingSystems"],
            ZONE: distinct(ZONE),
            CAPACITY_TYPE: distinct(CAPACITY_TYPE),
            "karpenter.kwok.sh/instance-family": [name.split('-').next()],
            "karpenter.kwok.sh/instance-size": [resources["cpu"]],
            "karpenter.kwok.sh/instance-cpu": [resources["cpu"]],
            "karpenter.kwok.sh/instance-memory": [resources["memory"]],
        },
        "capacity": resources,
        "overhead": { "cpu": "100m", "memory": "10Mi" },
        "offerings": sold,
    })
}
