//! Where pods go: nodes that exist, and nodes that would be created.

use std::collections::BTreeMap;

use crate::model::{HourlyPrice, IndexVec, Requirements};
use crate::snapshot::PodIndex;

use super::host_ports::HostPort;
use super::indices::{ClassIndex, DaemonIndex, KeyIndex, SpotPool, TemplateIndex};
use super::offerings::{OfferingSet, Slots};
use super::quota::LimitedCapacity;
use super::taints::EffectiveTaint;
use super::topology::Domain;
use super::vectors::Vector;

pub use super::indices::HostIndex;

impl HostIndex {
    /// Its domain of the host name key.
    pub fn domain(self) -> Domain {
        Domain::at(self.into())
    }
}

/// A node that exists, compiled.
#[derive(Debug)]
pub struct ExistingNode {
    /// Position in [`super::Problem::machines`].
    pub machine: HostIndex,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<EffectiveTaint>,
    /// Allocatable less what bound pods request and DaemonSets will.
    pub free: Vector,
    /// Nodes of one group can not be told apart by requirements and taints.
    pub group: usize,
    /// Bound pods that count: position in the snapshot and class.
    pub pods: Vec<(PodIndex, ClassIndex)>,
    /// Pods that kube-scheduler is making room for here, by evicting others: their place is taken.
    pub nominated: Vec<(PodIndex, ClassIndex)>,
    /// DaemonSets that others look at and whose pods are still to come.
    pub neighbours: Vec<DaemonIndex>,
    pub host_ports: Vec<HostPort>,
    /// Most volumes that may be attached, by driver.
    pub attachment_limits: BTreeMap<String, usize>,
    pub being_removed: bool,
    /// What it costs beside its instance, as plans count it.
    pub cost_beside: HourlyPrice,
}

/// A node that would be created: which types and slots it may still become.
#[derive(Clone, Debug)]
pub struct OpenNode {
    pub template: TemplateIndex,
    pub set: OfferingSet,
    /// The slots that requirements, volumes and topology leave, also those where no type of the set is offered: the reference
    /// counts a pod in all of them.
    pub named: Slots,
    /// What requirements and volumes of the pods placed allow, whatever type and zone it has settled on.
    pub allowed: OfferingSet,
    /// Labels of the pool with several values, narrowed by the pods placed; usually empty.
    pub custom: Requirements,
    /// Labels of which it must keep a value that no other node has, since its pods are there for that; usually none.
    pub own_values: Vec<KeyIndex>,
    /// Requests of the pods placed, without DaemonSets.
    pub requested: Vector,
    /// By dimension: no type has room for more. A request beyond needs no closer look.
    pub room_most: Vector,
    /// By key of the template's `minValues`, what is asked for instead; empty while that is what the pool says.
    pub min_values: Vec<usize>,
    /// Whether the set is less than the node could be: somebody settled on what to buy.
    pub is_cut: bool,
    /// What it takes of limits.
    pub limit_capacity: LimitedCapacity,
}

/// What changes about a host while pods are placed.
#[derive(Clone, Debug)]
pub struct Host {
    /// By class, how many.
    pub pods: BTreeMap<ClassIndex, u32>,
    pub pod_count: usize,
    pub host_ports: Vec<HostPort>,
    /// Volumes attached, by driver, each with the number of pods that use it.
    pub attachments: BTreeMap<String, BTreeMap<String, u32>>,
    /// Devices given to pods of this plan: their class, and positions in [`super::Problem::devices`] of this node.
    pub devices: Vec<(ClassIndex, Vec<usize>)>,
    /// Where its pods are together as far as spot is concerned; `None` for on-demand, for open nodes that have not settled, and
    /// where nobody counts.
    pub spot_pool: Option<SpotPool>,
    /// DaemonSets that count here, though no pod of theirs is among `pods`.
    pub neighbours: Vec<DaemonIndex>,
    pub domains: IndexVec<KeyIndex, Domain>,
    /// Takes no more pods: being removed, or tried as removed.
    pub closed: bool,
    pub open: Option<Box<OpenNode>>,
}
