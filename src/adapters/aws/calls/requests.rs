//! Plain requests as the SDK wants them.

use aws_sdk_ec2::operation::create_fleet::builders::CreateFleetFluentBuilder;
use aws_sdk_ec2::operation::run_instances::builders::RunInstancesFluentBuilder;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::{
    CapacityReservationTarget, ConnectionTrackingSpecificationRequest, DefaultTargetCapacityType,
    FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest,
    FleetReservationType, FleetType, InstanceNetworkInterfaceSpecification, LaunchTemplateBlockDeviceMappingRequest,
    LaunchTemplateCapacityReservationSpecificationRequest, LaunchTemplateCpuOptionsRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMarketOptionsRequest,
    LaunchTemplateInstanceMetadataOptionsRequest, LaunchTemplateInstanceNetworkInterfaceSpecificationRequest,
    LaunchTemplatePlacementRequest, LaunchTemplateSpecification, LaunchTemplateTagSpecificationRequest,
    LaunchTemplatesMonitoringRequest, NestedVirtualizationSpecification, OnDemandOptionsRequest,
    RequestLaunchTemplateData, ReservedCapacityOptionsRequest, SpotOptionsRequest, Tag, TagSpecification,
    TargetCapacitySpecificationRequest,
};
use aws_sdk_sqs::operation::receive_message::builders::ReceiveMessageFluentBuilder;
use aws_sdk_sqs::types::MessageSystemAttributeName;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;

use super::super::api::launch::{FleetRequest, Override, RunRequest, Strategy, Target};
use super::super::api::template::{
    BlockDevice, InterfaceType, LaunchTemplate, Market, MetadataOptions, NetworkInterface, ReservationUse,
};
use super::super::api::{Action, ApiError, Filter, Tags};

/// Messages are hidden from other readers so long after they were received.
const VISIBILITY_SECONDS: i32 = 20;
/// Of what a queue gives at once.
const MESSAGES_MAX: i32 = 10;

/// What the policy lets nobody make without tags. The dry run names an interface of its own, which has none of the template's.
const TAGGED_BY_RUN: [&str; 3] = ["instance", "volume", "network-interface"];

/// `None` where there is none: an empty list is another request.
pub(super) fn filters(filters: &[Filter]) -> Option<Vec<aws_sdk_ec2::types::Filter>> {
    let convert = |filter: &Filter| {
        aws_sdk_ec2::types::Filter::builder().name(&filter.name).set_values(Some(filter.values.clone())).build()
    };
    (!filters.is_empty()).then(|| filters.iter().map(convert).collect())
}

pub(super) fn time(moment: Timestamp) -> DateTime {
    DateTime::from_secs(moment.as_second())
}

pub(super) fn tags(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

pub(super) fn iam_tags(action: Action, tags: &Tags) -> Result<Vec<aws_sdk_iam::types::Tag>, ApiError> {
    let tag = |(key, value): (&String, &String)| aws_sdk_iam::types::Tag::builder().key(key).value(value).build();
    let tags = tags.iter().map(tag).collect::<Result<Vec<_>, _>>();
    tags.map_err(|error| ApiError::of(action, "InvalidRequest", error.to_string()))
}

/// The same tags for each kind of resource.
pub(super) fn tag_specifications(kinds: &[&str], of_each: &Tags) -> Vec<TagSpecification> {
    let one =
        |kind: &&str| TagSpecification::builder().resource_type((*kind).into()).set_tags(Some(tags(of_each))).build();
    kinds.iter().map(one).collect()
}

pub(super) fn pricing_filters(filters: &[Filter]) -> Result<Vec<aws_sdk_pricing::types::Filter>, ApiError> {
    let term = |filter: &Filter| {
        let value = filter.values.first().map(String::as_str).unwrap_or_default();
        let kind = aws_sdk_pricing::types::FilterType::TermMatch;
        aws_sdk_pricing::types::Filter::builder().r#type(kind).field(&filter.name).value(value).build()
    };
    let filters = filters.iter().map(term).collect::<Result<Vec<_>, _>>();
    filters.map_err(|error| ApiError::of(Action::GetProducts, "InvalidRequest", error.to_string()))
}

pub(super) fn receive(
    call: ReceiveMessageFluentBuilder,
    queue_url: &str,
    wait_seconds: u32,
) -> ReceiveMessageFluentBuilder {
    call.queue_url(queue_url)
        .max_number_of_messages(MESSAGES_MAX)
        .visibility_timeout(VISIBILITY_SECONDS)
        .wait_time_seconds(i32::try_from(wait_seconds).unwrap_or(i32::MAX))
        .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp)
}

