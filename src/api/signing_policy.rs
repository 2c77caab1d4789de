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
    /// Signers by the name of their group: principals as the file of allowed signers has them; of OpenPGP e-mail addresses or fingerprints.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Each one holds that a change comes under, in whichever order.
    pub rules: Vec<SigningRule>,
}

/// What a commit changes, and who must have signed it for that. A change comes under the rule if one of `paths`, `kinds` and `raises` is about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SigningRule {
    /// By which refusals call it.
    pub name: String,
    /// Files and folders of the repository, from its root, as in `.gitignore`.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Definitions of these kinds, in whichever files, and whatever kustomizations and variables make of them.
    #[serde(default)]
    pub kinds: Vec<SigningKind>,
    /// Amounts that become larger.
    #[serde(default)]
    pub raises: Vec<SigningAmount>,
    /// The branches that it is about, as patterns; empty: all.
    #[serde(default)]
    pub branches: Vec<String>,
    /// The groups of which one member must have signed.
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
