//! Plain requests as the SDK wants them.

use aws_sdk_ec2::operation::create_fleet::builders::CreateFleetFluentBuilder;
use aws_sdk_ec2::operation::run_instances::builders::RunInstancesFluentBuilder;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::{
    CapacityReservationTarget, ConnectionTrackingSpecificationRequest, FleetLaunchTemplateConfigRequest,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest, FleetType,
    InstanceNetworkInterfaceSpecification, LaunchTemplateBlockDeviceMappingRequest,
    LaunchTemplateCapacityReservationSpecificationRequest, LaunchTemplateCpuOptionsRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest, LaunchTemplateHttpTokensState,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMarketOptionsRequest,
    LaunchTemplateInstanceMetadataEndpointState, LaunchTemplateInstanceMetadataOptionsRequest,
    LaunchTemplateInstanceMetadataProtocolIpv6, LaunchTemplateInstanceMetadataTagsState,
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, LaunchTemplatePlacementRequest,
    LaunchTemplateSpecification, LaunchTemplateTagSpecificationRequest, LaunchTemplatesMonitoringRequest,
    NestedVirtualizationSpecification, OnDemandOptionsRequest, RequestLaunchTemplateData, SpotOptionsRequest, Tag,
    TagSpecification, TargetCapacitySpecificationRequest,
};
use aws_sdk_sqs::operation::receive_message::builders::ReceiveMessageFluentBuilder;
use aws_sdk_sqs::types::MessageSystemAttributeName;
use jiff::Timestamp;

use super::super::api::launch::{
    FleetOverride, FleetRequest, RunRequest, TagSpecifications, TemplateBlockDevice, TemplateData, TemplateInterface,
    TemplateMetadata, TemplatePlacement, TemplateReservation,
};
use super::super::api::{Action, ApiError, Filter, Tags};

/// Messages are hidden from other readers so long after they were received.
const VISIBILITY_SECONDS: i32 = 20;
/// Of what a queue gives at once.
const MESSAGES_MAX: i32 = 10;

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

pub(super) fn tag_specifications(all: &TagSpecifications) -> Vec<TagSpecification> {
    let one = |(kind, of_kind): (&String, &Tags)| {
        TagSpecification::builder().resource_type(kind.as_str().into()).set_tags(Some(tags(of_kind))).build()
    };
    all.iter().map(one).collect()
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

pub(super) fn template_data(data: &TemplateData) -> RequestLaunchTemplateData {
    let profile = data
        .instance_profile
        .as_ref()
        .map(|name| LaunchTemplateIamInstanceProfileSpecificationRequest::builder().name(name).build());
    let tag_specification = |(kind, of_kind): (&String, &Tags)| {
        let of_kind = Some(tags(of_kind));
        LaunchTemplateTagSpecificationRequest::builder().resource_type(kind.as_str().into()).set_tags(of_kind).build()
    };
    let processors = data.nested_virtualization.map(|is_on| {
        let nested = if is_on {
            NestedVirtualizationSpecification::Enabled
        } else {
            NestedVirtualizationSpecification::Disabled
        };
        LaunchTemplateCpuOptionsRequest::builder().nested_virtualization(nested).build()
    });
    let enclaves = data.nitro_enclaves.then(|| LaunchTemplateEnclaveOptionsRequest::builder().enabled(true).build());
    let market = data.reservation.as_ref().and_then(|reservation| reservation.market.as_deref());
    let market = market
        .filter(|market| *market != "default")
        .map(|market| LaunchTemplateInstanceMarketOptionsRequest::builder().market_type(market.into()).build());
    RequestLaunchTemplateData::builder()
        .image_id(&data.image_id)
        .user_data(&data.user_data)
        .set_iam_instance_profile(profile)
        .set_block_device_mappings(some(data.block_devices.iter().map(block_device).collect()))
        .set_network_interfaces(some(data.interfaces.iter().map(interface).collect()))
        .metadata_options(metadata(&data.metadata))
        .monitoring(LaunchTemplatesMonitoringRequest::builder().enabled(data.detailed_monitoring).build())
        .set_placement(placement(&data.placement))
        .set_cpu_options(processors)
        .set_enclave_options(enclaves)
        .set_capacity_reservation_specification(data.reservation.as_ref().map(reservation))
        .set_instance_market_options(market)
        .set_tag_specifications(some(data.tags.iter().map(tag_specification).collect()))
        .build()
}

fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

fn block_device(device: &TemplateBlockDevice) -> LaunchTemplateBlockDeviceMappingRequest {
    let volume = LaunchTemplateEbsBlockDeviceRequest::builder()
        .set_delete_on_termination(device.delete_on_termination)
        .set_encrypted(device.encrypted)
        .set_iops(device.iops)
        .set_kms_key_id(device.kms_key_id.clone())
        .set_snapshot_id(device.snapshot_id.clone())
        .set_throughput(device.throughput)
        .set_volume_initialization_rate(device.volume_initialization_rate)
        .set_volume_size(device.volume_gibibytes)
        .set_volume_type(device.volume_type.as_deref().map(Into::into))
        .build();
    LaunchTemplateBlockDeviceMappingRequest::builder().device_name(&device.device_name).ebs(volume).build()
}

fn interface(interface: &TemplateInterface) -> LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
    let tracking = interface.connection_tracking.as_ref().map(|tracking| {
        ConnectionTrackingSpecificationRequest::builder()
            .set_tcp_established_timeout(tracking.tcp_established_seconds)
            .set_udp_stream_timeout(tracking.udp_stream_seconds)
            .set_udp_timeout(tracking.udp_seconds)
            .build()
    });
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .network_card_index(interface.card_index)
        .device_index(interface.device_index)
        .set_interface_type(interface.interface_type.clone())
        .set_groups(some(interface.security_groups.clone()))
        .set_subnet_id(interface.subnet_id.clone())
        .set_associate_public_ip_address(interface.public_address)
        .set_ipv4_prefix_count(interface.ipv4_prefixes)
        .set_ipv6_address_count(interface.ipv6_addresses)
        .set_ipv6_prefix_count(interface.ipv6_prefixes)
        .set_primary_ipv6(interface.primary_ipv6)
        .set_connection_tracking_specification(tracking)
        .build()
}

