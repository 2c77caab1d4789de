//! `cutlist.lock`: the images of EC2NodeClasses as somebody reviewed them, kind `ImageLock` (cutlist.dev/v1alpha1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ec2_node_class::{Ami, AmiSelectorTerm};
use super::node_pool::NodeSelectorRequirement;

/// The file name looked for beside `cutlist.yaml`.
pub const FILE_NAME: &str = "cutlist.lock";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageLockDocument {
    pub api_version: String,
    pub kind: String,
    pub spec: ImageLock,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageLock {
    /// By name.
    #[serde(default)]
    pub node_classes: Vec<LockedClass>,
}

/// What the image terms of an EC2NodeClass found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedClass {
    pub name: String,
    /// Those of the class when it was locked. The lock counts while the class has the same, in any order.
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// A node runs the first one whose requirements accept its instance type.
    pub images: Vec<LockedImage>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LockedImage {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was made, in RFC 3339, where EC2 was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// What instance types it is for.
    #[serde(default)]
    #[schemars(with = "Vec<k8s_openapi::api::core::v1::NodeSelectorRequirement>")]
    pub requirements: Vec<NodeSelectorRequirement>,
}

impl From<&Ami> for LockedImage {
    fn from(image: &Ami) -> Self {
        Self { id: image.id.clone(), name: image.name.clone(), created: None, requirements: image.requirements.clone() }
    }
}

impl From<&LockedImage> for Ami {
    fn from(image: &LockedImage) -> Self {
        let LockedImage { id, name, created: _, requirements } = image.clone();
        Self { id, name, deprecated: None, requirements }
    }
}

impl LockedClass {
    /// Whether it was made for these terms, in any order.
    pub fn is_for(&self, terms: &[AmiSelectorTerm]) -> bool {
        let has_all = |one: &[AmiSelectorTerm], other: &[AmiSelectorTerm]| one.iter().all(|term| other.contains(term));
        has_all(&self.ami_selector_terms, terms) && has_all(terms, &self.ami_selector_terms)
    }
}
