//! Where people review plans.

mod none;

pub use none::NoForge;
