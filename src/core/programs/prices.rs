//! What a program comes to: prices of items, and what the bins would hold.

use std::collections::BTreeMap;

use super::filling::Item;

/// Prices per piece that no bin beats, by position of the item, and the bound on the fleet's cost that they prove.
#[derive(Clone, Debug)]
pub struct Prices {
    /// In the unit of the bins' prices, as the bound.
    pub per_piece: Vec<f64>,
    pub bound: f64,
    /// The other side of the program: what the bins would hold.
    pub shares: Vec<Share>,
}

/// What all bins of one kind hold together.
#[derive(Clone, Debug)]
pub struct Share {
    /// Position of the bin.
    pub bin: usize,
    /// Positions of the items and how many of each; over all bins as many as are asked for.
    pub items: Vec<(usize, f64)>,
}

/// Of what bins hold, by bin and item; scaled so that each item is held as often as it is asked for.
pub fn shares(held: BTreeMap<(usize, usize), f64>, items: &[Item]) -> Vec<Share> {
    let mut totals = vec![0.0; items.len()];
    for ((_, item), held) in &held {
        totals[*item] += held;
    }
    let mut shares: Vec<Share> = Vec::new();
    for ((bin, item), held) in held {
        let amount = held / totals[item] * items[item].count;
        match shares.last_mut().filter(|share| share.bin == bin) {
            Some(share) => share.items.push((item, amount)),
            None => shares.push(Share { bin, items: vec![(item, amount)] }),
        }
    }
    shares
}
