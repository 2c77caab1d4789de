//! Nodes that nothing but their own use of a limit, a reservation or a quota of the account keeps from being replaced.
//! Behaviour: reference, section 4.8: what expired goes whatever comes of it. Here a replacement is there first, if there can be one.

use crate::inputs::Inputs;
use crate::model::requirements::is_well_known;
use crate::offer::quota_in_its_way;
use crate::plan::ReasonCode;
use crate::scheduler::engine::GivesBack;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::{Engine, Problem};
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;

use super::candidate::Candidate;
use super::drift::{DriftCause, drift};
use super::obstacle::NodeObstacle;
use super::obstacle::own_place::OwnPlace;
use super::obstacle::static_capacity::StaticObstacle;
use super::pass::Pass;
use super::refused::Refused;
use super::rehome::{self, Rehoming};
use super::removal_cause::RemovalCause;

/// A whole problem is compiled for each.
const TRIED_WITHOUT_MAX: usize = 4;

impl Pass<'_, '_> {
    /// What the node takes itself, where its pods would have a place if it took nothing. The engine is as it was.
    pub(super) fn own_place(
        &self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        obstacle: &NodeObstacle,
    ) -> Option<OwnPlace> {
        let is_of_limit = match obstacle {
            NodeObstacle::NoPlace { nearest, .. } => {
                nearest.as_ref().is_some_and(|nearest| nearest.code == ReasonCode::LimitReached)
            }
            NodeObstacle::Static(StaticObstacle::Limit { scope, .. }) => {
                matches!(scope, LimitScope::NodePool | LimitScope::Cluster)
            }
            _ => false,
        };
        let would_do = |limits: &GivesBack| {
            let tries = |engine: &mut Engine<'_, '_>| self.replaced_afterwards(engine, candidate).is_ok();
            engine.while_giving_back(candidate.host, *limits, tries)
        };
        if let Some(limits) = GivesBack::SOME.into_iter().filter(|_| is_of_limit).find(would_do) {
            return Some(OwnPlace::Limit(limits));
        }
        let is_of_offer = matches!(
            obstacle,
            NodeObstacle::NoPlace { .. }
                | NodeObstacle::Static(StaticObstacle::NothingOffered { .. } | StaticObstacle::Limit { .. })
        );
        let of_quota = || {
            // Whether that is enough is only tried for what would go then.
            if !candidate.is_expired() {
                return None;
            }
            let (quota, _) = quota_in_its_way(self.inputs, &engine.problem.machines[candidate.host])?;
            Some(OwnPlace::Quota { code: quota.code, name: quota.name })
        };
        own_reservation(engine, candidate).or_else(of_quota).filter(|_| is_of_offer)
    }

    /// Finds a place for every pod as if the node had gone. The engine holds what was tried.
    fn replaced_afterwards(&self, engine: &mut Engine<'_, '_>, candidate: &Candidate) -> Result<(), NodeObstacle> {
        match candidate.is_static {
            true => self.one_for_one_afterwards(engine, candidate).map_err(NodeObstacle::from),
            false => rehome::rehome(engine, &[candidate], &self.targets, self.inputs).map(drop),
        }
    }

    /// Whether a node that expired may go now for the room that it takes itself: of each pool one after another, since the pods wait.
    pub(super) fn has_its_turn(&self, engine: &Engine<'_, '_>, candidate: &Candidate) -> bool {
        let machines = &engine.problem.machines;
        let is_of_pool = |machine: &Machine<'_>| machine.node_pool() == Some(candidate.pool.as_str());
        let another_goes = machines.iter().any(|machine| is_of_pool(machine) && machine.is_being_removed());
        let mut going_first =
            self.disruption.removals.iter().filter(|it| matches!(it.cause, RemovalCause::WithoutPlaces { .. }));
        !another_goes && !going_first.any(|removal| removal.nodes.iter().any(|going| is_of_pool(&machines[going.host])))
    }

    /// Why the node stays although only what it takes itself was in the way: where it is gone, its pods would still have no place.
    pub(super) fn refused_without(
        &mut self,
        engine: &Engine<'_, '_>,
        candidate: &Candidate,
        own: &OwnPlace,
        obstacle: NodeObstacle,
    ) -> Option<Refused> {
        let machine = &engine.problem.machines[candidate.host];
        let mut policy = self.inputs.policy.clone();
        match own {
            OwnPlace::Reservation { id } => {
                if let Some(asked) = self.not_of_reservation(machine, candidate) {
                    let own_place = Some(OwnPlace::OtherReservation { id: id.clone(), asked });
                    return Some(Refused { own_place, ..obstacle.into() });
                }
                policy.instance_back = Some(id.clone());
            }
            OwnPlace::Quota { .. } => match quota_in_its_way(self.inputs, machine) {
                Some((_, uses)) => policy.vcpu_quotas = uses,
                None => return Some(obstacle.into()),
            },
            // That was tried already.
            OwnPlace::Limit(_) | OwnPlace::OtherReservation { .. } => return None,
        }
        if self.tried_without >= TRIED_WITHOUT_MAX {
            return Some(obstacle.into());
        }
        let without = Inputs { policy, ..self.inputs.clone() };
        let problem = Problem::beside(&without, engine.problem);
        let mut engine = Engine::new(&problem, without.policy.packing);
        let refused = self.replaced_afterwards(&mut engine, candidate).err().map(Refused::from);
        self.tried_without += usize::from(refused.is_some());
        refused
    }

    /// What the pool asks for that no node in the place of this one could have, since it comes with the instance; as a sentence.
    fn not_of_reservation(&self, machine: &Machine<'_>, candidate: &Candidate) -> Option<String> {
        let mut pools = self.inputs.node_pools.iter();
        let pool = pools.find(|pool| pool.metadata.name.as_deref() == Some(candidate.pool.as_str()))?;
        let drift = drift(self.inputs, machine, pool)?;
        match &drift.cause {
            DriftCause::Requirement { key, .. } if is_well_known(key) => Some(drift.message),
            _ => None,
        }
    }

    /// The node goes, and what its pods then get is for the plan that follows.
    pub(super) fn go_first(
        &mut self,
        engine: &mut Engine<'_, '_>,
        candidate: &Candidate,
        cause: &RemovalCause,
        own: OwnPlace,
    ) {
        let cause = Box::new(cause.clone());
        let cause = RemovalCause::WithoutPlaces { cause, obstacle: Box::new(NodeObstacle::OwnPlace(own)) };
        self.spend(engine, candidate, None);
        self.remove(engine, &[candidate], cause, Rehoming::default());
    }
}

/// The reservation whose last instance it runs on, if its pool asks for reservations alone.
fn own_reservation(engine: &Engine<'_, '_>, candidate: &Candidate) -> Option<OwnPlace> {
    let problem = engine.problem;
    let id = problem.machines[candidate.host].label(keys::CAPACITY_RESERVATION_ID)?;
    let used_up = problem.offer.reservations().iter().any(|it| it.id == id && it.available == 0);
    let alone = problem.templates.iter().any(|it| it.name == candidate.pool && it.is_left_to_reservations());
    (used_up && alone).then(|| OwnPlace::Reservation { id: id.to_owned() })
}
