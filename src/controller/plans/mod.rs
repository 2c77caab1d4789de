//! Plans: when one is made, whether it says something new, who approves it, and what is remembered of it.

pub mod approvals;
pub mod batch;
mod beginning;
pub mod fidelity;
mod history;
pub mod inputs_seen;
pub mod memory;
mod noting;
pub mod planning;
pub mod records;
pub mod shown;
pub mod waiting;
