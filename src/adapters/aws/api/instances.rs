//! What EC2 says of instances, and of what they are launched into.

use jiff::Timestamp;
use serde::Deserialize;

use super::Tags;

/// The state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    Pending,
    Running,
    ShuttingDown,
    Terminated,
    Stopping,
    Stopped,
}

impl InstanceState {
    /// As EC2 writes it; `None` for a word that nobody knew.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "pending" => Some(Self::Pending),
            "running" => Some(Self::Running),
            "shutting-down" => Some(Self::ShuttingDown),
            "terminated" => Some(Self::Terminated),
            "stopping" => Some(Self::Stopping),
            "stopped" => Some(Self::Stopped),
            _ => None,
        }
    }

    /// Whether it has ended, or is about to, and will never run again.
    pub fn is_ended(self) -> bool {
        match self {
            Self::ShuttingDown | Self::Terminated => true,
            Self::Pending | Self::Running | Self::Stopping | Self::Stopped => false,
        }
    }
}

/// One instance of DescribeInstances.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceAnswer {
    pub id: String,
    pub state: InstanceState,
    pub instance_type: String,
    pub zone: String,
    pub image_id: String,
    pub launched_at: Timestamp,
    #[serde(default)]
    pub tags: Tags,
    /// `spot`; nothing for any other.
    #[serde(default)]
    pub lifecycle: Option<String>,
    #[serde(default)]
    pub spot_request_id: Option<String>,
    #[serde(default)]
    pub reservation_id: Option<String>,
    /// `capacity-reservations-only` where it was launched into a reservation on purpose.
    #[serde(default)]
    pub reservation_preference: Option<String>,
    /// That of the primary interface.
    #[serde(default)]
    pub subnet_id: Option<String>,
    /// Those of the primary interface.
    #[serde(default)]
    pub security_groups: Vec<AttachedGroup>,
    /// Why it is in this state: a code such as `Client.InvalidKMSKey.InvalidState`.
    #[serde(default)]
    pub state_reason: Option<StateReason>,
    #[serde(default)]
    pub vcpus: Option<u32>,
}

/// A security group of an interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttachedGroup {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
}

/// Why an instance is in its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StateReason {
    pub code: String,
    #[serde(default)]
    pub message: String,
}

/// What became of an instance that was to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    pub id: String,
    pub state: InstanceState,
}

/// The checks of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceStatus {
    pub id: String,
    /// Since when its own check fails.
    pub instance_impaired_since: Option<Timestamp>,
    /// Since when that of its host fails.
    pub system_impaired_since: Option<Timestamp>,
    /// Codes of what is scheduled for it: `instance-retirement`.
    pub events: Vec<String>,
}

/// A capacity reservation that is active.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CapacityReservation {
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    pub owner_id: String,
    /// `open` or `targeted`.
    pub instance_match_criteria: String,
    /// `default` or `capacity-block`.
    pub reservation_type: String,
    #[serde(default)]
    pub is_interruptible: bool,
    #[serde(default)]
    pub ends_at: Option<Timestamp>,
    pub total_count: u32,
    pub available_count: u32,
    #[serde(default)]
    pub tags: Tags,
}

/// A placement group that is available.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlacementGroup {
    pub id: String,
    pub name: String,
    /// `cluster`, `partition` or `spread`.
    pub strategy: String,
    #[serde(default)]
    pub partition_count: Option<u32>,
}
