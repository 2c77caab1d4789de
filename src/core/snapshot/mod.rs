//! The cluster as a value: what there was at one moment, and nothing about how it was read.

pub mod objects;
pub mod pod;
pub mod read;
pub mod requests;

pub use objects::Snapshot;
pub use pod::Pod;
