//! Nodes that drifted and may not go for that now, because of a budget or of the rollout. Nothing may be put on them, so they are no part
//! of the search: each is tried alone, after the others.

use crate::disrupt::pass::Pass;
use crate::scheduler::Engine;
use cutlist_api::node_pool::DisruptionReason;

use super::obstacle::{NoRoomFor, NotSaved};
use super::rules::NotKept;
use super::trial::{Buying, NoRoom, without};
use super::{Refused, Source};

impl Pass<'_, '_> {
    /// Those that drift left over, the dearest for what it takes to move its pods first, and the others.
    pub(super) fn without_left_over<'c>(&self, sources: &[Source<'c>]) -> (Vec<Source<'c>>, Vec<Source<'c>>) {
        let is_left_over = |source: &Source<'_>| self.left_over.contains_key(&source.candidate.host);
        let (mut left_over, others): (Vec<_>, Vec<_>) = sources.iter().copied().partition(is_left_over);
        let ratio = |source: &Source<'_>| source.price.dollars() / source.candidate.disruption_cost;
        left_over.sort_by(|one, two| {
            ratio(two).total_cmp(&ratio(one)).then_with(|| one.candidate.name.cmp(&two.candidate.name))
        });
        (left_over, others)
    }

    /// O(those within budgets x nodes).
    pub(super) fn try_left_over(&mut self, engine: &mut Engine<'_, '_>, left_over: Vec<Source<'_>>) {
        for source in left_over {
            if let Err(refused) = self.one_left_over(engine, source) {
                self.hold_back(source.candidate.host, refused);
            }
        }
    }

    /// Whether a new node may come in its place: none does while a rollout waits for its canary, or is halted.
    pub(super) fn may_be_bought_for(&self, source: &Source<'_>) -> bool {
        let candidate = source.candidate;
        !self.left_over.contains_key(&candidate.host) || self.rollouts.goes_on(&candidate.pool)
    }

    fn one_left_over(&mut self, engine: &mut Engine<'_, '_>, source: Source<'_>) -> Result<(), Refused> {
        let candidate = source.candidate;
        let budgets = &self.disruption.budgets;
        budgets.check(&candidate.pool, DisruptionReason::Underutilized, candidate.price_counted())?;
        if self.may_be_bought_for(&source) {
            return self.one_at_a_time(engine, source);
        }
        let mut rooms = self.all_rooms(engine);
        let trial =
            without(engine, &[source], &mut rooms, Buying::Nothing).map_err(|without_room| match without_room {
                NoRoom::Pods { all: pods, .. } => {
                    let of = candidate.displaced().count();
                    NotSaved::NoRoom(NoRoomFor::WhileRolloutWaits { pods, of }).into()
                }
                NoRoom::RoomSoon => Refused::from(NotSaved::RoomSoon),
            })?;
        self.keep(engine, &[source], &trial).map_err(NotKept::into_refused)
    }
}
