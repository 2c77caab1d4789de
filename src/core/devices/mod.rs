//! Dynamic resource allocation: devices of nodes that exist, for the ResourceClaims of pods that wait.
//! Behaviour: reference, section 3.14, for structured parameters on nodes that exist. EC2's catalog knows no
//! ResourceSlices, so no new node has devices as far as a plan can tell.
//!
//! What is not covered refuses with a reason that begins with `not supported`, and never guesses.

mod allocate;
mod claims;
mod selector;
mod slices;
#[cfg(test)]
mod tests;

pub use allocate::{Choices, allocate};
pub use claims::{Alternative, ClaimDemand, ClaimIndex, Constraint, DeviceError, Mode, Request, is_about_labels};
pub use selector::Selector;
pub use slices::{Device, DeviceName, devices_by_node};

/// The most devices that one claim may get. Source: `AllocationResultsMaxSize` of k8s.io/api/resource/v1.
pub const CLAIM_DEVICES_MAX: usize = 32;
