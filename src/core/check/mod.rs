//! The independent judge of placements and plans.
//!
//! Written straight from the objects of the Kubernetes API and from the documented behaviour of kube-scheduler and
//! Karpenter, one pod and one node at a time. Nothing is shared with the planner but the record of failed rollouts
//! (`lifecycle/rollout_failures.rs`), so that a mistake made there is not made again here. Slow on purpose where slow is simpler.
//!
//! Whether a pod may run on a node [`crate::kube_scheduler`] says; `plan` goes through a whole plan, what its steps say stands in
//! `steps`, and there is one file for each kind of rule: `structure`, `adoptions`, `creations`, `classes`, `placements`, `removals`,
//! `disks`, `repairs`, `rollouts`, `worth`, `budgets`, `concentration`, `costs`, `summary`.

pub mod plan;
pub mod violation;

mod adoptions;
mod budgets;
mod buffers;
mod classes;
mod concentration;
mod costs;
mod creations;
pub mod daemons;
mod disks;
mod judge;
mod known;
mod overlays;
mod placements;
mod rehearsal;
mod removals;
mod repairs;
mod reservations;
mod rollouts;
mod schedule;
mod spread_defaults;
mod steps;
mod structure;
mod summary;
mod worth;

#[cfg(test)]
mod tests;

pub use judge::judged;
pub use plan::check;
pub use violation::{Violation, ViolationCode, ViolationPlace};
