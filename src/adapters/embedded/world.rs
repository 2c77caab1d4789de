//! The state of the world, its timers, and catching up with the clock.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, PodTemplate};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_plan::NodePlan;
use crate::api::node_pool::NodePool;
use crate::core::catalog::Catalog;
use crate::core::snapshot::{Pod, Snapshot};

use super::WorldSettings;
use super::machines::{Machine, OfferingKey};
use super::random::Random;

/// More rounds than any chain of controllers needs (Deployment, ReplicaSet, pod, binding, budget); a guard against a cycle.
const RECONCILE_ROUNDS: usize = 16;

/// A cluster and a cloud at one moment. Objects by `name`, or by `namespace/name`.
pub struct World {
    pub(super) settings: WorldSettings,
    pub(super) now: Timestamp,
    /// Goes up with every change that a watch would see.
    pub(super) generation: u64,
    /// The generation at which no waiting pod found a node; before something changes, trying again is of no use.
    pub(super) scheduled_at_generation: u64,
    /// The same for nodes that lack the pod of a DaemonSet.
    pub(super) daemons_at_generation: u64,
    pub(super) timers: BTreeMap<(Timestamp, u64), Timer>,
    timers_set: u64,
    objects_made: u64,

    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) node_claims: BTreeMap<String, NodeClaim>,
    pub(super) node_pools: BTreeMap<String, NodePool>,
    pub(super) node_classes: BTreeMap<String, EC2NodeClass>,
    pub(super) node_overlays: BTreeMap<String, NodeOverlay>,
    pub(super) capacity_buffers: BTreeMap<String, CapacityBuffer>,
    pub(super) pod_templates: BTreeMap<String, PodTemplate>,
    pub(super) disruption_budgets: BTreeMap<String, DisruptionBudget>,
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) deployments: BTreeMap<String, Deployment>,
    pub(super) replica_sets: BTreeMap<String, ReplicaSet>,
    pub(super) daemon_sets: BTreeMap<String, DaemonSet>,
    pub(super) pod_disruption_budgets: BTreeMap<String, PodDisruptionBudget>,
    /// Kinds that no controller of this world acts on; kept so that an observation shows them.
    pub(super) others: Snapshot,
    /// Where pods are expected to land: pod to node or claim.
    pub(super) nominations: BTreeMap<String, String>,
    pub(super) node_plans: BTreeMap<String, NodePlan>,

    pub(super) catalog: Catalog,
    pub(super) machines: BTreeMap<String, Machine>,
    /// Offerings that EC2 has none of, until somebody says otherwise.
    pub(super) exhausted: BTreeSet<OfferingKey>,
    /// Offerings that a launch found exhausted, and until when the catalog shows them as unavailable.
    pub(super) unavailable_until: BTreeMap<OfferingKey, Timestamp>,
}

/// Something that will happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    NodeJoins { provider_id: String },
    NodeReady { provider_id: String },
    MachineEnds { provider_id: String },
    MachineReclaimed { provider_id: String },
    PodStarts { key: String, uid: String },
    PodEnds { key: String, uid: String },
}

impl World {
    pub fn new(settings: WorldSettings, catalog: Catalog) -> Self {
        Self {
            now: settings.epoch,
            settings,
            generation: 1,
            scheduled_at_generation: 0,
            daemons_at_generation: 0,
            timers: BTreeMap::new(),
            timers_set: 0,
            objects_made: 0,
            nodes: BTreeMap::new(),
            node_claims: BTreeMap::new(),
            node_pools: BTreeMap::new(),
            node_classes: BTreeMap::new(),
            node_overlays: BTreeMap::new(),
            capacity_buffers: BTreeMap::new(),
            pod_templates: BTreeMap::new(),
            disruption_budgets: BTreeMap::new(),
            pods: BTreeMap::new(),
            deployments: BTreeMap::new(),
            replica_sets: BTreeMap::new(),
            daemon_sets: BTreeMap::new(),
            pod_disruption_budgets: BTreeMap::new(),
            others: Snapshot::default(),
            nominations: BTreeMap::new(),
            node_plans: BTreeMap::new(),
            catalog,
            machines: BTreeMap::new(),
            exhausted: BTreeSet::new(),
            unavailable_until: BTreeMap::new(),
        }
    }

    /// Lets everything happen that is due up to `moment`, each event at its own time. A moment in the past changes nothing.
    pub fn advance(&mut self, moment: Timestamp) {
        while let Some((&(due, number), _)) = self.timers.first_key_value() {
            if due > moment {
                break;
            }
            let timer = self.timers.remove(&(due, number));
            self.now = self.now.max(due);
            if let Some(timer) = timer {
                self.fire(timer);
            }
            self.reconcile();
        }
        self.now = self.now.max(moment);
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::NodeJoins { provider_id } => self.node_joins(&provider_id),
            Timer::NodeReady { provider_id } => self.node_ready(&provider_id),
            Timer::MachineEnds { provider_id } => self.machine_ends(&provider_id),
            Timer::MachineReclaimed { provider_id } => self.machine_reclaimed(&provider_id),
            Timer::PodStarts { key, uid } => self.pod_starts(&key, &uid),
            Timer::PodEnds { key, uid } => self.pod_ends(&key, &uid),
        }
    }

    /// Lets the cluster's own controllers act until none has anything left to do at this moment.
    pub fn reconcile(&mut self) {
        for _ in 0..RECONCILE_ROUNDS {
            let before = self.generation;
            self.reconcile_workloads();
            self.reconcile_daemons();
            self.collect_orphans();
            self.schedule();
            self.reconcile_budgets();
            if self.generation == before {
                return;
            }
        }
    }

    /// Whether nothing will happen by itself.
    pub fn is_still(&self) -> bool {
        self.timers.is_empty()
    }

    /// When the next thing will happen.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.timers.first_key_value().map(|((due, _), _)| *due)
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What EC2 sells here.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn touch(&mut self) {
        self.generation += 1;
    }

    pub(super) fn after_seconds(&mut self, seconds: u64, timer: Timer) {
        let delay = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        let due = self.now.saturating_add(delay).unwrap_or(Timestamp::MAX);
        self.timers_set += 1;
        self.timers.insert((due, self.timers_set), timer);
    }

    /// A UID that no object of this world had before.
    pub(super) fn new_uid(&mut self, kind: &str, name: &str) -> String {
        self.objects_made += 1;
        Random::new(self.settings.seed, kind, &format!("{name} {}", self.objects_made)).uid()
    }

    pub(super) fn random(&self, purpose: &str, name: &str) -> Random {
        Random::new(self.settings.seed, purpose, name)
    }

    /// Everything a watch would show.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            nodes: self.nodes.values().cloned().collect(),
            node_claims: self.node_claims.values().cloned().collect(),
            node_pools: self.node_pools.values().cloned().collect(),
            node_classes: self.node_classes.values().cloned().collect(),
            node_overlays: self.node_overlays.values().cloned().collect(),
            capacity_buffers: self.capacity_buffers.values().cloned().collect(),
            pod_templates: self.pod_templates.values().cloned().collect(),
            node_plans: self.node_plans.values().cloned().collect(),
            disruption_budgets: self.disruption_budgets.values().cloned().collect(),
            pods: self.pods.values().cloned().collect(),
            daemon_sets: self.daemon_sets.values().cloned().collect(),
            deployments: self.deployments.values().cloned().collect(),
            replica_sets: self.replica_sets.values().cloned().collect(),
            pod_disruption_budgets: self.pod_disruption_budgets.values().cloned().collect(),
            ..self.others.clone()
        }
    }
}
