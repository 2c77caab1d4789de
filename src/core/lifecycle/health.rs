//! Nodes that are broken, and for how long that is tolerated.
//! Behaviour: reference, sections 4.8 and 5.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::inputs::Inputs;
use crate::model::time::{duration_text, seconds_between};
use crate::snapshot::nodes::Machine;

/// A condition of nodes that is not to last.
#[derive(Debug, PartialEq, Eq)]
pub struct RepairPolicy {
    pub condition: &'static str,
    pub status: &'static str,
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
pub const UNHEALTHY_PERCENT_MAX: usize = 20;

/// What is wrong with a machine, for how long, and for how long that is tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub policy: &'static RepairPolicy,
    pub seconds: i64,
}

impl Fault {
    pub fn is_over_time(&self) -> bool {
        self.seconds >= self.policy.toleration_seconds
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RepairPolicy { condition, status, toleration_seconds } = self.policy;
        let (seconds, tolerated) = (duration_text(self.seconds), duration_text(*toleration_seconds));
        write!(out, "Unhealthy: {condition} is {status} for {seconds}, tolerated for {tolerated}")
    }
}

/// The fault whose time is over first; `None` for a machine that is well.
pub fn fault(machine: &Machine<'_>, now: Timestamp) -> Option<Fault> {
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
pub fn count(machines: &[Machine<'_>], now: Timestamp) -> BTreeMap<String, (usize, usize)> {
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

pub fn are_too_many(broken: usize, all: usize) -> bool {
    broken > (all * UNHEALTHY_PERCENT_MAX).div_ceil(100)
}

/// Which of these machines go by force.
pub fn is_repaired(inputs: &Inputs<'_>, machines: &[Machine<'_>]) -> impl Fn(&Machine<'_>) -> bool {
    let is_on = inputs.policy.feature_gates.node_repair;
    let now = inputs.now;
    let counts = if is_on { count(machines, now) } else { BTreeMap::new() };
    move |machine| {
        let (broken, all) = counts.get(machine.node_pool().unwrap_or_default()).copied().unwrap_or_default();
        is_on && fault(machine, now).is_some_and(|fault| fault.is_over_time()) && !are_too_many(broken, all)
    }
}
