//! `EC2NodeClass` (karpenter.k8s.aws/v1): how an instance is launched.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node_pool::IntOrString;
use super::validation::{ec2_node_class as rules, forms};

#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    category = "karpenter",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    status = "EC2NodeClassStatus",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Role","type":"string","jsonPath":".spec.role","priority":1}"#,
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::EC2_NODE_CLASS_SPEC))]
pub struct EC2NodeClassSpec {
    /// The subnets that instances are launched in: those that match any of the terms.
    #[schemars(length(min = 1, max = 30))]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// The security groups that instances have: those that match any of the terms.
    #[schemars(length(min = 1, max = 30))]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// The images that instances boot: of those that match any of the terms the newest that fits the machine.
    #[schemars(length(min = 1, max = 30), extend("x-kubernetes-validations" = rules::AMI_TERMS))]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// Capacity reservations that are launched into first: those that match any of the terms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 30))]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// The placement group that instances are launched into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Which kind of image it is, for the form of its user data and its disks. An alias says it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// Whether instances have a public address. Without it the subnet decides.
    #[serde(default, rename = "associatePublicIPAddress", skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// Prefixes of addresses for pods that the first network interface has from its launch on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// What the instance runs, or is configured with, at its first boot, beside what makes it join the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// The IAM role of the nodes; an instance profile is made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub role: Option<String>,
    /// An instance profile that is there, instead of `role`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub instance_profile: Option<String>,
    /// Tags of the instances, and of what is made for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-validations" = rules::TAGS))]
    pub tags: BTreeMap<String, String>,
    /// An open map of the upstream KubeletConfiguration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "open_map")]
    pub kubelet: Option<BTreeMap<String, serde_json::Value>>,
    /// Disks of the instances, instead of those of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-validations" = rules::BLOCK_DEVICE_MAPPINGS))]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// What local disks are used for: with `RAID0` they hold the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Network interfaces, instead of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 150), extend("x-kubernetes-validations" = rules::NETWORK_INTERFACES))]
    pub network_interfaces: Vec<NetworkInterface>,
    /// Whether EC2 measures each minute, which costs extra.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// How the metadata of the instance can be asked for on it.
    #[serde(default)]
    pub metadata_options: MetadataOptions,
    /// How long security groups remember connections that are idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// What the processors offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
    /// A field of EC2 that is handed on as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::SUBNET_TERM))]
pub struct SubnetSelectorTerm {
    /// Tags that it has. The value `*` is any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 20, "x-kubernetes-validations" = rules::SELECTOR_TAGS))]
    pub tags: BTreeMap<String, String>,
    /// Its id, such as `subnet-0a1b2c3d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::SUBNET_ID.pattern))]
    pub id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::SECURITY_GROUP_TERM))]
pub struct SecurityGroupSelectorTerm {
    /// Tags that it has. The value `*` is any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 20, "x-kubernetes-validations" = rules::SELECTOR_TAGS))]
    pub tags: BTreeMap<String, String>,
    /// Its id, such as `sg-0a1b2c3d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::SECURITY_GROUP_ID.pattern))]
    pub id: Option<String>,
    /// Its name, which is not the tag `Name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::AMI_TERM))]
pub struct AmiSelectorTerm {
    /// An image family of EKS and a version of it, such as `al2023@v20240807`, or `al2023@latest` for whichever is the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30), extend("pattern" = forms::ALIAS.pattern, "x-kubernetes-validations" = rules::ALIAS))]
    pub alias: Option<String>,
    /// Tags that it has. The value `*` is any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 20, "x-kubernetes-validations" = rules::SELECTOR_TAGS))]
    pub tags: BTreeMap<String, String>,
    /// Its id, such as `ami-0a1b2c3d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::AMI_ID.pattern))]
    pub id: Option<String>,
    /// Its name, in which `*` stands for anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The account that it is of, or `self` or `amazon`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Name of a parameter of SSM that holds its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssm_parameter: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::RESERVATION_TERM))]
pub struct CapacityReservationSelectorTerm {
    /// Tags that it has. The value `*` is any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 20, "x-kubernetes-validations" = rules::SELECTOR_TAGS))]
    pub tags: BTreeMap<String, String>,
    /// Its id, such as `cr-0a1b2c3d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::CAPACITY_RESERVATION_ID.pattern))]
    pub id: Option<String>,
    /// The account that it is of.
    #[serde(default, rename = "ownerID", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::ACCOUNT_ID.pattern))]
    pub owner_id: Option<String>,
    /// Whether any instance that fits uses it (`open`), or only those that name it (`targeted`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["open", "targeted"]))]
    pub instance_match_criteria: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = rules::PLACEMENT_GROUP_SELECTOR))]