pub(super) fn template_data(template: &LaunchTemplate) -> RequestLaunchTemplateData {
    let profile = LaunchTemplateIamInstanceProfileSpecificationRequest::builder().name(&template.instance_profile);
    let mut tagged = vec!["network-interface"];
    if template.tags_spot_requests {
        tagged.push("spot-instances-request");
    }
    let tag_specification = |kind: &str| {
        let of_kind = Some(tags(&template.tags));
        LaunchTemplateTagSpecificationRequest::builder().resource_type(kind.into()).set_tags(of_kind).build()
    };
    let processors = template.nested_virtualization.as_deref().map(|word| {
        let nested = NestedVirtualizationSpecification::from(word);
        LaunchTemplateCpuOptionsRequest::builder().nested_virtualization(nested).build()
    });
    let enclaves = template.enclave.then(|| LaunchTemplateEnclaveOptionsRequest::builder().enabled(true).build());
    let (reservation, market) = reservation(&template.reservation);
    let market =
        market.map(|market| LaunchTemplateInstanceMarketOptionsRequest::builder().market_type(market.into()).build());
    RequestLaunchTemplateData::builder()
        .image_id(&template.image_id)
        .user_data(BASE64_STANDARD.encode(&template.user_data))
        .iam_instance_profile(profile.build())
        .set_block_device_mappings(some(template.block_devices.iter().map(block_device).collect()))
        .set_network_interfaces(some(template.interfaces.iter().map(interface).collect()))
        .metadata_options(metadata(&template.metadata))
        .monitoring(LaunchTemplatesMonitoringRequest::builder().enabled(template.detailed_monitoring).build())
        .placement(placement(template))
        .set_cpu_options(processors)
        .set_enclave_options(enclaves)
        .set_capacity_reservation_specification(reservation)
        .set_instance_market_options(market)
        .set_tag_specifications(some(tagged.into_iter().map(tag_specification).collect()))
        .build()
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

fn block_device(device: &BlockDevice) -> LaunchTemplateBlockDeviceMappingRequest {
    let volume = LaunchTemplateEbsBlockDeviceRequest::builder()
        .set_delete_on_termination(device.delete_on_termination)
        .set_encrypted(device.encrypted)
        .set_iops(device.iops)
        .set_kms_key_id(device.kms_key_id.clone())
        .set_snapshot_id(device.snapshot_id.clone())
        .set_throughput(device.throughput)
        .set_volume_initialization_rate(device.initialization_rate)
        .set_volume_size(device.size_gibibytes)
        .set_volume_type(device.volume_type.as_deref().map(Into::into))
        .build();
    LaunchTemplateBlockDeviceMappingRequest::builder().device_name(&device.device_name).ebs(volume).build()
}

fn interface(interface: &NetworkInterface) -> LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
    let tracking = interface.connection_tracking.as_ref().map(|tracking| {
        ConnectionTrackingSpecificationRequest::builder()
            .set_tcp_established_timeout(tracking.tcp_established)
            .set_udp_stream_timeout(tracking.udp_stream)
            .set_udp_timeout(tracking.udp)
            .build()
    });
    let kind = interface.interface_type.map(|kind| match kind {
        InterfaceType::Interface => "interface",
        InterfaceType::Efa => "efa",
        InterfaceType::EfaOnly => "efa-only",
    });
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .set_network_card_index(interface.network_card_index)
        .device_index(interface.device_index)
        .set_interface_type(kind.map(str::to_owned))
        .set_groups(some(interface.security_groups.clone()))
        .set_associate_public_ip_address(interface.associate_public_ip_address)
        .set_ipv4_prefix_count(interface.ipv4_prefix_count)
        .set_ipv6_address_count(interface.ipv6_address_count)
        .set_ipv6_prefix_count(interface.ipv6_prefix_count)
        .set_primary_ipv6(interface.primary_ipv6)
        .set_connection_tracking_specification(tracking)
        .build()
}

fn metadata(options: &MetadataOptions) -> LaunchTemplateInstanceMetadataOptionsRequest {
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_endpoint(options.http_endpoint.as_str().into())
        .set_http_protocol_ipv6(options.http_protocol_ipv6.as_deref().map(Into::into))
        .http_put_response_hop_limit(options.http_put_response_hop_limit)
        .http_tokens(options.http_tokens.as_str().into())
        .build()
}

fn placement(template: &LaunchTemplate) -> LaunchTemplatePlacementRequest {
    let group = template.placement_group.as_ref();
    LaunchTemplatePlacementRequest::builder()
        .set_group_id(group.map(|group| group.id.clone()))
        .set_partition_number(group.and_then(|group| group.partition))
        .tenancy(template.tenancy.as_str().into())
        .build()
}

