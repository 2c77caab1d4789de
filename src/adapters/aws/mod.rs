//! EC2. What decides is plain types and is built and tested without the AWS SDK; the SDK itself is behind the Cargo feature `aws`.
//!
//! [`api`] is every call as a trait over plain data, and `calls` makes them through the SDK; [`resolution`] finds what an EC2NodeClass
//! selects; [`launch_templates`] are what a machine is told, [`fleet`] is what a launch asks for; [`instances`]
//! reads the instances; [`beside`] lets nobody wait for a call; [`catalog`] is what is sold; [`throttle`], [`shortages`] and [`addresses`] remember what EC2 has little of.

pub mod addresses;
pub mod api;
pub mod beside;
#[cfg(feature = "aws")]
pub mod calls;
pub mod catalog;
pub mod cloud;
pub mod facts;
pub mod failures;
pub mod fleet;
pub mod instances;
pub mod launch_templates;
pub mod prices;
pub mod refusals;
pub mod resolution;
pub mod shortages;
pub mod throttle;
