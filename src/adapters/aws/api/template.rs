//! The content of a launch template, in the words of EC2: everything that it has to know of a machine but its type, its zone and how it is
//! paid for. What is put into it is decided in [`super::super::launch_templates`].

use std::collections::BTreeMap;

use serde::Serialize;

/// Begins the name of every template that is made here.
pub const NAME_PREFIX: &str = "cutlist.dev/";

/// Security groups stand in the interfaces, where EC2 wants them as soon as there is
/// one; key pair and instance type are never set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaunchTemplate {
    pub image_id: String,
    /// Not encoded yet.
    pub user_data: String,
    pub instance_profile: String,
    /// None: those of the image.
    pub block_devices: Vec<BlockDevice>,
    pub metadata: MetadataOptions,
    pub interfaces: Vec<NetworkInterface>,
    pub detailed_monitoring: bool,
    /// `enabled` or `disabled`; `None`: as EC2 has it.
    pub nested_virtualization: Option<String>,
    pub enclave: bool,
    /// `default` or `dedicated`.
    pub tenancy: String,
    pub placement_group: Option<PlacementGroup>,
    pub reservation: ReservationUse,
    /// Of the template itself, of network interfaces, and, with `tags_spot_requests`, of spot requests. Instances, volumes and the fleet are
    /// tagged by the launch.
    pub tags: BTreeMap<String, String>,
    /// EC2 refuses a launch that would tag spot requests and makes none (A#5850).
    pub tags_spot_requests: bool,
}

/// Which capacity reservations an instance uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ReservationUse {
    /// As EC2 does by itself: any open one that fits.
    Open,
    /// None, so that reservations are left to those who ask for them.
    None,
    /// This one or nothing.
    Only { id: String, market: Market },
}

/// How the capacity of a reservation is bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Market {
    OnDemand,
    CapacityBlock,
    Interruptible,
}

/// A volume of EBS, in the words of EC2. What is `None` is as the image or EC2 has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    pub device_name: String,
    pub delete_on_termination: Option<bool>,
    pub encrypted: Option<bool>,
    pub iops: Option<i32>,
    /// MiB a second.
    pub throughput: Option<i32>,
    pub kms_key_id: Option<String>,
    pub snapshot_id: Option<String>,
    /// MiB a second.
    pub initialization_rate: Option<i32>,
    pub size_gibibytes: Option<i32>,
    pub volume_type: Option<String>,
}

/// A network interface of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkInterface {
    /// `None`: the one card that every type has.
    pub network_card_index: Option<i32>,
    pub device_index: i32,
    /// `None`: an ordinary one.
    pub interface_type: Option<InterfaceType>,
    pub security_groups: Vec<String>,
    /// `None`: as the subnet has it.
    pub associate_public_ip_address: Option<bool>,
    pub ipv4_prefix_count: Option<i32>,
    pub ipv6_prefix_count: Option<i32>,
    pub ipv6_address_count: Option<i32>,
    /// The first IPv6 address stays the same as long as the machine lives.
    pub primary_ipv6: Option<bool>,
    pub connection_tracking: Option<TrackingTimeouts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum InterfaceType {
    Interface,
    /// Elastic Fabric Adapter, with addresses.
    Efa,
    /// The same without addresses.
    EfaOnly,
}

/// Seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrackingTimeouts {
    pub tcp_established: Option<i32>,
    pub udp_stream: Option<i32>,
    pub udp: Option<i32>,
}

/// A placement group that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementGroup {
    pub id: String,
    /// Of a group with partitions the one to launch into.
    pub partition: Option<i32>,
}

/// How a machine learns of itself. Tags are never shown to the machine: EC2 refuses keys with a slash there, and ours have one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MetadataOptions {
    pub http_endpoint: String,
    /// `None` where the region does not have it.
    pub http_protocol_ipv6: Option<String>,
    pub http_put_response_hop_limit: i32,
    pub http_tokens: String,
}
