//! Which nodes to keep, and what whole pods of the others go into the room of each.
//!
//! What the linear program keeps for the most part is kept, the whole pods that it puts there are put there, and it is made again for
//! what is left. Where there are too many nodes for it, those are kept that are worth it by the prices of an ascent.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::model::index::IndexVec;
use crate::programs::filling::{Bin, Filling, Item};
use crate::programs::parts;

use super::ascent::ascend;
pub use super::fleet::ExistingBin;
use super::fleet::{ExistingBinIndex, Fleet};
use super::program::{Filled, Node, Program};

/// With more rows than this the inverse of the basis grows too large.
const ROWS_MAX: usize = 600;

/// How often the program is made, at most.
const TURNS_MAX: usize = 4;

/// A node is kept of which the program keeps this part.
const KEPT_MIN: f64 = 0.5;

/// Amounts are off by less than this.
const NEARLY: f64 = 1e-3;

/// What is to be done.
pub struct Solved {
    /// By existing bin, in dollars per hour: what it is worth beyond its price.
    pub gains: Vec<f64>,
    /// By existing bin: pods of others that it takes, positions of items and how many; `None` where it goes.
    pub takes: Vec<Option<Vec<(usize, f64)>>>,
    /// By existing bin: what room for a pod is worth on it beyond what it is worth elsewhere, by position of the item.
    pub advantages: Vec<Vec<(usize, f64)>>,
}

/// `items` count the pods of the existing bins, `offers` are new nodes, `start` is what a pod would cost on those, `moving` what a move
/// counts, as dollars per hour. `work` bounds the multiplications. What shares no node, as the pods
/// of other teams, is a program of its own.
pub fn solve(
    items: &[Item],
    existing_bins: &[ExistingBin],
    offers: &[Bin],
    start: &[f64],
    moving: f64,
    work: u64,
) -> Solved {
    let mut solved = Solved {
        gains: existing_bins.iter().map(|existing_bin| -existing_bin.price).collect(),
        takes: existing_bins.iter().map(|existing_bin| (existing_bin.price <= 0.0).then(Vec::new)).collect(),
        advantages: vec![Vec::new(); existing_bins.len()],
    };
    let parts = parts_of(items, existing_bins, offers);
    let solve = |of: &OwnProgram| {
        let work = of.part.share(work, items.len());
        solve_part(&of.part.own_items, &of.existing_bins, &of.offers, &of.part.own(start), moving, work)
    };
    let of_parts: Vec<Solved> = parts.par_iter().map(solve).collect();
    for (OwnProgram { part, positions, .. }, of_part) in parts.into_iter().zip(of_parts) {
        let results = of_part.gains.into_iter().zip(of_part.takes).zip(of_part.advantages);
        for (existing_bin, ((gain, takes), advantages)) in positions.into_iter().zip(results) {
            solved.gains[existing_bin] = gain;
            solved.takes[existing_bin] = takes.map(|takes| part.among_all(takes));
            solved.advantages[existing_bin] = part.among_all(advantages);
        }
    }
    solved
}

/// What the nodes and the moves of their pods cost together at least, in dollars per hour. Arguments as for [`solve`].
pub fn least_cost(
    items: &[Item],
    existing_bins: &[ExistingBin],
    offers: &[Bin],
    start: &[f64],
    moving: f64,
    work: u64,
) -> f64 {
    let of_part = |of: &OwnProgram| {
        let pods: f64 = of.existing_bins.iter().map(ExistingBin::pods).sum();
        let mut fleet = Fleet::new(&of.part.own_items, &of.existing_bins, &of.offers, moving);
        let is_kept = fleet.hosts.iter().map(|host| host.is_kept).collect::<Vec<_>>();
        let kept =
            of.existing_bins.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept).map(|(existing_bin, _)| existing_bin);
        // Keeping them costs their price, and spares moves.
        let kept: f64 = kept.map(|existing_bin| existing_bin.price - moving * existing_bin.pods()).sum();
        let mut program = Program::new(&mut fleet, &of.part.own(start), of.part.share(work, items.len()));
        program.solve(Vec::new());
        program.bound + kept + moving * pods
    };
    let of_parts: Vec<f64> = parts_of(items, existing_bins, offers).par_iter().map(of_part).collect();
    of_parts.into_iter().sum()
}

/// What shares no node with the rest.
struct OwnProgram {
    part: parts::ProgramPart,
    /// Of its existing bins.
    positions: Vec<usize>,
    existing_bins: Vec<ExistingBin>,
    offers: Vec<Bin>,
}

