//! Volumes that are still attached to a drained node: an instance that ends with them keeps its pods' successors waiting for
//! minutes, until Kubernetes dares to detach by force.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::snapshot::{Pod, Snapshot};

use super::drain::is_drainable;

/// The names of the persistent volumes that `attachments`, all of one node, hold there. Without those of pods that stay until
/// the node ends, and without what is no persistent volume: nobody will detach them before.
/// O(attachments + pods x claims in the cluster), for a node that is drained.
pub fn attached(attachments: &[&VolumeAttachment], pods: &[&Pod], snapshot: &Snapshot, now: Timestamp) -> Vec<String> {
    if attachments.is_empty() {
        return Vec::new();
    }
    let staying = pods.iter().filter(|pod| !is_drainable(pod, now));
    let kept: BTreeSet<&str> = staying.flat_map(|pod| volumes_of(pod, snapshot)).collect();
    let names = attachments.iter().filter_map(|attachment| attachment.spec.source.persistent_volume_name.as_deref());
    let names: BTreeSet<&str> = names.filter(|name| !kept.contains(name)).collect();
    names.into_iter().map(str::to_owned).collect()
}

fn volumes_of<'s>(pod: &Pod, snapshot: &'s Snapshot) -> impl Iterator<Item = &'s str> {
    let claims: BTreeSet<String> = pod
        .spec
        .volumes
        .iter()
        .filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(source), _) => Some(source.claim_name.clone()),
            (None, Some(_)) => Some(format!("{}-{}", pod.metadata.name, volume.name)),
            (None, None) => None,
        })
        .collect();
    let namespace = pod.metadata.namespace.clone();
    let is_its = move |claim: &&PersistentVolumeClaim| {
        claim.metadata.namespace.as_ref() == Some(&namespace)
            && claim.metadata.name.as_ref().is_some_and(|name| claims.contains(name))
    };
    let found = snapshot.persistent_volume_claims.iter().filter(is_its);
    found.filter_map(|claim| claim.spec.as_ref()?.volume_name.as_deref())
}
