//! Filling one node on paper: how many of each kind still fit, and what they are worth.

use std::collections::BTreeMap;

use crate::programs::{as_number, number};
use crate::scheduler::offerings::Slots;
use crate::scheduler::vectors::{self, Vector};

use super::market::{Market, Offer, Pattern};

/// One node of an offer while it is filled on paper.
pub struct NodeFilling<'m> {
    market: &'m Market,
    offer: &'m Offer,
    room: Vector,
    slots: Slots,
    pattern: BTreeMap<usize, usize>,
    worth: f64,
}

impl<'m> NodeFilling<'m> {
    pub fn new(market: &'m Market, offer: &'m Offer) -> Self {
        Self { market, offer, room: offer.room.clone(), slots: Slots::MAX, pattern: BTreeMap::new(), worth: 0.0 }
    }

    pub fn taken(&self, kind: usize) -> usize {
        self.pattern.get(&kind).copied().unwrap_or(0)
    }

    /// How many more of a kind fit, at most `limit`.
    pub fn most(&self, position: usize, limit: usize) -> usize {
        let kind = &self.market.kinds[position];
        if limit == 0 || self.slots & self.offer.allowed(kind) == 0 {
            return 0;
        }
        let own = kind.most_per_node.saturating_sub(self.taken(position));
        vectors::copies(&kind.request, &self.room, limit.min(own))
    }

    /// Takes as many as fit, at most `limit`.
    pub fn take(&mut self, position: usize, limit: usize) {
        let count = self.most(position, limit);
        if count == 0 {
            return;
        }
        let kind = &self.market.kinds[position];
        self.slots &= self.offer.allowed(kind);
        vectors::add(&mut self.room, &kind.request, -i64::try_from(count).unwrap_or(i64::MAX));
        self.worth += self.market.worth[position] * number(count);
        *self.pattern.entry(position).or_default() += count;
    }

    /// What a pod is worth for the part that it takes of what is left, all resources together.
    pub fn worth_for_room(&self, position: usize) -> f64 {
        let request = self.market.kinds[position].request.iter().zip(&self.room);
        let parts = request.filter(|(request, _)| **request > 0);
        let taken: f64 = parts.map(|(request, room)| as_number(*request) / as_number((*room).max(1))).sum();
        self.market.worth[position] / taken.max(f64::MIN_POSITIVE)
    }

    /// Positions of kinds with how many of each, and their worth in dollars per hour.
    pub fn finish(self) -> (Pattern, f64) {
        (self.pattern.into_iter().collect(), self.worth)
    }
}
