//! Requests that launch: launch templates, fleets, and the dry run of RunInstances. What is put into them is decided elsewhere.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Tags;

/// Tags by the kind of resource that gets them: `instance`, `volume`, `network-interface`, `spot-instances-request`, `fleet`.
pub type TagSpecifications = BTreeMap<String, Tags>;

/// A launch template as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchTemplate {
    pub id: String,
    pub name: String,
    pub created_at: Option<Timestamp>,
    pub tags: Tags,
}

/// A launch template that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchTemplateRequest {
    pub name: String,
    /// At most 64 ASCII characters.
    pub client_token: String,
    /// Of the template itself.
    pub tags: Tags,
    pub data: TemplateData,
}

/// What instances of a template are launched with. `None` leaves a choice to EC2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateData {
    pub image_id: String,
    /// In base64.
    pub user_data: String,
    pub instance_profile: Option<String>,
    pub block_devices: Vec<TemplateBlockDevice>,
    /// Never empty: security groups stand here, never beside it.
    pub interfaces: Vec<TemplateInterface>,
    pub metadata: TemplateMetadata,
    pub detailed_monitoring: bool,
    pub placement: TemplatePlacement,
    pub nested_virtualization: Option<bool>,
    pub nitro_enclaves: bool,
    pub reservation: Option<TemplateReservation>,
    pub tags: TagSpecifications,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateBlockDevice {
    pub device_name: String,
    pub delete_on_termination: Option<bool>,
    pub encrypted: Option<bool>,
    pub iops: Option<i32>,
    pub kms_key_id: Option<String>,
    pub snapshot_id: Option<String>,
    pub throughput: Option<i32>,
    pub volume_initialization_rate: Option<i32>,
    pub volume_gibibytes: Option<i32>,
    pub volume_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateInterface {
    pub card_index: i32,
    pub device_index: i32,
    /// `interface`, `efa` or `efa-only`.
    pub interface_type: Option<String>,
    pub security_groups: Vec<String>,
    /// Only where a template has several interfaces: it is then bound to one subnet.
    pub subnet_id: Option<String>,
    pub public_address: Option<bool>,
    pub ipv4_prefixes: Option<i32>,
    pub ipv6_addresses: Option<i32>,
    pub ipv6_prefixes: Option<i32>,
    pub primary_ipv6: Option<bool>,
    pub connection_tracking: Option<TemplateTracking>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateTracking {
    pub tcp_established_seconds: Option<i32>,
    pub udp_stream_seconds: Option<i32>,
    pub udp_seconds: Option<i32>,
}

/// `None` leaves an option out, as in regions that do not know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateMetadata {
    pub endpoint_enabled: Option<bool>,
    pub ipv6_enabled: Option<bool>,
    pub hop_limit: Option<i32>,
    pub tokens_required: Option<bool>,
    pub tags_enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplatePlacement {
    pub group_id: Option<String>,
    pub partition: Option<i32>,
    /// `default` or `dedicated`.
    pub tenancy: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateReservation {
    /// `none`, `open` or `capacity-reservations-only`.
    pub preference: String,
    pub id: Option<String>,
    /// `default`, `capacity-block` or `interruptible-capacity-reservation`.
    pub market: Option<String>,
}

/// A fleet of type `instant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetRequest {
    /// At most 64 ASCII characters. The same one never launches twice.
    pub client_token: String,
    /// Instances.
    pub count: u32,
    /// `spot`, `on-demand`, `capacity-block` or `reserved-capacity`.
    pub target_capacity_type: String,
    pub spot_strategy: Option<String>,
    pub on_demand_strategy: Option<String>,
    pub configurations: Vec<FleetConfiguration>,
    pub context: Option<String>,
    pub tags: TagSpecifications,
}

/// A template with what it may be launched as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetConfiguration {
    pub launch_template: String,
    pub overrides: Vec<FleetOverride>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetOverride {
    pub instance_type: String,
    /// Beside the subnet, so that a failure says where it was.
    pub zone: String,
    pub subnet_id: Option<String>,
    pub image_id: Option<String>,
    /// Lower first, in millionths of a dollar where it is a price.
    pub priority: Option<i64>,
}

/// What EC2 did of a fleet: instances, failures, or some of both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetAnswer {
    pub fleet_id: Option<String>,
    pub instances: Vec<FleetInstances>,
    pub failures: Vec<FleetFailure>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetInstances {
    pub ids: Vec<String>,
    /// `spot`; nothing for any other.
    pub lifecycle: Option<String>,
    pub launched_as: FleetOverride,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetFailure {
    pub code: String,
    pub message: String,
    pub lifecycle: Option<String>,
    pub tried: FleetOverride,
}

/// One instance, only to see whether it would be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    pub launch_template: String,
    pub instance_type: String,
    pub image_id: String,
    /// Of the primary interface.
    pub subnet_id: String,
    pub tags: TagSpecifications,
}
