//! DECIDE. Pure: no I/O, no clock, no randomness but the seed, no Kubernetes or AWS client.
//!
//! The way through: `snapshot` (the cluster as a value) and `catalog` (what EC2 sells) go into `plan::decide`, which has
//! `defaults` complete the pods, asks
//! `provision` where pending pods go and `disrupt` which nodes may go, both on top of `scheduler`; out comes a `plan::Plan`.

pub mod buffers;
pub mod catalog;
pub mod defaults;
pub mod devices;
pub mod disrupt;
pub mod lifecycle;
pub mod model;
pub mod offer;
pub mod plan;
pub mod preview;
pub mod provision;
pub mod scheduler;
pub mod snapshot;

#[cfg(test)]
pub(crate) mod testing;
