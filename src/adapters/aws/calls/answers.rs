//! The SDK's answers as plain ones. What lacks its id is left out; anything else that is absent stays absent.

use aws_sdk_ec2::operation::create_fleet::CreateFleetOutput;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::{self as ec2, Tag};
use aws_sdk_sqs::types::MessageSystemAttributeName;
use jiff::Timestamp;

use super::super::api::account::{ClusterAnswer, FoundParameter, InstanceProfile, QueueMessage, Quota};
use super::super::api::instances::{
    AttachedGroup, CapacityReservation, InstanceAnswer, InstanceState, InstanceStatus, PlacementGroup, StateChange,
    StateReason,
};
use super::super::api::launch::{FleetAnswer, FleetFailure, FleetInstances, ListedTemplate};
use super::super::api::network::{Image, SecurityGroup, SpotPrice, Subnet, TypeOffering, Zone};
use super::super::api::{Action, ApiError, Tags};
use crate::core::model::HourlyPrice;

/// Zones that an account has to opt in to (Local and Wavelength Zones) are not of this kind.
const ORDINARY_ZONE: &str = "availability-zone";

/// What an answer must have, or an error that says so.
pub(super) fn required<T>(action: Action, value: Option<T>, what: &str) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::of(action, "IncompleteAnswer", format!("the answer has no {what}")))
}

