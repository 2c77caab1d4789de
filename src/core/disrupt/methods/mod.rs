//! The reasons for which nodes go, and for which no method behind them may touch one. Each is one file, with what it alone needs;
//! consolidation is a room of its own.

mod adopted;
mod doubts;
mod drifted;
mod empty;
mod expired;
mod interrupted;
mod obstructed;
mod repair;
mod static_capacity;

use crate::scheduler::Engine;

use super::candidate::Candidate;
use super::consolidate;
use super::pass::Pass;

/// What a method does: it looks at all candidates, and decides on those that it is about and none before it decided on.
pub(super) type Method = fn(&mut Pass<'_, '_>, &mut Engine<'_, '_>, &[Candidate]);

/// All methods, in their order. One more is a file that has such a function, a row here, a
/// [`RemovalCause`](super::removal_cause::RemovalCause), a code of [`ReasonCode`](crate::plan::ReasonCode) with what it says of it, and
/// what the judge lets it do (`core/check/removals.rs`).
pub(super) const METHODS: [Method; 10] = [
    interrupted::look,
    // Before anything that removes because somebody here wants it. What EC2 takes away goes in any case.
    doubts::look,
    repair::look,
    adopted::look,
    // What asks no budget first: the others have what is left.
    static_capacity::look,
    obstructed::look,
    expired::look,
    empty::look,
    drifted::look,
    consolidate::look,
];
