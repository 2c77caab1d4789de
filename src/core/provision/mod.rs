//! Where pending pods go, and which nodes are bought for them.
//!
//! Two packings on one engine: [`karpenter`] keeps the reference's order and choices, [`cheapest`] looks for the
//! cheapest fleet. Both first use the room that is there.

pub mod backlog;
pub mod bound;
pub mod cheapest;
pub mod choice;
pub mod explain;
pub mod karpenter;
