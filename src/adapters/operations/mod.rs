//! What those who operate the controller look at: metrics in the form Prometheus reads, health and readiness, over HTTP.

mod metrics;
mod server;

pub use metrics::Metrics;
pub use server::{Heartbeat, Readiness, serve};
