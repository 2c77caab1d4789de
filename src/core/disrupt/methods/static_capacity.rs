//! Static pools: nodes beyond `spec.replicas` go.
//! Behaviour: reference, section 3.11. Unlike there, a node whose pods would find no other place is held back.

use crate::disrupt::candidate::Candidate;
use crate::disrupt::pass::Pass;
use crate::disrupt::removal_cause::RemovalCause;
use crate::model::time::seconds_between;
use crate::plan::ReasonCode;
use crate::scheduler::Engine;
use crate::scheduler::template::Replicas;
use cutlist_api::duration::NillableDuration;

/// A pool keeps to its replicas although nodes are not to be disrupted: the drain waits for their pods.
fn may_be_surplus(candidate: &Candidate) -> bool {
    candidate.obstacle.as_ref().is_none_or(|obstacle| obstacle.code() == ReasonCode::DoNotDisrupt)
}

/// Removes what is more than a pool wants.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    for template in engine.problem.templates.indices() {
        let compiled = &engine.problem.templates[template];
        let replicas = compiled.replicas.filter(|it| it.there > it.wanted && !compiled.is_reserved());
        let Some(Replicas { wanted, there }) = replicas else {
            continue;
        };
        let mut of_pool: Vec<&Candidate> = pass.open(candidates);
        of_pool.retain(|candidate| candidate.pool == compiled.name && may_be_surplus(candidate));
        of_pool.sort_by(|one, two| {
            let (one, two) = (order(pass, engine, one), order(pass, engine, two));
            one.0.cmp(&two.0).then(one.1.total_cmp(&two.1)).then(one.2.cmp(two.2))
        });
        let mut left = there - wanted;
        for candidate in of_pool.iter().take(left) {
            pass.targets[candidate.host].leaving = true;
        }
        for candidate in of_pool {
            if left == 0 {
                break;
            }
            // Where one of the others could not go, and this one got pods of theirs.
            if pass.targets[candidate.host].receives {
                continue;
            }
            let cause = RemovalCause::Surplus { node_pool: compiled.name.clone(), there, wanted };
            left -= usize::from(pass.replace(engine, candidate, &cause, None));
        }
    }
}

/// Empty nodes first, then those that cost least to disrupt for the life they have left; what is not to be disrupted last.
fn order<'c>(pass: &Pass<'_, '_>, engine: &Engine<'_, '_>, candidate: &'c Candidate) -> ((bool, bool), f64, &'c str) {
    let claim = engine.problem.machines[candidate.host].claim;
    let lifetime = claim.and_then(|claim| claim.spec.expire_after.as_ref().and_then(NillableDuration::seconds));
    let born = claim.and_then(|claim| claim.metadata.creation_timestamp.as_ref());
    let left = match (lifetime, born) {
        (Some(lifetime), Some(born)) if lifetime > 0 => {
            let age = f64::from(i32::try_from(seconds_between(born.0, pass.inputs.now)).unwrap_or(i32::MAX));
            let lifetime = f64::from(u32::try_from(lifetime).unwrap_or(u32::MAX));
            (1.0 - age / lifetime).max(0.0)
        }
        _ => 1.0,
    };
    let first = (candidate.obstacle.is_some(), !candidate.pods.is_empty());
    (first, candidate.disruption_cost * left, &candidate.name)
}
