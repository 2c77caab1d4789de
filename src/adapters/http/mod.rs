//! HTTP as several adapters have it: connections that are made, and connections that come in.

mod connector;
mod hidden;
mod secret;
mod server;

pub use connector::{Connector, connector, has_proxy, is_this_machine};
pub use hidden::{remember_password, remember_secret, without_secrets};
pub use secret::{Secret, SecretError, SecretSource};
pub use server::{BODY_WITHIN, HEADERS_WITHIN, Incomings, SILENT_MAX, serve};

/// What this program calls itself: GitHub refuses requests without a name.
pub const AGENT: &str = concat!("cutlist/", env!("CARGO_PKG_VERSION"));
