//! What an EC2NodeClass changes about an instance type: capacity, overhead, operating system, and whether its
//! instances can be launched at all.
//! Source: Karpenter's AWS provider 1.14, `pkg/providers/instancetype/types.go` and `compatibility/`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::model::requirements::label;
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, PODS};
use crate::model::{Requirements, Resources};
use cutlist_api::ec2_node_class::{
    Ami, AmiFamily, BlockDeviceMapping, EC2NodeClassSpec, InstanceStorePolicy, NetworkInterface,
};
use cutlist_api::keys;

use super::arithmetic::{self, DEFAULT_PODS, DEFAULT_VOLUME_BYTES, EFA, GIBIBYTE, GIGABYTE, PRIVATE_IPV4_ADDRESS};
use super::facts::{self, InstanceFacts};
use super::kubelet::{KubeletSettings, volume_bytes};
use super::node_class_problem::NodeClassProblem;
use super::{InstanceType, labels};

/// The instance type as nodes of this class have it. Offerings become unavailable when the class can not launch it.
/// A class that sets nothing changes nothing. Values that can not be read count as not set: [`problems`] lists them.
pub fn for_node_class(instance_type: &InstanceType, node_class: &EC2NodeClassSpec) -> InstanceType {
    NodeClassSettings::read(node_class).0.apply(instance_type)
}

/// Values of the class that can not be used.
pub fn problems(node_class: &EC2NodeClassSpec) -> Vec<NodeClassProblem> {
    NodeClassSettings::read(node_class).1
}

/// The reason of the condition `AMIsReady` where images are found, and some could not be found out.
pub const SOME_AMIS_UNKNOWN: &str = "SomeAMIsUnknown";
/// The reason of a condition of a class that is true by an earlier answer: EC2 gave none since.
pub const ANSWERED_EARLIER: &str = "AnsweredEarlier";
/// Both.
pub const SOME_AMIS_UNKNOWN_ANSWERED_EARLIER: &str = "SomeAMIsUnknownAnsweredEarlier";

/// Whether a condition of a class says that some of its images could not be found out. Who plans reads the reason, never the message.
pub fn says_images_unknown(condition: &Condition) -> bool {
    [SOME_AMIS_UNKNOWN, SOME_AMIS_UNKNOWN_ANSWERED_EARLIER].contains(&condition.reason.as_str())
}

/// Whether a condition of a class says that it rests on an earlier answer.
pub fn says_answered_earlier(condition: &Condition) -> bool {
    [ANSWERED_EARLIER, SOME_AMIS_UNKNOWN_ANSWERED_EARLIER].contains(&condition.reason.as_str())
}

/// The image that a node of this type and with these labels gets: the first whose requirements accept it.
/// Source: reference, section 6.2.
pub fn image_for<'i>(
    instance_type: &InstanceType,
    labels: &BTreeMap<String, String>,
    images: &'i [Ami],
) -> Option<&'i Ami> {
    images.iter().find(|image| accepts(&Requirements::from_entries(&image.requirements), instance_type, labels))
}

/// Whether an image with these requirements is for nodes of this type and with these labels.
pub fn accepts(image: &Requirements, instance_type: &InstanceType, labels: &BTreeMap<String, String>) -> bool {
    image.iter().all(|(key, requirement)| {
        let of_type = || instance_type.requirements.get(key).into_iter().flatten().map(String::as_str);
        let values: Vec<&str> = label(labels, key).map_or_else(|| of_type().collect(), |value| vec![value]);
        if values.is_empty() {
            requirement.allows_absence()
        } else {
            values.iter().any(|value| requirement.allows(value))
        }
    })
}

/// What of a class matters to instance types, read once for all of them.
#[derive(Clone, Debug)]
pub struct NodeClassSettings {
    family: AmiFamily,
    kubelet: KubeletSettings,
    /// Bytes of the volume that holds pods' data, when the class states it.
    volume_bytes: Option<i64>,
    local_disks_hold_pods: bool,
    network_interfaces: Vec<NetworkInterface>,
    nested_virtualization: bool,
    connection_tracking: bool,
}

