//! A change of a pool or of its class reaches the nodes as a rollout reaches the pods of a Deployment: one node first, then
//! waves within the budgets, and no further when new nodes do not become ready.
//!
//! Everything is told from the snapshot. While a pool has no ready node that is as the definitions want it, one of its new nodes
//! at a time may replace others: the canary. Whoever gives up a new node that did not become ready notes that on the pool
//! ([`Failures`]); at `haltAfterFailures` nothing more of the pool is replaced, and nothing is replaced by its nodes. Nodes for
//! pods that wait are launched in any case: they take nothing away from anybody.

use std::collections::BTreeMap;

use crate::inputs::Inputs;
use crate::lifecycle::expiry::is_of_other_template;
use crate::lifecycle::rollout_failures::Failures;
use crate::plan::{Note, NoteCode};
use crate::scheduler::Engine;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;

use super::candidate::Candidate;
use super::obstacle::rollout::RolloutObstacle;

/// How far the rollouts of all pools have come.
#[derive(Clone, Debug, Default)]
pub struct Rollouts {
    has_canary: bool,
    /// By pool of the definitions.
    pools: BTreeMap<String, Rollout>,
    /// By pool whose nodes go, why the nodes that would replace one of them may not be launched. Where one has to wait so do
    /// the others, or for each of thousands a replacement would be looked for in vain.
    refused: BTreeMap<String, RolloutObstacle>,
}

#[derive(Clone, Debug, Default)]
struct Rollout {
    /// A node that is as it should be is ready.
    is_proven: bool,
    /// Claims of nodes as they should be that are not ready yet.
    coming: Vec<String>,
    /// The node that this plan replaces first.
    first: Option<String>,
    /// Why it does not go on.
    halted: Option<Failures>,
}

impl Rollouts {
    /// O(nodes). `candidates`: all of them.
    pub fn new(engine: &Engine<'_, '_>, inputs: &Inputs<'_>, candidates: &[Candidate]) -> Self {
        let settings = &inputs.policy.disruption.rollout;
        let mut pools: BTreeMap<String, Rollout> = BTreeMap::new();
        for pool in inputs.node_pools {
            let halted = halted(inputs, pool);
            let name = pool.metadata.name.clone().unwrap_or_default();
            pools.insert(name, Rollout { halted, ..Rollout::default() });
        }
        for candidate in candidates {
            let machine = &engine.problem.machines[candidate.host];
            let Some(rollout) = pools.get_mut(&candidate.pool) else { continue };
            if machine.is_initialized() {
                rollout.is_proven |= machine.is_ready() && candidate.removal_cause.is_none();
            } else if is_of_template(machine, &candidate.pool, inputs) {
                rollout.coming.extend(machine.claim_name().map(str::to_owned));
            }
        }
        for rollout in pools.values_mut() {
            rollout.coming.sort();
        }
        Self { has_canary: settings.has_canary(inputs.policy.packing), pools, refused: BTreeMap::new() }
    }

    /// Why no node of this pool is replaced now, whatever would replace it.
    pub fn obstacle(&self, pool: &str) -> Option<RolloutObstacle> {
        let obstacle = self.halt(pool).or_else(|| self.canary_under_way(pool));
        obstacle.or_else(|| self.refused.get(pool).cloned())
    }

    /// Whether any number of nodes of this pool may be launched in place of others, not just a canary.
    pub fn goes_on(&self, pool: &str) -> bool {
        let is_proven = self.pools.get(pool).is_some_and(|rollout| rollout.is_proven);
        self.halt(pool).is_none() && (is_proven || !self.has_canary)
    }

    /// Asks whether nodes of these pools may replace a node of the pool `from` now. They then are the canary of each that has none.
    pub fn launch<'p>(
        &mut self,
        pools: impl Iterator<Item = &'p str> + Clone,
        node: &str,
        from: &str,
    ) -> Result<(), RolloutObstacle> {
        if let Some(obstacle) = pools.clone().find_map(|pool| self.halt(pool).or_else(|| self.canary_under_way(pool))) {
            self.refused.insert(from.to_owned(), obstacle.clone());
            return Err(obstacle);
        }
        for pool in pools {
            if let Some(rollout) = self.pools.get_mut(pool).filter(|rollout| !rollout.is_proven) {
                rollout.first.get_or_insert_with(|| node.to_owned());
            }
        }
        Ok(())
    }

    fn halt(&self, pool: &str) -> Option<RolloutObstacle> {
        let failures = self.pools.get(pool)?.halted.clone()?;
        Some(RolloutObstacle::Halted { node_pool: pool.to_owned(), failures })
    }

    fn canary_under_way(&self, pool: &str) -> Option<RolloutObstacle> {
        let rollout = self.pools.get(pool).filter(|rollout| self.has_canary && !rollout.is_proven)?;
        match (rollout.coming.first(), &rollout.first) {
            (Some(claim), _) => Some(RolloutObstacle::CanaryComes { node_claim: claim.clone() }),
            (None, Some(node)) => Some(RolloutObstacle::CanaryReplaces { node: node.clone() }),
            (None, None) => None,
        }
    }
}

fn halted(inputs: &Inputs<'_>, pool: &NodePool) -> Option<Failures> {
    let applied = inputs.snapshot.node_pools.iter().find(|applied| applied.metadata.name == pool.metadata.name)?;
    let class_name = &pool.spec.template.spec.node_class_ref.name;
    let class = inputs.node_classes.iter().find(|class| class.metadata.name.as_ref() == Some(class_name));
    Failures::halting(applied, pool, class, inputs.policy.disruption.rollout.halt_after_failures)
}

/// What the reader should know of halted rollouts, also where no node drifts any more.
pub fn notes(inputs: &Inputs<'_>) -> Vec<Note> {
    let note = |pool: &NodePool| {
        let failures = halted(inputs, pool)?;
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let text = format!(
            "NodePool {name}: {}; none of its nodes is replaced until its template or class changes, or its annotation {} is \
             removed; pods that wait still get nodes of it",
            failures.text(),
            keys::ROLLOUT_FAILURES,
        );
        Some(Note::new(NoteCode::RolloutHalted, text).about_pool(name))
    };
    inputs.node_pools.iter().filter_map(note).collect()
}

/// Whether a machine on its way was made from the template as it is now. More can not be told before it is launched.
fn is_of_template(machine: &Machine<'_>, pool: &str, inputs: &Inputs<'_>) -> bool {
    let pool = inputs.node_pools.iter().find(|it| it.metadata.name.as_deref() == Some(pool));
    machine.claim.zip(pool).is_some_and(|(claim, pool)| !is_of_other_template(claim, pool))
}
