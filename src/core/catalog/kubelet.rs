//! The values of `spec.kubelet` and `spec.blockDeviceMappings` that change what is allocatable. The map is open: it
//! may hold anything, so each value is read with care, and what can not be read is named.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};
use crate::model::{Quantity, Resources};
use cutlist_api::ec2_node_class::BlockDeviceMapping;

use super::arithmetic;
use super::node_class_problem::NodeClassProblem;

/// What `kubeReserved` and `systemReserved` may name.
const RESERVABLE: [&str; 4] = [CPU, MEMORY, EPHEMERAL_STORAGE, "pid"];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletSettings {
    pub max_pods: Option<i64>,
    pub pods_per_core: Option<i64>,
    pub kube_reserved: Resources,
    pub system_reserved: Resources,
    /// By resource.
    eviction_hard: BTreeMap<&'static str, Threshold>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threshold {
    Bytes(i64),
    /// Thousandths of a per cent of the capacity.
    Share(i64),
}

type Kubelet = BTreeMap<String, Value>;

impl KubeletSettings {
    /// Values that can not be read count as not set, and are added to `problems`.
    pub fn read(kubelet: Option<&Kubelet>, problems: &mut Vec<NodeClassProblem>) -> Self {
        let Some(kubelet) = kubelet else { return Self::default() };
        Self {
            max_pods: count(kubelet, "maxPods", problems),
            pods_per_core: count(kubelet, "podsPerCore", problems),
            kube_reserved: reserved(kubelet, "kubeReserved", problems),
            system_reserved: reserved(kubelet, "systemReserved", problems),
            eviction_hard: eviction_hard(kubelet, problems),
        }
    }

    /// What a node of this capacity keeps from pods; `pods` is the number that the family reckons with.
    pub fn overhead(&self, capacity: &Resources, pods: i64) -> Resources {
        let mut overhead = arithmetic::kube_reserved(capacity, pods);
        for (name, amount) in self.kube_reserved.iter() {
            overhead.set(name, amount);
        }
        overhead.add(&self.system_reserved);
        let mut eviction = arithmetic::eviction_threshold(capacity);
        for (name, threshold) in &self.eviction_hard {
            eviction.set(name, threshold.bytes(capacity.get(name)));
        }
        overhead.add(&eviction);
        overhead
    }
}

impl Threshold {
    fn bytes(self, capacity: i64) -> i64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => arithmetic::ceiling_of_share(capacity, share, 100_000),
        }
    }
}

fn count(kubelet: &Kubelet, field: &str, problems: &mut Vec<NodeClassProblem>) -> Option<i64> {
    let value = kubelet.get(field)?;
    let count = value.as_i64().filter(|count| (0..=i64::from(i32::MAX)).contains(count));
    if count.is_none() {
        let message = match value {
            Value::String(text) => format!("`{text}` is an expression or a text; a whole number from 0 is needed"),
            other => format!("`{other}` is not a whole number from 0"),
        };
        problems.push(NodeClassProblem { field: format!("spec.kubelet.{field}"), message });
    }
    count
}

fn reserved(kubelet: &Kubelet, field: &str, problems: &mut Vec<NodeClassProblem>) -> Resources {
    let mut resources = Resources::new();
    for (name, value) in entries(kubelet, field, problems) {
        let amount = if RESERVABLE.contains(&name.as_str()) {
            quantity(value).map(|quantity| Resources::amount(name, quantity))
        } else {
            Err(format!("only {} can be reserved", RESERVABLE.join(", ")))
        };
        match amount {
            Ok(amount) if name != "pid" => resources.set(name, amount),
            Ok(_) => {}
            Err(message) => {
                problems.push(NodeClassProblem { field: format!("spec.kubelet.{field}.{name}"), message });
            }
        }
    }
    resources
}

fn eviction_hard(kubelet: &Kubelet, problems: &mut Vec<NodeClassProblem>) -> BTreeMap<&'static str, Threshold> {
    let mut thresholds = BTreeMap::new();
    for (signal, value) in entries(kubelet, "evictionHard", problems) {
        // The other signals do not change what is allocatable.
        let resource = match signal.as_str() {
            "memory.available" => MEMORY,
            "nodefs.available" => EPHEMERAL_STORAGE,
            _ => continue,
        };
        match threshold(value) {
            Ok(threshold) => {
                thresholds.insert(resource, threshold);
            }
            Err(message) => {
                problems.push(NodeClassProblem { field: format!("spec.kubelet.evictionHard.{signal}"), message });
            }
        }
    }
    thresholds
}

fn threshold(value: &Value) -> Result<Threshold, String> {
    const WHOLE: i64 = 100_000;
    let Some(percentage) = value.as_str().and_then(|text| text.strip_suffix('%')) else {
        return quantity(value).map(|quantity| Threshold::Bytes(quantity.units()));
    };
    let plain = percentage.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match percentage.parse::<Quantity>().map(Quantity::milli) {
        // The kubelet takes 100 % as "no threshold".
        Ok(WHOLE) if plain => Ok(Threshold::Share(0)),
        Ok(share @ 0..WHOLE) if plain => Ok(Threshold::Share(share)),
        _ => Err(format!("`{percentage}%` is not a percentage from 0 to 100")),
    }
}

/// The entries of a map under `spec.kubelet`, by name.
fn entries<'a>(
    kubelet: &'a Kubelet,
    field: &str,
    problems: &mut Vec<NodeClassProblem>,
) -> BTreeMap<&'a String, &'a Value> {
    match kubelet.get(field) {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::Object(map)) => map.iter().collect(),
        Some(other) => {
            let message = format!("`{other}` is not a map");
            problems.push(NodeClassProblem { field: format!("spec.kubelet.{field}"), message });
            BTreeMap::new()
        }
    }
}

fn quantity(value: &Value) -> Result<Quantity, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let quantity: Quantity = text.parse().map_err(|error: super::super::model::QuantityError| error.to_string())?;
    if quantity.is_negative() { Err(format!("`{text}` is negative")) } else { Ok(quantity) }
}

/// The size of a volume, when it is stated and can be read.
pub fn volume_bytes(index: usize, mapping: &BlockDeviceMapping, problems: &mut Vec<NodeClassProblem>) -> Option<i64> {
    let size = mapping.ebs.as_ref()?.volume_size.as_ref()?.to_string();
    let bytes = quantity(&Value::String(size)).map(Quantity::units);
    match bytes {
        Ok(bytes) => Some(bytes),
        Err(message) => {
            problems
                .push(NodeClassProblem { field: format!("spec.blockDeviceMappings[{index}].ebs.volumeSize"), message });
            None
        }
    }
}
