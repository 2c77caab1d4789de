//! The arithmetic from what EC2 describes to capacity and overhead.
//! Source: Karpenter's AWS provider 1.14, `pkg/providers/instancetype/types.go`; integers where that uses floats.

use crate::model::Resources;
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};

use super::facts::InstanceFacts;
use super::tables;

pub const MEBIBYTE: i64 = 1 << 20;
pub const GIBIBYTE: i64 = 1 << 30;
pub const GIGABYTE: i64 = 1_000_000_000;

pub const POD_ENI: &str = "vpc.amazonaws.com/pod-eni";
pub const EFA: &str = "vpc.amazonaws.com/efa";
pub const PRIVATE_IPV4_ADDRESS: &str = "vpc.amazonaws.com/PrivateIPv4Address";
const NVIDIA_GPU: &str = "nvidia.com/gpu";
const AMD_GPU: &str = "amd.com/gpu";
const HABANA_GAUDI: &str = "habana.ai/gaudi";
const NEURON: &str = "aws.amazon.com/neuron";
const NEURON_CORE: &str = "aws.amazon.com/neuroncore";

/// Memory that the hypervisor is taken to keep, in thousandths: the default of `VM_MEMORY_OVERHEAD_PERCENT`.
const VM_MEMORY_OVERHEAD_PER_MILLE: i64 = 75;

/// Graviton reserves this much for the contiguous memory allocator.
const ARM_RESERVED_MEBIBYTES: i64 = 64;

/// The root volume of every Linux family unless the class states another one: gp3, 20 GiB.
pub const DEFAULT_VOLUME_BYTES: i64 = 20 * GIBIBYTE;

/// Pods of a node whose family does not count network addresses.
pub const DEFAULT_PODS: i64 = 110;

/// CPU that the kubelet keeps: up to this many thousandths of a core, this share in hundredths of a per cent.
const CPU_TIERS: [(i64, i64); 4] = [(1000, 600), (2000, 100), (4000, 50), (i64::MAX, 25)];

/// What a node of this type offers under a class that sets nothing: AL2023, the default volume, no reserved interfaces.
pub fn capacity(facts: &InstanceFacts) -> Resources {
    let mut capacity = Resources::new();
    capacity.set(CPU, facts.vcpus.saturating_mul(1000));
    capacity.set(MEMORY, memory_bytes(facts));
    capacity.set(EPHEMERAL_STORAGE, DEFAULT_VOLUME_BYTES);
    capacity.set(PODS, pods_by_addresses(facts, 0));
    let neuron_cores = facts.neuron_devices.first().map(|device| device.count.saturating_mul(device.cores_per_device));
    for (name, amount) in [
        (POD_ENI, tables::network(&facts.name).branch_interfaces.unwrap_or(0)),
        (NVIDIA_GPU, facts.gpus_of("NVIDIA")),
        (AMD_GPU, facts.gpus_of("AMD")),
        (HABANA_GAUDI, facts.gpus_of("Habana")),
        (NEURON, facts.neuron_devices.iter().map(|device| device.count).sum()),
        (NEURON_CORE, neuron_cores.unwrap_or(0)),
        (EFA, facts.network.efa_interfaces),
    ] {
        if amount > 0 {
            capacity.set(name, amount);
        }
    }
    capacity
}

fn memory_bytes(facts: &InstanceFacts) -> i64 {
    let reserved =
        if facts.architectures.first().is_some_and(|first| first == "arm64") { ARM_RESERVED_MEBIBYTES } else { 0 };
    let mebibytes = facts.memory_mebibytes.saturating_sub(reserved);
    let hypervisor = ceiling_of_share(mebibytes, VM_MEMORY_OVERHEAD_PER_MILLE, 1000);
    mebibytes.saturating_sub(hypervisor).saturating_mul(MEBIBYTE)
}

/// Pods that get an address from the VPC: each interface of the default card keeps one for itself, and two pods use
/// the host's network. `efa_only` interfaces of that card carry no addresses.
pub fn pods_by_addresses(facts: &InstanceFacts, efa_only: i64) -> i64 {
    let of_facts = || facts.network.interfaces_per_card.get(facts.network.default_card).copied();
    let interfaces = tables::network(&facts.name).default_card_interfaces.or_else(of_facts).unwrap_or(0);
    match interfaces.saturating_sub(efa_only) {
        usable if usable <= 0 => 0,
        usable => usable.saturating_mul(facts.network.ipv4_addresses_per_interface.saturating_sub(1)).saturating_add(2),
    }
}

/// What the kubelet and the container runtime keep, before a class says otherwise. `pods` is the number that the
/// family reckons with.
pub fn kube_reserved(capacity: &Resources, pods: i64) -> Resources {
    let mut reserved = Resources::new();
    reserved.set(CPU, reserved_cpu(capacity.get(CPU)));
    reserved.set(MEMORY, pods.saturating_mul(11).saturating_add(255).saturating_mul(MEBIBYTE));
    reserved.set(EPHEMERAL_STORAGE, GIBIBYTE);
    reserved
}

/// Thousandths of a core; each tier's share is cut to whole ones.
fn reserved_cpu(cpu: i64) -> i64 {
    let mut start = 0;
    let mut reserved = 0;
    for (end, share) in CPU_TIERS {
        reserved += (cpu.min(end) - start).max(0).saturating_mul(share) / 10_000;
        start = end;
    }
    reserved
}

/// What must stay free lest pods be evicted, before a class says otherwise: 100 Mi of memory, a tenth of the disk.
pub fn eviction_threshold(capacity: &Resources) -> Resources {
    let mut threshold = Resources::new();
    threshold.set(MEMORY, 100 * MEBIBYTE);
    threshold.set(EPHEMERAL_STORAGE, ceiling_of_share(capacity.get(EPHEMERAL_STORAGE), 10, 100));
    threshold
}

/// `amount * numerator / denominator`, rounded up, for amounts and shares that are not negative.
pub fn ceiling_of_share(amount: i64, numerator: i64, denominator: i64) -> i64 {
    let share = i128::from(amount) * i128::from(numerator);
    let ceiling = (share + i128::from(denominator) - 1).div_euclid(i128::from(denominator).max(1));
    i64::try_from(ceiling).unwrap_or(i64::MAX)
}

/// Overhead under a class that sets nothing.
pub fn default_overhead(capacity: &Resources) -> Resources {
    let mut overhead = kube_reserved(capacity, capacity.get(PODS));
    overhead.add(&eviction_threshold(capacity));
    overhead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelet_keeps_less_of_each_further_core() {
        for (cpu, reserved) in [(0, 0), (500, 30), (1000, 60), (2000, 70), (4000, 80), (8000, 90), (96_000, 310)] {
            assert_eq!(reserved_cpu(cpu), reserved, "{cpu}m");
        }
    }

    #[test]
    fn shares_round_up() {
        assert_eq!(ceiling_of_share(3840, 75, 1000), 288);
        assert_eq!(ceiling_of_share(3841, 75, 1000), 289);
        assert_eq!(ceiling_of_share(0, 75, 1000), 0);
        assert_eq!(ceiling_of_share(i64::MAX, 100, 100), i64::MAX);
    }
}
