//! EC2. What decides is plain types and is built and tested without the AWS SDK; the SDK itself is behind the Cargo feature `aws`.
//!
//! [`api`] is every call as a trait over plain data; [`throttle`], [`shortages`] and [`addresses`] remember what EC2 has little of.

pub mod addresses;
pub mod api;
#[cfg(feature = "aws")]
pub mod facts;
pub mod shortages;
pub mod throttle;
