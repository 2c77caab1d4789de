//! Volumes that are disks of nodes: who needs one runs nowhere else, and a node goes with one only by force.

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume};

use crate::plan::{Plan, Step, StepKind};
use crate::snapshot::Pod;

use super::known::{Existing, Known, must_move};
use super::removals::{LosesDisks, Rights};
use super::steps::{removed_node, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    for step in steps(plan, StepKind::Remove) {
        let Some(existing) = known.nodes.get(removed_node(step)).filter(|existing| !may_go(step, existing)) else {
            continue;
        };
        for pod in known.pods_on(removed_node(step)).filter(|pod| needs_disk(pod, existing, known)) {
            let text = format!("pod {} has a volume that is a disk of the node", pod.key());
            findings.add(ViolationCode::DataLost, ViolationPlace::step(step), text);
        }
    }
}

/// Whether the node goes whatever is lost with it.
fn may_go(step: &Step, existing: &Existing<'_>) -> bool {
    match Rights::of(step.reason.code).loses_disks {
        LosesDisks::Yes => true,
        LosesDisks::ByDeadline => existing.claim.is_some_and(|claim| claim.spec.termination_grace_period.is_some()),
        LosesDisks::No => false,
    }
}

/// Whether a pod of this node can run on no other, because of a volume that somebody made for it.
pub(super) fn needs_disk(pod: &Pod, existing: &Existing<'_>, known: &Known<'_>) -> bool {
    let snapshot = known.inputs.snapshot;
    let claims = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let names = |claim: &str, volume: &PersistentVolume| {
        let of_claim = snapshot.persistent_volume_claims.iter().find(|it| {
            it.metadata.name.as_deref() == Some(claim)
                && it.metadata.namespace.as_deref() == Some(pod.metadata.namespace.as_str())
        });
        let named = of_claim.and_then(|it| it.spec.as_ref()?.volume_name.as_deref()).unwrap_or_default();
        let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        let names_claim = reference.is_some_and(|it| {
            it.name.as_deref() == Some(claim) && it.namespace.as_deref() == Some(pod.metadata.namespace.as_str())
        });
        if named.is_empty() { names_claim } else { volume.metadata.name.as_deref() == Some(named) }
    };
    must_move(pod)
        && claims.into_iter().any(|source| {
            let mut volumes = snapshot.persistent_volumes.iter();
            volumes.any(|volume| names(&source.claim_name, volume) && is_disk_of(volume, existing))
        })
}

fn is_disk_of(volume: &PersistentVolume, existing: &Existing<'_>) -> bool {
    let Some(spec) = &volume.spec else { return false };
    let name = existing.node.metadata.name.as_deref().unwrap_or_default();
    let labels = existing.node.metadata.labels.as_ref();
    let host_name = labels.and_then(|labels| labels.get("kubernetes.io/hostname")).map_or(name, String::as_str);
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let terms = required.map(|required| required.node_selector_terms.as_slice()).unwrap_or_default();
    let is_named = |term: &NodeSelectorTerm| {
        let is = |values: &Option<Vec<String>>, wanted: &str| {
            values.as_ref().is_some_and(|values| !values.is_empty() && values.iter().all(|value| value == wanted))
        };
        let by_host = term.match_expressions.iter().flatten();
        let mut by_host = by_host.filter(|it| it.key == "kubernetes.io/hostname" && it.operator == "In");
        let by_name = term.match_fields.iter().flatten();
        let mut by_name = by_name.filter(|it| it.key == "metadata.name" && it.operator == "In");
        by_host.any(|it| is(&it.values, host_name)) || by_name.any(|it| is(&it.values, name))
    };
    spec.local.is_some() || spec.host_path.is_some() || (!terms.is_empty() && terms.iter().all(is_named))
}
