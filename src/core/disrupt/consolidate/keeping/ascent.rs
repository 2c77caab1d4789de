//! What room is worth where there are too many nodes for the program: by ascent on its dual.
//!
//! The worth of room rises where kinds of pods are short of it and falls where there is more than enough, never above what new nodes
//! cost; a node is kept in part where it hardly matters, less and less so from round to round.

use crate::programs::ascent::Missed;
use crate::programs::number;

use super::fleet::Fleet;

/// Rounds at most.
const ROUNDS_MAX: usize = 200;

/// The part by which the worth of room moves in one round, at most, in the first round and in the last.
const STEP: (f64, f64) = (0.2, 0.01);

/// A node is kept by half when it is worth its price, and to seven tenths when it is worth more by this part.
const SOFTNESS: (f64, f64) = (0.2, 0.01);

/// Multiplications for each item of a node in one round.
const OF_A_PAIR: u64 = 20;

/// By item what room for a pod is worth. `start` is what a pod would cost on new nodes. O(rounds x nodes x items).
pub fn ascend(fleet: &mut Fleet<'_>, start: &[f64], work: u64) -> Vec<f64> {
    let of_hosts = fleet.hosts.iter().map(|host| host.filling.items().len() + 1);
    let of_offers = fleet.offers.iter().map(|(_, filling)| filling.items().len() + 1);
    let pairs: usize = of_hosts.chain(of_offers).sum();
    let rounds = usize::try_from(work / (OF_A_PAIR * pairs as u64).max(1)).unwrap_or(ROUNDS_MAX).clamp(1, ROUNDS_MAX);
    let demand: Vec<f64> = fleet.left.clone();
    let mut room = start.to_vec();
    let mut missed = Missed::new(room.len());
    for round in 0..rounds {
        let progress = number(round + 1) / number(rounds);
        let between = |(first, last): (f64, f64)| first * (last / first).powf(progress);
        cap(&mut room, fleet);
        let supply = supply(fleet, &room, between(SOFTNESS));
        for (position, worth) in room.iter_mut().enumerate() {
            let short = (demand[position] - supply[position]) / demand[position].max(1.0);
            *worth *= (between(STEP) * missed.direction(position, short)).exp();
        }
    }
    cap(&mut room, fleet);
    room
}

/// By item the pods for which there is room on what is kept in part.
fn supply(fleet: &mut Fleet<'_>, room: &[f64], softness: f64) -> Vec<f64> {
    let mut supply = vec![0.0; room.len()];
    fleet.fill_hosts(room);
    for host in &fleet.hosts {
        let gain = host.own_gain(room) + host.filling.worth;
        let kept = if host.is_kept { 1.0 } else { 1.0 / (1.0 + (-gain / (softness * host.cost)).exp()) };
        let held = host.own.iter().copied().chain(host.filling.taken());
        held.for_each(|(item, amount)| supply[item] += kept * amount);
    }
    supply
}

/// Room is worth no more than on new nodes.
fn cap(room: &mut [f64], fleet: &mut Fleet<'_>) {
    let mut most: f64 = 1.0;
    for (price, filling) in &mut fleet.offers {
        if filling.fill_if_above(room, *price * most) {
            most = most.max(filling.worth / *price);
        }
    }
    room.iter_mut().for_each(|worth| *worth /= most);
}
