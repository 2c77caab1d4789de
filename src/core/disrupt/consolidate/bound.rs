//! What no consolidation can do better: what nodes and moves cost together at least. For those who measure; topology, budgets and payback are
//! left out.

use crate::disrupt::cost::MoveCosts;
use crate::disrupt::{candidate, rehome};
use crate::inputs::Inputs;
use crate::provision::cheapest::greedy::Markets;
use crate::provision::cheapest::market::EXACT_PRICE_WORK;
use crate::provision::{self, provision};
use crate::scheduler::Problem;

use super::Source;
use super::dual_prices::demand;
use super::keeping;

/// For each price of a move of one pod, in dollars per hour, what all nodes that have a price and the moves cost together at least, in dollars
/// per hour: with a price on each move the program of nodes to keep ([`super::keeping`]) proves it. `None` where nothing can be bought.
pub fn least_costs(inputs: &Inputs<'_>, prices_of_a_move: &[f64]) -> Option<Vec<f64>> {
    let problem = Problem::new(inputs).at_prices_of_instances();
    let mut engine = provision::engine(&problem, inputs);
    let provisioning = provision(&mut engine, inputs, inputs.policy.packing);
    let costs = MoveCosts::new(inputs, &problem);
    let candidates = candidate::candidates(&engine, inputs, &provisioning, &costs);
    let source = |candidate| Some(Source { candidate, price: Option::clone(&candidate.price)? });
    let sources: Vec<Source<'_>> = candidates.iter().filter_map(source).collect();
    let markets = Markets::priced(&problem, 0, &demand(&problem, &sources), EXACT_PRICE_WORK);
    let targets = rehome::targets(&engine, inputs, &provisioning);
    keeping::least_costs(&engine, &sources, &targets, &markets, prices_of_a_move)
}
