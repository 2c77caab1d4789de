//! Namespaces that are selected by labels which the snapshot does not have.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PodAffinityTerm;

use crate::plan::{Note, NoteCode};
use crate::scheduler::class::NAMESPACE_NAME;
use crate::snapshot::selector;
use crate::snapshot::{Pod, Snapshot};

/// So many namespaces are named.
const NAMED_MAX: usize = 3;

/// Where pods select namespaces by label, and the Namespace of others is not there. O(pods).
pub fn note(snapshot: &Snapshot) -> Option<Note> {
    let selective = snapshot.pods.iter().find(|pod| !pod.is_terminal() && selects_by_label(pod))?;
    let known: BTreeSet<&str> = snapshot.namespaces.iter().filter_map(|it| it.metadata.name.as_deref()).collect();
    let unknown: BTreeSet<&str> = snapshot.pods.iter().map(|pod| pod.metadata.namespace.as_str()).collect();
    let unknown: Vec<&str> = unknown.difference(&known).copied().collect();
    let (named, further) = unknown.split_at(unknown.len().min(NAMED_MAX));
    let more = if further.is_empty() { String::new() } else { format!(" and {} more", further.len()) };
    let text = format!(
        "pod {} selects namespaces by label, and the labels of {}{more} are not in the snapshot: they count as having none but their \
         name; give it Namespaces, too",
        selective.key(),
        named.join(", ")
    );
    (!unknown.is_empty()).then_some(Note::new(NoteCode::NamespaceUnknown, text))
}

fn selects_by_label(pod: &Pod) -> bool {
    let Some(affinity) = pod.spec.affinity.as_deref() else { return false };
    let required = |terms: &Option<Vec<PodAffinityTerm>>| terms.iter().flatten().any(of_term);
    let near = affinity.pod_affinity.as_ref();
    let far = affinity.pod_anti_affinity.as_ref();
    near.is_some_and(|it| {
        let preferred = it.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        required(&it.required_during_scheduling_ignored_during_execution)
            || preferred.map(|wish| &wish.pod_affinity_term).any(of_term)
    }) || far.is_some_and(|it| {
        let preferred = it.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        required(&it.required_during_scheduling_ignored_during_execution)
            || preferred.map(|wish| &wish.pod_affinity_term).any(of_term)
    })
}

fn of_term(term: &PodAffinityTerm) -> bool {
    selector::keys(term.namespace_selector.as_ref()).any(|key| key != NAMESPACE_NAME)
}
