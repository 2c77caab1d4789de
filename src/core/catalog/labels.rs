//! The labels that nodes of an instance type have. Source: Karpenter's AWS provider 1.14,
//! `computeRequirements` in `pkg/providers/instancetype/types.go`.

use std::collections::BTreeMap;

use super::facts::{InstanceFacts, Zone};
use super::tables;
use cutlist_api::keys;

/// Under which Karpenter's AWS provider keeps its labels.
pub const AWS_PREFIX: &str = "karpenter.k8s.aws/";

pub const LOCAL_NVME: &str = "karpenter.k8s.aws/instance-local-nvme";
pub const HYPERVISOR: &str = "karpenter.k8s.aws/instance-hypervisor";
pub const NETWORK_BANDWIDTH: &str = "karpenter.k8s.aws/instance-network-bandwidth";
pub const GPU_COUNT: &str = "karpenter.k8s.aws/instance-gpu-count";
pub const GPU_NAME: &str = "karpenter.k8s.aws/instance-gpu-name";
pub const ACCELERATOR_COUNT: &str = "karpenter.k8s.aws/instance-accelerator-count";
pub const ACCELERATOR_NAME: &str = "karpenter.k8s.aws/instance-accelerator-name";

/// The values that each label may have on a node of this type, under a Linux class; by zone and capacity type those
/// that are offered in `zones`. Absent labels do not exist on its nodes.
pub fn requirements(facts: &InstanceFacts, region: &str, zones: &[&Zone]) -> BTreeMap<String, Vec<String>> {
    let mut labels = Labels::default();
    labels.set(keys::INSTANCE_TYPE, &facts.name);
    labels.set(keys::OPERATING_SYSTEM, "linux");
    labels.set(keys::REGION, region);
    labels.set_all(keys::ARCHITECTURE, facts.architecture());
    labels.set_all(keys::ZONE, zones.iter().map(|zone| &zone.name));
    labels.set_all(keys::ZONE_ID, zones.iter().filter_map(|zone| zone.id.as_ref()));
    labels.set_all(keys::CAPACITY_TYPE, capacity_types(facts));
    labels.set(keys::INSTANCE_CPU, facts.vcpus);
    labels.set(keys::INSTANCE_MEMORY, facts.memory_mebibytes);
    labels.set_aws("instance-hypervisor", Some(&facts.hypervisor));
    labels.set_aws("instance-encryption-in-transit-supported", Some(facts.network.encryption_in_transit));
    labels.set_all("karpenter.k8s.aws/instance-tenancy", ["default", "dedicated"]);
    labels.set_aws("instance-cpu-manufacturer", facts.cpu_manufacturer.as_deref().map(lower_kebab_case));
    labels.set_aws("instance-cpu-sustained-clock-speed-mhz", Some(facts.sustained_clock_speed_megahertz));
    labels.set_aws("instance-ebs-bandwidth", facts.ebs_bandwidth_megabits);
    labels.set_aws("instance-network-bandwidth", tables::network(&facts.name).bandwidth_megabits);
    labels.set_aws("instance-local-nvme", facts.local_storage.as_ref().filter(|disk| disk.nvme).map(|d| d.gigabytes));
    labels.set_name_parts(&facts.name);
    labels.set_devices(facts);
    labels.0
}

/// The ways of paying that Karpenter uses.
pub fn capacity_types(facts: &InstanceFacts) -> impl Iterator<Item = &str> {
    facts.usage_classes.iter().map(String::as_str).filter(|class| [keys::ON_DEMAND, keys::SPOT].contains(class))
}

#[derive(Default)]
struct Labels(BTreeMap<String, Vec<String>>);

impl Labels {
    fn set(&mut self, key: &str, value: impl ToString) {
        self.0.insert(key.to_owned(), vec![value.to_string()]);
    }

