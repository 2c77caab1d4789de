//! What the smaller services say: IAM, EKS, STS, SSM, SQS, Service Quotas.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;

use super::Tags;

/// Parameters of the Systems Manager by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterAnswers {
    pub found: BTreeMap<String, String>,
    /// Names that do not exist.
    pub missing: BTreeSet<String>,
}

/// The EKS cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterAnswer {
    pub endpoint: String,
    /// The bundle of certificates, in base64.
    pub certificate_authority: String,
    /// `1.34`
    pub version: String,
    #[serde(default)]
    pub service_ipv4_cidr: Option<String>,
    #[serde(default)]
    pub service_ipv6_cidr: Option<String>,
    #[serde(default)]
    pub vpc_id: Option<String>,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    pub account: String,
    pub arn: String,
}

/// An instance profile. Lists leave its tags out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceProfile {
    pub name: String,
    pub path: String,
    /// Names without their paths; IAM allows one.
    pub roles: Vec<String>,
    pub tags: Tags,
    pub created_at: Option<Timestamp>,
}

/// What an instance profile is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInstanceProfile {
    pub name: String,
    pub path: String,
    pub tags: Tags,
}

/// A message of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    pub receipt: String,
    pub body: String,
    pub sent_at: Option<Timestamp>,
}

/// How much the account may have of something.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    pub code: String,
    pub name: String,
    /// For on-demand and spot instances: virtual processors.
    pub value: f64,
}
