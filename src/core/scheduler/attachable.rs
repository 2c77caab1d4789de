//! How many volumes of EBS can be attached to nodes of a type. The reference does not look before a node says so itself, and by then pods
//! with more volumes than that may be on it, most of which wait for ever.

use std::collections::BTreeMap;

use crate::catalog::attachments::{FEWEST, ebs_volumes};
use crate::inputs::Inputs;
use crate::snapshot::Snapshot;
use cutlist_api::keys;
use cutlist_api::settings::Packing;

use super::volumes::EBS_DRIVER;

/// More than all pods of a plan have.
pub const ANY_NUMBER: i64 = 1 << 30;

/// By instance type, how many volumes pods can have on a node of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachable {
    of_type: BTreeMap<String, i64>,
}

impl Attachable {
    /// Of the types of the catalog: as the driver says it on nodes of the type, else as it is reckoned. `None` where nobody has to count:
    /// as in the reference, or where all volumes there are could be on one node. O(pods + nodes + types).
    pub fn new(inputs: &Inputs<'_>) -> Option<Self> {
        if inputs.policy.packing == Packing::Karpenter {
            return None;
        }
        let seen = seen(inputs.snapshot);
        let fewest = seen.values().copied().min().unwrap_or(FEWEST).min(FEWEST);
        if volumes_of_pods(inputs.snapshot) <= fewest {
            return None;
        }
        let types = inputs.catalog.instance_types.iter();
        let of_type = types.filter_map(|it| {
            let reckoned = ebs_volumes(it)?;
            Some((it.name.clone(), seen.get(it.name.as_str()).copied().unwrap_or(reckoned)))
        });
        let of_type: BTreeMap<String, i64> = of_type.collect();
        (!of_type.is_empty()).then_some(Self { of_type })
    }

    /// On a node of any type that is known.
    pub fn most(&self) -> i64 {
        self.of_type.values().copied().max().unwrap_or(ANY_NUMBER)
    }

    /// Any number where nobody knows.
    pub fn of_type(&self, name: &str) -> i64 {
        self.of_type.get(name).copied().unwrap_or(ANY_NUMBER)
    }
}

/// More than these are never attached: volumes that nobody shares, and that may be of other drivers.
fn volumes_of_pods(snapshot: &Snapshot) -> i64 {
    let pods = snapshot.pods.iter().filter(|pod| !pod.is_terminal());
    let volumes = pods.flat_map(|pod| pod.spec.volumes.iter());
    let claimed = volumes.filter(|it| it.persistent_volume_claim.is_some() || it.ephemeral.is_some());
    i64::try_from(claimed.count()).unwrap_or(i64::MAX)
}

/// By instance type the fewest that the driver says it can attach to a node of it.
fn seen(snapshot: &Snapshot) -> BTreeMap<&str, i64> {
    let said = snapshot.csi_nodes.iter().filter_map(|csi_node| {
        let driver = csi_node.spec.drivers.iter().find(|driver| driver.name == EBS_DRIVER)?;
        let count = driver.allocatable.as_ref()?.count.filter(|count| *count > 0)?;
        Some((csi_node.metadata.name.as_deref()?, i64::from(count)))
    });
    let said: BTreeMap<&str, i64> = said.collect();
    let mut seen: BTreeMap<&str, i64> = BTreeMap::new();
    for node in snapshot.nodes.iter().filter(|_| !said.is_empty()) {
        let instance_type = node.metadata.labels.as_ref().and_then(|labels| labels.get(keys::INSTANCE_TYPE));
        let count = node.metadata.name.as_deref().and_then(|name| said.get(name));
        if let (Some(instance_type), Some(count)) = (instance_type, count) {
            let fewest = seen.entry(instance_type).or_insert(*count);
            *fewest = (*fewest).min(*count);
        }
    }
    seen
}