    fn set_aws(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.set(&format!("{AWS_PREFIX}{name}"), value);
        }
    }

    /// Sorted, each once; nothing where there are no values.
    fn set_all(&mut self, key: &str, values: impl IntoIterator<Item = impl ToString>) {
        let mut values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        values.sort_unstable();
        values.dedup();
        if !values.is_empty() {
            self.0.insert(key.to_owned(), values);
        }
    }

    fn set_name_parts(&mut self, name: &str) {
        let (family, size) = name.split_once('.').unwrap_or((name, ""));
        if let Some((category, generation)) = category_and_generation(name) {
            self.set(keys::INSTANCE_CATEGORY, category);
            self.set(keys::INSTANCE_GENERATION, generation);
        }
        if !size.is_empty() && !size.contains('.') {
            self.set(keys::INSTANCE_FAMILY, family);
            self.set(keys::INSTANCE_SIZE, size);
        }
        self.set_aws("instance-capability-flex", Some(family.contains("-flex")));
    }

    /// Devices are described only when they are of one kind, as in the reference.
    fn set_devices(&mut self, facts: &InstanceFacts) {
        if let [gpu] = facts.gpus.as_slice() {
            self.set_aws("instance-gpu-name", Some(lower_kebab_case(&gpu.name)));
            self.set_aws("instance-gpu-manufacturer", Some(lower_kebab_case(&gpu.manufacturer)));
            self.set_aws("instance-gpu-count", Some(gpu.count));
            self.set_aws("instance-gpu-memory", Some(gpu.memory_mebibytes));
        }
        let accelerator = match (facts.neuron_devices.as_slice(), facts.inference_accelerators.as_slice()) {
            ([device], _) => Some((&device.name, "aws".to_owned(), device.count)),
            ([], [device]) => Some((&device.name, lower_kebab_case(&device.manufacturer), device.count)),
            _ => None,
        };
        if let Some((name, manufacturer, count)) = accelerator {
            self.set_aws("instance-accelerator-name", Some(lower_kebab_case(name)));
            self.set_aws("instance-accelerator-manufacturer", Some(manufacturer));
            self.set_aws("instance-accelerator-count", Some(count));
        }
    }
}

fn lower_kebab_case(name: &str) -> String {
    name.replace(' ', "-").to_lowercase()
}

/// Leading letters, an optional `-6tb`, digits: `c7a.large` is category c of generation 7, `u-6tb1.metal` u of 1.
fn category_and_generation(name: &str) -> Option<(&str, &str)> {
    let (family, _) = name.rsplit_once('.')?;
    let letters = family.find(|character: char| !character.is_ascii_lowercase())?;
    let (category, rest) = family.split_at_checked(letters).filter(|(category, _)| !category.is_empty())?;
    let rest = memory_suffix(rest).unwrap_or(rest);
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (generation, _) = rest.split_at_checked(digits).filter(|(generation, _)| !generation.is_empty())?;
    Some((category, generation))
}

/// What follows `-6tb`.
fn memory_suffix(text: &str) -> Option<&str> {
    let number = text.strip_prefix('-')?;
    let digits = number.find(|character: char| !character.is_ascii_digit()).filter(|digits| *digits > 0)?;
    number.get(digits..)?.strip_prefix("tb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn category_and_generation_come_from_the_name() {
        for (name, expected) in [
            ("c7a.large", Some(("c", "7"))),
            ("m7i-flex.large", Some(("m", "7"))),
            ("u-6tb1.metal", Some(("u", "1"))),
            ("u7i-12tb.224xlarge", Some(("u", "7"))),
            ("trn1n.32xlarge", Some(("trn", "1"))),
            ("im4gn.large", Some(("im", "4"))),
            ("hpc7g.4xlarge", Some(("hpc", "7"))),
            ("mac-m4.metal", None),
            ("c7a", None),
            ("7a.large", None),
            ("", None),
        ] {
            assert_eq!(category_and_generation(name), expected, "{name}");
        }
    }
}
