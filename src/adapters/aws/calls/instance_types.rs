//! What EC2 says of an instance type, as the catalog keeps it.

use aws_sdk_ec2::types::{
    EbsInfo, EbsOptimizedSupport, EnaSupport, EphemeralNvmeSupport, InstanceStorageInfo, InstanceTypeInfo, NetworkInfo,
    NitroEnclavesSupport, SupportedAdditionalProcessorFeature,
};

use crate::core::catalog::facts::{Accelerator, Gpu, InstanceFacts, LocalStorage, Network, NeuronDevice};

/// The facts of one type; `None` for those that Karpenter leaves out: no hardware virtualization, or an architecture
/// that no image of EKS runs on.
pub(super) fn facts(info: &InstanceTypeInfo) -> Option<InstanceFacts> {
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
