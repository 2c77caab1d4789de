//! What launches are tried on: an account, a class, and virtual time.

use cutlist::adapters::aws::resolution::cluster::Identity;
use cutlist::api::ec2_node_class::EC2NodeClass;
use jiff::Timestamp;
use serde_json::json;

use super::account::{Account, Things};

/// An account with one class of everything, in two zones.
pub fn account() -> Account {
    let image = json!({ "id": "ami-1", "name": "one", "architecture": "x86_64", "createdAt": "2026-08-01T00:00:00Z" });
    let instance_type = |name: &str, memory: u64| {
        json!({ "name": name, "vcpus": 2, "memoryMebibytes": memory, "architectures": ["x86_64"],
            "usageClasses": ["on-demand", "spot"], "network": { "interfacesPerCard": [3], "ipv4AddressesPerInterface": 10 } })
    };
    let zones = ["us-east-1a", "us-east-1b"];
    let names = ["m5.large", "m6i.large", "c5.large"];
    let things = json!({
        "cluster": { "endpoint": "https://demo", "certificateAuthority": "Y2E=", "version": "1.34", "serviceIpv4Cidr": "172.20.0.0/16" },
        "subnets": [{ "id": "subnet-a", "zone": "us-east-1a", "freeAddresses": 5_000, "tags": { "team": "x" } },
            { "id": "subnet-b", "zone": "us-east-1b", "freeAddresses": 5_000, "tags": { "team": "x" } }],
        "securityGroups": [{ "id": "sg-1", "name": "nodes", "tags": { "team": "x" } }],
        "images": [{ "owner": "self", "image": image }],
        "zones": [{ "name": "us-east-1a", "id": "use1-az2", "isOrdinary": true }, { "name": "us-east-1b", "id": "use1-az4", "isOrdinary": true }],
        "instanceTypes": [instance_type(names[0], 8_192), instance_type(names[1], 8_192), instance_type(names[2], 4_096)],
        "offerings": { "m5.large": zones, "m6i.large": zones, "c5.large": zones },
        "products": (names.map(|name| json!({ "product": { "attributes": { "instanceType": name } }, "terms": { "OnDemand": { "t": {
            "priceDimensions": { "d": { "unit": "Hrs", "pricePerUnit": { "USD": "0.1" } } } } } } }))),
        "spotPrices": [["m5.large", "us-east-1a", 0.03], ["m6i.large", "us-east-1a", 0.04], ["c5.large", "us-east-1a", 0.05]],
    });
    Account::new(serde_json::from_value::<Things>(things).unwrap())
}

pub fn class() -> EC2NodeClass {
    let value = json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default", "generation": 1 },
        "spec": { "role": "nodes", "amiFamily": "AL2023", "amiSelectorTerms": [{ "id": "ami-1" }],
            "subnetSelectorTerms": [{ "tags": { "team": "x" } }], "securityGroupSelectorTerms": [{ "tags": { "team": "x" } }] } });
    serde_json::from_value(value).unwrap()
}

/// In virtual time.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test)
}

/// When the cases begin.
pub fn at(second: i64) -> Timestamp {
    let begin: Timestamp = "2026-09-01T12:00:00Z".parse().unwrap();
    begin + jiff::SignedDuration::from_secs(second)
}

pub fn identity() -> Identity {
    Identity {
        cluster: "demo".to_owned(),
        region: "us-east-1".to_owned(),
        installation: "one".to_owned(),
        kubernetes_version: None,
    }
}
