//! What keeps pods waiting and passes by what is under way: nothing has to be changed for it.

use std::fmt;

use crate::model::Resources;
use crate::model::resources::NODES;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::topology::{GroupIndex, GroupKind};
use crate::scheduler::{ClassIndex, Engine, Refusal};

use super::amounts::amount;
use super::distances::distances;

/// Why an obstacle passes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Nodes on their way out count until they are gone.
    NodesLeave { nodes: Vec<String>, resource: String, freed: i64 },
    /// The pods that it wants to be near get their nodes by this plan.
    NeighboursCome { key: String },
}

/// So many nodes are named.
const NODES_NAMED_MAX: usize = 3;

/// Whether all that keeps a class from its nearest pool passes by itself.
pub fn passes(engine: &Engine<'_, '_>, class: ClassIndex) -> bool {
    let distances = distances(engine, class);
    distances.first().is_some_and(|nearest| {
        nearest.obstacles.iter().all(|obstacle| passing(engine, class, nearest.pool, obstacle).is_some())
    })
}

/// O(machines) for a limit, O(new nodes x their classes) for an affinity.
pub fn passing(engine: &Engine<'_, '_>, class: ClassIndex, pool: &str, obstacle: &Refusal) -> Option<Passing> {
    match obstacle {
        Refusal::Limit {
            scope: scope @ (LimitScope::NodePool | LimitScope::Cluster),
            resource,
            limit,
            used,
            needed,
        } => {
            let machines = engine.problem.machines.iter();
            let leaving = machines.filter(|machine| {
                machine.is_managed()
                    && machine.is_being_removed()
                    && (*scope == LimitScope::Cluster || machine.node_pool() == Some(pool))
            });
            let of_machine = |capacity: &Resources| if resource == NODES { 1 } else { capacity.get(resource) };
            let leaving: Vec<(String, i64)> =
                leaving.map(|machine| (machine.name.to_owned(), of_machine(&machine.capacity()))).collect();
            let freed = leaving.iter().map(|(_, amount)| *amount).fold(0, i64::saturating_add);
            let fits_then = limit.saturating_sub(*used).saturating_add(freed) >= *needed;
            let nodes = leaving.into_iter().filter(|(_, amount)| *amount > 0).map(|(name, _)| name).collect();
            fits_then.then(|| Passing::NodesLeave { nodes, resource: resource.clone(), freed })
        }
        Refusal::Affinity { key } => comes(engine, class, key).then(|| Passing::NeighboursCome { key: key.clone() }),
        _ => None,
    }
}

/// Whether pods that an affinity over this key is about are on no node yet, and this plan buys one for some of them.
fn comes(engine: &Engine<'_, '_>, class: ClassIndex, key: &str) -> bool {
    let problem = engine.problem;
    let Some(variant) = problem.classes[class].variants.last() else { return false };
    let is_meant = |group: &&GroupIndex| {
        let compiled = &problem.groups[**group];
        matches!(compiled.kind, GroupKind::Affinity)
            && problem.domains.name(compiled.key) == key
            && !engine.any_matching(**group)
    };
    let mut meant = problem.variants[*variant].constraints.iter().filter(is_meant);
    meant.any(|group| {
        let mut open = engine.open_hosts().filter(|host| !engine.is_closed(*host));
        open.any(|host| engine.host(host).pods.keys().any(|it| problem.classes[*it].counted_in.contains(group)))
    })
}

impl fmt::Display for Passing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodesLeave { nodes, resource, freed } => {
                let further = nodes.len().saturating_sub(NODES_NAMED_MAX);
                let more = if further > 0 { format!(" and {further} more") } else { String::new() };
                let named: Vec<&str> = nodes.iter().take(NODES_NAMED_MAX).map(String::as_str).collect();
                let (verb, frees) = if nodes.len() == 1 { ("is", "frees") } else { ("are", "free") };
                let freed = amount(resource, *freed);
                write!(out, "it waits until {}{more} {verb} gone, which {frees} {freed}", named.join(", "))
            }
            Self::NeighboursCome { key } => write!(
                out,
                "it waits until the pods that the affinity over {key} names are on the nodes that this plan buys for them"
            ),
        }
    }
}
