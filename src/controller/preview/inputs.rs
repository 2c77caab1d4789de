//! From a revision that was read, and the cluster that it is for, to the inputs of a plan.

use std::borrow::Cow;

use jiff::Timestamp;

use super::Reading;
use crate::api::settings::Packing;
use crate::core::catalog::Catalog;
use crate::core::inputs::{Inputs, Policy};
use crate::core::plan::Note;
use crate::core::prepare::classes_of_cluster::add_classes_of_cluster;
use crate::core::snapshot::Snapshot;
use crate::definitions::{Definitions, Masks};

/// What a plan depends on beside the definitions.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    pub snapshot: &'a Snapshot,
    pub catalog: &'a Catalog,
    /// What is in no settings, such as what EC2 said of subnets; what `cutlist.yaml` says is put in its place.
    pub policy: Policy,
    /// Instead of that of `cutlist.yaml`.
    pub packing: Option<Packing>,
    pub seed: u64,
    pub now: Timestamp,
    /// What came up while the cluster was read.
    pub notes: &'a [Note],
    /// Values that nobody is shown: they are hidden before anything is written, since escaping may change how they look.
    pub hidden: Masks,
}

/// Hands over the inputs of a plan for the revision. `base`: the definitions that it is compared with.
pub fn with_inputs<T>(
    reading: &Reading<'_>,
    base: Option<&Definitions>,
    on: &Surroundings<'_>,
    then: impl FnOnce(&Inputs<'_>) -> T,
) -> T {
    let definitions = &reading.definitions.beside(on.snapshot);
    let mut snapshot = Cow::Borrowed(on.snapshot);
    let out_of_sight = definitions.out_of_sight(on.snapshot, base);
    if !out_of_sight.is_empty() {
        snapshot.to_mut().doubts.unreadable.extend(out_of_sight);
    }
    let values =
        |definitions: &Definitions| definitions.node_pools.iter().map(|pool| pool.value.clone()).collect::<Vec<_>>();
    let of_base = base.map(&values).unwrap_or_default();
    let node_pools = values(definitions);
    let mut node_classes: Vec<_> = definitions.node_classes.iter().map(|class| class.value.clone()).collect();
    let of_cluster = add_classes_of_cluster(&node_pools, &mut node_classes, on.snapshot);
    let owned = of_base.into_iter().filter_map(|pool| pool.metadata.name).chain(on.policy.owned_pools.iter().cloned());
    let settings = Policy::of(&definitions.settings);
    let inputs = Inputs {
        revision: reading.revision.clone(),
        cluster: &definitions.settings.cluster_name,
        node_pools: &node_pools,
        node_classes: &node_classes,
        node_overlays: &definitions.node_overlays.iter().map(|overlay| overlay.value.clone()).collect::<Vec<_>>(),
        capacity_buffers: &definitions.capacity_buffers.iter().map(|buffer| buffer.value.clone()).collect::<Vec<_>>(),
        pod_templates: &definitions.pod_templates.iter().map(|template| template.value.clone()).collect::<Vec<_>>(),
        disruption_budgets: &definitions
            .disruption_budgets
            .iter()
            .map(|budget| budget.value.clone())
            .collect::<Vec<_>>(),
        snapshot: snapshot.as_ref(),
        catalog: on.catalog,
        policy: Policy {
            packing: on.packing.unwrap_or(settings.packing),
            penalties: settings.penalties,
            search_work: settings.search_work,
            scheduling: settings.scheduling,
            limits: settings.limits,
            feature_gates: settings.feature_gates,
            disruption: settings.disruption,
            confirm_pool_removal_above: settings.confirm_pool_removal_above,
            owned_pools: owned.filter(|name| !definitions.may_name_pool(name)).collect(),
            ..on.policy.clone()
        },
        seed: on.seed,
        now: on.now,
        notes: [on.notes, reading.notes, &definitions.notes].into_iter().flatten().cloned().chain(of_cluster).collect(),
    };
    then(&inputs)
}
