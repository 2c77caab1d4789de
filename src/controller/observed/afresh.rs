//! One more look before something ends, at the API server itself: what watches show may be old without anybody knowing.

use k8s_openapi::api::core::v1::Node;

use crate::api::node_claim::NodeClaim;
use crate::core::lifecycle::DeletionCause;
use crate::core::lifecycle::drain;
use crate::core::lifecycle::termination::deadline;
use crate::core::snapshot::Pod;
use crate::ports::{Cluster, PortError, PortErrorKind};

use super::view::{name_of, node_name, provider_id};

/// Fails with `Conflict` while pods are on the node that its drain has to wait for.
pub async fn is_drained<K: Cluster>(
    cluster: &K,
    claim: &NodeClaim,
    node: Option<&Node>,
    now: jiff::Timestamp,
) -> Result<(), PortError> {
    let known = node.map(|node| node_name(node).to_owned());
    let known = known.or_else(|| claim.status.as_ref()?.node_name.clone());
    let name = match known {
        Some(name) => name,
        // It may have joined unseen.
        None => match node_of(cluster, claim).await? {
            Some(node) => node_name(&node).to_owned(),
            None => return Ok(()),
        },
    };
    let pods = cluster.pods_on_now(&name).await?;
    let pods: Vec<&Pod> = pods.iter().collect();
    let waiting = drain::next(&pods, deadline(claim), now).waiting;
    if waiting == 0 {
        return Ok(());
    }
    Err(overtaken(format!("end the instance of node {name}: {waiting} pods run there")))
}

/// Fails with `Conflict` where a claim is given up for what is not so.
pub async fn is_given_up<K: Cluster>(
    cluster: &K,
    claim: &NodeClaim,
    node: Option<&Node>,
    cause: DeletionCause,
) -> Result<(), PortError> {
    // One that has none by now gets none any more, if it is asked for the end of it.
    if cause == DeletionCause::LaunchTimeout {
        return Ok(());
    }
    let seen = node_of(cluster, claim).await?;
    let is_so = match cause {
        DeletionCause::NodeDeleted => seen.is_none_or(|node| node.metadata.deletion_timestamp.is_some()),
        _ => seen.is_none() || node.is_some(),
    };
    if is_so {
        return Ok(());
    }
    Err(overtaken(format!("give up nodeclaim {}: its node is there", name_of(claim))))
}

async fn node_of<K: Cluster>(cluster: &K, claim: &NodeClaim) -> Result<Option<Node>, PortError> {
    let Some(id) = provider_id(claim) else { return Ok(None) };
    let is_its = |node: &Node| node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()) == Some(id);
    Ok(cluster.nodes_now().await?.into_iter().find(is_its))
}

/// What was decided by is not so any more: the next look decides anew.
fn overtaken(operation: String) -> PortError {
    PortError { operation, kind: PortErrorKind::Conflict, source: None }
}
