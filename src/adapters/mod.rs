//! TOUCH. What implements the ports. Adapters know the ports, `api` and plain data of `core`, and never each other.

pub mod embedded;
pub mod git;
