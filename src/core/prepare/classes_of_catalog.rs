//! Pools of other providers than EC2, where the catalog says that it sells for them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::catalog::{Catalog, ClassKind};
use crate::snapshot::Snapshot;
use cutlist_api::ec2_node_class::{EC2NodeClass, EC2NodeClassSpec};
use cutlist_api::node_pool::{NodeClassReference, NodePool};

/// Where the catalog names a kind of classes: marks what is of that kind, and gives pools their classes, of which no more is known than
/// that their types are those of the catalog. O(pools + claims) and a copy of the snapshot; else nothing is done.
pub fn take_over<'a>(
    catalog: &Catalog,
    pools: &mut [NodePool],
    classes: &mut Vec<EC2NodeClass>,
    snapshot: &'a Snapshot,
) -> Cow<'a, Snapshot> {
    let Some(kind) = &catalog.node_class else { return Cow::Borrowed(snapshot) };
    let mut names = BTreeSet::new();
    let mut taken = snapshot.clone();
    for pool in pools.iter_mut().chain(&mut taken.node_pools) {
        let reference = &mut pool.spec.template.spec.node_class_ref;
        mark(reference, kind);
        if !reference.is_of_others() {
            names.insert(reference.name.clone());
        }
    }
    for claim in &mut taken.node_claims {
        mark(&mut claim.spec.node_class_ref, kind);
    }
    *classes = names.iter().map(|name| EC2NodeClass::new(name, EC2NodeClassSpec::default())).collect();
    taken.node_classes.clear();
    Cow::Owned(taken)
}

fn mark(reference: &mut NodeClassReference, kind: &ClassKind) {
    reference.is_sold = Some(reference.group == kind.group && reference.kind == kind.kind);
}