pub struct PlacementGroupSelector {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::PLACEMENT_GROUP_ID.pattern))]
    pub id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AmiFamily {
    AL2,
    AL2023,
    Bottlerocket,
    Custom,
    Windows2019,
    Windows2022,
    Windows2025,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceStorePolicy {
    RAID0,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// What the disk is called, such as `/dev/xvda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<BlockDevice>,
    /// Whether this is the disk whose size counts as the ephemeral storage of pods.
    #[serde(default)]
    pub root_volume: bool,
}

/// Schema of a volume's size: the API server takes text only.
fn volume_size(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "pattern": forms::VOLUME_SIZE.pattern })
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::BLOCK_DEVICE))]
pub struct BlockDevice {
    /// Whether the volume goes with its instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Operations a second, where the type of volume lets one choose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// The key that it is encrypted with.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// The snapshot that it begins with.
    #[serde(default, rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// MiB a second, of `gp3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// MiB a second at which the snapshot is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// How large it is, such as `100Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "volume_size")]
    pub volume_size: Option<IntOrString>,
    /// The type of volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"]))]
    pub volume_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The network card that it is on.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// Which one of its card it is.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// Whether it carries addresses (`interface`), or EFA traffic only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(required, extend("enum" = ["interface", "efa-only"]))]
    pub interface_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MetadataOptions {
    /// Whether it can be asked for at all.
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub http_endpoint: Option<String>,
    /// Whether over IPv6, too.
    #[serde(rename = "httpProtocolIPv6")]
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub http_protocol_ipv6: Option<String>,
    /// Over how many hops the answer goes. With 1, pods with a network of their own get none.
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether a token is required (IMDSv2).
    #[schemars(extend("enum" = ["required", "optional"]))]
    pub http_tokens: Option<String>,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self {
            http_endpoint: Some("enabled".to_owned()),
            http_protocol_ipv6: Some("disabled".to_owned()),
            http_put_response_hop_limit: Some(1),
            http_tokens: Some("required".to_owned()),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::CONNECTION_TRACKING))]
pub struct ConnectionTracking {
    /// Seconds, for TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rules::TCP_ESTABLISHED_TIMEOUT]))]
    pub tcp_established_timeout: Option<i32>,
    /// Seconds, for UDP flows with more than one request and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rules::UDP_STREAM_TIMEOUT]))]
    pub udp_stream_timeout: Option<i32>,
    /// Seconds, for UDP flows in one direction, or with one request and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rules::UDP_TIMEOUT]))]
    pub udp_timeout: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether virtual machines can run inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub nested_virtualization: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassStatus {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroup>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amis: Vec<Ami>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservations: Vec<CapacityReservation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A capacity reservation of EC2 that the selector terms found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    pub id: String,
    pub instance_type: String,
    pub availability_zone: String,
    /// `open` or `targeted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_match_criteria: Option<String>,
    /// The AWS account.
    #[serde(default, rename = "ownerID", skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// `default` or `capacity-block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptible: Option<bool>,
    /// `active` or `expiring`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Instances that can still be launched into it. Not in Karpenter's status; without it the catalog says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_instance_count: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subnet {
    pub id: String,
    pub zone: String,
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroup {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ami {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<bool>,
    /// Written by controllers, so the schema has no rules for it: those for definitions would cost more than the API
    /// server allows in a list inside a list.
    #[serde(default)]
    #[schemars(with = "Vec<k8s_openapi::api::core::v1::NodeSelectorRequirement>")]
    pub requirements: Vec<super::node_pool::NodeSelectorRequirement>,
}

/// Schema of a mapping of which the API server keeps everything. Without the extension it drops what is inside.
fn open_map(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The fields of `kubelet` that bootstrapping of every family passes on.
const KUBELET_FIELDS_OF_EVERY_FAMILY: [&str; 12] = [
    "clusterDNS",
    "maxPods",
    "podsPerCore",
    "systemReserved",
    "kubeReserved",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMaxPodGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "cpuCFSQuota",
];

impl AmiFamily {
    /// The family that an alias names before its `@`.
    pub fn of_alias(name: &str) -> Option<Self> {
        Some(match name {
            "al2" => Self::AL2,
            "al2023" => Self::AL2023,
            "bottlerocket" => Self::Bottlerocket,
            "windows2019" => Self::Windows2019,
            "windows2022" => Self::Windows2022,
            "windows2025" => Self::Windows2025,
            _ => return None,
        })
    }

    /// Whether a field of `kubelet` reaches the kubelet on images of this family. AL2023 takes whatever the kubelet has, and
    /// what becomes of a custom image is not known here. Source: reference, section 1.3.1.
    pub fn takes_kubelet_field(self, field: &str) -> bool {
        match self {
            Self::AL2023 | Self::Custom => true,
            Self::Bottlerocket if field == "podsPerCore" => false,
            Self::AL2 | Self::Bottlerocket | Self::Windows2019 | Self::Windows2022 | Self::Windows2025 => {
                KUBELET_FIELDS_OF_EVERY_FAMILY.contains(&field)
            }
        }
    }
}

impl EC2NodeClassSpec {
    /// The image family: stated, else that of the alias, else `Custom`.
    pub fn resolved_ami_family(&self) -> AmiFamily {
        if let Some(family) = self.ami_family {
            return family;
        }
        let alias = self.ami_selector_terms.iter().find_map(|term| term.alias.as_deref()).unwrap_or_default();
        AmiFamily::of_alias(alias.split('@').next().unwrap_or_default()).unwrap_or(AmiFamily::Custom)
    }
}

impl EC2NodeClass {
    /// The status, unless it is about an earlier generation.
    pub fn status_now(&self) -> Option<&EC2NodeClassStatus> {
        let status = self.status.as_ref()?;
        let is_older = |observed: i64| self.metadata.generation.is_some_and(|generation| observed < generation);
        // `Ready` alone does not tell: another controller writes it than those that look things up.
        let is_stale = status.conditions.iter().any(|it| it.observed_generation.is_some_and(is_older));
        (!is_stale).then_some(status)
    }
}
