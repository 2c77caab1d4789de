//! What the controller writes on objects of the cluster, and reads again: on NodeClaims what was planned for them, on definitions what
//! they were applied from.

pub mod of_claims;
pub mod of_definitions;
