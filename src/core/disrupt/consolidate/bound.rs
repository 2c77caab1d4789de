//! What no consolidation can do: how few pods must move for the nodes of a cluster to cost so much.
//!
//! With a price on each move the program of nodes to keep ([`super::keeping`]) proves what nodes and moves cost together at least. So
//! whoever ends at some price has moved at least what is between the two, for whichever price of a move proves most. For those who
//! measure: topology, budgets and payback are left out.

use crate::core::disrupt::cost::MoveCosts;
use crate::core::disrupt::{candidate, rehome};
use crate::core::inputs::Inputs;
use crate::core::provision::cheapest::greedy::Markets;
use crate::core::provision::cheapest::market::EXACT_PRICE_WORK;
use crate::core::provision::{self, provision};
use crate::core::scheduler::Problem;

use super::Source;
use super::dual_prices::demand;
use super::keeping::least_costs;

/// Dollars per hour for each pod that moves.
const PRICES_OF_A_MOVE: [f64; 12] = [0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1];

/// For prices of a move, in dollars per hour, what nodes and moves cost together at least.
#[derive(Clone, Debug)]
pub struct Frontier(Vec<(f64, f64)>);

impl Frontier {
    /// Of all nodes that have a price; `None` where nothing can be bought.
    pub fn new(inputs: &Inputs<'_>) -> Option<Self> {
        let problem = Problem::new(inputs).at_prices_of_instances();
        let mut engine = provision::engine(&problem, inputs);
        let provisioning = provision(&mut engine, inputs, inputs.policy.packing);
        let costs = MoveCosts::new(inputs, &problem);
        let candidates = candidate::candidates(&engine, inputs, &provisioning, &costs);
        let source = |candidate| Some(Source { candidate, price: Option::clone(&candidate.price)? });
        let sources: Vec<Source<'_>> = candidates.iter().filter_map(source).collect();
        let markets = Markets::priced(&problem, 0, &demand(&problem, &sources), EXACT_PRICE_WORK);
        let targets = rehome::targets(&engine, inputs, &provisioning);
        let costs = least_costs(&engine, &sources, &targets, &markets, &PRICES_OF_A_MOVE)?;
        Some(Self(PRICES_OF_A_MOVE.into_iter().zip(costs).collect()))
    }

    /// How many pods must move at least until the nodes cost no more than this, in dollars per hour.
    pub fn fewest_moves(&self, price: f64) -> f64 {
        self.0.iter().map(|(of_a_move, cost)| (cost - price) / of_a_move).fold(0.0, f64::max)
    }
}
