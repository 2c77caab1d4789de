//! Node repair: nodes that stay broken are removed by force, whatever stands in the way, while not too many are broken at once.
//! Behaviour: reference, sections 4.8 and 5. Unlike there, new places for the pods are part of the plan.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::obstacle::NodeObstacle;
use crate::disrupt::pass::Pass;
use crate::disrupt::refused::Refused;
use crate::disrupt::removal_cause::RemovalCause;
use crate::lifecycle::health::{self, Fault};
use crate::plan::RemovalMode;
use crate::scheduler::Engine;

/// Removes nodes whose time is over, before anything else is looked at.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    if !pass.inputs.policy.feature_gates.node_repair {
        return;
    }
    let now = pass.inputs.now;
    let counts = health::count(&engine.problem.machines, now);
    let over_time: Vec<(&Candidate, Fault)> = pass
        .open(candidates)
        .into_iter()
        .filter_map(|candidate| Some((candidate, health::fault(&engine.problem.machines[candidate.host], now)?)))
        .filter(|(_, fault)| fault.is_over_time())
        .collect();
    for (candidate, _) in &over_time {
        pass.targets[candidate.host].leaving = true;
    }
    for (candidate, fault) in over_time {
        let policy = fault.policy;
        let cause = RemovalCause::Unhealthy(fault);
        let (broken, all) = counts.get(&candidate.pool).copied().unwrap_or_default();
        if health::are_too_many(broken, all) {
            let obstacle = NodeObstacle::TooManyUnhealthy { broken, nodes: all, node_pool: candidate.pool.clone() };
            pass.hold_back(candidate.host, Refused::from(obstacle).although(&cause));
            continue;
        }
        let health::RepairPolicy { condition, status, .. } = policy;
        let mode = RemovalMode::ByForce { condition: (*condition).to_owned(), status: (*status).to_owned() };
        pass.remove_without_waiting(mode, engine, candidate, cause);
    }
}
