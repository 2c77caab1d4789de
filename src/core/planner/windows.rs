//! Nodes with Windows, of which the catalog knows no prices.

use std::collections::BTreeSet;

use crate::plan::{Note, NoteCode};
use crate::scheduler::Problem;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;

const WINDOWS: &str = "windows";

/// Which pools have such nodes, or could get some. O(machines + templates x types).
pub fn note(problem: &Problem<'_>) -> Option<Note> {
    let offered = problem
        .templates
        .iter()
        .filter(|template| template.offerings.values_of(&template.set, keys::OPERATING_SYSTEM).contains(&WINDOWS));
    let there = problem.machines.iter().filter(|it| it.label(keys::OPERATING_SYSTEM) == Some(WINDOWS));
    let is_any_there = there.clone().next().is_some();
    let of_pools = offered.map(|template| template.name.as_str()).chain(there.filter_map(Machine::node_pool));
    let pools: Vec<&str> = of_pools.collect::<BTreeSet<&str>>().into_iter().collect();
    let nodes = match pools.as_slice() {
        [] if !is_any_there => return None,
        [] => "nodes with Windows".to_owned(),
        [pool] => format!("nodes of NodePool {pool}, which have Windows,"),
        pools => format!("nodes of NodePools {}, which have Windows,", pools.join(", ")),
    };
    let text = format!("{nodes} are priced as if they had Linux: what EC2 charges for Windows comes on top");
    Some(Note::new(NoteCode::WindowsPricedAsLinux, text))
}
