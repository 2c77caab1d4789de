//! Node repair: nodes that stay broken are removed by force, whatever stands in the way, while not too many are broken at once.
//! Behaviour: reference, sections 4.8 and 5. Unlike there, new places for the pods are part of the plan.

use crate::core::lifecycle::health::{self, Fault};
use crate::core::plan::{Reason, ReasonCode, RemovalMode};
use crate::core::scheduler::Engine;

use super::Pass;
use super::candidate::Candidate;
use super::obstacle::NodeObstacle;
use super::refused::Refused;
use super::rehome::{self, Rehoming};

impl Pass<'_, '_> {
    /// Removes nodes whose time is over, before anything else is looked at.
    pub(super) fn repair(&mut self, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
        if !self.inputs.policy.feature_gates.node_repair {
            return;
        }
        let now = self.inputs.now;
        let counts = health::count(&engine.problem.machines, now);
        let over_time: Vec<(&Candidate, Fault)> = self
            .open(candidates)
            .into_iter()
            .filter_map(|candidate| Some((candidate, health::fault(&engine.problem.machines[candidate.host], now)?)))
            .filter(|(_, fault)| fault.is_over_time())
            .collect();
        for (candidate, _) in &over_time {
            self.targets[candidate.host].leaving = true;
        }
        for (candidate, fault) in over_time {
            let reason = Reason { code: ReasonCode::Unhealthy, text: fault.text() };
            let (broken, all) = counts.get(&candidate.pool).copied().unwrap_or_default();
            if health::are_too_many(broken, all) {
                let obstacle = NodeObstacle::TooManyUnhealthy { broken, nodes: all, node_pool: candidate.pool.clone() };
                self.hold_back(candidate.host, Refused::from(obstacle).although(&reason));
                continue;
            }
            let health::RepairPolicy { condition, status, .. } = fault.policy;
            let mode = RemovalMode::ByForce { condition: (*condition).to_owned(), status: (*status).to_owned() };
            self.remove_at_once(mode, engine, candidate, reason);
        }
    }

    /// With new places for its pods, as far as there are any.
    pub(super) fn remove_at_once(
        &mut self,
        mode: RemovalMode,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        mut reason: Reason,
    ) {
        let mark = engine.mark();
        let rehoming = rehome::rehome(engine, &[candidate], &self.targets, self.inputs).unwrap_or_else(|obstacle| {
            engine.revert(mark);
            reason.text.push_str(&format!("; {obstacle}"));
            Rehoming::default()
        });
        self.spend(engine, candidate, None);
        self.remove_as(mode, engine, &[candidate], reason, rehoming);
    }
}
