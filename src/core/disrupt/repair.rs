//! Node repair: nodes that stay broken are removed by force, whatever stands in the way, while not too many are broken at once.
//! Behaviour: reference, sections 4.8 and 5. Unlike there, new places for the pods are part of the plan.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::core::plan::{Inputs, Reason, ReasonCode};
use crate::core::scheduler::Engine;
use crate::core::snapshot::nodes::Machine;

use super::candidate::Candidate;
use super::rehome::{self, Rehoming};
use super::{Pass, duration_text, seconds_between};

/// What a node that goes by force says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub condition: String,
    pub status: String,
}

/// A condition of nodes that is not to last.
struct RepairPolicy {
    condition: &'static str,
    status: &'static str,
    toleration_seconds: i64,
}

const fn policy(condition: &'static str, status: &'static str, toleration_minutes: i64) -> RepairPolicy {
    RepairPolicy { condition, status, toleration_seconds: toleration_minutes * 60 }
}

/// The reference's for EC2: what the kubelet says, and what the node monitoring agent says.
const POLICIES: [RepairPolicy; 7] = [
    policy("Ready", "False", 30),
    policy("Ready", "Unknown", 30),
    policy("AcceleratedHardwareReady", "False", 10),
    policy("StorageReady", "False", 30),
    policy("NetworkingReady", "False", 30),
    policy("KernelReady", "False", 30),
    policy("ContainerRuntimeReady", "False", 30),
];

/// More of a pool than this, rounded up, are not broken by themselves.
const MOST_UNHEALTHY_PERCENT: usize = 20;

/// What is wrong with a machine, for how long, and for how long that is tolerated.
struct Fault {
    policy: &'static RepairPolicy,
    seconds: i64,
}

impl Fault {
    fn is_over_time(&self) -> bool {
        self.seconds >= self.policy.toleration_seconds
    }

    fn text(&self) -> String {
        let RepairPolicy { condition, status, toleration_seconds } = self.policy;
        let (seconds, tolerated) = (duration_text(self.seconds), duration_text(*toleration_seconds));
        format!("Unhealthy: {condition} is {status} for {seconds}, tolerated for {tolerated}")
    }
}

/// The fault whose time is over first; `None` for a machine that is well.
fn fault(machine: &Machine<'_>, now: Timestamp) -> Option<Fault> {
    let conditions = machine.node?.status.as_ref()?.conditions.as_deref()?;
    let faults = POLICIES.iter().filter_map(|policy| {
        let is_it = |type_: &str, status: &str| type_ == policy.condition && status == policy.status;
        let condition = conditions.iter().find(|condition| is_it(&condition.type_, &condition.status))?;
        let since = condition.last_transition_time.as_ref().map_or(now, |time| time.0);
        Some(Fault { policy, seconds: seconds_between(since, now) })
    });
    faults.min_by_key(|fault| fault.policy.toleration_seconds - fault.seconds)
}

/// By pool (empty: of none), broken nodes and all nodes.
fn count(machines: &[Machine<'_>], now: Timestamp) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for machine in machines.iter().filter(|machine| machine.node.is_some()) {
        let is_broken = usize::from(fault(machine, now).is_some());
        // Nodes without a pool are judged by all nodes of the cluster.
        for pool in BTreeSet::from([machine.node_pool().unwrap_or_default(), ""]) {
            let (broken, all) = counts.entry(pool.to_owned()).or_default();
            *broken += is_broken;
            *all += 1;
        }
    }
    counts
}

fn are_too_many(broken: usize, all: usize) -> bool {
    broken > (all * MOST_UNHEALTHY_PERCENT).div_ceil(100)
}

/// Which of these machines go by force.
pub(super) fn is_repaired(inputs: &Inputs<'_>, machines: &[Machine<'_>]) -> impl Fn(&Machine<'_>) -> bool {
    let is_on = inputs.policy.feature_gates.node_repair;
    let now = inputs.now;
    let counts = if is_on { count(machines, now) } else { BTreeMap::new() };
    move |machine| {
        let (broken, all) = counts.get(machine.node_pool().unwrap_or_default()).copied().unwrap_or_default();
        is_on && fault(machine, now).is_some_and(|fault| fault.is_over_time()) && !are_too_many(broken, all)
    }
}

impl Pass<'_, '_> {
    /// Removes nodes whose time is over, before anything else is looked at.
    pub(super) fn repair(&mut self, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
        if !self.inputs.policy.feature_gates.node_repair {
            return;
        }
        let now = self.inputs.now;
        let counts = count(&engine.problem.machines, now);
        let over_time: Vec<(&Candidate, Fault)> = self
            .open(candidates)
            .into_iter()
            .filter_map(|candidate| Some((candidate, fault(&engine.problem.machines[candidate.host], now)?)))
            .filter(|(_, fault)| fault.is_over_time())
            .collect();
        for (candidate, _) in &over_time {
            self.targets[candidate.host].doomed = true;
        }
        for (candidate, fault) in over_time {
            let (broken, all) = counts.get(&candidate.pool).copied().unwrap_or_default();
            if are_too_many(broken, all) {
                let of = if candidate.pool.is_empty() {
                    "the cluster".to_owned()
                } else {
                    format!("NodePool {}", candidate.pool)
                };
                let text = format!(
                    "{}, but {broken} of {all} nodes of {of} are unhealthy: more than {MOST_UNHEALTHY_PERCENT} % are not repaired",
                    fault.text()
                );
                self.hold_back(engine, candidate.host, ReasonCode::NodeRepairBlocked, text);
                continue;
            }
            let broken =
                Broken { condition: fault.policy.condition.to_owned(), status: fault.policy.status.to_owned() };
            self.disruption.broken.insert(candidate.host, broken);
            self.remove_at_once(engine, candidate, Reason { code: ReasonCode::Unhealthy, text: fault.text() });
        }
    }

    /// With new places for its pods, as far as there are any.
    pub(super) fn remove_at_once(&mut self, engine: &mut Engine<'_, '_>, candidate: &Candidate, mut reason: Reason) {
        let mark = engine.mark();
        let rehoming =
            rehome::rehome(engine, candidate, &self.targets, self.inputs.policy.packing).unwrap_or_else(|(_, why)| {
                engine.revert(mark);
                reason.text.push_str(&format!("; {why}"));
                Rehoming::default()
            });
        self.spend(engine, candidate, None);
        self.remove(engine, &[candidate], reason, rehoming);
    }
}
