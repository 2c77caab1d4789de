//! From a revision that was read, and the cluster that it is for, to the inputs of a plan.

use std::borrow::Cow;

use jiff::Timestamp;

use super::Reading;
use super::of_base::{owned_pools, without_gone_classes};
use crate::api::cloud_facts::CloudFacts;
use crate::api::settings::Packing;
use crate::controller::revisions::inputs::{self, Beside};
use crate::core::catalog::Catalog;
use crate::core::catalog::regions::SaidBy;
use crate::core::inputs::{FactsOfFile, Inputs, Policy};
use crate::core::plan::Note;
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubled::doubled;
use crate::definitions::{Definitions, Masks};

/// What a plan depends on beside the definitions.
#[derive(Clone, Debug)]
pub struct Surroundings<'a> {
    pub snapshot: &'a Snapshot,
    pub catalog: &'a Catalog,
    /// Who says that the region of the catalog is the right one.
    pub region_said_by: SaidBy,
    /// Instead of that of `cutlist.yaml`.
    pub packing: Option<Packing>,
    pub seed: u64,
    pub now: Timestamp,
    /// What a file says of EC2; the snapshot has what it says of classes.
    pub facts: Option<&'a CloudFacts>,
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
    let mut snapshot = without_gone_classes(Cow::Borrowed(on.snapshot), definitions, base);
    let out_of_sight = definitions.out_of_sight(on.snapshot, base);
    if !out_of_sight.is_empty() {
        snapshot.to_mut().doubts.unreadable.extend(out_of_sight);
    }
    let doubled = doubled(on.snapshot);
    if !doubled.is_empty() {
        snapshot.to_mut().doubts.doubled = doubled;
    }
    let (owned_pools, hidden) = owned_pools(definitions, base);
    let settings = Policy::of(&definitions.settings);
    let policy = Policy {
        packing: on.packing.unwrap_or(settings.packing),
        region_said_by: on.region_said_by,
        free_addresses: on.facts.map(|facts| facts.free_addresses.clone()),
        vcpu_quotas: on.facts.map(|facts| facts.vcpu_quotas.clone()).unwrap_or_default(),
        images_created: on.facts.map(|facts| facts.images_created.clone()).unwrap_or_default(),
        denied: on.facts.map(|facts| facts.denied.clone()).unwrap_or_default(),
        facts: on.facts.and_then(|facts| {
            let taken_at = facts.taken_at.parse().ok()?;
            Some(FactsOfFile { taken_at, not_known: facts.not_known.clone() })
        }),
        owned_pools,
        confirm_pool_removal_above: confirmed_above(&settings, base),
        ..settings
    };
    let notes = [on.notes, reading.notes, &definitions.notes, &hidden].into_iter().flatten().cloned().collect();
    let beside = Beside {
        revision: reading.revision,
        prefix: reading.prefix,
        snapshot: &snapshot,
        catalog: on.catalog,
        policy,
        seed: on.seed,
        now: on.now,
        notes,
    };
    inputs::with_inputs(definitions, beside, then)
}

/// By the rules that are in force while a change is carried out, which it may not loosen itself, and by its own.
fn confirmed_above(settings: &Policy, base: Option<&Definitions>) -> Vec<String> {
    let in_force = base.map(|base| base.settings.approval.confirm_pool_removal_above.clone());
    let mut all: Vec<String> = in_force.into_iter().chain(settings.confirm_pool_removal_above.clone()).collect();
    all.dedup();
    all
}