impl NodeClassSettings {
    pub fn read(node_class: &EC2NodeClassSpec) -> (Self, Vec<NodeClassProblem>) {
        let mut problems = Vec::new();
        let family = node_class.resolved_ami_family();
        let nested = node_class.cpu_options.as_ref().and_then(|options| options.nested_virtualization.as_deref());
        let settings = Self {
            family,
            kubelet: KubeletSettings::read(node_class.kubelet.as_ref(), &mut problems),
            volume_bytes: stated_volume(&node_class.block_device_mappings, family, &mut problems),
            local_disks_hold_pods: node_class.instance_store_policy == Some(InstanceStorePolicy::RAID0),
            network_interfaces: node_class.network_interfaces.clone(),
            nested_virtualization: nested == Some("enabled"),
            connection_tracking: node_class.connection_tracking.is_some(),
        };
        (settings, problems)
    }

    /// See [`for_node_class`].
    pub fn apply(&self, instance_type: &InstanceType) -> InstanceType {
        let facts = facts::embedded_type(&instance_type.name);
        let mut changed = instance_type.clone();
        self.set_operating_system(&mut changed);
        self.set_capacity(&mut changed.capacity, instance_type, facts);
        changed.overhead = self.overhead(instance_type, &changed, facts);
        if !self.can_launch(instance_type, facts) {
            for offering in &mut changed.offerings {
                offering.available = false;
            }
        }
        changed
    }

    fn set_operating_system(&self, instance_type: &mut InstanceType) {
        let Some(build) = windows_build(self.family) else { return };
        let runs_windows = has_value(instance_type, keys::ARCHITECTURE, "amd64");
        instance_type.requirements.remove(keys::OPERATING_SYSTEM);
        if runs_windows {
            instance_type.requirements.insert(keys::OPERATING_SYSTEM.to_owned(), vec!["windows".to_owned()]);
        }
        instance_type.requirements.insert(keys::WINDOWS_BUILD.to_owned(), vec![build.to_owned()]);
    }

    fn set_capacity(&self, capacity: &mut Resources, base: &InstanceType, facts: Option<&InstanceFacts>) {
        capacity.set(PODS, self.pods(base, facts));
        capacity.set(EPHEMERAL_STORAGE, self.ephemeral_storage(base, facts));
        if !self.network_interfaces.is_empty() {
            match self.efa_only(|_| true) {
                0 => capacity.remove(EFA),
                count => capacity.set(EFA, count),
            }
        }
        let windows = windows_build(self.family).is_some() && has_value(base, keys::ARCHITECTURE, "amd64");
        if let Some(facts) = facts.filter(|_| windows) {
            capacity.set(PRIVATE_IPV4_ADDRESS, (facts.network.ipv4_addresses_per_interface - 1).max(0));
        }
    }

    fn pods(&self, base: &InstanceType, facts: Option<&InstanceFacts>) -> i64 {
        let pods = match self.kubelet.max_pods {
            Some(stated) => stated,
            None if self.family_counts_addresses() => self.pods_by_addresses(base, facts),
            None => DEFAULT_PODS,
        };
        match self.kubelet.pods_per_core {
            Some(per_core) if per_core > 0 && self.family != AmiFamily::Bottlerocket => {
                pods.min(per_core.saturating_mul(base.capacity.get(CPU) / 1000))
            }
            _ => pods,
        }
    }

    /// The catalog's own number, unless interfaces of the default card carry no addresses.
    fn pods_by_addresses(&self, base: &InstanceType, facts: Option<&InstanceFacts>) -> i64 {
        match (self.efa_only(|interface| interface.network_card_index == 0), facts) {
            (efa_only, Some(facts)) if efa_only > 0 => arithmetic::pods_by_addresses(facts, efa_only),
            _ => base.capacity.get(PODS),
        }
    }

