//! Disruptions that another controller began and nobody goes on with: Karpenter taints a node while it waits for the replacement, and what
//! it was about to do is lost when it ends. Its own controller takes such taints off when it starts, and so is done here: who was to go
//! may be planned for again.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_claims;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::{View, name_of, node_name};
use crate::controller::set_aside::SetAside;
use crate::core::lifecycle::termination::undisrupted_taint_patch;
use crate::core::lifecycle::{conditions, taint_patch};
use crate::ports::{Cluster, PortError};

/// Takes the taint off nodes whose claim nobody removes. `true` when something was written; `troubles`: what was refused.
pub async fn take_back<K: Cluster>(
    cluster: &K,
    view: &View<'_>,
    (now, journal): (Timestamp, &mut Journal),
    aside: &mut SetAside,
    troubles: &mut Vec<PortError>,
) -> bool {
    let mut seen: Vec<&NodeClaim> = view.snapshot.node_claims.iter().filter(|it| is_abandoned(it, view)).collect();
    seen.retain(|claim| aside.may_try(&object_of(claim), now));
    if seen.is_empty() {
        return false;
    }
    // Watches of nodes and of claims are not in step: what was marked a moment ago is asked for.
    let claims = match cluster.node_claims_now().await {
        Ok(claims) => claims,
        Err(error) => {
            troubles.push(error);
            return false;
        }
    };
    let seen: BTreeSet<&str> = seen.into_iter().map(name_of).collect();
    let mut wrote = false;
    for claim in claims.iter().filter(|claim| seen.contains(name_of(claim)) && is_abandoned(claim, view)) {
        match take_back_of(cluster, view, claim, now, journal).await {
            Ok(()) => wrote = true,
            Err(error) => {
                aside.refused(&object_of(claim), now);
                troubles.push(error);
            }
        }
    }
    wrote
}

fn object_of(claim: &NodeClaim) -> String {
    format!("taint of NodeClaim {}", name_of(claim))
}

fn is_abandoned(claim: &NodeClaim, view: &View<'_>) -> bool {
    let Some(node) = view.node_of(claim) else { return false };
    let stays = claim.metadata.deletion_timestamp.is_none() && node.metadata.deletion_timestamp.is_none();
    stays && !of_claims::goes(claim) && taint_patch::has(node, keys::DISRUPTED_TAINT)
}

async fn take_back_of<K: Cluster>(
    cluster: &K,
    view: &View<'_>,
    claim: &NodeClaim,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<(), PortError> {
    // The taint goes last: while it is there, a restart begins again.
    if claim.condition(conditions::DISRUPTION_REASON).is_some() {
        let mut unmarked = claim.clone();
        conditions::remove(&mut unmarked, conditions::DISRUPTION_REASON);
        cluster.update_node_claim(&unmarked).await?;
    }
    let Some(node) = view.node_of(claim) else { return Ok(()) };
    if let Some(patch) = undisrupted_taint_patch(node) {
        cluster.patch_node(node, &patch).await?;
        let (node, node_claim) = (node_name(node).to_owned(), name_of(claim).to_owned());
        journal.say(now, &Event::DisruptionTakenBack { node, node_claim });
    }
    Ok(())
}
