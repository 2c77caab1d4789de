//! Nodes that go whatever budgets say.

use std::collections::BTreeSet;

use crate::inputs::Inputs;
use crate::snapshot::nodes::Machine;
use cutlist_api::node_pool::NodePool;

use super::expiry::expired;
use super::health;
use super::interruption::is_interrupted;

/// Nodes that go whatever budgets say, because they expired, are broken, or EC2 takes them away: what is put there would have to move
/// again. Positions in `machines`; O(nodes).
pub fn without_future(inputs: &Inputs<'_>, machines: &[Machine<'_>]) -> BTreeSet<usize> {
    let expires = |machine: &Machine<'_>| {
        let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == machine.node_pool());
        let is_supported =
            |pool: &NodePool| pool.spec.replicas.is_none() || inputs.policy.feature_gates.static_capacity;
        pool.is_some_and(is_supported) && expired(inputs, machine).is_some()
    };
    let is_repaired = health::is_repaired(inputs, machines);
    let goes = |machine: &Machine<'_>| {
        let stays = machine.is_managed() && !machine.is_being_removed();
        stays && (is_repaired(machine) || expires(machine) || is_interrupted(machine, inputs))
    };
    machines.iter().enumerate().filter(|(_, machine)| goes(machine)).map(|(host, _)| host).collect()
}
