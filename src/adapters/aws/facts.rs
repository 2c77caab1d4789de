//! Reads what EC2 describes, for the catalog in the binary (`core::catalog::facts`). Needs the permissions
//! `ec2:DescribeRegions`, `ec2:DescribeAvailabilityZones`, `ec2:DescribeInstanceTypes` and
//! `ec2:DescribeInstanceTypeOfferings`.

use std::collections::{BTreeMap, BTreeSet};

use aws_config::meta::region::RegionProviderChain;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::types::{
    EbsInfo, EbsOptimizedSupport, EnaSupport, EphemeralNvmeSupport, InstanceStorageInfo, InstanceTypeInfo,
    LocationType, NetworkInfo, NitroEnclavesSupport, SupportedAdditionalProcessorFeature,
};

use crate::core::catalog::facts::{Accelerator, Facts, Gpu, InstanceFacts, LocalStorage, Network, NeuronDevice, Zone};
use crate::ports::{PortError, PortErrorKind};

/// Asked first when the environment names no region.
const DEFAULT_REGION: &str = "us-east-1";

/// Zones that an account has to opt in to (Local and Wavelength Zones) are not of this kind.
const ORDINARY_ZONE: &str = "availability-zone";

/// What EC2 describes in every region that is enabled for the account, or that the server at `endpoint_url` has.
/// `progress` is told each region before it is read.
pub async fn read(endpoint_url: Option<&str>, mut progress: impl FnMut(&str)) -> Result<Facts, PortError> {
    let home = RegionProviderChain::default_provider().or_else(DEFAULT_REGION).region().await;
    let home = home.unwrap_or_else(|| Region::from_static(DEFAULT_REGION));
    let client = client(home, endpoint_url).await;
    let answer = client.describe_regions().send().await.map_err(|error| failed("list the regions", error))?;
    let regions: BTreeSet<&str> = answer.regions().iter().filter_map(|region| region.region_name()).collect();
    let mut collected = Collected::default();
    for region in regions {
        progress(region);
        collected.read_region(region, endpoint_url).await?;
    }
    Ok(collected.into_facts())
}

async fn client(region: Region, endpoint_url: Option<&str>) -> Client {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).region(region);
    if let Some(url) = endpoint_url {
        loader = loader.endpoint_url(url);
    }
    Client::new(&loader.load().await)
}

fn failed<E>(operation: impl Into<String>, error: SdkError<E>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let kind = match &error {
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => {
            PortErrorKind::Temporary
        }
        SdkError::ServiceError(answer) => match answer.err().code() {
            Some("UnauthorizedOperation" | "AuthFailure") => PortErrorKind::Denied,
            Some("RequestLimitExceeded" | "InternalError" | "Unavailable") => PortErrorKind::Temporary,
            _ => PortErrorKind::Permanent,
        },
        _ => PortErrorKind::Permanent,
    };
    PortError { operation: operation.into(), kind, source: Some(error.into_source().unwrap_or_else(Into::into)) }
}

/// What the regions said so far.
#[derive(Default)]
struct Collected {
    zones: BTreeSet<Zone>,
    /// The same in every region that has the type; the first one's word counts.
    instance_types: BTreeMap<String, InstanceFacts>,
    /// Names of zones by instance type.
    offered: BTreeMap<String, BTreeSet<String>>,
}

impl Collected {
    async fn read_region(&mut self, region: &str, endpoint_url: Option<&str>) -> Result<(), PortError> {
        let client = client(Region::new(region.to_owned()), endpoint_url).await;
        let mut types = client.describe_instance_types().into_paginator().items().send();
        while let Some(info) = types.next().await {
            let info = info.map_err(|error| failed(format!("describe the instance types of {region}"), error))?;
            if let Some(facts) = instance_facts(&info) {
                self.instance_types.entry(facts.name.clone()).or_insert(facts);
            }
        }
        let zones = client.describe_availability_zones().send().await;
        let zones = zones.map_err(|error| failed(format!("list the zones of {region}"), error))?;
        let ids: BTreeMap<&str, &str> = zones
            .availability_zones()
            .iter()
            .filter(|zone| zone.zone_type().is_none_or(|kind| kind == ORDINARY_ZONE))
            .filter_map(|zone| Some((zone.zone_name()?, zone.zone_id()?)))
            .collect();
        let by_zone = client.describe_instance_type_offerings().location_type(LocationType::AvailabilityZone);
        let mut offerings = by_zone.into_paginator().items().send();
        while let Some(offering) = offerings.next().await {
            let offering = offering.map_err(|error| failed(format!("list the offerings of {region}"), error))?;
            let (Some(name), Some(zone)) = (offering.instance_type(), offering.location()) else { continue };
            let Some(id) = ids.get(zone) else { continue };
            self.zones.insert(Zone { region: region.to_owned(), name: zone.to_owned(), id: Some((*id).to_owned()) });
            self.offered.entry(name.as_str().to_owned()).or_default().insert(zone.to_owned());
        }
        Ok(())
    }

    fn into_facts(self) -> Facts {
        let zones: Vec<Zone> = self.zones.into_iter().collect();
        let index: BTreeMap<&str, usize> =
            zones.iter().enumerate().map(|(index, zone)| (zone.name.as_str(), index)).collect();
        let mut instance_types: Vec<InstanceFacts> = self.instance_types.into_values().collect();
        for facts in &mut instance_types {
            let offered = self.offered.get(&facts.name).into_iter().flatten();
            facts.zones = offered.filter_map(|zone| index.get(zone.as_str()).copied()).collect();
            facts.zones.sort_unstable();
        }
        Facts { zones, instance_types }
    }
}

