//! The whole loop: the program's output on the quickstart, and the controller under faults.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test runs the program and reads golden files")]

mod approvals;
mod budgets;
mod crashes;
mod disagreements;
mod doubts;
mod faults;
mod garbage;
mod history;
mod interruptions;
mod launches;
mod places;
mod pools;
mod quickstart;
mod repair;
mod revisions;
mod rollouts;
mod stage;
mod turns;
mod waves;
