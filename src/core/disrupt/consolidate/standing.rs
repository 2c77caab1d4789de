//! What nodes are worth: how much of their price the pods on them account for, and how much they could.
//!
//! The linear program of the buyer says what each pod would cost on new nodes. A node whose pods cost as much as itself is well
//! used. One that could not be filled with enough is the wrong node, however full it is: better to replace it than to fill it.

use std::collections::BTreeMap;

use crate::core::provision::cheapest::Budget;
use crate::core::provision::cheapest::greedy::{Market, Markets};
use crate::core::provision::cheapest::market::Offer;
use crate::core::provision::karpenter::Leftover;
use crate::core::scheduler::vectors::{self, Vector};
use crate::core::scheduler::{ClassIndex, Engine, Problem};

use super::Source;

/// The part of the worth that the program promises which the buyer reaches with whole nodes.
const REACHED_PART: f64 = 0.96;

/// How many times the cost of a move counts in the order in which nodes go. Found by trial on half-empty clusters. More than once,
/// since who goes hardly matters to the price as long as enough go, and of two fleets of nearly one price the one that disturbs
/// fewer pods is better.
const COUNTED_IN_ORDER: f64 = 2.0;

/// One source, judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// The part of its price that its pods would cost elsewhere, with what moving them costs.
    pub used: f64,
    /// Whether it should be replaced rather than filled.
    pub goes: bool,
}

/// What one pod costs on new nodes.
#[derive(Debug)]
pub(super) struct Worth {
    /// By class: dollars per hour; `None` where it can not be bought for.
    of_class: BTreeMap<ClassIndex, f64>,
}

impl Worth {
    /// Where several weights of pools sell for a class, the least counts.
    pub(super) fn new(markets: &Markets) -> Self {
        let mut of_class: BTreeMap<ClassIndex, f64> = BTreeMap::new();
        for market in &markets.0 {
            for (class, kind) in &market.kind_of {
                let worth = of_class.entry(*class).or_insert(f64::INFINITY);
                *worth = worth.min(market.worth[*kind]);
            }
        }
        Self { of_class }
    }

    pub(super) fn of(&self, class: ClassIndex) -> Option<f64> {
        self.of_class.get(&class).copied()
    }
}

/// By class, how many pods of the sources would have to move.
pub(super) fn demand(problem: &Problem<'_>, sources: &[Source<'_>]) -> Leftover {
    let mut demand = Leftover::new();
    let pods = sources.iter().flat_map(|source| source.candidate.displaced());
    for class in pods.filter_map(|pod| problem.class_of_pod[pod]) {
        *demand.entry(class).or_default() += 1;
    }
    demand
}

/// `move_dollars` is what a move costs for each hour in which it has to repay itself, given what is bought for it.
/// O(sources x pods on one + different nodes x kinds).
pub(super) fn standings(
    engine: &Engine<'_, '_>,
    sources: &[Source<'_>],
    markets: &Markets,
    worth: &Worth,
    move_dollars: impl Fn(&Source<'_>, f64) -> f64,
    budget: &mut Budget,
) -> Vec<Standing> {
    let problem = engine.problem;
    let market = markets.widest();
    let mut filled: BTreeMap<(Vector, usize), f64> = BTreeMap::new();
    let mut standing = |source: &Source<'_>| {
        let host = source.candidate.host;
        let price = (source.price + problem.per_node).dollars().max(f64::MIN_POSITIVE);
        let mut room = problem.nodes[host].free.clone();
        let mut held = 0.0;
        let mut unbuyable = false;
        for class in source.candidate.displaced().filter_map(|pod| problem.class_of_pod[pod]) {
            match worth.of(class) {
                Some(worth) => held += worth,
                None => unbuyable = true,
            }
        }
        for class in source.candidate.pods.iter().filter_map(|pod| problem.class_of_pod[*pod]) {
            vectors::add(&mut room, &problem.classes[class].request, 1);
        }
        let moving = move_dollars(source, held);
        let key = (room, problem.nodes[host].group);
        let filled = match (market, filled.get(&key)) {
            (_, Some(filled)) => *filled,
            (Some(market), None) => {
                let worth = worth_filled(problem, market, host, &key.0, budget);
                filled.insert(key, worth);
                worth
            }
            (None, None) => 0.0,
        };
        let replaced = filled / REACHED_PART + move_dollars(source, filled);
        Standing { used: (held + COUNTED_IN_ORDER * moving) / price, goes: !unbuyable && replaced < price }
    };
    sources.iter().map(&mut standing).collect()
}

fn worth_filled(problem: &Problem<'_>, market: &Market, host: usize, room: &Vector, budget: &mut Budget) -> f64 {
    let price = crate::core::model::HourlyPrice::ZERO;
    let offer = Offer::of_node(problem, &market.kinds, host, price, room.clone());
    market.worth_filled(&offer, budget)
}
