//! Pools that left the definitions. Their nodes go as nodes that drifted do: replacements first, within the budgets that the pool
//! has in the cluster, and past a share of all nodes only when somebody confirmed it. Where another pool has the same template
//! nothing about the machines would change: it takes them over.

use std::collections::BTreeMap;

use crate::inputs::Inputs;
use crate::model::static_hash::node_pool_hash;
use crate::plan::{Note, NoteCode, Reason, ReasonCode};
use crate::scheduler::HostIndex;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::node_pool::{NodePool, NodeSelectorRequirement};

use super::budgets::limit;
use super::drift::is_from_definitions;

/// A node that another pool takes over.
#[derive(Clone, Debug)]
pub struct Adoption {
    pub host: HostIndex,
    /// Name of the pool.
    pub by: String,
    /// Name of the pool that left the definitions.
    pub former: String,
}

impl Adoption {
    /// As the plan says it.
    pub fn reason(&self) -> Reason {
        let Self { by, former, .. } = self;
        let text =
            format!("NodePool {former} was removed from the definitions, and NodePool {by} has the same template");
        Reason::new(ReasonCode::NodePoolRenamed, text)
    }
}

/// Pools that were applied from the definitions, are in the cluster, and are not in the definitions any more.
pub fn removed_pools<'i>(inputs: &Inputs<'i>) -> impl Iterator<Item = &'i NodePool> {
    let (defined, owned) = (inputs.node_pools, inputs.policy.owned_pools.clone());
    inputs.snapshot.node_pools.iter().filter(move |applied| {
        let is_defined = defined.iter().any(|pool| pool.metadata.name == applied.metadata.name);
        !is_defined && (is_from_definitions(applied) || owned.contains(name_of(applied)))
    })
}

/// The pool that makes the same nodes; one that is new first: then the other was renamed.
fn heir<'i>(removed: &NodePool, inputs: &Inputs<'i>) -> Option<&'i NodePool> {
    let is_new = |pool: &NodePool| !inputs.snapshot.node_pools.iter().any(|it| it.metadata.name == pool.metadata.name);
    let is_dynamic = |pool: &NodePool| pool.spec.replicas.is_none();
    let alike = inputs.node_pools.iter().filter(|pool| is_dynamic(pool) && makes_the_same_nodes(pool, removed));
    alike.filter(|_| is_dynamic(removed)).min_by_key(|pool| (!is_new(pool), pool.metadata.name.clone()))
}

/// Whether two pools differ in nothing that a node is made from.
fn makes_the_same_nodes(one: &NodePool, other: &NodePool) -> bool {
    let requirements = |pool: &NodePool| {
        let mut requirements = pool.spec.template.spec.requirements.clone();
        for requirement in &mut requirements {
            requirement.values.sort();
        }
        let key = |it: &NodeSelectorRequirement| (it.key.clone(), format!("{:?}", it.operator), it.values.clone());
        requirements.sort_by_key(key);
        requirements
    };
    node_pool_hash(one) == node_pool_hash(other) && requirements(one) == requirements(other)
}

/// By pool that was removed, the pool that takes its nodes over.
pub(super) fn heirs<'i>(inputs: &Inputs<'i>) -> BTreeMap<String, &'i NodePool> {
    removed_pools(inputs).filter_map(|pool| Some((name_of(pool).to_owned(), heir(pool, inputs)?))).collect()
}

/// Removed pools whose nodes may not be replaced before somebody says so, and why.
pub fn unconfirmed(inputs: &Inputs<'_>, machines: &[Machine<'_>]) -> BTreeMap<String, String> {
    let heirs = heirs(inputs);
    let is_confirmed = |pool: &NodePool| {
        pool.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(keys::REMOVAL_CONFIRMED))
    };
    let waiting: Vec<&str> = removed_pools(inputs)
        .filter(|pool| !is_confirmed(pool) && !heirs.contains_key(name_of(pool)))
        .map(name_of)
        .collect();
    let managed: Vec<&Machine<'_>> = machines.iter().filter(|it| it.is_managed() && !it.is_being_removed()).collect();
    let of_pools = |machine: &&&Machine<'_>| machine.node_pool().is_some_and(|pool| waiting.contains(&pool));
    let (going, all) = (managed.iter().filter(of_pools).count(), managed.len());
    let mut limits = inputs.policy.confirm_pool_removal_above.iter();
    let Some(above) = limits.find(|above| going > limit(above, all)) else { return BTreeMap::new() };
    let text = format!("{going} of {all} nodes would go for it, more than approval.confirmPoolRemovalAbove {above}");
    waiting.into_iter().map(|pool| (pool.to_owned(), text.clone())).collect()
}

/// What the reader should know of removals that wait for a confirmation.
pub fn notes(inputs: &Inputs<'_>, machines: &[Machine<'_>]) -> Vec<Note> {
    let note = |(pool, because): (String, String)| {
        Note::new(
            NoteCode::ConfirmationNeeded,
            format!(
                "NodePool {pool} was removed from the definitions, and {because}: its nodes stay until the plan is approved, or the \
             pool has the annotation {}",
                keys::REMOVAL_CONFIRMED
            ),
        )
        .about_pool(&pool)
    };
    unconfirmed(inputs, machines).into_iter().map(note).collect()
}

pub(super) fn name_of(pool: &NodePool) -> &str {
    pool.metadata.name.as_deref().unwrap_or_default()
}
