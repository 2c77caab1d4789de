//! The state of the world, and the records that it is made of. What happens in it stands in the files beside this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, PodTemplate};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::Value;

use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_plan::NodePlan;
use crate::api::node_pool::NodePool;
use crate::core::catalog::Catalog;
use crate::core::model::Resources;
use crate::core::plan::EndCause;
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::{Pod, Snapshot};
use crate::ports::{Instance, Message, Offering};

use super::WorldSettings;
use super::pods::Pods;
use super::store::Store;

/// A cluster and a cloud at one moment. Objects by `name`, or by `namespace/name`.
pub struct World {
    pub(super) settings: WorldSettings,
    pub(super) now: Timestamp,
    /// Goes up with every change that a watch would see.
    pub(super) generation: u64,
    /// Goes up with every change of a node that may let a pod in, or take one with it.
    pub(super) nodes_generation: u64,
    /// Nodes and room when no waiting pod found a node; before something changes, trying again is of no use.
    pub(super) scheduled_at: (u64, u64),
    /// The same for nodes that lack the pod of a DaemonSet.
    pub(super) daemons_at: (u64, u64),
    /// Nodes when there was no pod of a node that is gone.
    pub(super) orphans_at_generation: u64,
    pub(super) timers: BTreeMap<(Timestamp, u64), Timer>,
    pub(super) timers_set: u64,
    pub(super) objects_made: u64,

    pub(super) nodes: Store<Node>,
    pub(super) allocatable: BTreeMap<String, Allocatable>,
    pub(super) node_claims: Store<NodeClaim>,
    pub(super) node_pools: BTreeMap<String, NodePool>,
    pub(super) node_classes: BTreeMap<String, EC2NodeClass>,
    pub(super) node_overlays: BTreeMap<String, NodeOverlay>,
    pub(super) capacity_buffers: BTreeMap<String, CapacityBuffer>,
    pub(super) pod_templates: BTreeMap<String, PodTemplate>,
    pub(super) disruption_budgets: BTreeMap<String, DisruptionBudget>,
    pub(super) pods: Pods,
    pub(super) deployments: Store<Deployment>,
    pub(super) replica_sets: Store<ReplicaSet>,
    pub(super) replica_sets_by_uid: BTreeMap<String, String>,
    /// A Deployment or ReplicaSet came, went or is to have another size.
    pub(super) workloads_changed: bool,
    /// Owners of pods that are run as they were found, by UID.
    pub(super) kept: BTreeMap<String, Kept>,
    pub(super) daemon_sets: Store<DaemonSet>,
    pub(super) pod_disruption_budgets: Store<PodDisruptionBudget>,
    /// Pods that were evicted so far, those of DaemonSets left out.
    pub(super) evicted: usize,
    /// Kinds that no controller of this world acts on; kept so that an observation shows them.
    pub(super) others: Snapshot,
    /// Where pods are expected to land: pod to node or claim.
    pub(super) nominations: BTreeMap<String, String>,
    pub(super) node_plans: Store<NodePlan>,

    pub(super) catalog: Arc<Catalog>,
    pub(super) machines: BTreeMap<String, Machine>,
    /// Instances that ended before their nodes joined, why and when.
    pub(super) ended: BTreeMap<String, (EndCause, Timestamp)>,
    /// What EC2 has announced and nobody has taken off the queue, by receipt.
    pub(super) messages: BTreeMap<String, Message>,
    pub(super) messages_sent: u64,
    /// By NodePool, what is wrong with its new nodes.
    pub(super) node_faults: BTreeMap<String, NodeFault>,
    /// By NodePool, why kube-scheduler finds other new nodes there than anybody would think.
    pub(super) disagreements: BTreeMap<String, Disagreement>,
    /// Offerings that EC2 has none of, until somebody says otherwise.
    pub(super) exhausted: BTreeSet<Offering>,
    /// Offerings that a launch found exhausted, and until when the catalog shows them as unavailable.
    pub(super) unavailable_until: BTreeMap<Offering, Timestamp>,
    /// What is left of capacity reservations, by id, once an instance of one came or went: what a class says of it is as old as its status.
    pub(super) reserved_left: BTreeMap<String, i32>,
    pub(super) visibility: Visibility,
    /// Pods that do not end, by UID, and zones in which no pod does.
    pub(super) held_pods: BTreeSet<String>,
    pub(super) lost_zones: BTreeSet<String>,
    /// What an admission webhook makes of definitions that are written.
    pub(super) webhook: Option<Webhook>,
}

/// Something that will happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    NodeJoins { provider_id: String },
    NodeReady { provider_id: String },
    NodeStartsUp { provider_id: String, tries: u32 },
    MachineEnds { provider_id: String },
    MachineReclaimed { provider_id: String },
    PodStarts { key: String, uid: String },
    PodEnds { key: String, uid: String },
}

/// An instance, and what its user data says about the node it will be.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) instance: Instance,
    /// The UID of the claim that it was launched for.
    pub(super) claim_uid: String,
    pub(super) node_claim: String,
    pub(super) node_name: String,
    /// Told to end; gone a few seconds later.
    pub(super) ending: bool,
    /// The capacity reservation that it takes an instance of.
    pub(super) reservation: Option<String>,
}

/// What is wrong with the new nodes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFault {
    /// The kubelet never registers.
    NeverJoins,
    /// The node registers, and stays unready.
    NeverReady,
    /// The instance ends when its node would join.
    Ends(EndCause),
}

/// What a node offers to pods, read of the node as it was then.
pub(super) struct Allocatable {
    pub(super) node: Arc<Node>,
    pub(super) discourages: bool,
    pub(super) amounts: Arc<Resources>,
}

/// An owner of pods, run as it was found.
#[derive(Clone)]
pub(super) struct Kept {
    /// `namespace/name` as people call it: of the Deployment behind a ReplicaSet.
    pub(super) workload: String,
    /// What new pods are like; at least one.
    pub(super) patterns: Vec<Pattern>,
    pub(super) names: Names,
}

/// Pods of one owner that kube-scheduler tells apart in nothing.
#[derive(Clone)]
pub(super) struct Pattern {
    pub(super) pod: Arc<Pod>,
    /// How many were found.
    pub(super) found: usize,
}

/// What new pods of an owner are called.
#[derive(Clone)]
pub(super) enum Names {
    /// As many as this, with names that are made up.
    Generated { prefix: String, replicas: usize },
    /// Just these, such as `web-0`; by key, with what each of them is like.
    Fixed(BTreeMap<String, Arc<Pod>>),
}

/// What is so of every new node of a pool once it is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The node has no such label any more.
    LacksLabel(String),
    /// The node has a taint that nobody told of, `NoSchedule`.
    Taint(String),
    /// The node offers so many hundredths of the resource that it was to have.
    Offers { resource: String, percent: u8 },
    /// A plugin of kube-scheduler lets no pod run there.
    Plugin(String),
}

/// What an admission webhook makes of a definition, which is JSON with kind and name.
pub type Webhook = fn(&mut Value);

/// What is wrong with what is seen.
#[derive(Clone, Default)]
pub(super) struct Visibility {
    pub(super) frozen: Option<Frozen>,
    pub(super) unreadable: Vec<Unreadable>,
    pub(super) instances_hidden: bool,
}

/// Kinds that are seen as they were.
#[derive(Clone)]
pub(super) struct Frozen {
    pub(super) resources: BTreeSet<String>,
    /// How they looked then.
    pub(super) seen: Snapshot,
    pub(super) at: Timestamp,
    /// What the observer knows of it.
    pub(super) why: Option<String>,
}
