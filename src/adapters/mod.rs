//! TOUCH. What implements the ports. Adapters know the ports, `api` and plain data of `core`, and never each other; `http` is what several of them
//! need, and `either` chooses between two of them.

pub mod aws;
pub mod either;
pub mod embedded;
pub mod flux;
pub mod forge;
pub mod git;
pub mod http;
pub mod kubernetes;
pub mod notifications;
pub mod operations;
pub mod registry;
pub mod signatures;
pub mod system_clock;
