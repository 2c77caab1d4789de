//! Instances that ended before their nodes joined: why, and how long none of the pool is launched for that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an instance ended before its node joined. One word, one meaning, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum EndCause {
    /// The key of an encrypted volume can not be used.
    Encryption,
    /// The account may have no more volumes.
    VolumeQuota,
    /// A snapshot that a volume was to be made from.
    Snapshot,
    /// No address was left in the subnet.
    Addresses,
    /// EC2 had none in the end.
    Capacity,
    /// A spot instance was taken back.
    Interrupted,
    /// Somebody ended it, or it ended itself.
    Stopped,
    /// EC2 says no more.
    Unknown,
}

impl EndCause {
    /// Whether EC2 had too little of what was launched. Another offering may do, and the pool is well.
    pub fn is_shortage(self) -> bool {
        match self {
            Self::Capacity | Self::Interrupted => true,
            Self::Encryption | Self::VolumeQuota | Self::Snapshot | Self::Addresses | Self::Stopped | Self::Unknown => {
                false
            }
        }
    }
}

/// Instances of a NodePool, in a row, that ended before their nodes joined. From the third on none of the pool is launched for a while,
/// twice as long after each further attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedInstances {
    pub node_pool: String,
    /// The last of them, oldest first.
    pub node_claims: Vec<String>,
    /// Of the last one.
    pub cause: EndCause,
    /// EC2's code, such as `Client.InvalidKMSKey.InvalidState`; empty where it gave none.
    pub code: String,
    /// What EC2 said of the last one, and what to do.
    pub text: String,
    pub count: u32,
    /// RFC 3339.
    pub last_ended_at: String,
    /// RFC 3339: before this none is launched. Absent while as many are launched as are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<String>,
}
