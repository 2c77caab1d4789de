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
    /// Always `CloudFacts`.
    pub kind: String,
    pub version: u32,
    /// When EC2 was asked, in RFC 3339.
    pub taken_at: String,
    pub region: String,
    /// The classes as they are defined, each with the status that EC2's answers give it: images, subnets, security groups, capacity
    /// reservations, instance profile, and conditions that say what was not found and what could not be asked.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub node_classes: Vec<EC2NodeClass>,
    /// How many IP addresses each subnet has free, by subnet ID. A subnet of which this is not known is left out.
    #[serde(default)]
    pub free_addresses: BTreeMap<String, u64>,
    /// When each image was made, in RFC 3339, by image ID. An image of which this is not known is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub images_created: BTreeMap<String, String>,
    /// The account's quotas for running instances. A quota that could not be read is left out.
    #[serde(default)]
    pub vcpu_quotas: Vec<VcpuQuotaUse>,
    /// What EC2 could not be asked, and why: a sentence each.
    #[serde(default)]
    pub not_known: Vec<String>,
    /// Actions that AWS denied while the facts were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedPermission>,
}

/// A quota of the account for instances, and what runs under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VcpuQuotaUse {
    /// The code of Service Quotas, such as `L-1216C47A`.
    pub code: String,
    /// How many vCPUs may run at once.
    pub vcpus: u64,
    /// How many vCPUs run now, whoever in the account started them. Absent where this is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// An action that AWS denied when it was tried last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeniedPermission {
    /// The action as IAM spells it, such as `ec2:CreateFleet`.
    pub action: String,
    /// The message of AWS, decoded where that was allowed.
    pub text: String,
    /// What Cutlist needs the action for.
    pub needed_for: String,
}
