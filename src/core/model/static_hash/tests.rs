//! The hashes in the two tables were printed by a Go program that is linked with Karpenter's own modules, v1.14.1.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use cutlist_api::ec2_node_class::EC2NodeClassSpec;
use cutlist_api::node_pool::{NodeClaimTemplate, NodePool, NodePoolSpec};

use super::{ec2_node_class_hash, node_pool_hash};

#[derive(Deserialize)]
struct PoolCase {
    hash: String,
    template: NodeClaimTemplate,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClassCase {
    hash: String,
    ca_bundle: Option<String>,
    spec: EC2NodeClassSpec,
}

fn cases<T: DeserializeOwned>(table: &str) -> Vec<T> {
    table.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn pool(template: &NodeClaimTemplate) -> NodePool {
    let spec = serde_json::json!({ "template": template });
    NodePool::new("default", serde_json::from_value::<NodePoolSpec>(spec).unwrap())
}

#[test]
fn pools_hash_as_karpenter_hashes_them() {
    let cases: Vec<PoolCase> = cases(include_str!("node_pools.jsonl"));
    assert!(cases.len() > 20);
    for PoolCase { hash, template } in cases {
        assert_eq!(node_pool_hash(&pool(&template)), hash, "{}", serde_json::to_string(&template).unwrap());
    }
}

#[test]
fn classes_hash_as_karpenter_hashes_them() {
    let cases: Vec<ClassCase> = cases(include_str!("node_classes.jsonl"));
    assert!(cases.len() > 10);
    for ClassCase { hash, ca_bundle, spec } in cases {
        let found = ec2_node_class_hash(&spec, ca_bundle.as_deref());
        assert_eq!(found, hash, "{}", serde_json::to_string(&spec).unwrap());
    }
}

#[test]
fn a_kubelet_field_of_a_later_version_counts() {
    let with = |kubelet| {
        let spec =
            EC2NodeClassSpec { kubelet: serde_json::from_value(kubelet).unwrap(), ..EC2NodeClassSpec::default() };
        ec2_node_class_hash(&spec, None)
    };
    let hashes = [
        with(serde_json::json!({})),
        with(serde_json::json!({ "registryPullQPS": 5 })),
        with(serde_json::json!({ "registryPullQPS": 6 })),
        with(serde_json::json!({ "maxPods": "many" })),
    ];
    for (index, hash) in hashes.iter().enumerate() {
        assert!(!hashes[..index].contains(hash), "{hashes:?}");
    }
}
