//! Nodes that nothing but their own use of a limit or of a reservation keeps from being replaced.
//! Behaviour: reference, section 4.8: what expired goes whatever comes of it. Here a replacement is there first, if there can be one.

use crate::plan::ReasonCode;
use crate::scheduler::Engine;
use crate::scheduler::quota::LimitScope;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;

use super::candidate::Candidate;
use super::drift::drift;
use super::obstacle::NodeObstacle;
use super::obstacle::own_place::OwnPlace;
use super::obstacle::static_capacity::StaticObstacle;
use super::pass::Pass;
use super::rehome::{self, Rehoming};
use super::removal_cause::RemovalCause;

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
            NodeObstacle::Static(StaticObstacle::Limit { scope, .. }) => *scope == LimitScope::NodePool,
            _ => false,
        };
        if is_of_limit && engine.while_giving_back(candidate.host, |engine| self.would_be_replaced(engine, candidate)) {
            return Some(OwnPlace::Limit);
        }
        let is_of_offer = matches!(
            obstacle,
            NodeObstacle::NoPlace { .. }
                | NodeObstacle::Static(StaticObstacle::NothingOffered { .. } | StaticObstacle::Limit { .. })
        );
        own_reservation(engine, candidate).filter(|_| is_of_offer)
    }

    fn would_be_replaced(&self, engine: &mut Engine<'_, '_>, candidate: &Candidate) -> bool {
        match candidate.is_static {
            true => self.is_replaced_afterwards(engine, candidate),
            false => rehome::rehome(engine, &[candidate], &self.targets, self.inputs).is_ok(),
        }
    }

    /// Whether a node that expired goes now for the room that it takes itself: of each pool one after another, since the pods wait.
    pub(super) fn may_go_first(&self, engine: &Engine<'_, '_>, candidate: &Candidate, own: &OwnPlace) -> bool {
        let machines = &engine.problem.machines;
        let is_of_pool = |machine: &Machine<'_>| machine.node_pool() == Some(candidate.pool.as_str());
        let another_goes = machines.iter().any(|machine| is_of_pool(machine) && machine.is_being_removed());
        let mut going_first =
            self.disruption.removals.iter().filter(|it| matches!(it.cause, RemovalCause::WithoutPlaces { .. }));
        // What has its instance then is another one just like it.
        let is_as_wanted = match own {
            OwnPlace::Limit => true,
            OwnPlace::Reservation { .. } => {
                let mut pools = self.inputs.node_pools.iter();
                let pool = pools.find(|pool| pool.metadata.name.as_deref() == Some(candidate.pool.as_str()));
                pool.is_some_and(|pool| drift(self.inputs, &machines[candidate.host], pool).is_none())
            }
        };
        !another_goes
            && is_as_wanted
            && !going_first.any(|removal| removal.nodes.iter().any(|going| is_of_pool(&machines[going.host])))
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
