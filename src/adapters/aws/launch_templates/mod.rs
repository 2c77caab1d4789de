//! Launch templates: everything that EC2 has to know of a machine but its type, its zone and how it is paid for.
//!
//! A template's name is a hash over its content, so the same content has the same name whoever makes it, before and after a restart, and
//! what needs nothing new makes nothing new. [`group`] divides what a launch may become among as few of them as do; [`unused`] says which
//! may be deleted.
//!
//! Behaviour: reference, section 6.6.

mod block_devices;
mod content;
mod groups;
mod interfaces;
mod specification;
mod sweep;
pub mod tags;

use sha2::{Digest, Sha256};

use crate::core::catalog::user_data::UserDataError;
use crate::core::model::hexadecimal;

pub use super::api::template::{
    BlockDevice, InterfaceType, LaunchTemplate, Market, MetadataOptions, NAME_PREFIX, NetworkInterface, PlacementGroup,
    ReservationUse, TrackingTimeouts,
};
pub use content::Resolved;
pub use groups::{Group, Grouped, LeftOut, group};
pub use specification::LaunchSpecification;
pub use sweep::{KnownTemplate, unused};

/// Hexadecimal digits of a hash in a name: 128 bits. EC2 takes names of 128 characters.
const NAME_DIGITS: usize = 32;

impl LaunchTemplate {
    /// `cutlist.dev/` and a hash over all of it.
    pub fn name(&self) -> String {
        // Plain data with text as keys: there is nothing that could not be written.
        let content = serde_json::to_vec(self).unwrap_or_default();
        let digits = hexadecimal(Sha256::digest(content));
        format!("{NAME_PREFIX}{}", digits.chars().take(NAME_DIGITS).collect::<String>())
    }
}

/// Why no launch template can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error(transparent)]
    UserData(#[from] UserDataError),
    #[error(transparent)]
    Tags(#[from] tags::TagError),
    #[error("{field}: {message}")]
    Field { field: String, message: String },
    /// Of the class's status: not found out yet, or nothing was found.
    #[error("EC2NodeClass {node_class} has no {what} yet; its conditions say why")]
    Unresolved { node_class: String, what: &'static str },
}
