//! Makes the plan: asks `prepare`, `provision` and `disrupt` in their order, and writes down what they came to.
//!
//! `decide` is the one function that decides; `build` names nodes and makes steps of purchases and removals. The others say what
//! goes beside the steps: `report` the sums, the notes and why pods wait; `costs`, `fewer_nodes` and `penalties` what counts beside prices;
//! `risks` and `drains` what may go wrong and how long it takes; `cloud_facts` what EC2 says, `addresses` what new nodes take of their
//! subnets; `cluster_notes` what simulations say of the cluster, too; `windows` what the catalog has no prices of; `calendar`, `moments` and
//! `leaving` what time brings.

mod addresses;
mod annotations;
pub mod build;
pub mod calendar;
mod cloud_facts;
pub mod cluster_notes;
mod costs;
mod creation_cause;
pub mod decide;
mod disturbed;
mod drains;
mod fewer_nodes;
pub mod leaving;
pub mod moments;
mod names;
mod namespaces;
pub mod penalties;
mod quotas;
pub mod report;
mod risks;
mod windows;

pub use decide::{Phase, decide, decide_in_phases};
