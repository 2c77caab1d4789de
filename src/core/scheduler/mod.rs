//! Does this pod fit here, and if not why.
//!
//! The cluster and the offer are compiled once into a [`Problem`]: resources become vectors of integers ([`vectors`]),
//! pods that scheduling can not tell apart become one class ([`class`]), requirements become sets of instance types and
//! slots ([`offerings`]), selectors become counters ([`topology`]). The [`Engine`] then places classes on hosts, which
//! are nodes that exist or nodes that would be created; it can go back to a mark at the cost of what was changed since.
//!
//! Most tries fail, so failing is what is fast: hosts stand in columns and bit sets ([`engine`]), and those that topology or
//! room rule out are passed over 64 at a time; which types have room is looked up ([`rooms`]), not compared.

mod attachable;
mod beside;
pub mod class;
pub mod concentration;
pub mod daemons;
pub mod devices;
mod domains;
pub mod engine;
pub mod host;
pub mod host_ports;
mod indices;
mod known_requests;
mod limits;
mod meeting;
pub mod offerings;
pub mod pod_table;
pub mod problem;
pub mod quota;
pub mod reach;
pub mod refusal;
pub mod rooms;
pub mod spreading;
pub mod taints;
pub mod template;
pub mod topology;
pub mod vectors;
pub mod volumes;

pub use class::{ClassIndex, Demand, PodClass};
pub use engine::{Engine, Mark};
pub use host::{HostIndex, OpenNode};
pub use problem::Problem;
pub use refusal::Refusal;
