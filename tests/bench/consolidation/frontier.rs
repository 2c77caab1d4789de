//! How few pods must move for the nodes of a cluster to cost so much.
//!
//! Whoever ends at some price has moved at least what is between the price and the bound, for whichever price of a move proves most.

#![cfg(test)]

use cutlist::core::disrupt::consolidate::bound::least_costs;
use cutlist::core::inputs::Inputs;

/// Dollars per hour for each pod that moves.
const PRICES_OF_A_MOVE: [f64; 12] = [0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1];

/// For prices of a move, in dollars per hour, what nodes and moves cost together at least.
#[derive(Clone, Debug)]
pub struct Frontier(Vec<(f64, f64)>);

impl Frontier {
    /// Of all nodes that have a price; `None` where nothing can be bought.
    pub fn new(inputs: &Inputs<'_>) -> Option<Self> {
        let costs = least_costs(inputs, &PRICES_OF_A_MOVE)?;
        Some(Self(PRICES_OF_A_MOVE.into_iter().zip(costs).collect()))
    }

    /// How many pods must move at least until the nodes cost no more than this, in dollars per hour.
    pub fn fewest_moves(&self, price: f64) -> f64 {
        self.0.iter().map(|(of_a_move, cost)| (cost - price) / of_a_move).fold(0.0, f64::max)
    }
}
