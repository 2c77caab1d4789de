//! From a revision that was read, and the cluster that it is for, to the inputs of a plan.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Reading;
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
    let mut snapshot = Cow::Borrowed(on.snapshot);
    let out_of_sight = definitions.out_of_sight(on.snapshot, base);
    if !out_of_sight.is_empty() {
        snapshot.to_mut().doubts.unreadable.extend(out_of_sight);
    }
    let doubled = doubled(on.snapshot);
    if !doubled.is_empty() {
        snapshot.to_mut().doubts.doubled = doubled;
    }
    let of_base: BTreeMap<&str, &str> = base.into_iter().flat_map(Definitions::pools_in_files).collect();
    let (mut hidden, mut owned_pools) = (Vec::new(), BTreeSet::new());
    for (name, file) in of_base {
        match definitions.note_of_hidden_pool(name, file, base) {
            Some(note) => hidden.push(note),
            None if definitions.may_name_pool(name) => {}
            None => {
                owned_pools.insert(name.to_owned());
            }
        }
    }
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
