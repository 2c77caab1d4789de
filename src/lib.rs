//! Cutlist.
pub mod adapters;
pub mod api;
pub mod cli;
pub mod core;
pub mod definitions;
pub mod ports;
pub mod render;
