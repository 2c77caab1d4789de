//! What the cloud answered last, as far as plans are made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::cloud_facts::{DeniedPermission, VcpuQuotaUse};
use crate::api::ec2_node_class::EC2NodeClassSpec;
use crate::core::catalog::Catalog;
use crate::core::plan::Note;
use crate::ports::ClassFacts;

use super::Mode;
use super::observed::view::Prices;

/// The catalog and what was derived from it.
pub(super) struct CloudAnswers {
    pub(super) catalog: Arc<Catalog>,
    pub(super) prices: Prices,
    /// By name of the EC2NodeClass: what the cloud was asked, and what it answered.
    pub(super) classes: BTreeMap<String, (EC2NodeClassSpec, ClassFacts)>,
    /// The account's, and what runs under them.
    pub(super) vcpu_quotas: Vec<VcpuQuotaUse>,
    pub(super) denied: Vec<DeniedPermission>,
    /// What the cloud says of itself.
    pub(super) notes: Vec<Note>,
    /// The claims that were launched into capacity reservations by then, by UID.
    pub(super) reserved: BTreeSet<String>,
    /// When it was another one last.
    pub(super) made_at: Timestamp,
    pub(super) until: Timestamp,
    /// Some of it was not answered when it was asked last: it is what was said before.
    pub(super) is_old: bool,
}

impl CloudAnswers {
    /// Of all classes; `None` where the cloud says it of no subnet, as one in memory does not.
    pub(super) fn free_addresses(&self) -> Option<BTreeMap<String, u64>> {
        let of_classes = self.classes.values().flat_map(|(_, facts)| &facts.free_addresses);
        let free: BTreeMap<String, u64> = of_classes.map(|(subnet, free)| (subnet.clone(), *free)).collect();
        (!free.is_empty()).then_some(free)
    }

    /// Of classes by their names. Who only observes plans with every zone where nobody could find out; who acts waits.
    pub(super) fn zones_with_subnet(&self, mode: Mode) -> BTreeMap<String, Vec<String>> {
        let is_unknown = |facts: &ClassFacts| {
            let of_subnets = facts.conditions.iter().find(|it| it.type_ == "SubnetsReady");
            facts.zones.is_empty() && of_subnets.is_some_and(|it| it.status.is_none())
        };
        let counting = self.classes.iter().filter(|(_, (_, facts))| mode != Mode::Observe || !is_unknown(facts));
        counting.map(|(name, (_, facts))| (name.clone(), facts.zones.clone())).collect()
    }
}
