//! From definitions, and the cluster that they are for, to the inputs of a plan: the one place where that is done.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::core::catalog::Catalog;
use crate::core::inputs::{Inputs, Policy};
use crate::core::plan::{DefinitionPlaces, Note, Revision};
use crate::core::prepare::classes_of_cluster::add_classes_of_cluster;
use crate::core::snapshot::Snapshot;
use crate::definitions::{Definition, Definitions};

/// What a plan depends on beside its definitions.
#[derive(Debug)]
pub struct Beside<'a> {
    pub revision: &'a Revision,
    pub snapshot: &'a Snapshot,
    pub catalog: &'a Catalog,
    pub policy: Policy,
    pub seed: u64,
    pub now: Timestamp,
    pub notes: Vec<Note>,
}

/// Hands over the inputs of a plan. Classes that only the cluster has are added, with a note for each.
pub fn with_inputs<T>(definitions: &Definitions, beside: Beside<'_>, then: impl FnOnce(&Inputs<'_>) -> T) -> T {
    let Beside { revision, snapshot, catalog, policy, seed, now, mut notes } = beside;
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
        places: &places(definitions),
        snapshot,
        catalog,
        policy,
        seed,
        now,
        notes,
    })
}

fn places(definitions: &Definitions) -> DefinitionPlaces {
    let mut places = DefinitionPlaces::default();
    add(&mut places, "NodePool", &definitions.node_pools, |it| &it.metadata);
    add(&mut places, "EC2NodeClass", &definitions.node_classes, |it| &it.metadata);
    add(&mut places, "DisruptionBudget", &definitions.disruption_budgets, |it| &it.metadata);
    places
}

fn add<T>(places: &mut DefinitionPlaces, kind: &str, definitions: &[Definition<T>], metadata: fn(&T) -> &ObjectMeta) {
    for definition in definitions {
        let name = metadata(&definition.value).name.as_deref().unwrap_or_default();
        places.add(kind, name, definition.places.clone());
    }
}

fn values<T: Clone>(definitions: &[Definition<T>]) -> Vec<T> {
    definitions.iter().map(|definition| definition.value.clone()).collect()
}