fn parts_of(items: &[Item], existing_bins: &[ExistingBin], offers: &[Bin]) -> Vec<OwnProgram> {
    let bins: Vec<Bin> = existing_bins.iter().map(ExistingBin::of_all_pods).chain(offers.iter().cloned()).collect();
    let of_part = |part: parts::ProgramPart| {
        let (mut positions, mut own_existing_bins, mut own_offers) = (Vec::new(), Vec::new(), Vec::new());
        for (position, bin) in part.bins.iter().zip(&part.own_bins) {
            match existing_bins.get(*position) {
                Some(existing_bin) => {
                    positions.push(*position);
                    let bin = Bin { items: part.among_own(&existing_bin.bin.items), ..bin.clone() };
                    own_existing_bins.push(ExistingBin {
                        price: existing_bin.price,
                        own: part.among_own(&existing_bin.own),
                        bin,
                    });
                }
                None => own_offers.push(bin.clone()),
            }
        }
        OwnProgram { part, positions, existing_bins: own_existing_bins, offers: own_offers }
    };
    parts::parts(items, &bins).into_iter().map(of_part).collect()
}

fn solve_part(
    items: &[Item],
    existing_bins: &[ExistingBin],
    offers: &[Bin],
    start: &[f64],
    moving: f64,
    work: u64,
) -> Solved {
    let mut fleet = Fleet::new(items, existing_bins, offers, moving);
    let prices = if items.len() + existing_bins.len() <= ROWS_MAX {
        by_program(&mut fleet, start, work)
    } else {
        by_ascent(&mut fleet, start, work)
    };
    let mut solved = Solved { gains: Vec::new(), takes: Vec::new(), advantages: Vec::new() };
    for (existing_bin, host) in existing_bins.iter().zip(fleet.hosts) {
        let mut filling = Filling::new(&existing_bin.bin, items);
        filling.fill(&prices);
        let own: f64 = existing_bin.own.iter().map(|(item, amount)| amount * (prices[*item] + moving)).sum();
        solved.gains.push(own + filling.worth - existing_bin.price);
        solved.takes.push(host.is_kept.then_some(host.takes));
        solved.advantages.push(filling.advantages().collect());
    }
    solved
}

/// What room is worth, by item.
fn by_program(fleet: &mut Fleet<'_>, start: &[f64], work: u64) -> Vec<f64> {
    let mut program = Program::new(fleet, start, work);
    let mut taken = program.solve(Vec::new());
    let of_all = program.prices.clone();
    for _ in 1..TURNS_MAX {
        if !settle(program.fleet, &taken) {
            break;
        }
        program.fleet.hold_no_more_than_left(&program.prices);
        let known = taken.into_iter().map(|(filled, _)| filled).filter(|filled| match filled.node {
            Node::Host(host) => !program.fleet.hosts[host].is_kept,
            Node::Offer(_) => true,
        });
        taken = program.solve(known.collect());
    }
    settle(program.fleet, &taken);
    let prices = program.prices;
    fleet.fill_up(&prices);
    of_all
}

/// Keeps nodes, and puts whole pods there. Says whether there was anything to do.
fn settle(fleet: &mut Fleet<'_>, taken: &[(Filled, f64)]) -> bool {
    let mut is_new = false;
    let mut means: IndexVec<ExistingBinIndex, (f64, BTreeMap<usize, f64>)> =
        IndexVec::repeat((0.0, BTreeMap::new()), fleet.hosts.len());
    for (filled, amount) in taken {
        if let Node::Host(host) = filled.node {
            means[host].0 += amount;
            filled.items.iter().for_each(|(item, pods)| *means[host].1.entry(*item).or_default() += amount * pods);
        }
    }
    for (host, (part, pods)) in means.into_enumerated() {
        if !fleet.hosts[host].is_kept && part >= KEPT_MIN {
            fleet.keep(host);
            is_new = true;
        }
        if fleet.hosts[host].is_kept {
            is_new |= fleet.give(host, pods.into_iter().map(|(item, pods)| (item, (pods + NEARLY).floor())));
        }
    }
    is_new
}

