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
mod sweep;
pub mod tags;
mod wish;

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::user_data::UserDataError;

pub use block_devices::BlockDevice;
pub use content::{MetadataOptions, PlacementGroup, Resolved};
pub use groups::{Group, Grouped, LeftOut, group};
pub use interfaces::{InterfaceType, NetworkInterface};
pub use sweep::{KnownTemplate, unused};
pub use wish::Wish;

/// Begins the name of every template that is made here.
pub const NAME_PREFIX: &str = "cutlist.dev/";

/// Hexadecimal digits of a hash in a name: 128 bits. EC2 takes names of 128 characters.
const NAME_DIGITS: usize = 32;

/// The content of a launch template, in the words of EC2. Security groups stand in the interfaces, where EC2 wants them as soon as there is
/// one; key pair and instance type are never set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaunchTemplate {
    pub image_id: String,
    /// Not encoded yet.
    pub user_data: String,
    pub instance_profile: String,
    /// None: those of the image.
    pub block_devices: Vec<BlockDevice>,
    pub metadata: MetadataOptions,
    pub interfaces: Vec<NetworkInterface>,
    pub detailed_monitoring: bool,
    /// `enabled` or `disabled`; `None`: as EC2 has it.
    pub nested_virtualization: Option<String>,
    pub enclave: bool,
    /// `default` or `dedicated`.
    pub tenancy: String,
    pub placement_group: Option<PlacementGroup>,
    pub reservation: ReservationUse,
    /// Of the template itself, of network interfaces, and, with `tags_spot_requests`, of spot requests. Instances, volumes and the fleet are
    /// tagged by the launch.
    pub tags: BTreeMap<String, String>,
    /// EC2 refuses a launch that would tag spot requests and makes none (A#5850).
    pub tags_spot_requests: bool,
}

/// Which capacity reservations an instance uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ReservationUse {
    /// As EC2 does by itself: any open one that fits.
    Open,
    /// None, so that reservations are left to those who ask for them.
    None,
    /// This one or nothing.
    Only { id: String, market: Market },
}

/// How the capacity of a reservation is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Market {
    OnDemand,
    CapacityBlock,
    Interruptible,
}

impl LaunchTemplate {
    /// `cutlist.dev/` and a hash over all of it.
    pub fn name(&self) -> String {
        // Plain data with text as keys: there is nothing that could not be written.
        let content = serde_json::to_vec(self).unwrap_or_default();
        let digits: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
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