    fn family_counts_addresses(&self) -> bool {
        windows_build(self.family).is_none()
    }

    fn efa_only(&self, on: impl Fn(&NetworkInterface) -> bool) -> i64 {
        let matching = self.network_interfaces.iter().filter(|interface| is_efa_only(interface) && on(interface));
        i64::try_from(matching.count()).unwrap_or(i64::MAX)
    }

    fn ephemeral_storage(&self, base: &InstanceType, facts: Option<&InstanceFacts>) -> i64 {
        if self.local_disks_hold_pods
            && let Some(gigabytes) = local_gigabytes(base, facts)
        {
            return gigabytes.saturating_mul(GIGABYTE);
        }
        match self.volume_bytes {
            Some(bytes) => bytes,
            None if windows_build(self.family).is_some() => 50 * GIBIBYTE,
            None if base.capacity.contains(EPHEMERAL_STORAGE) => base.capacity.get(EPHEMERAL_STORAGE),
            None => DEFAULT_VOLUME_BYTES,
        }
    }

    /// The catalog's overhead, less what it holds under a class that sets nothing, plus what it is under this one. So a
    /// catalog from elsewhere keeps its own figures for what the class does not mention. Resources that `kubeReserved`
    /// states are reckoned anew.
    fn overhead(&self, base: &InstanceType, changed: &InstanceType, facts: Option<&InstanceFacts>) -> Resources {
        // Bottlerocket and Windows reckon with the pods that fit, the others with those that addresses would allow.
        let pods = match self.family {
            AmiFamily::AL2 | AmiFamily::AL2023 | AmiFamily::Custom => self.pods_by_addresses(base, facts),
            AmiFamily::Bottlerocket | AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
                changed.capacity.get(PODS)
            }
        };
        let by_default = arithmetic::default_overhead(&base.capacity);
        let by_class = self.kubelet.overhead(&changed.capacity, pods);
        let mut overhead = base.overhead.clone();
        for (name, amount) in by_class.iter() {
            let kept_by_catalog = match name {
                _ if self.kubelet.kube_reserved.contains(name) => 0,
                _ => base.overhead.get(name).saturating_sub(by_default.get(name)),
            };
            let total = kept_by_catalog.saturating_add(amount).max(0);
            if total != 0 || overhead.contains(name) {
                overhead.set(name, total);
            }
        }
        overhead
    }

    fn can_launch(&self, base: &InstanceType, facts: Option<&InstanceFacts>) -> bool {
        if self.family == AmiFamily::AL2023 && base.name.starts_with("a1.") {
            return false;
        }
        if self.connection_tracking && !has_value(base, labels::HYPERVISOR, "nitro") {
            return false;
        }
        // Without facts nothing is known against it.
        facts.is_none_or(|facts| {
            (!self.nested_virtualization || facts.nested_virtualization) && self.has_network_interfaces(facts)
        })
    }

    fn has_network_interfaces(&self, facts: &InstanceFacts) -> bool {
        if self.network_interfaces.is_empty() {
            return true;
        }
        let each_has_a_place = self.network_interfaces.iter().all(|interface| {
            let card = usize::try_from(interface.network_card_index).ok();
            let places = card.and_then(|card| facts.network.interfaces_per_card.get(card)).copied().unwrap_or(0);
            i64::from(interface.device_index) < places
        });
        facts.network.ena && each_has_a_place && self.efa_only(|_| true) <= facts.network.efa_interfaces
    }
}

fn is_efa_only(interface: &NetworkInterface) -> bool {
    interface.interface_type.as_deref() == Some("efa-only")
}

fn has_value(instance_type: &InstanceType, key: &str, value: &str) -> bool {
    instance_type.requirements.get(key).is_some_and(|values| values.iter().any(|candidate| candidate == value))
}