/// With the market that the reservation is of, where that has a word of its own.
fn reservation(
    reservation: &ReservationUse,
) -> (Option<LaunchTemplateCapacityReservationSpecificationRequest>, Option<&'static str>) {
    let (preference, id, market) = match reservation {
        ReservationUse::Open => return (None, None),
        ReservationUse::None => ("none", None, None),
        ReservationUse::Only { id, market } => {
            let market = match market {
                Market::OnDemand => None,
                Market::CapacityBlock => Some("capacity-block"),
                Market::Interruptible => Some("interruptible-capacity-reservation"),
            };
            ("capacity-reservations-only", Some(id), market)
        }
    };
    let target = id.map(|id| CapacityReservationTarget::builder().capacity_reservation_id(id).build());
    let specification = LaunchTemplateCapacityReservationSpecificationRequest::builder()
        .capacity_reservation_preference(preference.into())
        .set_capacity_reservation_target(target)
        .build();
    (Some(specification), market)
}

pub(super) fn fleet(call: CreateFleetFluentBuilder, request: &FleetRequest) -> CreateFleetFluentBuilder {
    let target = match request.target {
        Target::OnDemand => DefaultTargetCapacityType::OnDemand,
        Target::Spot => DefaultTargetCapacityType::Spot,
        Target::CapacityBlock => DefaultTargetCapacityType::CapacityBlock,
        Target::ReservedCapacity => DefaultTargetCapacityType::ReservedCapacity,
    };
    let capacity = TargetCapacitySpecificationRequest::builder()
        .total_target_capacity(i32::try_from(request.count).unwrap_or(i32::MAX))
        .default_target_capacity_type(target)
        .build();
    let strategy = request.strategy.map(|strategy| match strategy {
        Strategy::LowestPrice => "lowest-price",
        Strategy::Prioritized => "prioritized",
        Strategy::PriceCapacityOptimized => "price-capacity-optimized",
        Strategy::CapacityOptimizedPrioritized => "capacity-optimized-prioritized",
    });
    let is_spot = request.target == Target::Spot;
    let spot = strategy.filter(|_| is_spot);
    let spot = spot.map(|strategy| SpotOptionsRequest::builder().allocation_strategy(strategy.into()).build());
    let on_demand = strategy.filter(|_| !is_spot);
    let on_demand =
        on_demand.map(|strategy| OnDemandOptionsRequest::builder().allocation_strategy(strategy.into()).build());
    let configurations = request.configs.iter().map(|one| {
        let template = FleetLaunchTemplateSpecificationRequest::builder()
            .launch_template_name(&one.template)
            .version("$Latest")
            .build();
        FleetLaunchTemplateConfigRequest::builder()
            .launch_template_specification(template)
            .set_overrides(Some(one.overrides.iter().map(fleet_override).collect()))
            .build()
    });
    call.r#type(FleetType::Instant)
        .client_token(&request.client_token)
        .target_capacity_specification(capacity)
        .set_spot_options(spot)
        .set_on_demand_options(on_demand)
        .set_reserved_capacity_options(reserved_capacity(request.target))
        .set_launch_template_configs(Some(configurations.collect()))
        .set_context(request.context.clone())
        .set_tag_specifications(some(tag_specifications(&["fleet", "instance", "volume"], &request.tags)))
}

/// Of reserved capacity EC2 is told which kind of reservation it is to use: the interruptible ones. Others are bought as what they are.
fn reserved_capacity(target: Target) -> Option<ReservedCapacityOptionsRequest> {
    let kind = FleetReservationType::InterruptibleCapacityReservation;
    (target == Target::ReservedCapacity)
        .then(|| ReservedCapacityOptionsRequest::builder().reservation_types(kind).build())
}

fn fleet_override(one: &Override) -> FleetLaunchTemplateOverridesRequest {
    FleetLaunchTemplateOverridesRequest::builder()
        .instance_type(one.instance_type.as_str().into())
        .availability_zone(&one.zone)
        .subnet_id(&one.subnet_id)
        .image_id(&one.image_id)
        .priority(f64::from(one.priority))
        .build()
}

pub(super) fn run(call: RunInstancesFluentBuilder, request: &RunRequest) -> RunInstancesFluentBuilder {
    let template = LaunchTemplateSpecification::builder().launch_template_name(&request.launch_template);
    // The template's interface has no subnet, and there is none beside an interface.
    let interface = InstanceNetworkInterfaceSpecification::builder().device_index(0).subnet_id(&request.subnet_id);
    call.launch_template(template.version("$Latest").build())
        .instance_type(request.instance_type.as_str().into())
        .image_id(&request.image_id)
        .network_interfaces(interface.build())
        .min_count(1)
        .max_count(1)
        .set_tag_specifications(some(tag_specifications(&TAGGED_BY_RUN, &request.tags)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptible_reservations_are_asked_for_by_name() {
        let options = reserved_capacity(Target::ReservedCapacity).unwrap();
        assert_eq!(options.reservation_types(), [FleetReservationType::InterruptibleCapacityReservation]);
        for target in [Target::OnDemand, Target::Spot, Target::CapacityBlock] {
            assert_eq!(reserved_capacity(target), None);
        }
    }
}
