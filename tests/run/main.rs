//! The whole loop: the program's output on the quickstart, and the controller under faults.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test runs the program and reads golden files")]

mod adversity;
mod approvals;
mod budgets;
mod canaries;
mod crashes;
mod definitions_out_of_sight;
mod disagreements;
mod doubts;
mod drift;
mod early_ends;
mod faults;
mod garbage;
mod history;
mod image_locks;
mod in_the_middle;
mod interruptions;
mod judge;
mod launches;
mod places;
mod pods_first;
mod pools;
mod quickstart;
mod repair;
mod revisions;
mod rollouts;
mod signed;
mod silence;
mod stage;
mod turns;
mod waves;
