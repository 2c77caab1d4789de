//! The devices that drivers have published for the nodes that exist.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::{self, DeviceAttribute, ResourceSlice};

use crate::snapshot::Snapshot;

/// What identifies a device in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceName {
    pub driver: String,
    pub pool: String,
    pub device: String,
}

#[derive(Clone, Debug)]
pub struct Device {
    pub name: DeviceName,
    pub attributes: BTreeMap<String, DeviceAttribute>,
    /// Quantities, as written.
    pub capacity: BTreeMap<String, String>,
    /// Not allocated, and of a kind that is planned for.
    pub is_free: bool,
}

impl Device {
    /// Domain and identifier of an attribute or a capacity; one without a domain is of the driver's.
    pub fn qualified<'n>(&'n self, name: &'n str) -> (&'n str, &'n str) {
        name.split_once('/').unwrap_or((&self.name.driver, name))
    }

    /// The attribute of that qualified name.
    pub fn attribute(&self, qualified: &str) -> Option<&DeviceAttribute> {
        let found = self.attributes.iter().find(|(name, _)| {
            let (domain, identifier) = self.qualified(name);
            qualified.split_once('/') == Some((domain, identifier))
        });
        found.map(|(_, attribute)| attribute)
    }
}

/// By name of the node, its devices in the order of slices. Devices that nodes share are not among them.
pub fn devices_by_node(snapshot: &Snapshot) -> BTreeMap<&str, Vec<Device>> {
    let allocated = allocated(snapshot);
    let mut newest: BTreeMap<(&str, &str), (i64, i64)> = BTreeMap::new();
    for slice in &snapshot.resource_slices {
        let (generation, count) = newest.entry(pool(slice)).or_insert((slice.spec.pool.generation, 0));
        if slice.spec.pool.generation > *generation {
            (*generation, *count) = (slice.spec.pool.generation, 0);
        }
        *count += i64::from(slice.spec.pool.generation == *generation);
    }
    let mut devices: BTreeMap<&str, Vec<Device>> = BTreeMap::new();
    for slice in &snapshot.resource_slices {
        let Some(node) = slice.spec.node_name.as_deref() else { continue };
        let (generation, count) = newest.get(&pool(slice)).copied().unwrap_or_default();
        if slice.spec.pool.generation != generation {
            continue;
        }
        // A driver that is still writing its pool may not have said everything about it.
        let complete = count == slice.spec.pool.resource_slice_count;
        let of_slice = slice.spec.devices.iter().flatten().map(|device| {
            let name = DeviceName {
                driver: slice.spec.driver.clone(),
                pool: slice.spec.pool.name.clone(),
                device: device.name.clone(),
            };
            let is_free = complete && is_supported(device) && !allocated.contains(&name);
            let capacity = device.capacity.iter().flatten();
            Device {
                name,
                attributes: device.attributes.clone().unwrap_or_default(),
                capacity: capacity.map(|(name, capacity)| (name.clone(), capacity.value.0.clone())).collect(),
                is_free,
            }
        });
        devices.entry(node).or_default().extend(of_slice);
    }
    devices
}

fn pool(slice: &ResourceSlice) -> (&str, &str) {
    (&slice.spec.driver, &slice.spec.pool.name)
}

/// Partitions of devices, capacity that is shared, taints and conditions of binding are not planned with.
fn is_supported(device: &v1::Device) -> bool {
    device.consumes_counters.as_ref().is_none_or(Vec::is_empty)
        && device.allow_multiple_allocations != Some(true)
        && device.taints.as_ref().is_none_or(Vec::is_empty)
        && device.binding_conditions.as_ref().is_none_or(Vec::is_empty)
}

fn allocated(snapshot: &Snapshot) -> BTreeSet<DeviceName> {
    let allocations = snapshot.resource_claims.iter().filter_map(|claim| claim.status.as_ref()?.allocation.as_ref());
    let results = allocations.filter_map(|allocation| allocation.devices.as_ref()?.results.as_ref()).flatten();
    // Access for administration takes nothing from others.
    let taken = results.filter(|result| result.admin_access != Some(true));
    taken
        .map(|result| DeviceName {
            driver: result.driver.clone(),
            pool: result.pool.clone(),
            device: result.device.clone(),
        })
        .collect()
}
