//! What is stamped on definitions when they are applied, and checking it later.

use serde_json::{Value, json};

use crate::api::keys;
use crate::api::node_pool::NodePool;
use crate::core::lifecycle::static_hash::node_pool_hash;
use crate::core::plan::Revision;
use crate::core::snapshot::Snapshot;

use super::refusal::Refusal;

/// The reference's version of the hash, which says what is hashed and how.
const HASH_VERSION: &str = "v3";

/// Adds the hash that static drift is judged by.
pub fn of_pool(pool: &NodePool, mut object: Value) -> Value {
    annotate(&mut object, "annotations", keys::NODE_POOL_HASH, &node_pool_hash(pool));
    annotate(&mut object, "annotations", keys::NODE_POOL_HASH_VERSION, HASH_VERSION);
    object
}

/// Adds owner, installation and revision to a definition's metadata. Takes off the status, which controllers write: one that was
/// exported with the definition is of another time, and often of another cluster.
pub fn stamped(mut object: Value, revision: &Revision, installation: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    annotate(&mut object, "annotations", keys::REVISION, &revision.id);
    annotate(&mut object, "labels", keys::MANAGED_BY, keys::FIELD_MANAGER);
    annotate(&mut object, "labels", keys::INSTALLATION, installation);
    object
}

fn annotate(object: &mut Value, map: &str, key: &str, value: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let map = metadata.entry(map).or_insert_with(|| json!({}));
    if map.is_null() {
        *map = json!({});
    }
    if let Some(map) = map.as_object_mut() {
        map.insert(key.to_owned(), json!(value));
    }
}

/// Whether the pool still has the content that was planned with.
pub fn check_pool(snapshot: &Snapshot, name: &str, hash: &str) -> Result<(), Refusal> {
    let pool = snapshot.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(name));
    if pool.is_some_and(|pool| node_pool_hash(pool) == hash) {
        return Ok(());
    }
    Err(Refusal::NodePoolChanged { name: name.to_owned() })
}
