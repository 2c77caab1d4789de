//! What is found out about a class and its cluster, put together with what claims want.

use crate::api::ec2_node_class::MetadataOptions as OfClass;
use crate::api::ec2_node_class::{Ami, AmiFamily, CapacityReservation, EC2NodeClass, EC2NodeClassSpec};
use crate::api::keys;
use crate::core::catalog::user_data::{Bootstrap, Cluster, Finding, bottlerocket, render};

use super::{
    LaunchSpecification, LaunchTemplate, Market, MetadataOptions, PlacementGroup, ReservationUse, TemplateError,
    block_devices, interfaces, tags,
};

/// Regions whose metadata service has no IPv6 address and refuses the option. Source: reference, section 6.6.
const REGIONS_WITHOUT_IPV6_METADATA: [&str; 6] =
    ["us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-south-1", "us-isof-east-1"];

/// A class and its surroundings, as far as machines depend on them.
#[derive(Clone, Debug)]
pub struct Resolved<'r> {
    pub node_class: &'r str,
    pub class: &'r EC2NodeClassSpec,
    /// Newest first, as the class's status has them.
    pub images: &'r [Ami],
    pub security_groups: Vec<String>,
    pub instance_profile: Option<&'r str>,
    pub reservations: &'r [CapacityReservation],
    pub cluster: &'r Cluster,
    pub region: &'r str,
    pub placement_group: Option<PlacementGroup>,
    /// The gate ReservedCapacity. While it is off, EC2 uses open reservations as it does by itself.
    pub reserves_capacity: bool,
}

/// What distinguishes the templates of one launch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Variant {
    pub image_id: String,
    pub max_pods: i64,
    pub efa_count: i64,
    pub capacity_type: String,
}

impl<'r> Resolved<'r> {
    /// From a class with its status. The placement group and the gate are for the caller to say.
    pub fn of(class: &'r EC2NodeClass, cluster: &'r Cluster, region: &'r str) -> Self {
        let status = class.status.as_ref();
        let mut security_groups: Vec<String> =
            status.into_iter().flat_map(|status| &status.security_groups).map(|group| group.id.clone()).collect();
        // A set: in another order they are the same groups.
        security_groups.sort();
        security_groups.dedup();
        Self {
            node_class: class.metadata.name.as_deref().unwrap_or_default(),
            class: &class.spec,
            images: status.map(|status| status.amis.as_slice()).unwrap_or_default(),
            security_groups,
            instance_profile: status.and_then(|status| status.instance_profile.as_deref()),
            reservations: status.map(|status| status.capacity_reservations.as_slice()).unwrap_or_default(),
            cluster,
            region,
            placement_group: None,
            reserves_capacity: false,
        }
    }

    pub(super) fn family(&self) -> AmiFamily {
        self.class.resolved_ami_family()
    }

    /// The template of one variant, and what is to be said about the class's user data.
    pub(super) fn template(
        &self,
        specification: &LaunchSpecification,
        variant: &Variant,
    ) -> Result<(LaunchTemplate, Vec<Finding>), TemplateError> {
        let missing = |what| TemplateError::Unresolved { node_class: self.node_class.to_owned(), what };
        let instance_profile = self.instance_profile.filter(|name| !name.is_empty());
        if self.security_groups.is_empty() {
            return Err(missing("security groups"));
        }
        let owner = tags::Owner {
            cluster: &self.cluster.name,
            installation: &specification.installation,
            node_pool: &specification.node_pool,
            node_class: self.node_class,
        };
        let user_data = render(self.family(), &self.bootstrap(specification, variant))?;
        let class = self.class;
        let nested_virtualization =
            class.cpu_options.as_ref().and_then(|options| options.nested_virtualization.clone());
        let is_ipv6 = self.cluster.is_ipv6();
        let template = LaunchTemplate {
            image_id: variant.image_id.clone(),
            user_data: user_data.text,
            instance_profile: instance_profile.ok_or_else(|| missing("instance profile"))?.to_owned(),
            block_devices: block_devices::of_class(class)?,
            metadata: self.metadata(),
            interfaces: interfaces::of_class(class, &self.security_groups, is_ipv6, variant.efa_count),
            detailed_monitoring: class.detailed_monitoring.unwrap_or(false),
            nested_virtualization,
            enclave: specification.wants_enclave,
            tenancy: specification.tenancy.clone(),
            placement_group: self.placement_group.clone(),
            reservation: self.reservation(specification, variant),
            tags: tags::of_launch(&class.tags, owner)?,
            tags_spot_requests: variant.capacity_type == keys::SPOT,
        };
        Ok((template, user_data.findings))
    }

    fn bootstrap(&self, specification: &LaunchSpecification, variant: &Variant) -> Bootstrap {
        let mut labels = specification.labels.clone();
        labels.insert(keys::CAPACITY_TYPE.to_owned(), variant.capacity_type.clone());
        let is_bottlerocket = self.family() == AmiFamily::Bottlerocket;
        let version = || bottlerocket::version_of(&variant.image_id, &self.class.ami_selector_terms, self.images);
        Bootstrap {
            cluster: self.cluster.clone(),
            labels,
            taints: specification.taints.clone(),
            kubelet: self.class.kubelet.clone().unwrap_or_default(),
            max_pods: variant.max_pods,
            instance_store_policy: self.class.instance_store_policy,
            image_version: if is_bottlerocket { version() } else { None },
            user_data: self.class.user_data.clone(),
        }
    }

    /// A field that is explicitly empty is as if it were not there.
    fn metadata(&self) -> MetadataOptions {
        let (stated, default) = (&self.class.metadata_options, OfClass::default());
        let text = |stated: &Option<String>, default: Option<String>| stated.clone().or(default).unwrap_or_default();
        let hops = stated.http_put_response_hop_limit.or(default.http_put_response_hop_limit);
        let has_ipv6 = !REGIONS_WITHOUT_IPV6_METADATA.contains(&self.region);
        MetadataOptions {
            http_endpoint: text(&stated.http_endpoint, default.http_endpoint),
            http_protocol_ipv6: has_ipv6.then(|| text(&stated.http_protocol_ipv6, default.http_protocol_ipv6)),
            http_put_response_hop_limit: hops.and_then(|hops| i32::try_from(hops).ok()).unwrap_or(1),
            http_tokens: text(&stated.http_tokens, default.http_tokens),
        }
    }

    fn reservation(&self, specification: &LaunchSpecification, variant: &Variant) -> ReservationUse {
        let id = specification.reservation.as_ref().filter(|_| variant.capacity_type == keys::RESERVED);
        let Some(id) = id else {
            return if self.reserves_capacity { ReservationUse::None } else { ReservationUse::Open };
        };
        ReservationUse::Only { id: id.clone(), market: market(self.reservations, specification, id) }
    }
}

/// As the class's status has it, else as the claim's labels do.
fn market(reservations: &[CapacityReservation], specification: &LaunchSpecification, id: &str) -> Market {
    let known = reservations.iter().find(|reservation| reservation.id == id);
    let label = |key: &str| specification.labels.get(key).map(String::as_str);
    let kind = known.and_then(|it| it.reservation_type.as_deref()).or_else(|| label(keys::CAPACITY_RESERVATION_TYPE));
    let of_label = || label(keys::CAPACITY_RESERVATION_INTERRUPTIBLE) == Some("true");
    match kind {
        Some("capacity-block") => Market::CapacityBlock,
        _ if known.and_then(|it| it.interruptible).unwrap_or_else(of_label) => Market::Interruptible,
        _ => Market::OnDemand,
    }
}