fn metadata(options: &TemplateMetadata) -> LaunchTemplateInstanceMetadataOptionsRequest {
    use LaunchTemplateHttpTokensState as Tokens;
    use LaunchTemplateInstanceMetadataEndpointState as Endpoint;
    use LaunchTemplateInstanceMetadataProtocolIpv6 as Ipv6;
    use LaunchTemplateInstanceMetadataTagsState as InTags;
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .set_http_endpoint(options.endpoint_enabled.map(|on| if on { Endpoint::Enabled } else { Endpoint::Disabled }))
        .set_http_protocol_ipv6(options.ipv6_enabled.map(|on| if on { Ipv6::Enabled } else { Ipv6::Disabled }))
        .set_http_put_response_hop_limit(options.hop_limit)
        .set_http_tokens(options.tokens_required.map(|on| if on { Tokens::Required } else { Tokens::Optional }))
        .set_instance_metadata_tags(options.tags_enabled.map(|on| if on { InTags::Enabled } else { InTags::Disabled }))
        .build()
}

fn placement(placement: &TemplatePlacement) -> Option<LaunchTemplatePlacementRequest> {
    (*placement != TemplatePlacement::default()).then(|| {
        LaunchTemplatePlacementRequest::builder()
            .set_group_id(placement.group_id.clone())
            .set_partition_number(placement.partition)
            .set_tenancy(placement.tenancy.as_deref().map(Into::into))
            .build()
    })
}

fn reservation(reservation: &TemplateReservation) -> LaunchTemplateCapacityReservationSpecificationRequest {
    let target =
        reservation.id.as_ref().map(|id| CapacityReservationTarget::builder().capacity_reservation_id(id).build());
    LaunchTemplateCapacityReservationSpecificationRequest::builder()
        .capacity_reservation_preference(reservation.preference.as_str().into())
        .set_capacity_reservation_target(target)
        .build()
}

pub(super) fn fleet(call: CreateFleetFluentBuilder, request: &FleetRequest) -> CreateFleetFluentBuilder {
    let capacity = TargetCapacitySpecificationRequest::builder()
        .total_target_capacity(i32::try_from(request.count).unwrap_or(i32::MAX))
        .default_target_capacity_type(request.target_capacity_type.as_str().into())
        .build();
    let spot = request.spot_strategy.as_deref();
    let spot = spot.map(|strategy| SpotOptionsRequest::builder().allocation_strategy(strategy.into()).build());
    let on_demand = request.on_demand_strategy.as_deref();
    let on_demand =
        on_demand.map(|strategy| OnDemandOptionsRequest::builder().allocation_strategy(strategy.into()).build());
    let configurations = request.configurations.iter().map(|one| {
        let template = FleetLaunchTemplateSpecificationRequest::builder()
            .launch_template_name(&one.launch_template)
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
        .set_launch_template_configs(Some(configurations.collect()))
        .set_context(request.context.clone())
        .set_tag_specifications(some(tag_specifications(&request.tags)))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "EC2 takes a number with fractions; millionths of dollars are far below 2^52"
)]
fn fleet_override(one: &FleetOverride) -> FleetLaunchTemplateOverridesRequest {
    FleetLaunchTemplateOverridesRequest::builder()
        .instance_type(one.instance_type.as_str().into())
        .availability_zone(&one.zone)
        .set_subnet_id(one.subnet_id.clone())
        .set_image_id(one.image_id.clone())
        .set_priority(one.priority.map(|priority| priority as f64))
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
        .set_tag_specifications(some(tag_specifications(&request.tags)))
}
