//! Whose turn it is, where beginnings of moves are refused: those that were refused lately come last, and no plan is made of them while there
//! may be others.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::controller::moves::apply::{self, ApplyError};
use crate::controller::observed::view::name_of;
use crate::controller::set_aside::SetAside;
use crate::core::plan::{Plan, Step, StepKind};
use crate::core::snapshot::Snapshot;
use crate::ports::PortError;

/// What moves that begin together are remembered by, where they are refused.
pub struct Beginning {
    objects: BTreeSet<String>,
    only_creates: bool,
}

impl Beginning {
    /// A move of a node stands for that node. New nodes have other names in each plan: they stand for their pools.
    fn of(plan: &Plan, moves: &[u32]) -> Self {
        let steps: Vec<&Step> = moves.iter().flat_map(|number| apply::steps_of(plan, *number)).collect();
        let of_nodes = steps.iter().filter(|step| step.kind != StepKind::Create);
        let nodes: BTreeSet<String> = of_nodes.map(|step| of_claim(&step.node_claim)).collect();
        if nodes.is_empty() {
            let pools = steps.iter().map(|step| of_pool(&step.node_pool)).collect();
            return Self { objects: pools, only_creates: true };
        }
        Self { objects: nodes, only_creates: false }
    }

    /// When it was refused last; `None` where that was not so lately, or not for each of its pools.
    fn refused_at(&self, aside: &SetAside) -> Option<Timestamp> {
        self.objects.iter().map(|object| aside.refused_at(object)).min().flatten()
    }

    /// Whether it is left alone now.
    pub fn is_aside(&self, aside: &SetAside, now: Timestamp) -> bool {
        self.objects.iter().all(|object| aside.is_aside(object, now))
    }

    /// Remembers what came of it: of new nodes which pools it was that were refused.
    pub fn remember(&self, outcome: &Result<Vec<PortError>, ApplyError>, aside: &mut SetAside, now: Timestamp) {
        match outcome {
            Ok(_) => self.objects.iter().for_each(|object| aside.done(object)),
            Err(ApplyError::NotCreated { node_pools, .. }) if self.only_creates => {
                node_pools.iter().for_each(|pool| aside.refused(&of_pool(pool), now));
            }
            Err(ApplyError::Port(error) | ApplyError::NotCreated { first: error, .. }) if error.is_of_one_object() => {
                self.objects.iter().for_each(|object| aside.refused(object, now));
            }
            Err(_) => {}
        }
    }
}

fn of_claim(node_claim: &str) -> String {
    format!("move of {node_claim}")
}

fn of_pool(node_pool: &str) -> String {
    format!("creations of NodePool {node_pool}")
}

/// Moves that begin together, in the order of the plan but for those that were refused: they come after all others, the one that has waited
/// longest first. So each has its turn, also where refusals take longer than anything is left alone.
pub fn in_turn<'m>(plan: &Plan, moves: &'m [u32], aside: &SetAside) -> Vec<(&'m [u32], Beginning)> {
    let groups = apply::in_groups(plan, moves).into_iter();
    let mut beginnings: Vec<_> = groups.map(|together| (together, Beginning::of(plan, together))).collect();
    beginnings.sort_by_cached_key(|(_, beginning)| beginning.refused_at(aside));
    beginnings
}

/// Nodes whose moves were refused lately, by name: each plan would choose them again, and a budget of one node would be spent on the same
/// one for ever.
pub fn refused_lately(snapshot: &Snapshot, aside: &SetAside) -> BTreeSet<String> {
    let claims = snapshot.node_claims.iter();
    let refused = claims.filter(|claim| aside.refused_at(&of_claim(name_of(claim))).is_some());
    refused.filter_map(|claim| claim.status.as_ref()?.node_name.clone()).collect()
}
