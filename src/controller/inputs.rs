//! From definitions, and the cluster that they are for, to the inputs of a plan: the one place where that is done.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::kustomization;
use crate::core::catalog::Catalog;
use crate::core::inputs::{Inputs, Policy};
use crate::core::plan::{DefinitionPlace, DefinitionPlaces, Note, Revision};
use crate::core::prepare::classes_of_cluster::add_classes_of_cluster;
use crate::core::snapshot::Snapshot;
use crate::definitions::{Definition, Definitions};

/// What a plan depends on beside its definitions.
#[derive(Debug)]
pub struct Beside<'a> {
    pub revision: &'a Revision,
    /// Where the paths of its files begin, from the root of the repository: empty, or with `/` at its end.
    pub prefix: &'a str,
    pub snapshot: &'a Snapshot,
    pub catalog: &'a Catalog,
    pub policy: Policy,
    pub seed: u64,
    pub now: Timestamp,
    pub notes: Vec<Note>,
}

/// Hands over the inputs of a plan. Classes that only the cluster has are added, with a note for each.
pub fn with_inputs<T>(definitions: &Definitions, beside: Beside<'_>, then: impl FnOnce(&Inputs<'_>) -> T) -> T {
    let Beside { revision, prefix, snapshot, catalog, policy, seed, now, mut notes } = beside;
    let node_pools = values(&definitions.node_pools);
    let mut node_classes = values(&definitions.node_classes);
    notes.extend(add_classes_of_cluster(&node_pools, &mut node_classes, snapshot));
    then(&Inputs {
        revision: revision.clone(),
        cluster: &definitions.settings.cluster_name,
        node_pools: &node_pools,
        node_classes: &node_classes,
        node_overlays: &values(&definitions.node_overlays),
        capacity_buffers: &values(&definitions.capacity_buffers),
        pod_templates: &values(&definitions.pod_templates),
        disruption_budgets: &values(&definitions.disruption_budgets),
        places: &places(definitions, prefix),
        snapshot,
        catalog,
        policy,
        seed,
        now,
        notes,
    })
}

/// A path of the repository, from its root. Kustomizations name files outside of what was asked for.
pub fn from_root(prefix: &str, file: &str) -> String {
    kustomization::join(prefix, file).unwrap_or_else(|| file.to_owned())
}

fn places(definitions: &Definitions, prefix: &str) -> DefinitionPlaces {
    let mut places = DefinitionPlaces::default();
    add(&mut places, prefix, "NodePool", &definitions.node_pools, |it| &it.metadata);
    add(&mut places, prefix, "EC2NodeClass", &definitions.node_classes, |it| &it.metadata);
    add(&mut places, prefix, "DisruptionBudget", &definitions.disruption_budgets, |it| &it.metadata);
    places
}

fn add<T>(
    places: &mut DefinitionPlaces,
    prefix: &str,
    kind: &str,
    definitions: &[Definition<T>],
    metadata: fn(&T) -> &ObjectMeta,
) {
    for definition in definitions {
        let name = metadata(&definition.value).name.as_deref().unwrap_or_default();
        let from_root = |(pointer, place): (&String, &DefinitionPlace)| {
            (pointer.clone(), DefinitionPlace { file: from_root(prefix, &place.file), line: place.line })
        };
        places.add(kind, name, definition.places.iter().map(from_root).collect());
    }
}

fn values<T: Clone>(definitions: &[Definition<T>]) -> Vec<T> {
    definitions.iter().map(|definition| definition.value.clone()).collect()
}
