//! Who must have signed which change: the file of `--signing-policy`, kind `SigningPolicy` (cutlist.dev/v1alpha1). It is the operator's, and
//! no object of the cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const API_VERSION: &str = "cutlist.dev/v1alpha1";
pub const KIND: &str = "SigningPolicy";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SigningPolicyDocument {
    pub api_version: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
    pub spec: SigningPolicy,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SigningPolicy {
    /// The members of each group: principals of the file of allowed signers, or e-mail addresses and fingerprints of OpenPGP keys.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Every rule that a change comes under must be kept. Their order does not matter.
    pub rules: Vec<SigningRule>,
}

/// Who must have signed a commit that changes something. A change comes under the rule where one of `paths`, `kinds` and `raises` names
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SigningRule {
    /// What refusals call the rule.
    pub name: String,
    /// Changes of these files and folders: patterns from the root of the repository, as in `.gitignore`.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Changes of definitions of these kinds, in any file, after kustomizations and variables are applied.
    #[serde(default)]
    pub kinds: Vec<SigningKind>,
    /// Changes that make these amounts larger.
    #[serde(default)]
    pub raises: Vec<SigningAmount>,
    /// The branches that the rule holds for, as patterns. Empty: all branches.
    #[serde(default)]
    pub branches: Vec<String>,
    /// Groups: a member of one of them must have signed.
    pub signers: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum SigningKind {
    NodePool,
    #[serde(rename = "EC2NodeClass")]
    Ec2NodeClass,
    NodeOverlay,
    CapacityBuffer,
    PodTemplate,
    DisruptionBudget,
    /// What `cutlist.lock` locks.
    ImageLock,
    /// `cutlist.yaml`.
    Settings,
}

impl SigningKind {
    /// The word that changes of definitions have for the kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::NodePool => "NodePool",
            Self::Ec2NodeClass => "EC2NodeClass",
            Self::NodeOverlay => "NodeOverlay",
            Self::CapacityBuffer => "CapacityBuffer",
            Self::PodTemplate => "PodTemplate",
            Self::DisruptionBudget => "DisruptionBudget",
            Self::ImageLock => "ImageLock",
            Self::Settings => "Settings",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SigningAmount {
    /// `limits` of a NodePool, or of the settings. One that is taken away counts as larger, and so does a NodePool that is new.
    Limits,
    /// `replicas` of a static NodePool.
    Replicas,
}
