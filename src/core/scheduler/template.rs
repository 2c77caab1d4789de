//! A NodePool compiled: what its new nodes look like before a type and a zone are chosen.

use std::collections::BTreeMap;
use std::rc::Rc;

use fixedbitset::FixedBitSet;

use crate::model::{HourlyPrice, IndexVec, Requirement, Requirements};
use crate::offer::{NothingOffered, Reservation};
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;

use super::host_ports::HostPort;
use super::indices::{DaemonIndex, KeyIndex};
use super::offerings::{OfferingSet, Offerings, Slots, TypeIndex};
use super::quota::{LimitedCapacity, QuotaIndex};
use super::reach::Reach;
use super::rooms::Rooms;
use super::taints::EffectiveTaint;
use super::vectors::Vector;

pub use super::indices::TemplateIndex;

/// Stands for the name of a node that is not there yet: no label has this value.
const NAME_TO_COME: &str = "\0";

/// How many nodes a static pool wants and has, without those on their way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    pub wanted: usize,
    pub there: usize,
}

impl Replicas {
    /// `None` for a dynamic pool.
    pub fn of(pool: &NodePool, machines: &[Machine<'_>]) -> Option<Self> {
        let wanted = usize::try_from(pool.spec.replicas?).unwrap_or(0);
        let of_pool = |machine: &&Machine<'_>| {
            machine.is_managed() && !machine.is_being_removed() && machine.node_pool() == pool.metadata.name.as_deref()
        };
        Some(Self { wanted, there: machines.iter().filter(of_pool).count() })
    }
}

/// Ports of the host that a DaemonSet takes.
#[derive(Clone, Debug)]
pub struct DaemonPorts {
    pub ports: Vec<HostPort>,
    /// Its nodes, in any of these sets.
    pub on: Vec<OfferingSet>,
}

/// A DaemonSet on the nodes of a template.
#[derive(Clone, Debug)]
pub struct Neighbour {
    pub daemon: DaemonIndex,
    /// For each of its terms the types and slots of nodes that it runs on.
    pub on: Vec<OfferingSet>,
}

impl Neighbour {
    /// Whether a node of any of these types and slots gets its pod.
    pub fn runs_on_all(&self, set: &OfferingSet) -> bool {
        self.on.iter().any(|on| set.types().is_subset(on.types()) && set.slots & !on.slots == 0)
    }

    /// Whether a node of one of them does.
    pub fn runs_on_some(&self, set: &OfferingSet) -> bool {
        self.on.iter().any(|on| !set.types().is_disjoint(on.types()) && set.slots & on.slots != 0)
    }
}

#[derive(Clone, Debug)]
pub struct Template {
    /// Position of the pool in the inputs.
    pub pool: usize,
    pub name: String,
    pub weight: i32,
    /// Requirements and labels of the pool together.
    pub requirements: Requirements,
    pub taints: Vec<EffectiveTaint>,
    pub offerings: Rc<Offerings>,
    /// What the pool may buy.
    pub set: OfferingSet,
    /// The slots that the template is for, all of which have the same DaemonSets; further ones of its pool have templates of their own.
    pub part: Slots,
    /// By position of the type: what its DaemonSets will request there.
    pub daemon_overhead: IndexVec<TypeIndex, Vector>,
    /// Of a static pool, by type, the DaemonSets that its nodes have no room for beside the others: they are launched all the same.
    pub without_room: BTreeMap<TypeIndex, Vec<DaemonIndex>>,
    /// By position of the type: allocatable less that, which is what pods can have.
    pub room: IndexVec<TypeIndex, Vector>,
    /// The same, indexed; shared by templates that are alike in this.
    pub rooms: Rc<Rooms>,
    /// By dimension: the most room that any type of the pool has.
    pub room_most: Vector,
    /// Which domains of a topology key its nodes can come to be in.
    pub reach: IndexVec<KeyIndex, Reach>,
    /// DaemonSets that others look at, and on which of its nodes they run.
    pub neighbours: Vec<Neighbour>,
    /// Ports that DaemonSets take, and on which of its nodes.
    pub daemon_ports: Vec<DaemonPorts>,
    /// What its nodes draw on; none without limits.
    pub quotas: Vec<QuotaIndex>,
    /// By position of the type: what a node of it takes of limits; empty without limits.
    pub limited_capacity: IndexVec<TypeIndex, LimitedCapacity>,
    /// The most of each that any type of the pool takes.
    pub limited_capacity_most: LimitedCapacity,
    /// Why it may buy nothing, where that is so.
    pub nothing_offered: Option<Rc<NothingOffered>>,
    /// Of a static pool, which no pod opens a node of.
    pub replicas: Option<Replicas>,
    /// Into which its nodes are launched; beside it the pool has a template of its own, for nodes that are not reserved.
    pub reservation: Option<Rc<Reservation>>,
    /// What each of its nodes costs beside its instance, as plans count it.
    pub cost_beside: HourlyPrice,
    /// Label keys with the number of distinct values that a node's types must offer.
    pub min_values: Vec<(String, usize)>,
}