/// The label only counts NVMe disks; EC2 also describes others.
fn local_gigabytes(base: &InstanceType, facts: Option<&InstanceFacts>) -> Option<i64> {
    let labelled = base.requirements.get(labels::LOCAL_NVME).and_then(|values| values.first()?.parse().ok());
    labelled.or_else(|| facts?.local_storage.as_ref().map(|disks| disks.gigabytes))
}

/// The build of Windows that images of a family have.
pub fn windows_build(family: AmiFamily) -> Option<&'static str> {
    match family {
        AmiFamily::Windows2019 => Some("10.0.17763"),
        AmiFamily::Windows2022 => Some("10.0.20348"),
        AmiFamily::Windows2025 => Some("10.0.26100"),
        AmiFamily::AL2 | AmiFamily::AL2023 | AmiFamily::Bottlerocket | AmiFamily::Custom => None,
    }
}

/// Devices and GiB of the volumes that nodes get whose class names none; all are gp3. Source: reference, section 6.3.
pub fn default_volumes(family: AmiFamily) -> &'static [(&'static str, i32)] {
    match family {
        AmiFamily::AL2 | AmiFamily::AL2023 => &[("/dev/xvda", 20)],
        AmiFamily::Bottlerocket => &[("/dev/xvda", 4), ("/dev/xvdb", 20)],
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => &[("/dev/sda1", 50)],
        AmiFamily::Custom => &[],
    }
}

/// The device that holds pods' data; `None`: known only to the image.
pub fn ephemeral_device(family: AmiFamily) -> Option<&'static str> {
    match family {
        AmiFamily::AL2 | AmiFamily::AL2023 => Some("/dev/xvda"),
        AmiFamily::Bottlerocket => Some("/dev/xvdb"),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => Some("/dev/sda1"),
        AmiFamily::Custom => None,
    }
}

/// The size of the volume that holds pods' data: of the root volume, else of the family's device, else, for a custom
/// image, of the last one.
fn stated_volume(
    mappings: &[BlockDeviceMapping],
    family: AmiFamily,
    problems: &mut Vec<NodeClassProblem>,
) -> Option<i64> {
    let sizes: Vec<Option<i64>> =
        mappings.iter().enumerate().map(|(index, mapping)| volume_bytes(index, mapping, problems)).collect();
    let size_where = |condition: &dyn Fn(&BlockDeviceMapping) -> bool| {
        mappings.iter().zip(&sizes).find(|(mapping, _)| condition(mapping)).and_then(|(_, size)| *size)
    };
    size_where(&|mapping| mapping.root_volume).or_else(|| match ephemeral_device(family) {
        Some(device) => size_where(&|mapping| mapping.device_name.as_deref() == Some(device)),
        None => sizes.last().copied().flatten(),
    })
}

