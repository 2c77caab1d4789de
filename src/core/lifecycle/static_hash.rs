//! Hashes over the parts of definitions whose change makes existing nodes drift.

use sha2::{Digest, Sha256};

use crate::api::ec2_node_class::EC2NodeClassSpec;
use crate::api::node_pool::NodePool;

/// Hash over the template without its requirements.
pub fn node_pool_hash(pool: &NodePool) -> String {
    let mut template = pool.spec.template.clone();
    template.spec.requirements.clear();
    digest(&serde_json::to_vec(&template).unwrap_or_default())
}

/// Hash over the class.
pub fn ec2_node_class_hash(spec: &EC2NodeClassSpec, cluster_ca_bundle: Option<&str>) -> String {
    digest(&serde_json::to_vec(&(spec, cluster_ca_bundle)).unwrap_or_default())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