fn by_ascent(fleet: &mut Fleet<'_>, start: &[f64], work: u64) -> Vec<f64> {
    let prices = ascend(fleet, start, work);
    for host in fleet.hosts.indices() {
        let state = &mut fleet.hosts[host];
        state.filling.fill(&prices);
        if !state.is_kept && state.own_gain(&prices) + state.filling.worth >= 0.0 {
            fleet.keep(host);
        }
    }
    fleet.fill_up(&prices);
    prices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::number;

    fn bin(price: f64, room: f64) -> Bin {
        Bin { price, room: vec![room], items: vec![(0, room)] }
    }

    fn existing_bin(price: f64, own: f64, free: f64) -> ExistingBin {
        ExistingBin { price, own: vec![(0, own)], bin: bin(0.0, free) }
    }

    fn items(count: f64) -> [Item; 1] {
        [Item { count, request: vec![1.0] }]
    }

    fn solved(count: f64, existing_bins: &[ExistingBin], moving: f64) -> Solved {
        solve(&items(count), existing_bins, &[bin(1.0, 8.0)], &[0.125], moving, 1_000_000)
    }

    #[test]
    fn the_fuller_half_of_equal_nodes_is_kept() {
        let existing_bins: Vec<ExistingBin> =
            (0..10).map(|node| existing_bin(1.0, 3.0 + number(node % 2) * 3.0, 5.0 - number(node % 2) * 3.0)).collect();
        let Solved { gains, takes, .. } = solved(45.0, &existing_bins, 0.02);
        assert!((1..10).step_by(2).all(|node| takes[node].is_some()), "{takes:?} {gains:?}");
        let pods: f64 = takes.iter().flatten().flatten().map(|(_, pods)| pods).sum();
        assert!((pods - 12.0).abs() < 1e-9, "{takes:?} {gains:?}");
    }

    #[test]
    fn what_is_kept_after_all_needs_no_room_elsewhere() {
        let items = items(7.0);
        let existing_bins = [existing_bin(1.0, 3.0, 5.0), existing_bin(1.0, 4.0, 4.0)];
        let mut fleet = Fleet::new(&items, &existing_bins, &[], 0.0);
        let (small, large) = (ExistingBinIndex::from(0), ExistingBinIndex::from(1));
        fleet.keep(small);
        assert!(fleet.give(small, [(0, 4.0)]));
        assert_eq!(fleet.hosts[small].filling.items(), [(0, 1.0)]);
        fleet.keep(large);
        assert_eq!(fleet.left, [0.0]);
        assert!(fleet.hosts[small].takes.is_empty());
        assert_eq!(fleet.hosts[small].filling.items(), [(0, 5.0)]);
    }

    #[test]
    fn what_fits_beside_nodes_that_stay_is_not_worth_a_node() {
        let staying = ExistingBin { own: Vec::new(), ..existing_bin(0.0, 0.0, 8.0) };
        let Solved { gains, takes, .. } = solved(4.0, &[existing_bin(1.0, 4.0, 4.0), staying], 0.001);
        assert!(gains[0] < 0.0 && takes[0].is_none(), "{gains:?} {takes:?}");
        assert_eq!(takes[1], Some(vec![(0, 4.0)]));
    }

    #[test]
    fn teams_are_programs_of_their_own() {
        // 300 teams with three nodes of two pods each: too much for one program.
        let teams = 300;
        let items: Vec<Item> = (0..teams).map(|_| items(6.0)[0].clone()).collect();
        let of_team = |team: usize, room: f64| Bin { price: 1.0, room: vec![room], items: vec![(team, room)] };
        let existing_bins: Vec<ExistingBin> = (0..3 * teams)
            .map(|node| ExistingBin { price: 1.0, own: vec![(node / 3, 2.0)], bin: of_team(node / 3, 4.0) })
            .collect();
        let offers: Vec<Bin> = (0..teams).map(|team| of_team(team, 6.0)).collect();
        let solved = solve(&items, &existing_bins, &offers, &vec![0.2; teams], 0.001, 1_000_000_000);
        for takes in solved.takes.chunks(3) {
            assert_eq!(takes.iter().flatten().count(), 1, "{takes:?}");
            let taken: f64 = takes.iter().flatten().flatten().map(|(_, pods)| pods).sum();
            assert!((taken - 4.0).abs() < 1e-9, "{takes:?}");
        }
    }

    #[test]
    fn a_node_that_costs_less_than_new_ones_is_kept_and_a_dearer_one_goes() {
        let Solved { gains, takes, .. } =
            solved(16.0, &[existing_bin(0.8, 8.0, 0.0), existing_bin(1.5, 8.0, 0.0)], 0.001);
        assert!(gains[0] > 0.0 && gains[1] < 0.0, "{gains:?}");
        assert!(takes[0].is_some() && takes[1].is_none(), "{takes:?}");
    }
}
