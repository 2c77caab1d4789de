//! Nodes that kube-scheduler refuses the pods they were bought for: noted on their pool, so that neither a restart nor the end of an
//! empty node lets the same be bought again at once.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use crate::api::keys;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::revisions::InForce;
use crate::controller::set_aside::SetAside;
use crate::core::plan::{Plan, RefusedNode};
use crate::core::provision::refused_nodes::{Attempts, Noted};
use crate::core::snapshot::Snapshot;
use crate::ports::{Cluster, PortError, PortErrorKind};

/// Notes what the plan says, on each pool where that is news, and says it. Where a pool is gone nobody can know it any more.
pub async fn note<K: Cluster>(
    cluster: &K,
    snapshot: &Snapshot,
    plan: &Plan,
    in_force: &InForce,
    aside: &mut SetAside,
    (now, journal): (Timestamp, &mut Journal),
) -> Result<(), PortError> {
    let mut by_pool: BTreeMap<&str, Vec<&RefusedNode>> = BTreeMap::new();
    for refused in &plan.refused_nodes {
        by_pool.entry(&refused.node_pool).or_default().push(refused);
    }
    let mut notes = aside.purpose();
    for (name, refused) in by_pool {
        let Some(before) = noted_on(snapshot, in_force, name) else { continue };
        let attempts: Vec<Attempts> = refused.iter().filter_map(|refused| Attempts::of(refused)).collect();
        let is_known = |attempts: &Attempts| before.needs().contains(attempts);
        if attempts.iter().all(is_known) {
            continue;
        }
        let after = before.with(attempts.iter().cloned(), now);
        let patch = json!({ "metadata": { "annotations": { keys::REFUSED_NODES: after.to_annotation() } } });
        let object = format!("refused nodes on NodePool {name}");
        match notes.attempt(&object, now, cluster.patch_node_pool(name, &patch)).await {
            Err(error) if error.kind == PortErrorKind::NotFound => continue,
            Err(error) => return Err(error),
            Ok(None) => continue,
            Ok(Some(())) => {}
        }
        for refused in refused {
            let count = before.needs().iter().find(|known| known.need == refused.need).map(|known| known.count);
            if count != Some(refused.attempts) {
                journal.say(now, &Event::NodeRefused { refused: Box::new(refused.clone()) });
            }
        }
    }
    notes.told(())
}

/// What is noted on the pool as it is in the cluster, of nodes as the definitions have them.
fn noted_on(snapshot: &Snapshot, in_force: &InForce, name: &str) -> Option<Noted> {
    let mut pools = in_force.node_pools(snapshot);
    let (pool, applied) = pools.find(|(pool, _)| pool.metadata.name.as_deref() == Some(name))?;
    Some(Noted::on(applied, pool, in_force.class_of(pool, snapshot)))
}
