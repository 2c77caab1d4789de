//! What is on its way out of the cluster, and what keeps it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::lifecycle::do_not_disrupt::is_protected;
use crate::lifecycle::drain::{self, is_evicted};
use crate::lifecycle::pod_disruption_budgets::PodDisruptionBudgets;
use crate::lifecycle::volumes;
use crate::plan::leaving::{Leaving, Obstacle, ObstacleKind};
use crate::snapshot::nodes::{Machine, machines};
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::keys;

/// More that keeps one node is counted.
const OBSTACLES_MAX: usize = 20;

/// Everything that is on its way out, in the order of the snapshot. O(pods + those on nodes that leave x budgets).
pub fn leaving(snapshot: &Snapshot, now: Timestamp) -> Vec<Leaving> {
    let machines = machines(snapshot);
    let going: Vec<&Machine<'_>> = machines.iter().filter(|machine| machine.is_being_removed()).collect();
    if going.is_empty() {
        return Vec::new();
    }
    let names: BTreeSet<&str> = going.iter().map(|machine| machine.name).collect();
    let mut pods: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in &snapshot.pods {
        if let Some(node) = pod.spec.node_name.as_deref().filter(|node| names.contains(node)) {
            pods.entry(node).or_default().push(pod);
        }
    }
    let budgets = PodDisruptionBudgets::new(snapshot);
    let entry = |machine: &Machine<'_>| {
        let since = machine.deleted_at();
        let pods = pods.get(machine.name).map_or(&[][..], Vec::as_slice);
        let mut waits_for =
            if since.is_some() { obstacles(snapshot, machine, pods, &budgets, now) } else { Vec::new() };
        let further_obstacles = waits_for.len().saturating_sub(OBSTACLES_MAX);
        waits_for.truncate(OBSTACLES_MAX);
        Leaving {
            node: machine.name.to_owned(),
            node_claim: machine.claim_name().map(str::to_owned),
            since: since.map(|since| since.to_string()),
            waits_for,
            further_obstacles,
        }
    };
    going.into_iter().map(entry).collect()
}

/// The first kind of what is in the way: pods, then volumes, then those who hold a finalizer.
fn obstacles(
    snapshot: &Snapshot,
    machine: &Machine<'_>,
    pods: &[&Pod],
    budgets: &PodDisruptionBudgets<'_>,
    now: Timestamp,
) -> Vec<Obstacle> {
    if drain::next(pods, None, now).waiting > 0 {
        let waited = pods.iter().filter(|pod| !pod.is_terminal() && is_evicted(pod));
        let mut obstacles: Vec<Obstacle> = waited.map(|pod| of_pod(pod, budgets, now)).collect();
        obstacles.sort_by(|one, two| (one.kind, &one.subject).cmp(&(two.kind, &two.subject)));
        return obstacles;
    }
    let attachments = snapshot.volume_attachments.iter().filter(|it| it.spec.node_name == machine.name);
    let attachments: Vec<&VolumeAttachment> = attachments.collect();
    let volumes = volumes::attached(&attachments, pods, snapshot, now);
    if !volumes.is_empty() {
        let text = || "is still attached".to_owned();
        let obstacle = |subject| Obstacle { kind: ObstacleKind::Volume, subject, text: text() };
        return volumes.into_iter().map(obstacle).collect();
    }
    let of_claim = machine.claim.map(|claim| ("NodeClaim", &claim.metadata));
    let of_node = machine.node.map(|node| ("Node", &node.metadata));
    let finalizers = of_claim.into_iter().chain(of_node).flat_map(|(kind, metadata)| {
        let finalizers = metadata.finalizers.iter().flatten().filter(|it| *it != keys::TERMINATION_FINALIZER);
        finalizers.map(move |finalizer| (kind, metadata.name.as_deref().unwrap_or_default(), finalizer))
    });
    finalizers
        .map(|(kind, name, finalizer)| Obstacle {
            kind: ObstacleKind::Finalizer,
            subject: finalizer.clone(),
            text: format!("whoever set finalizer {finalizer} has not let {kind} {name} go"),
        })
        .collect()
}

fn of_pod(pod: &Pod, budgets: &PodDisruptionBudgets<'_>, now: Timestamp) -> Obstacle {
    let (kind, text) = if let Some(since) = &pod.metadata.deletion_timestamp {
        (ObstacleKind::Pod, format!("pod {} has been ending since {since}", pod.key()))
    } else if is_protected(pod, now) {
        (ObstacleKind::DoNotDisrupt, format!("pod {} has annotation {}", pod.key(), keys::DO_NOT_DISRUPT))
    } else if let Some(obstacle) = budgets.obstacle(pod) {
        (ObstacleKind::PodDisruptionBudget, obstacle.to_string())
    } else {
        (ObstacleKind::Pod, format!("pod {} still runs", pod.key()))
    };
    Obstacle { kind, subject: pod.key(), text }
}
