//! What a reader should know of the cluster, whatever is planned: a plan and a simulation say the same.

use std::collections::BTreeSet;

use crate::plan::{Note, NoteCode};
use crate::prepare::lost_nodes::pods_of_missing_nodes;
use crate::snapshot::Snapshot;
use crate::snapshot::doubts::Doubt;
use crate::snapshot::nodes::Machine;
use cutlist_api::node_pool::NodePool;

/// What is not relied on, and what nobody looks after. `machines`: those of the snapshot; `node_pools`: those of the definitions. O(machines).
pub fn notes<'m>(
    snapshot: &Snapshot,
    machines: impl IntoIterator<Item = &'m Machine<'m>> + Clone,
    node_pools: &[NodePool],
) -> Vec<Note> {
    let without_node = without_node(snapshot, machines.clone());
    let without_claim = without_claim(snapshot, machines, node_pools);
    of_doubts(snapshot).chain(without_claim).chain(without_node).collect()
}

/// What of the cluster this plan does not rely on.
fn of_doubts(snapshot: &Snapshot) -> impl Iterator<Item = Note> {
    let consequence = |doubt: &Doubt| match doubt {
        Doubt::Kind(_) => "no node is removed until it is",
        Doubt::Object(_) => "it is left out, and no node that it may speak for is removed",
        Doubt::Doubled(_) => "none of them is relied on, and no node of their pools is removed until only one has it",
    };
    let note = move |doubt: Doubt| {
        Note::new(
            match doubt {
                Doubt::Kind(_) => NoteCode::SnapshotIncomplete,
                Doubt::Object(_) => NoteCode::ObjectUnreadable,
                Doubt::Doubled(_) => NoteCode::ProviderIdShared,
            },
            format!("{}; {}", doubt.text(), consequence(&doubt)),
        )
    };
    snapshot.doubts.sentences().map(note)
}

fn without_node<'m>(snapshot: &Snapshot, machines: impl IntoIterator<Item = &'m Machine<'m>>) -> Option<Note> {
    let text = match pods_of_missing_nodes(snapshot, machines).count() {
        0 => return None,
        1 => "1 pod is bound to a node that the snapshot does not have; it is left out".to_owned(),
        pods => format!("{pods} pods are bound to nodes that the snapshot does not have; they are left out"),
    };
    Some(Note::new(NoteCode::NodeMissing, text))
}

/// Nodes of pools that have no claim. One that is on its way out may have lost it already.
fn without_claim<'m>(
    snapshot: &Snapshot,
    machines: impl IntoIterator<Item = &'m Machine<'m>>,
    node_pools: &[NodePool],
) -> Option<Note> {
    let pools = node_pools.iter().chain(&snapshot.node_pools);
    let pools = pools.filter(|pool| !pool.spec.template.spec.node_class_ref.is_of_others());
    let pools: BTreeSet<&str> = pools.filter_map(|pool| pool.metadata.name.as_deref()).collect();
    let of_pools = machines.into_iter().filter(|machine| machine.node_pool().is_some_and(|pool| pools.contains(pool)));
    let of_nobody = of_pools.filter(|machine| !machine.is_managed() && !machine.is_being_removed());
    let mut names: Vec<&str> = of_nobody.map(|machine| machine.name).collect();
    names.sort_unstable();
    let text = match *names.as_slice() {
        [] => return None,
        [node] => format!("node {node} of a NodePool has no NodeClaim in the snapshot: it stays as it is"),
        [node, ..] => {
            let nodes = names.len();
            format!(
                "{nodes} nodes of NodePools, such as {node}, have no NodeClaim in the snapshot: they stay as they are"
            )
        }
    };
    Some(Note::new(NoteCode::NodesWithoutClaim, format!("{text}; take the snapshot with nodeclaims")))
}