/// The facts of one type; `None` for those that Karpenter leaves out: no hardware virtualization, or an architecture
/// that no image of EKS runs on.
fn instance_facts(info: &InstanceTypeInfo) -> Option<InstanceFacts> {
    let processor = info.processor_info()?;
    let neuron = info.neuron_info().map(aws_sdk_ec2::types::NeuronInfo::neuron_devices).unwrap_or_default();
    let facts = InstanceFacts {
        name: info.instance_type()?.as_str().to_owned(),
        vcpus: info.v_cpu_info()?.default_v_cpus()?.into(),
        memory_mebibytes: info.memory_info()?.size_in_mib()?,
        architectures: processor.supported_architectures().iter().map(|name| name.as_str().to_owned()).collect(),
        cpu_manufacturer: processor.manufacturer().map(str::to_owned),
        sustained_clock_speed_megahertz: megahertz(processor.sustained_clock_speed_in_ghz()),
        hypervisor: info.hypervisor().map(|name| name.as_str().to_owned()).unwrap_or_default(),
        usage_classes: info.supported_usage_classes().iter().map(|class| class.as_str().to_owned()).collect(),
        network: network(info.network_info()?),
        ebs_bandwidth_megabits: info.ebs_info().and_then(ebs_bandwidth),
        nitro_enclaves: info.nitro_enclaves_support() == Some(&NitroEnclavesSupport::Supported),
        nested_virtualization: processor
            .supported_features()
            .contains(&SupportedAdditionalProcessorFeature::NestedVirtualization),
        local_storage: info.instance_storage_info().and_then(local_storage),
        gpus: gpus(info),
        inference_accelerators: inference_accelerators(info),
        neuron_devices: neuron
            .iter()
            .map(|device| NeuronDevice {
                name: device.name().unwrap_or_default().to_owned(),
                count: device.count().unwrap_or_default().into(),
                cores_per_device: device
                    .core_info()
                    .and_then(aws_sdk_ec2::types::NeuronDeviceCoreInfo::count)
                    .unwrap_or_default()
                    .into(),
            })
            .collect(),
        zones: Vec::new(),
    };
    let virtual_machine = info.supported_virtualization_types().iter().any(|kind| kind.as_str() == "hvm");
    (virtual_machine && facts.architecture().is_some()).then_some(facts)
}

/// EC2 gives gigahertz with one decimal, or nothing.
#[expect(clippy::cast_possible_truncation, reason = "a clock speed in megahertz, checked to be in range")]
fn megahertz(gigahertz: Option<f64>) -> i64 {
    let megahertz = gigahertz.map_or(0.0, |speed| (speed * 1000.0).round());
    if (0.0..1.0e9).contains(&megahertz) { megahertz as i64 } else { 0 }
}

fn network(info: &NetworkInfo) -> Network {
    let mut cards: Vec<_> = info.network_cards().iter().collect();
    cards.sort_by_key(|card| card.network_card_index());
    let default_card = info.default_network_card_index().and_then(|index| usize::try_from(index).ok());
    Network {
        interfaces_per_card: cards
            .iter()
            .map(|card| card.maximum_network_interfaces().unwrap_or_default().into())
            .collect(),
        default_card: default_card.unwrap_or_default(),
        ipv4_addresses_per_interface: info.ipv4_addresses_per_interface().unwrap_or_default().into(),
        efa_interfaces: info
            .efa_info()
            .and_then(aws_sdk_ec2::types::EfaInfo::maximum_efa_interfaces)
            .unwrap_or_default()
            .into(),
        ena: info.ena_support().is_some_and(|support| *support != EnaSupport::Unsupported),
        encryption_in_transit: info.encryption_in_transit_supported().unwrap_or_default(),
    }
}

fn ebs_bandwidth(info: &EbsInfo) -> Option<i64> {
    let by_default = info.ebs_optimized_support() == Some(&EbsOptimizedSupport::Default);
    info.ebs_optimized_info().filter(|_| by_default)?.maximum_bandwidth_in_mbps().map(i64::from)
}

fn local_storage(info: &InstanceStorageInfo) -> Option<LocalStorage> {
    Some(LocalStorage {
        gigabytes: info.total_size_in_gb()?,
        nvme: info.nvme_support() != Some(&EphemeralNvmeSupport::Unsupported),
    })
}

fn gpus(info: &InstanceTypeInfo) -> Vec<Gpu> {
    let gpus = info.gpu_info().map(aws_sdk_ec2::types::GpuInfo::gpus).unwrap_or_default();
    gpus.iter()
        .map(|gpu| Gpu {
            name: gpu.name().unwrap_or_default().to_owned(),
            manufacturer: gpu.manufacturer().unwrap_or_default().to_owned(),
            count: gpu.count().unwrap_or_default().into(),
            memory_mebibytes: gpu
                .memory_info()
                .and_then(aws_sdk_ec2::types::GpuDeviceMemoryInfo::size_in_mib)
                .unwrap_or_default()
                .into(),
        })
        .collect()
}

fn inference_accelerators(info: &InstanceTypeInfo) -> Vec<Accelerator> {
    let accelerators = info
        .inference_accelerator_info()
        .map(aws_sdk_ec2::types::InferenceAcceleratorInfo::accelerators)
        .unwrap_or_default();
    accelerators
        .iter()
        .map(|device| Accelerator {
            name: device.name().unwrap_or_default().to_owned(),
            manufacturer: device.manufacturer().unwrap_or_default().to_owned(),
            count: device.count().unwrap_or_default().into(),
        })
        .collect()
}
