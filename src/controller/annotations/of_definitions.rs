//! What is stamped on definitions when they are applied, and checking it later.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::keys;
use crate::api::node_pool::NodePool;
use crate::controller::events::refusal::MoveRefusal;
use crate::core::model::static_hash::node_pool_hash;
use crate::core::plan::Revision;
use crate::core::snapshot::Snapshot;
use crate::definitions::Definitions;

/// The reference's version of the hash, which says what is hashed and how.
const HASH_VERSION: &str = "v3";

/// Adds the hash that static drift is judged by.
pub fn of_pool(pool: &NodePool, mut object: Value) -> Value {
    annotate(&mut object, "annotations", keys::NODE_POOL_HASH, &node_pool_hash(pool));
    annotate(&mut object, "annotations", keys::NODE_POOL_HASH_VERSION, HASH_VERSION);
    object
}

/// Where a definition comes from.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub revision: &'a Revision,
    pub committed_at: Option<Timestamp>,
    pub installation: &'a str,
}

/// Adds owner, installation, revision and file to a definition's metadata. Takes off the status, which controllers write: one that was
/// exported with the definition is of another time, and often of another cluster.
pub fn stamped(mut object: Value, file: &str, origin: Origin<'_>) -> Value {
    let Origin { revision, committed_at, installation } = origin;
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("status");
    }
    annotate(&mut object, "annotations", keys::REVISION, &revision.id);
    annotate(&mut object, "annotations", keys::DEFINED_IN, file);
    // Only the commit says when it was made. Without a commit there is no time.
    let at = committed_at.map(|at| at.to_string()).unwrap_or_default();
    annotate(&mut object, "annotations", keys::REVISION_COMMITTED_AT, &at);
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

/// Hashes of the pools of the cluster when a plan was made, by name. A webhook may make something else of a pool than was applied: that is
/// no change since the plan.
pub type Seen = BTreeMap<String, String>;

/// The hashes of the pools as they are now.
pub fn seen(snapshot: &Snapshot) -> Seen {
    let pools = snapshot.node_pools.iter();
    pools.filter_map(|pool| Some((pool.metadata.name.clone()?, node_pool_hash(pool)))).collect()
}

/// Whether the pool still has the content that was planned with, or that it had then.
pub fn check_pool(snapshot: &Snapshot, name: &str, hash: &str, seen: &Seen) -> Result<(), MoveRefusal> {
    let pool = snapshot.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(name));
    let is_known = |found: &String| found == hash || seen.get(name) == Some(found);
    if pool.map(node_pool_hash).as_ref().is_some_and(is_known) {
        return Ok(());
    }
    Err(MoveRefusal::NodePoolChanged { name: name.to_owned() })
}

/// Whether a pool of the cluster makes other nodes, or another number of them, than it is defined to.
pub fn is_other(defined: &NodePool, applied: &NodePool) -> bool {
    node_pool_hash(defined) != node_pool_hash(applied) || defined.spec.limits != applied.spec.limits
}

/// Pools that are not in the cluster as they were applied, in words.
pub fn changed_by_others(snapshot: &Snapshot, definitions: &Definitions) -> Vec<String> {
    let changed = definitions.node_pools.iter().filter_map(|defined| {
        let name = defined.value.metadata.name.as_ref()?;
        let applied = snapshot.node_pools.iter().find(|pool| pool.metadata.name.as_ref() == Some(name))?;
        is_other(&defined.value, applied).then(|| {
            format!(
                "NodePool {name} is not in the cluster as it was applied: somebody, or a webhook, changed it; nodes are made as the \
                 definitions say"
            )
        })
    });
    changed.collect()
}
