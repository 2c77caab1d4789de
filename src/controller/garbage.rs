//! Instances that no claim knows, and claims whose instance is gone.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::core::lifecycle::conditions;
use crate::ports::{Cloud, Cluster, Instance, PortError, PortErrorKind};

use super::events::Event;
use super::journal::Journal;
use super::view::{View, name_of, provider_id};

/// How often it is looked for.
pub const INTERVAL: SignedDuration = SignedDuration::from_mins(2);
/// A younger instance may belong to a claim that is just being written.
const YOUNGEST: SignedDuration = SignedDuration::from_secs(30);

/// Ends instances without a claim; gives up claims without an instance. `true` when a claim was given up.
pub async fn collect<K: Cluster, E: Cloud>(
    cluster: &K,
    cloud: &E,
    view: &View<'_>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<bool, PortError> {
    let mut wrote = false;
    let instances = cloud.instances().await?;
    let tokens: BTreeSet<&str> =
        view.snapshot.node_claims.iter().filter_map(|claim| claim.metadata.uid.as_deref()).collect();
    let leaked = |instance: &&Instance| {
        !tokens.contains(instance.token.as_str()) && now.duration_since(instance.launched_at) >= YOUNGEST
    };
    for instance in instances.iter().filter(leaked) {
        match cloud.terminate(&instance.provider_id).await {
            Err(error) if error.kind == PortErrorKind::NotFound => {}
            result => result?,
        }
        journal.say(now, &Event::GarbageCollected { provider_id: instance.provider_id.clone() });
    }
    let running: BTreeSet<&str> = instances.iter().map(|instance| instance.provider_id.as_str()).collect();
    for claim in &view.snapshot.node_claims {
        let Some(id) = provider_id(claim).filter(|id| !running.contains(id)) else { continue };
        let ready = view.node_of(claim).is_some_and(crate::core::lifecycle::is_ready);
        if claim.is_true(conditions::REGISTERED) && claim.metadata.deletion_timestamp.is_none() && !ready {
            cluster.delete_node_claim(name_of(claim)).await?;
            wrote = true;
            let event = Event::InstanceVanished { node_claim: name_of(claim).to_owned(), provider_id: id.to_owned() };
            journal.say(now, &event);
        }
    }
    Ok(wrote)
}

/// Whether some registered claim lost its node, which is worth looking at once.
pub fn is_urgent(view: &View<'_>) -> bool {
    view.snapshot.node_claims.iter().any(|claim| {
        claim.is_true(conditions::REGISTERED)
            && claim.metadata.deletion_timestamp.is_none()
            && view.node_of(claim).is_none()
    })
}
