//! The cluster as a value: what there was at one moment, and nothing about how it was read.

pub mod collect;
mod decode;
pub mod doubled;
pub mod doubts;
mod json;
pub mod kept;
pub mod kinds;
pub mod limits;
pub mod list;
pub mod moment;
pub mod nodes;
mod object;
pub mod objects;
mod parse;
pub mod pod;
pub mod problem;
pub mod read;
mod read_error;
pub mod read_one;
pub mod requests;
pub mod resource_version;
pub mod selector;
#[cfg(test)]
mod tests;
pub mod trim;
pub mod unpack;
pub mod write;
mod yaml;

pub use doubts::Doubts;
pub use k8s_openapi::api::core::v1::Node;
pub use list::{Numbered, Objects};
pub use objects::Snapshot;
pub use pod::{Pod, PodIndex, Workload};
