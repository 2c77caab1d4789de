//! What EC2 says of EC2NodeClasses, in a file: `cutlist facts pull` writes it, `plan --facts` reads it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ec2_node_class::EC2NodeClass;

/// The version of the form that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// The `kind` of the file.
pub const KIND: &str = "CloudFacts";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloudFacts {
    /// `CloudFacts`
    pub kind: String,
    pub version: u32,
    /// RFC 3339: when EC2 was asked.
    pub taken_at: String,
    pub region: String,
    /// The classes as they are defined, each with the status that EC2's answers give it: images, subnets, security groups, capacity
    /// reservations, instance profile, and conditions that say what was not found and what could not be asked.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub node_classes: Vec<EC2NodeClass>,
    /// By subnet ID; nothing for one of which that is not known.
    #[serde(default)]
    pub free_addresses: BTreeMap<String, u64>,
    /// By id of an image, when it was made, in RFC 3339; nothing for one of which that is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images_created: BTreeMap<String, String>,
    /// The account's quotas for instances; one that could not be asked is not among them.
    #[serde(default)]
    pub vcpu_quotas: Vec<VcpuQuotaUse>,
    /// What could not be asked, and why.
    #[serde(default)]
    pub not_known: Vec<String>,
    /// Actions that the account did not allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedPermission>,
}

/// A quota of the account for instances, and what runs under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VcpuQuotaUse {
    /// As Service Quotas has it: `L-1216C47A`.
    pub code: String,
    /// Virtual processors that may run.
    pub vcpus: u64,
    /// Those that run, by anybody in the account; nothing where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// An action that was not allowed when it was tried last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeniedPermission {
    /// As IAM writes it: `ec2:CreateFleet`.
    pub action: String,
    /// What AWS said, decoded where that was allowed.
    pub text: String,
    /// What the action is for.
    pub needed_for: String,
}
