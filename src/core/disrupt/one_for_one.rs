//! Nodes of static pools that drifted or expired: each is replaced by another one of its pool.
//! Behaviour: reference, section 3.11. Unlike there, a node whose pods would find no other place is held back.

use crate::provision::static_capacity::{open_one, use_room};
use crate::scheduler::quota::LimitScope;
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::{Demand, Engine, Refusal};
use cutlist_api::node_pool::DisruptionReason;

use super::candidate::Candidate;
use super::obstacle::NodeObstacle;
use super::obstacle::static_capacity::StaticObstacle;
use super::pass::Pass;
use super::rehome;
use super::removal_cause::RemovalCause;

impl Pass<'_, '_> {
    /// A new node of the pool, and the old one's pods on it or on others.
    pub(super) fn replace_static(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: &RemovalCause,
        budget: Option<DisruptionReason>,
    ) {
        let Some(template) = template_of_static(engine, candidate) else { return };
        if let Err(refused) = self.may_go_now(candidate, cause, budget) {
            return self.hold_back(candidate.host, refused.although(cause));
        }
        let mark = engine.mark();
        let opened = self.one_for_one(engine, candidate, template).map_err(NodeObstacle::from);
        let replaced = opened.and_then(|()| {
            let rehoming = rehome::outcome(engine, &[candidate], mark);
            self.take(engine, candidate, cause, budget, rehoming)
        });
        if let Err(obstacle) = replaced {
            engine.revert(mark);
            if let Err(refused) = self.go_for_own_place(engine, candidate, cause, obstacle) {
                self.hold_back(candidate.host, refused.although(cause));
            }
        }
    }

    /// Replaces the node as if it had gone. The engine holds what was tried.
    pub(super) fn one_for_one_afterwards(
        &self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
    ) -> Result<(), StaticObstacle> {
        let Some(template) = template_of_static(engine, candidate) else {
            return Err(StaticObstacle::NothingOffered { why: format!("NodePool {} is not static", candidate.pool) });
        };
        engine.close(candidate.host);
        self.one_for_one(engine, candidate, template)
    }

    fn one_for_one(
        &self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        template: TemplateIndex,
    ) -> Result<(), StaticObstacle> {
        if engine.problem.templates[template].replicas.is_some_and(|replicas| replicas.there > replicas.wanted) {
            return Err(StaticObstacle::SurplusGoesFirst);
        }
        let problem = engine.problem;
        let replacement = open_one(engine, template).map_err(|refusal| match refusal {
            Refusal::Limit { scope: LimitScope::EarlyEnds(why), .. } => StaticObstacle::InstancesEndEarly { why },
            Refusal::Limit { scope, resource, .. } => StaticObstacle::Limit { scope, resource },
            _ => StaticObstacle::NothingOffered { why: problem.templates[template].nothing_offered_text() },
        })?;
        let targets = &self.targets;
        let mut left: Demand = rehome::move_to_existing(engine, &[candidate], &|host| targets[host].is_open());
        let levels = left.keys().map(|class| engine.problem.classes[*class].variants.len()).max().unwrap_or(0);
        for level in 0..levels {
            use_room(engine, &[replacement], level, &mut left);
        }
        rehome::move_without_preferences(engine, &mut left, &|host| targets[host].is_open());
        match left.values().sum::<usize>() {
            0 => Ok(()),
            pods => Err(StaticObstacle::NoRoom { pods, of: candidate.pods.len() }),
        }
    }
}

/// That of its static pool which is for no reservation.
fn template_of_static(engine: &Engine<'_, '_>, candidate: &Candidate) -> Option<TemplateIndex> {
    let templates = &engine.problem.templates;
    templates.position(|it| it.is_static() && !it.is_reserved() && it.name == candidate.pool)
}
