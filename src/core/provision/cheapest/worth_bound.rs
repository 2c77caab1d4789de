//! What a node can be worth at most with the pods that wait, before anybody fills it.
//!
//! Where processors and memory have prices at which no pod is worth more than what it asks for, no node is worth more than what it has
//! room for: weak duality of the linear program of one node. Any such prices prove a bound, so a few of them are enough, and the least
//! of the bounds counts. Most offers are passed over by it: filling one on paper takes a hundred times as long.

use crate::programs::{as_number, number};
use crate::scheduler::vectors::{CPU_DIMENSION, MEMORY_DIMENSION};

/// What the memory of a node costs for what its processors do. EC2 asks for a half, mostly: from 2^-4 to 2^2 is tried.
const MEMORY_OF_PROCESSORS: [f64; 9] = [0.0625, 0.125, 0.25, 0.35, 0.5, 0.7, 1.0, 2.0, 4.0];

/// Rounding is no reason to pass over an offer.
const ROUNDING: f64 = 1e-12;

/// Pods of one kind that wait.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'k> {
    pub count: usize,
    /// Of one pod, in dollars per hour.
    pub worth: f64,
    pub request: &'k [i64],
}

/// Bounds on the worth of nodes, in dollars per hour.
#[derive(Debug)]
pub struct WorthBound {
    /// What all that waits is worth.
    of_all: f64,
    /// What a unit of processors and one of memory are worth; infinite where a pod asks for neither.
    prices: Vec<(f64, f64)>,
}

impl WorthBound {
    /// `room` is that of any node, by which processors and memory are compared. O(kinds).
    pub fn new(kinds: &[Waiting<'_>], room: &[i64]) -> Self {
        let of_all = kinds.iter().map(|kind| kind.worth * number(kind.count)).sum();
        let [processors, memory] = amounts(room).map(|amount| amount.max(1.0));
        let prices = MEMORY_OF_PROCESSORS.iter().map(|part| {
            let memory_price = part * processors / memory;
            let worth_for_amount = |kind: &Waiting<'_>| {
                let [processors, memory] = amounts(kind.request);
                kind.worth / (processors + memory_price * memory)
            };
            let price = kinds.iter().map(worth_for_amount).fold(0.0, f64::max);
            (price, price * memory_price)
        });
        Self { of_all, prices: prices.collect() }
    }

    /// What a node with this room is worth at most.
    pub fn of(&self, room: &[i64]) -> f64 {
        let [processors, memory] = amounts(room);
        let bounds = self.prices.iter().map(|(processor, unit)| processor * processors + unit * memory);
        // Nothing times infinity is no number, and no bound.
        let least = bounds.filter(|bound| !bound.is_nan()).fold(self.of_all, f64::min);
        least * (1.0 + ROUNDING)
    }
}

fn amounts(vector: &[i64]) -> [f64; 2] {
    [CPU_DIMENSION, MEMORY_DIMENSION].map(|dimension| as_number(vector[dimension].max(0)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::vectors;

    proptest! {
        /// However a node is filled, in whatever order.
        #[test]
        fn no_filling_is_worth_more(
            kinds in prop::collection::vec((0_usize..20, 0_u32..50, prop::collection::vec(0_i64..40, 3)), 1..12),
            room in prop::collection::vec(-5_i64..200, 3),
            other in prop::collection::vec(0_i64..200, 3),
        ) {
            let kinds: Vec<(usize, f64, Vec<i64>)> =
                kinds.into_iter().map(|(count, worth, request)| (count, f64::from(worth) / 100.0, request)).collect();
            let all = kinds.iter().map(|(count, worth, request)| Waiting { count: *count, worth: *worth, request });
            let all: Vec<Waiting<'_>> = all.collect();
            let bound = WorthBound::new(&all, &other).of(&room);
            for first in 0..all.len() {
                let (mut left, mut worth) = (room.clone(), 0.0);
                for kind in all.iter().cycle().skip(first).take(all.len()) {
                    let fitting = vectors::copies(kind.request, &left, kind.count);
                    vectors::add(&mut left, kind.request, -i64::try_from(fitting).unwrap());
                    worth += kind.worth * number(fitting);
                }
                prop_assert!(worth <= bound + 1e-9, "{worth} {bound}");
            }
        }
    }
}