/// The device of the volume that holds pods' data, and its size in bytes; `None` where only the image knows which it is.
pub fn volume_of_pods(node_class: &EC2NodeClassSpec) -> Option<(String, i64)> {
    let family = node_class.resolved_ami_family();
    let mappings = &node_class.block_device_mappings;
    let of_family = ephemeral_device(family).map(str::to_owned);
    let root = mappings.iter().find(|mapping| mapping.root_volume);
    let last = mappings.last().filter(|_| family == AmiFamily::Custom);
    let device = root.or(last).and_then(|mapping| mapping.device_name.clone()).or(of_family)?;
    let bytes = NodeClassSettings::read(node_class).0.volume_bytes.unwrap_or(match windows_build(family) {
        Some(_) => 50 * GIBIBYTE,
        None => DEFAULT_VOLUME_BYTES,
    });
    Some((device, bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::Catalog;
    use crate::model::resources::{MEMORY, format_amount};

    fn class(spec: Value) -> EC2NodeClassSpec {
        let mut all = json!({ "subnetSelectorTerms": [], "securityGroupSelectorTerms": [],
            "amiSelectorTerms": [{ "alias": "al2023@latest" }] });
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    fn under(name: &str, spec: Value) -> InstanceType {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        let instance_type = catalog.instance_types.iter().find(|candidate| candidate.name == name).unwrap();
        for_node_class(instance_type, &class(spec))
    }

    /// Allocatable of `cpu`, `memory`, `ephemeral-storage`, `pods`, as Kubernetes writes them.
    fn allocatable(instance_type: &InstanceType) -> [String; 4] {
        let allocatable = instance_type.allocatable();
        [CPU, MEMORY, EPHEMERAL_STORAGE, PODS].map(|name| format_amount(name, allocatable.get(name)))
    }

    #[test]
    fn a_class_that_sets_nothing_changes_nothing() {
        let settings = NodeClassSettings::read(&class(json!({}))).0;
        for instance_type in &Catalog::built_in("ap-northeast-2").unwrap().instance_types {
            if !instance_type.name.starts_with("a1.") {
                assert_eq!(&settings.apply(instance_type), instance_type);
            }
        }
    }

    #[test]
    fn kubelet_values_change_what_is_allocatable() {
        let cases = [
            (json!({}), ["7910m", "14162Mi", "17Gi", "58"]),
            (json!({ "kubelet": { "maxPods": 110 } }), ["7910m", "14162Mi", "17Gi", "110"]),
            (json!({ "kubelet": { "podsPerCore": 4 } }), ["7910m", "14162Mi", "17Gi", "32"]),
            (
                json!({ "kubelet": { "kubeReserved": { "cpu": "200m", "memory": "1Gi" } } }),
                ["7800m", "14031Mi", "17Gi", "58"],
            ),
            (
                json!({ "kubelet": { "systemReserved": { "cpu": "100m", "memory": "100Mi", "ephemeral-storage": "1Gi" } } }),
                ["7810m", "14062Mi", "16Gi", "58"],
            ),
            (
                json!({ "kubelet": { "evictionHard": { "memory.available": "200Mi", "nodefs.available": "20%" } } }),
                ["7910m", "14062Mi", "15Gi", "58"],
            ),
            (
                json!({ "kubelet": { "evictionHard": { "memory.available": "100%" } } }),
                ["7910m", "14262Mi", "17Gi", "58"],
            ),
            (
                json!({ "blockDeviceMappings": [{ "deviceName": "/dev/xvda", "ebs": { "volumeSize": "100Gi" } }] }),
                ["7910m", "14162Mi", "89Gi", "58"],
            ),
            (
                json!({ "blockDeviceMappings": [{ "deviceName": "/dev/xvdb", "ebs": { "volumeSize": "100Gi" } }] }),
                ["7910m", "14162Mi", "17Gi", "58"],
            ),
            (
                json!({ "blockDeviceMappings": [{ "rootVolume": true, "ebs": { "volumeSize": "40Gi" } },
                { "deviceName": "/dev/xvda", "ebs": { "volumeSize": "100Gi" } }] }),
                ["7910m", "14162Mi", "35Gi", "58"],
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(allocatable(&under("c5a.2xlarge", spec.clone())), expected, "{spec}");
        }
    }

    #[test]
    fn families_differ() {
        let bottlerocket = json!({ "amiSelectorTerms": [{ "alias": "bottlerocket@latest" }],
            "kubelet": { "maxPods": 110, "podsPerCore": 1 },
            "blockDeviceMappings": [{ "deviceName": "/dev/xvdb", "ebs": { "volumeSize": "50Gi" } }] });
        // 15155 Mi - (11 x 110 + 255) - 100, and podsPerCore is not for Bottlerocket.
        assert_eq!(allocatable(&under("c5a.2xlarge", bottlerocket)), ["7910m", "13590Mi", "44Gi", "110"]);
        let windows = json!({ "amiSelectorTerms": [{ "alias": "windows2022@latest" }] });
        let on_amd = under("c5a.2xlarge", windows.clone());
        assert_eq!(allocatable(&on_amd), ["7910m", "13590Mi", "44Gi", "110"]);
        assert_eq!(on_amd.requirements[keys::OPERATING_SYSTEM], ["windows"]);
        assert_eq!(on_amd.requirements[keys::WINDOWS_BUILD], ["10.0.20348"]);
        assert_eq!(on_amd.capacity.get(PRIVATE_IPV4_ADDRESS), 14);
        assert!(!under("m7g.large", windows).requirements.contains_key(keys::OPERATING_SYSTEM));
    }

    #[test]
    fn local_disks_hold_pods_when_the_class_says_so() {
        let raid = json!({ "instanceStorePolicy": "RAID0" });
        assert_eq!(under("m5d.large", raid.clone()).capacity.get(EPHEMERAL_STORAGE), 75 * GIGABYTE);
        assert_eq!(under("c3.large", raid.clone()).capacity.get(EPHEMERAL_STORAGE), 32 * GIGABYTE, "no NVMe");
        assert_eq!(under("m5.large", raid).capacity.get(EPHEMERAL_STORAGE), DEFAULT_VOLUME_BYTES);
    }

    #[test]
    fn what_can_not_be_launched_is_not_available() {
        let available = |name, spec| under(name, spec).offerings.iter().any(|offering| offering.available);
        assert!(!available("a1.large", json!({})), "AL2023 does not run on the first Graviton");
        assert!(available("a1.large", json!({ "amiSelectorTerms": [{ "alias": "al2@latest" }] })));
        let tracking = json!({ "connectionTracking": { "udpTimeout": 30 } });
        assert!(!available("c4.large", tracking.clone()) && available("c5.large", tracking));
        let interfaces = json!({ "networkInterfaces": [
            { "networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface" },
            { "networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only" }] });
        assert!(!available("c5.large", interfaces.clone()) && available("p5.48xlarge", interfaces.clone()));
        assert_eq!(under("p5.48xlarge", interfaces).capacity.get(EFA), 1);
    }

    #[test]
    fn values_that_can_not_be_read_are_named_and_change_nothing() {
        let spec = json!({
            "kubelet": { "maxPods": "many", "podsPerCore": -1, "kubeReserved": { "cpu": "lots", "memory": "-1Gi", "gpu": "1" },
                "systemReserved": "none", "evictionHard": { "memory.available": "110%", "nodefs.available": "a lot" } },
            "blockDeviceMappings": [{ "rootVolume": true, "ebs": { "volumeSize": "big" } }],
        });
        let fields: Vec<String> = problems(&class(spec.clone())).into_iter().map(|problem| problem.field).collect();
        assert_eq!(
            fields,
            [
                "spec.kubelet.maxPods",
                "spec.kubelet.podsPerCore",
                "spec.kubelet.kubeReserved.cpu",
                "spec.kubelet.kubeReserved.gpu",
                "spec.kubelet.kubeReserved.memory",
                "spec.kubelet.systemReserved",
                "spec.kubelet.evictionHard.memory.available",
                "spec.kubelet.evictionHard.nodefs.available",
                "spec.blockDeviceMappings[0].ebs.volumeSize",
            ]
        );
        assert_eq!(under("c5a.2xlarge", spec), under("c5a.2xlarge", json!({})));
    }

    #[test]
    fn a_catalog_from_elsewhere_keeps_its_figures() {
        let mut own = under("c5a.2xlarge", json!({}));
        own.name = "metal.rack7".to_owned();
        own.overhead = [(CPU.to_owned(), 500), (MEMORY.to_owned(), GIBIBYTE)].into_iter().collect();
        assert_eq!(for_node_class(&own, &class(json!({}))).allocatable(), own.allocatable());
        let changed = for_node_class(&own, &class(json!({ "kubelet": { "systemReserved": { "cpu": "250m" } } })));
        assert_eq!(changed.overhead.get(CPU), 750);
        let stated = for_node_class(&own, &class(json!({ "kubelet": { "kubeReserved": { "cpu": "250m" } } })));
        assert_eq!(stated.overhead.get(CPU), 250);
    }
}
