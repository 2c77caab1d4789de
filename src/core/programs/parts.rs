//! What shares no offering, as the pieces of other teams or zones, is a program of its own.

use std::collections::BTreeMap;

use super::filling::{Bin, Item};

/// Items that have bins in common, over any number of steps.
pub struct ProgramPart {
    /// Positions among all, ascending.
    pub items: Vec<usize>,
    pub bins: Vec<usize>,
    /// The same with positions of their own.
    pub own_items: Vec<Item>,
    pub own_bins: Vec<Bin>,
}

impl ProgramPart {
    /// Of work for so many items.
    pub fn share(&self, work: u64, items: usize) -> u64 {
        work / (items as u64).max(1) * self.items.len() as u64
    }

    /// What belongs to its items, of what belongs to all.
    pub fn own(&self, of_all: &[f64]) -> Vec<f64> {
        self.items.iter().map(|item| of_all[*item]).collect()
    }

    /// Of amounts of items among all, those of its own items.
    pub fn among_own(&self, amounts: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let own = |(item, amount): &(usize, f64)| Some((self.items.binary_search(item).ok()?, *amount));
        amounts.iter().filter_map(own).collect()
    }

    /// Amounts of its own items, by their positions among all.
    pub fn among_all(&self, amounts: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
        amounts.into_iter().map(|(item, amount)| (self.items[item], amount)).collect()
    }
}

pub fn parts(items: &[Item], bins: &[Bin]) -> Vec<ProgramPart> {
    let mut nearer: Vec<usize> = (0..items.len()).collect();
    for bin in bins {
        let Some((first, _)) = bin.items.first() else { continue };
        for (item, _) in &bin.items {
            let (one, other) = (last(&mut nearer, *first), last(&mut nearer, *item));
            nearer[one.max(other)] = one.min(other);
        }
    }
    let mut by_first: BTreeMap<usize, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for item in 0..items.len() {
        by_first.entry(last(&mut nearer, item)).or_default().0.push(item);
    }
    for (position, bin) in bins.iter().enumerate() {
        if let Some((item, _)) = bin.items.first() {
            by_first.entry(last(&mut nearer, *item)).or_default().1.push(position);
        }
    }
    by_first.into_values().map(|(own_items, own_bins)| part(items, bins, own_items, own_bins)).collect()
}

fn part(items: &[Item], bins: &[Bin], own_items: Vec<usize>, own_bins: Vec<usize>) -> ProgramPart {
    let position: BTreeMap<usize, usize> = own_items.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let bin = |old: &usize| Bin {
        price: bins[*old].price,
        room: bins[*old].room.clone(),
        items: bins[*old].items.iter().map(|(item, most)| (position[item], *most)).collect(),
    };
    ProgramPart {
        own_items: own_items.iter().map(|item| items[*item].clone()).collect(),
        own_bins: own_bins.iter().map(bin).collect(),
        items: own_items,
        bins: own_bins,
    }
}

/// The first item of those that an item is known to belong to, found in fewer steps the next time.
fn last(nearer: &mut [usize], mut item: usize) -> usize {
    while nearer[item] != item {
        nearer[item] = nearer[nearer[item]];
        item = nearer[item];
    }
    item
}