impl Template {
    /// What depends on DaemonSets, machines, limits and topology is filled in by the problem.
    pub fn new(pool: usize, node_pool: &NodePool, offerings: Rc<Offerings>) -> Self {
        let spec = &node_pool.spec.template.spec;
        let name = node_pool.metadata.name.clone().unwrap_or_default();
        let mut requirements = Requirements::from_entries(&spec.requirements);
        requirements.extend(&Requirements::from_labels(&node_pool.spec.template.metadata.labels));
        for (key, value) in [
            (keys::NODE_POOL, name.as_str()),
            (keys::EC2_NODE_CLASS, &spec.node_class_ref.name),
            // Nodes get these once they are up; a DaemonSet or pod that selects on them will find them.
            (keys::REGISTERED, "true"),
            (keys::INITIALIZED, "true"),
            // Every node has a name, and nobody can ask for that of one to come.
            (keys::HOSTNAME, NAME_TO_COME),
        ] {
            requirements.add(key, Requirement::is_in([value]));
        }
        let mut set = offerings.compile(&requirements);
        offerings.prune(&mut set);
        // Of what a type leaves open one value is chosen for each node.
        let tenancies = offerings.types_by_value(keys::TENANCY).map(|(value, _)| value);
        let tenancy = Requirement::is_in(tenancies);
        if !tenancy.allows_nothing() && !set.types().is_clear() {
            requirements.add(keys::TENANCY, tenancy);
        }
        // A label that no node can have as the pool wants it.
        if requirements.iter().any(|(key, requirement)| !offerings.defines(key) && !requirement.can_be_met()) {
            set = OfferingSet::new(FixedBitSet::with_capacity(offerings.types.len()), 0);
        }
        let min_values = requirements
            .iter()
            .filter_map(|(key, requirement)| Some((key.to_owned(), usize::try_from(requirement.min_values?).ok()?)))
            .collect();
        Self {
            pool,
            name,
            weight: node_pool.spec.weight.unwrap_or(0),
            requirements,
            taints: spec.taints.iter().map(EffectiveTaint::from).collect(),
            offerings,
            set,
            part: Slots::MAX,
            daemon_overhead: IndexVec::new(),
            without_room: BTreeMap::new(),
            room: IndexVec::new(),
            rooms: Rc::new(Rooms::new(&[], 0)),
            room_most: Vector::default(),
            reach: IndexVec::new(),
            neighbours: Vec::new(),
            daemon_ports: Vec::new(),
            quotas: Vec::new(),
            limited_capacity: IndexVec::new(),
            limited_capacity_most: Rc::from([]),
            min_values,
            nothing_offered: None,
            replicas: None,
            reservation: None,
            cost_beside: HourlyPrice::ZERO,
        }
    }

    /// Whether each node gets a value of this label that is chosen for it, and has not the one of its type or zone.
    pub fn chooses(&self, key: &str) -> bool {
        self.offerings.leaves_open(key)
    }

    /// Whether what it says of a label leaves so much open that each node gets a value of its own.
    pub fn leaves_to_each_node(&self, key: &str) -> bool {
        self.chooses(key) && self.requirements.get(key).is_some_and(|requirement| requirement.listed().is_none())
    }

    /// Whether its nodes are there for their own sake.
    pub fn is_static(&self) -> bool {
        self.replicas.is_some()
    }

    /// Whether its nodes are launched into a capacity reservation.
    pub fn is_reserved(&self) -> bool {
        self.reservation.is_some()
    }

    /// Whether it may buy nothing because its pool asks for capacity reservations alone, which have templates of their own.
    pub fn is_left_to_reservations(&self) -> bool {
        self.nothing_offered.as_ref().is_some_and(|nothing| nothing.is_left_to_reservations)
    }

    /// Whether its pool has further templates, for other slots.
    pub fn is_part(&self) -> bool {
        self.part != Slots::MAX
    }

    /// Why it may buy nothing.
    pub fn nothing_offered_text(&self) -> String {
        let text = self.nothing_offered.as_ref().map(|nothing| nothing.text.clone());
        text.unwrap_or_else(|| "its requirements match no instance type that is offered".to_owned())
    }

    /// Whether anything limits its nodes.
    pub fn is_limited(&self) -> bool {
        !self.quotas.is_empty()
    }
}
