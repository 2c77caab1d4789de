//! Nodes that are older than `expireAfter`. Expiry does not wait for budgets, but what takes the place of a node is there before it goes.
//! Source: reference, sections 3.2 and 4.8: the pods of all nodes that expired are one batch for the provisioner.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::obstacle::NodeObstacle;
use crate::disrupt::pass::Pass;
use crate::disrupt::refused::Refused;
use crate::disrupt::rehome;
use crate::disrupt::removal_cause::RemovalCause;
use crate::lifecycle::expiry::expired_for_seconds;
use crate::model::HourlyPrice;
use crate::provision::cheapest::improve;
use crate::scheduler::{Engine, HostIndex};

/// A node that expired waits for the room of others for a day at most, however many are on their way by then.
const WAITS_SECONDS_MAX: i64 = 24 * 60 * 60;

/// So many nodes at most stand or fall together.
const TOGETHER_MAX: usize = 16;

pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    pass.replace_expired(engine, candidates);
}

impl Pass<'_, '_> {
    fn replace_expired(&mut self, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
        for (cause, alike) in self.expired_alike(candidates) {
            for together in alike.chunks(TOGETHER_MAX) {
                if self.wait_together(engine, together, &cause) || self.replace_together(engine, together, &cause) {
                    continue;
                }
                for candidate in together {
                    if together.len() == 1 || !self.wait_together(engine, &[candidate], &cause) {
                        self.renew(engine, candidate, &cause, None);
                    }
                }
            }
        }
    }

    /// Nodes of one pool that expired at the same age, such as those of one scale-up; in the order of the first of them.
    fn expired_alike<'c>(&self, candidates: &'c [Candidate]) -> Vec<(RemovalCause, Vec<&'c Candidate>)> {
        let mut groups: Vec<(RemovalCause, Vec<&Candidate>)> = Vec::new();
        for candidate in self.open(candidates) {
            let Some(cause) = candidate.removal_cause.as_ref().filter(|_| candidate.is_expired()) else { continue };
            let is_alike = |(its, alike): &&mut (RemovalCause, Vec<&Candidate>)| {
                its == cause && alike.first().is_some_and(|first| first.pool == candidate.pool)
            };
            match groups.iter_mut().find(is_alike) {
                Some((_, alike)) => alike.push(candidate),
                None => groups.push((cause.clone(), vec![candidate])),
            }
        }
        groups
    }

    /// Whether the nodes wait for others that are on their way, or bought by this plan, and have room for all of their pods: nothing is to
    /// be bought for these then, and they move once.
    fn wait_together(&mut self, engine: &mut Engine<'_, '_>, together: &[&Candidate], cause: &RemovalCause) -> bool {
        let may_wait = |candidate: &&&Candidate| {
            let claim = engine.problem.machines[candidate.host].claim;
            let since = claim.and_then(|claim| expired_for_seconds(claim, self.inputs.now));
            !candidate.is_static && since.is_some_and(|seconds| seconds <= WAITS_SECONDS_MAX)
        };
        if together.iter().filter(may_wait).count() < together.len() {
            return false;
        }
        let mark = engine.mark();
        let targets = &self.targets;
        let mut demand = rehome::move_to_existing(engine, together, &|host| targets[host].is_open());
        let problem = engine.problem;
        let is_coming = |host: HostIndex| {
            let machine = &problem.machines[host];
            machine.is_managed() && !machine.is_initialized() && !machine.is_being_removed()
        };
        let waits = !demand.is_empty() && rehome::fits_on_its_way(engine, &mut demand, &is_coming);
        engine.revert(mark);
        if waits {
            for candidate in together {
                self.hold_back(candidate.host, Refused::from(NodeObstacle::RoomOnItsWay).although(cause));
            }
        }
        waits
    }

    /// Replaces the nodes as one move, if the new nodes then cost less than if each had its own; whether it did.
    fn replace_together(&mut self, engine: &mut Engine<'_, '_>, together: &[&Candidate], cause: &RemovalCause) -> bool {
        let may_go = |candidate: &&&Candidate| !candidate.is_static && self.may_go_now(candidate, cause, None).is_ok();
        if together.len() < 2 || together.iter().filter(may_go).count() < together.len() {
            return false;
        }
        let Some(apart) = self.cost_apart(engine, together).filter(|cost| *cost > HourlyPrice::ZERO) else {
            return false;
        };
        let mark = engine.mark();
        match rehome::rehome(engine, together, &self.targets, self.inputs) {
            Ok(rehoming) if improve::cost_since(engine, mark) < apart => {
                together.iter().for_each(|candidate| self.spend(engine, candidate, None));
                self.remove(engine, together, cause.clone(), rehoming);
                true
            }
            _ => {
                engine.revert(mark);
                false
            }
        }
    }

    /// What new nodes cost if each of these is replaced alone; `None` where one can not be. The engine is as it was.
    fn cost_apart(&self, engine: &mut Engine<'_, '_>, nodes: &[&Candidate]) -> Option<HourlyPrice> {
        let mark = engine.mark();
        let alone = |candidate: &&Candidate| rehome::rehome(engine, &[candidate], &self.targets, self.inputs).is_ok();
        let all = nodes.iter().all(alone);
        let cost = improve::cost_since(engine, mark);
        engine.revert(mark);
        all.then_some(cost)
    }
}
