//! Nodes of pools that left the definitions, and that other pools with the same template take over.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::pass::Pass;
use crate::disrupt::removed_pools::{Adoption, heirs, name_of};
use crate::scheduler::Engine;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;

/// Gives nodes of removed pools to those that would make the same, as far as their limits go. What is left goes as nodes of
/// other removed pools do.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    let heirs = heirs(pass.inputs);
    if heirs.is_empty() {
        return;
    }
    for candidate in pass.open(candidates) {
        let machine = &engine.problem.machines[candidate.host];
        let Some((pool, heir)) = former_pool(machine).and_then(|pool| heirs.get_key_value(pool)) else { continue };
        let by = name_of(heir);
        let Some(template) = engine.problem.templates.position(|template| template.name == by) else {
            continue;
        };
        if !machine.is_initialized() || !engine.take_over(template, &machine.capacity()) {
            continue;
        }
        pass.done.insert(candidate.host);
        let adoption = Adoption { host: candidate.host, by: by.to_owned(), former: pool.clone() };
        pass.disruption.adoptions.push(adoption);
    }
}

/// The pool that a claim still belongs to, though its node may have been given away already, or else the node's.
fn former_pool<'m>(machine: &'m Machine<'_>) -> Option<&'m str> {
    let of_claim = machine.claim.and_then(|claim| claim.metadata.labels.as_ref()?.get(keys::NODE_POOL));
    of_claim.map(String::as_str).or_else(|| machine.node_pool())
}
