//! How many volumes of EBS pods can have on an instance. EC2 describes it for no type that the catalog is made of, and the driver that
//! attaches them says it of nodes that are there; of others it is reckoned here as the driver does.
//! Source: EC2's user guide, "Amazon EBS volume limits for Amazon EC2 instances".

use super::InstanceType;
use super::labels::{ACCELERATOR_COUNT, GPU_COUNT, HYPERVISOR, LOCAL_NVME};

/// Of Nitro, and bare metal: volumes, network interfaces, disks of the instance and accelerators together. Later generations have a number
/// of their own for volumes, which is larger.
const SHARED: i64 = 28;

/// The volume that the instance starts from, its network interface, and the one that the network's plugin keeps ready.
const TAKEN: i64 = 3;

/// Of Xen, where nothing else counts.
const OF_XEN: i64 = 39;

/// The types with most accelerators have disks of their own as well, and attach no fewer.
pub const FEWEST: i64 = 6;

/// No type has more disks of its own that count.
const DISKS_MAX: i64 = 8;

/// The catalog has all disks together; of types with several, hardly one has smaller ones.
const GIGABYTES_OF_A_DISK: i64 = 600;

/// Volumes that pods can have on a node of this type; `None` where nobody says what it is made of.
pub fn ebs_volumes(instance_type: &InstanceType) -> Option<i64> {
    if of(instance_type, HYPERVISOR)? == "xen" {
        return Some(OF_XEN);
    }
    let number = |key: &str| of(instance_type, key).and_then(|value| value.parse::<i64>().ok()).unwrap_or(0).max(0);
    let disks = number(LOCAL_NVME).saturating_add(GIGABYTES_OF_A_DISK - 1) / GIGABYTES_OF_A_DISK;
    let devices = number(GPU_COUNT).saturating_add(number(ACCELERATOR_COUNT));
    Some((SHARED - TAKEN - disks.min(DISKS_MAX)).saturating_sub(devices).max(FEWEST))
}

fn of<'t>(instance_type: &'t InstanceType, key: &str) -> Option<&'t str> {
    instance_type.requirements.get(key)?.first().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn what_is_on_the_instance_leaves_fewer() {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        let volumes = |name: &str| ebs_volumes(catalog.instance_types.iter().find(|it| it.name == name).unwrap());
        let of = ["m5.large", "a1.metal", "m5d.24xlarge", "g5.48xlarge", "p4d.24xlarge", "trn1.32xlarge", "t2.large"];
        assert_eq!(of.map(volumes), [25, 25, 19, 9, 9, 6, 39].map(Some));
        let mut unknown = catalog.instance_types[0].clone();
        unknown.requirements.remove(HYPERVISOR);
        assert_eq!(ebs_volumes(&unknown), None);
    }
}
