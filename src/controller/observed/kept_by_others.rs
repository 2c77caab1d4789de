//! Nodes and claims that are done with, and stay because somebody else has not let them go.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::keys;
use crate::core::snapshot::Snapshot;

/// Whoever set a finalizer has so long before it is said.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);
/// So many are named.
const NAMED_MAX: usize = 10;

/// One sentence for each. O(nodes).
pub fn sentences(snapshot: &Snapshot, now: Timestamp) -> Vec<String> {
    let nodes = snapshot.nodes.iter().filter_map(|node| sentence("Node", &node.metadata, now));
    let claims = snapshot.node_claims.iter().filter_map(|claim| sentence("NodeClaim", &claim.metadata, now));
    nodes.chain(claims).take(NAMED_MAX).collect()
}

fn sentence(kind: &str, metadata: &ObjectMeta, now: Timestamp) -> Option<String> {
    let since = metadata.deletion_timestamp.as_ref()?.0;
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    let is_ours_to_do = finalizers.iter().any(|finalizer| finalizer == keys::TERMINATION_FINALIZER);
    if is_ours_to_do || finalizers.is_empty() || now.duration_since(since) < PATIENCE {
        return None;
    }
    let name = metadata.name.as_deref().unwrap_or_default();
    Some(format!(
        "{kind} {name} is being deleted since {since}, and stays: whoever set finalizer {} has not let it go",
        finalizers.join(", ")
    ))
}