fn owned(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn count(number: Option<i32>) -> u32 {
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
}

fn moment(time: &DateTime) -> Option<Timestamp> {
    Timestamp::from_second(time.secs()).ok()
}

fn tags(tags: &[Tag]) -> Tags {
    tags.iter().filter_map(|tag| Some((tag.key()?.to_owned(), tag.value().unwrap_or_default().to_owned()))).collect()
}

pub(super) fn zone(zone: &ec2::AvailabilityZone) -> Option<Zone> {
    Some(Zone {
        name: zone.zone_name()?.to_owned(),
        id: zone.zone_id().map(str::to_owned),
        is_ordinary: zone.zone_type().is_none_or(|kind| kind == ORDINARY_ZONE),
    })
}

pub(super) fn subnet(subnet: &ec2::Subnet) -> Option<Subnet> {
    Some(Subnet {
        id: subnet.subnet_id()?.to_owned(),
        zone: owned(subnet.availability_zone()),
        zone_id: subnet.availability_zone_id().map(str::to_owned),
        vpc_id: owned(subnet.vpc_id()),
        free_addresses: count(subnet.available_ip_address_count()),
        tags: tags(subnet.tags()),
    })
}

pub(super) fn security_group(group: &ec2::SecurityGroup) -> Option<SecurityGroup> {
    Some(SecurityGroup {
        id: group.group_id()?.to_owned(),
        name: owned(group.group_name()),
        vpc_id: owned(group.vpc_id()),
        tags: tags(group.tags()),
    })
}

/// Times of images are texts.
pub(super) fn image(image: &ec2::Image) -> Option<Image> {
    Some(Image {
        id: image.image_id()?.to_owned(),
        name: owned(image.name()),
        architecture: owned(image.architecture().map(ec2::ArchitectureValues::as_str)),
        created_at: image.creation_date().and_then(|time| time.parse().ok()),
        deprecated_at: image.deprecation_time().and_then(|time| time.parse().ok()),
    })
}

pub(super) fn reservation(one: &ec2::CapacityReservation) -> Option<CapacityReservation> {
    Some(CapacityReservation {
        id: one.capacity_reservation_id()?.to_owned(),
        instance_type: owned(one.instance_type()),
        zone: owned(one.availability_zone()),
        owner_id: owned(one.owner_id()),
        instance_match_criteria: owned(one.instance_match_criteria().map(ec2::InstanceMatchCriteria::as_str)),
        // Before there were blocks, nothing was said.
        reservation_type: one.reservation_type().map_or("default", ec2::CapacityReservationType::as_str).to_owned(),
        is_interruptible: one.interruptible().unwrap_or_default(),
        ends_at: one.end_date().and_then(moment),
        total_count: count(one.total_instance_count()),
        available_count: count(one.available_instance_count()),
        tags: tags(one.tags()),
    })
}

pub(super) fn placement_group(group: &ec2::PlacementGroup) -> Option<PlacementGroup> {
    Some(PlacementGroup {
        id: group.group_id()?.to_owned(),
        name: owned(group.group_name()),
        strategy: owned(group.strategy().map(ec2::PlacementStrategy::as_str)),
        partition_count: group.partition_count().and_then(|count| u32::try_from(count).ok()),
    })
}

pub(super) fn type_offering(offering: &ec2::InstanceTypeOffering) -> Option<TypeOffering> {
    let instance_type = offering.instance_type()?.as_str().to_owned();
    Some(TypeOffering { instance_type, zone: offering.location()?.to_owned() })
}

pub(super) fn spot_price(price: &ec2::SpotPrice) -> Option<SpotPrice> {
    Some(SpotPrice {
        instance_type: price.instance_type()?.as_str().to_owned(),
        zone: price.availability_zone()?.to_owned(),
        price: HourlyPrice::from_dollars(price.spot_price()?.parse().ok()?)?,
        since: moment(price.timestamp()?)?,
    })
}

/// A word for its state that nobody knew is taken for running: what may run is not lost sight of.
fn state(state: Option<&ec2::InstanceState>) -> InstanceState {
    let word = state.and_then(ec2::InstanceState::name).map(ec2::InstanceStateName::as_str);
    word.and_then(InstanceState::of).unwrap_or(InstanceState::Running)
}

pub(super) fn instance(one: &ec2::Instance) -> Option<InstanceAnswer> {
    let is_primary = |interface: &&ec2::InstanceNetworkInterface| {
        let attachment = interface.attachment();
        attachment.is_some_and(|it| it.device_index() == Some(0) && it.network_card_index().unwrap_or_default() == 0)
    };
    let primary = one.network_interfaces().iter().find(is_primary);
    // Those of the instance are those of its primary interface; the reference reads them there, too.
    let groups = match one.security_groups() {
        [] => primary.map_or(&[][..], ec2::InstanceNetworkInterface::groups),
        groups => groups,
    };
    let group = |group: &ec2::GroupIdentifier| {
        Some(AttachedGroup { id: group.group_id()?.to_owned(), name: group.group_name().map(str::to_owned) })
    };
    let reason =
        one.state_reason().map(|reason| StateReason { code: owned(reason.code()), message: owned(reason.message()) });
    let processors = one.cpu_options().and_then(|cpu| cpu.core_count()?.checked_mul(cpu.threads_per_core()?));
    let preference = one.capacity_reservation_specification();
    let preference =
        preference.and_then(ec2::CapacityReservationSpecificationResponse::capacity_reservation_preference);
    Some(InstanceAnswer {
        id: one.instance_id()?.to_owned(),
        state: state(one.state()),
        instance_type: owned(one.instance_type().map(ec2::InstanceType::as_str)),
        zone: owned(one.placement().and_then(ec2::Placement::availability_zone)),
        image_id: owned(one.image_id()),
        launched_at: one.launch_time().and_then(moment)?,
        tags: tags(one.tags()),
        lifecycle: one.instance_lifecycle().map(|kind| kind.as_str().to_owned()),
        spot_request_id: one.spot_instance_request_id().map(str::to_owned),
        reservation_id: one.capacity_reservation_id().map(str::to_owned),
        reservation_preference: preference.map(|preference| preference.as_str().to_owned()),
        subnet_id: one.subnet_id().map(str::to_owned),
        security_groups: groups.iter().filter_map(group).collect(),
        state_reason: reason,
        vcpus: processors.and_then(|number| u32::try_from(number).ok()),
    })
}

pub(super) fn status(status: &ec2::InstanceStatus) -> Option<InstanceStatus> {
    let impaired = |summary: Option<&ec2::InstanceStatusSummary>| {
        let details = summary.into_iter().flat_map(ec2::InstanceStatusSummary::details);
        details.filter_map(|detail| moment(detail.impaired_since()?)).min()
    };
    // What is over stays listed for a while.
    let is_ahead = |event: &&ec2::InstanceStatusEvent| {
        event.description().is_none_or(|text| !text.starts_with("[Completed]") && !text.starts_with("[Canceled]"))
    };
    let codes = status.events().iter().filter(is_ahead).filter_map(ec2::InstanceStatusEvent::code);
    Some(InstanceStatus {
        id: status.instance_id()?.to_owned(),
        instance_impaired_since: impaired(status.instance_status()),
        system_impaired_since: impaired(status.system_status()),
        events: codes.map(|code| code.as_str().to_owned()).collect(),
    })
}

pub(super) fn state_change(change: &ec2::InstanceStateChange) -> Option<StateChange> {
    Some(StateChange { id: change.instance_id()?.to_owned(), state: state(change.current_state()) })
}

pub(super) fn launch_template(template: &ec2::LaunchTemplate) -> Option<ListedTemplate> {
    Some(ListedTemplate {
        id: owned(template.launch_template_id()),
        name: template.launch_template_name()?.to_owned(),
        created_at: template.create_time().and_then(moment),
        tags: tags(template.tags()),
    })
}

pub(super) fn fleet(answer: &CreateFleetOutput) -> FleetAnswer {
    let instances = answer.instances().iter().map(|one| {
        let launched_as = overrides(one.launch_template_and_overrides());
        let of_override = launched_as.and_then(ec2::FleetLaunchTemplateOverrides::instance_type);
        FleetInstances {
            ids: one.instance_ids().to_vec(),
            instance_type: one.instance_type().or(of_override).map(|it| it.as_str().to_owned()),
            zone: launched_as.and_then(|it| it.availability_zone()).map(str::to_owned),
            subnet_id: launched_as.and_then(|it| it.subnet_id()).map(str::to_owned),
            image_id: launched_as.and_then(|it| it.image_id()).map(str::to_owned),
        }
    });
    let failures = answer.errors().iter().map(|one| {
        let tried = overrides(one.launch_template_and_overrides());
        FleetFailure {
            code: owned(one.error_code()),
            message: owned(one.error_message()),
            instance_type: tried.and_then(|it| it.instance_type()).map(|it| it.as_str().to_owned()),
            zone: tried.and_then(|it| it.availability_zone()).map(str::to_owned),
            subnet_id: tried.and_then(|it| it.subnet_id()).map(str::to_owned),
        }
    });
    FleetAnswer { instances: instances.collect(), failures: failures.collect() }
}

fn overrides(one: Option<&ec2::LaunchTemplateAndOverridesResponse>) -> Option<&ec2::FleetLaunchTemplateOverrides> {
    one.and_then(ec2::LaunchTemplateAndOverridesResponse::overrides)
}

pub(super) fn cluster(cluster: &aws_sdk_eks::types::Cluster) -> Option<ClusterAnswer> {
    let network = cluster.kubernetes_network_config();
    Some(ClusterAnswer {
        endpoint: cluster.endpoint()?.to_owned(),
        certificate_authority: cluster.certificate_authority()?.data()?.to_owned(),
        version: cluster.version()?.to_owned(),
        service_ipv4_cidr: network.and_then(|network| network.service_ipv4_cidr().map(str::to_owned)),
        service_ipv6_cidr: network.and_then(|network| network.service_ipv6_cidr().map(str::to_owned)),
        vpc_id: cluster.resources_vpc_config().and_then(|vpc| vpc.vpc_id().map(str::to_owned)),
    })
}

pub(super) fn parameter(parameter: &aws_sdk_ssm::types::Parameter) -> Option<FoundParameter> {
    Some(FoundParameter {
        name: parameter.name()?.to_owned(),
        arn: parameter.arn().map(str::to_owned),
        selector: parameter.selector().map(str::to_owned),
        value: parameter.value()?.to_owned(),
    })
}

pub(super) fn instance_profile(profile: &aws_sdk_iam::types::InstanceProfile) -> InstanceProfile {
    InstanceProfile {
        name: profile.instance_profile_name().to_owned(),
        path: profile.path().to_owned(),
        roles: profile.roles().iter().map(|role| role.role_name().to_owned()).collect(),
        tags: profile.tags().iter().map(|tag| (tag.key().to_owned(), tag.value().to_owned())).collect(),
        created_at: moment(profile.create_date()),
    }
}

pub(super) fn message(message: &aws_sdk_sqs::types::Message) -> Option<QueueMessage> {
    let sent = message.attributes().and_then(|all| all.get(&MessageSystemAttributeName::SentTimestamp));
    Some(QueueMessage {
        receipt: message.receipt_handle()?.to_owned(),
        body: owned(message.body()),
        sent_at: sent.and_then(|text| Timestamp::from_millisecond(text.parse().ok()?).ok()),
    })
}

pub(super) fn quota(quota: &aws_sdk_servicequotas::types::ServiceQuota) -> Option<Quota> {
    Some(Quota { code: quota.quota_code()?.to_owned(), name: owned(quota.quota_name()), value: quota.value()? })
}
