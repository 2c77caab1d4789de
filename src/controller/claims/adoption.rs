//! A claim for an instance that has none, by what its Node and its tags say: claims are gone from the API with a backup that is restored,
//! or with a definition that is made anew, and the instances and their pods run on.

use std::collections::BTreeMap;

use crate::api::keys;
use crate::api::node_claim::{NodeClaim, NodeClaimSpec, ResourceRequests};
use crate::api::node_pool::NodePool;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::controller::observed::view::{View, name_of};
use crate::ports::Instance;

/// On a claim that was made for an instance that runs: its provider ID. Nothing is launched for it.
const ADOPTS: &str = "cutlist.dev/adopts-instance";
/// Characters of the end of an instance's ID in the name of a claim.
const ID_SHOWN: usize = 8;
/// What a node was made by, as it was noted on its claim.
const HASHES: [&str; 6] = [
    keys::NODE_POOL_HASH,
    keys::NODE_POOL_HASH_VERSION,
    keys::EC2_NODE_CLASS_HASH,
    keys::EC2_NODE_CLASS_HASH_VERSION,
    keys::LAUNCHED_CLASS_HASH,
    keys::LAUNCHED_SELECTORS,
];

/// The instance that a claim was made for.
pub fn adopts(claim: &NodeClaim) -> Option<&str> {
    claim.annotation(ADOPTS)
}

/// The claim with the hashes that another one has.
pub fn with_hashes_of(mut claim: NodeClaim, other: &NodeClaim) -> NodeClaim {
    for key in HASHES {
        if let Some(value) = other.annotation(key) {
            claim.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        }
    }
    claim
}

/// The claim that makes an instance known again, or why there can be none.
pub fn claim_for(
    instance: &Instance,
    node: Option<&Node>,
    node_pools: &[NodePool],
    view: &View<'_>,
    claims: &[NodeClaim],
) -> Result<NodeClaim, String> {
    if node.is_some_and(|node| node.metadata.deletion_timestamp.is_some()) {
        return Err("and its Node is being deleted".to_owned());
    }
    let of_node = node.and_then(|node| node.metadata.labels.as_ref());
    let label = |key: &str| of_node.and_then(|labels| labels.get(key)).map_or("", String::as_str);
    let first = |one: &'_ str, other: &'_ str| if one.is_empty() { other.to_owned() } else { one.to_owned() };
    let pool_name = first(label(keys::NODE_POOL), &instance.node_pool);
    if pool_name.is_empty() {
        return Err("and neither a Node nor its tags say of which NodePool it is".to_owned());
    }
    let named = |pool: &&NodePool| pool.metadata.name.as_deref() == Some(pool_name.as_str());
    let applied = view.snapshot.node_pools.iter().find(named);
    let pool = node_pools.iter().find(named).or(applied);
    let pool = pool.ok_or_else(|| format!("and there is no NodePool {pool_name}, of which it is"))?;
    let template = &pool.spec.template;
    let class = first(label(keys::EC2_NODE_CLASS), &instance.node_class);
    let mut node_class_ref = template.spec.node_class_ref.clone();
    if !class.is_empty() {
        node_class_ref.name = class;
    }
    let mut labels: BTreeMap<String, String> = of_node.cloned().unwrap_or_else(|| template.metadata.labels.clone());
    labels.retain(|key, _| ![keys::HOSTNAME, keys::REGISTERED, keys::INITIALIZED].contains(&key.as_str()));
    labels.insert(keys::NODE_POOL.to_owned(), pool_name.clone());
    labels.insert(keys::INSTANCE_TYPE.to_owned(), instance.instance_type.clone());
    labels.insert(keys::ZONE.to_owned(), instance.zone.clone());
    labels.insert(keys::CAPACITY_TYPE.to_owned(), instance.capacity_type.clone());
    if let Some(id) = &instance.reservation_id {
        labels.insert(keys::CAPACITY_RESERVATION_ID.to_owned(), id.clone());
    }
    let mut annotations = BTreeMap::from([(ADOPTS.to_owned(), instance.provider_id.clone())]);
    let of_node = node.and_then(|node| node.metadata.annotations.as_ref());
    let hashes = HASHES.iter().filter_map(|key| Some(((*key).to_owned(), of_node?.get(*key)?.clone())));
    annotations.extend(hashes);
    let mut claim = NodeClaim::new(
        &name(instance, &pool_name, claims),
        NodeClaimSpec {
            node_class_ref,
            requirements: template.spec.requirements.clone(),
            resources: ResourceRequests::default(),
            taints: template.spec.taints.clone(),
            // It has started.
            startup_taints: Vec::new(),
            expire_after: template.spec.expire_after.clone(),
            termination_grace_period: template.spec.termination_grace_period.clone(),
        },
    );
    claim.metadata = ObjectMeta {
        labels: Some(labels),
        annotations: Some(annotations),
        finalizers: Some(vec![keys::TERMINATION_FINALIZER.to_owned()]),
        ..claim.metadata
    };
    Ok(claim)
}

/// The one that it had, unless another claim has that by now.
fn name(instance: &Instance, pool: &str, claims: &[NodeClaim]) -> String {
    let is_free = |name: &str| !name.is_empty() && !claims.iter().any(|claim| name_of(claim) == name);
    if is_free(&instance.node_claim) {
        return instance.node_claim.clone();
    }
    let id: Vec<char> = instance.provider_id.chars().filter(char::is_ascii_alphanumeric).collect();
    let end: String = id.iter().skip(id.len().saturating_sub(ID_SHOWN)).collect();
    format!("{pool}-{end}")
}
