//! What a reader should know of the cluster, whatever is planned: a plan and a simulation say the same.

use std::collections::BTreeSet;

use crate::disrupt::doubts;
use crate::plan::{Note, NoteCode};
use crate::snapshot::Snapshot;
use crate::snapshot::nodes::machines;
use cutlist_api::node_pool::NodePool;

/// What is not relied on, and what nobody looks after. `node_pools`: those of the definitions. O((nodes + claims) log nodes).
pub fn notes(snapshot: &Snapshot, node_pools: &[NodePool]) -> Vec<Note> {
    let mut notes = doubts::notes(snapshot);
    notes.extend(without_claim(snapshot, node_pools));
    notes
}

/// Nodes of pools that have no claim. One that is on its way out may have lost it already.
fn without_claim(snapshot: &Snapshot, node_pools: &[NodePool]) -> Option<Note> {
    let pools = node_pools.iter().chain(&snapshot.node_pools);
    let pools = pools.filter(|pool| !pool.spec.template.spec.node_class_ref.is_of_others());
    let pools: BTreeSet<&str> = pools.filter_map(|pool| pool.metadata.name.as_deref()).collect();
    let machines = machines(snapshot);
    let of_pools = machines.iter().filter(|machine| machine.node_pool().is_some_and(|pool| pools.contains(pool)));
    let of_nobody = of_pools.filter(|machine| !machine.is_managed() && !machine.is_being_removed());
    let names: Vec<&str> = of_nobody.map(|machine| machine.name).collect();
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
