//! What pods would cost on new nodes, by the linear program of the buyer.

use std::collections::BTreeMap;

use crate::provision::cheapest::greedy::Markets;
use crate::scheduler::Demand;
use crate::scheduler::{ClassIndex, Problem};

use super::Source;

/// What one pod costs on new nodes.
#[derive(Debug)]
pub(super) struct DualPrices {
    /// By class: dollars per hour; `None` where it can not be bought for.
    of_class: BTreeMap<ClassIndex, f64>,
}

impl DualPrices {
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
pub(super) fn demand(problem: &Problem<'_>, sources: &[Source<'_>]) -> Demand {
    let mut demand = Demand::new();
    let pods = sources.iter().flat_map(|source| source.candidate.displaced());
    for class in pods.filter_map(|pod| problem.class_of_pod[pod]) {
        *demand.entry(class).or_default() += 1;
    }
    demand
}
