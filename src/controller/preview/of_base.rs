//! What the definitions that are in force tell of a cluster, and its objects may not: which pools are theirs, and
//! which classes go with a change of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::api::keys;
use crate::core::plan::Note;
use crate::core::snapshot::Snapshot;
use crate::definitions::Definitions;

/// The cluster as the controller finds it that has carried out the base. For what is made of a cluster and not of a
/// plan, such as a simulation: it must say the same as the plan beside it.
pub fn after_base(merged: &Definitions, base: &Definitions, snapshot: &Snapshot) -> Snapshot {
    let merged = merged.beside(snapshot);
    let (owned, _) = owned_pools(&merged, Some(base));
    let mut snapshot = without_gone_classes(Cow::Borrowed(snapshot), &merged, Some(base)).into_owned();
    for pool in &mut snapshot.node_pools {
        if pool.metadata.name.as_ref().is_some_and(|name| owned.contains(name)) {
            let labels = pool.metadata.labels.get_or_insert_default();
            labels.insert(keys::MANAGED_BY.to_owned(), keys::FIELD_MANAGER.to_owned());
        }
    }
    snapshot
}

/// Pools that come from the base, and notes of those that are in no file that is read now, and not gone either.
pub(super) fn owned_pools(merged: &Definitions, base: Option<&Definitions>) -> (BTreeSet<String>, Vec<Note>) {
    let of_base: BTreeMap<&str, &str> = base.into_iter().flat_map(Definitions::pools_in_files).collect();
    let (mut owned, mut hidden) = (BTreeSet::new(), Vec::new());
    for (name, file) in of_base {
        match merged.note_of_hidden_pool(name, file, base) {
            Some(note) => hidden.push(note),
            None if merged.may_name_pool(name) => {}
            None => {
                owned.insert(name.to_owned());
            }
        }
    }
    (owned, hidden)
}

/// Without the classes that a change takes from the files, as far as a pool still names one: the cluster has it until
/// then, and what only the cluster has would be planned with. `merged`: settled beside the cluster.
pub(super) fn without_gone_classes<'s>(
    mut snapshot: Cow<'s, Snapshot>,
    merged: &Definitions,
    base: Option<&Definitions>,
) -> Cow<'s, Snapshot> {
    let Some(base) = base else { return snapshot };
    let out_of_sight = merged.out_of_sight(&snapshot, Some(base));
    let is_named = |name: &str| {
        let mut references = merged.node_pools.iter().map(|pool| &pool.value.spec.template.spec.node_class_ref);
        references.any(|reference| reference.name == name && !reference.is_of_others())
    };
    let is_gone = |name: &str| {
        let is_defined = merged.node_classes.iter().any(|class| class.value.metadata.name.as_deref() == Some(name));
        let is_hidden = out_of_sight.iter().any(|it| it.kind == "EC2NodeClass" && it.name == name);
        !is_defined && !is_hidden && is_named(name)
    };
    let of_base = base.node_classes.iter().filter_map(|class| class.value.metadata.name.as_deref());
    let gone: BTreeSet<&str> = of_base.filter(|name| is_gone(name)).collect();
    if !gone.is_empty() {
        let stays = |name: Option<&str>| name.is_none_or(|name| !gone.contains(name));
        snapshot.to_mut().node_classes.retain(|class| stays(class.metadata.name.as_deref()));
    }
    snapshot
}
