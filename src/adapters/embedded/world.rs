//! The beginning of a world, its timers, and catching up with the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::core::catalog::Catalog;
use crate::core::snapshot::{Objects, Snapshot};

use super::WorldSettings;
use super::pods::Pods;
use super::random::Random;
use super::state::{Timer, Visibility, World};
use super::store::Store;

/// More rounds than any chain of controllers needs (Deployment, ReplicaSet, pod, binding, budget); a guard against a cycle.
const RECONCILE_ROUNDS: usize = 16;

impl World {
    pub fn new(settings: WorldSettings, catalog: Arc<Catalog>) -> Self {
        Self {
            now: settings.epoch,
            settings,
            generation: 1,
            nodes_generation: 1,
            scheduled_at: (0, 0),
            daemons_at: (0, 0),
            orphans_at_generation: 0,
            timers: BTreeMap::new(),
            timers_set: 0,
            objects_made: 0,
            nodes: Store::default(),
            allocatable: BTreeMap::new(),
            node_claims: Store::default(),
            node_pools: BTreeMap::new(),
            node_classes: BTreeMap::new(),
            node_overlays: BTreeMap::new(),
            capacity_buffers: BTreeMap::new(),
            pod_templates: BTreeMap::new(),
            disruption_budgets: BTreeMap::new(),
            pods: Pods::default(),
            deployments: Store::default(),
            replica_sets: Store::default(),
            replica_sets_by_uid: BTreeMap::new(),
            workloads_changed: false,
            kept: BTreeMap::new(),
            daemon_sets: Store::default(),
            pod_disruption_budgets: Store::default(),
            evicted: 0,
            others: Snapshot::default(),
            nominations: BTreeMap::new(),
            node_plans: Store::default(),
            catalog,
            machines: BTreeMap::new(),
            ended: BTreeMap::new(),
            messages: BTreeMap::new(),
            messages_sent: 0,
            node_faults: BTreeMap::new(),
            disagreements: BTreeMap::new(),
            exhausted: BTreeSet::new(),
            unavailable_until: BTreeMap::new(),
            reserved_left: BTreeMap::new(),
            visibility: Visibility::default(),
            held_pods: BTreeSet::new(),
            lost_zones: BTreeSet::new(),
            webhook: None,
        }
    }

    /// Lets everything happen that is due up to `moment`, each event at its own time. A moment in the past changes nothing.
    pub fn advance(&mut self, moment: Timestamp) {
        while let Some((&(due, number), _)) = self.timers.first_key_value() {
            if due > moment {
                break;
            }
            // What was left undone at the moment before belongs to that moment.
            if due > self.now {
                self.reconcile();
            }
            let timer = self.timers.remove(&(due, number));
            self.now = self.now.max(due);
            if let Some(timer) = timer {
                self.fire(timer);
            }
            let is_last_of_moment = self.timers.first_key_value().is_none_or(|((next, _), _)| *next > due);
            if is_last_of_moment {
                self.reconcile();
            }
        }
        self.now = self.now.max(moment);
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::NodeJoins { provider_id } => self.node_joins(&provider_id),
            Timer::NodeReady { provider_id } => self.node_ready(&provider_id),
            Timer::NodeStartsUp { provider_id, tries } => self.node_starts_up(&provider_id, tries),
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
            self.collect_orphans();
            self.reconcile_daemons();
            self.schedule();
            self.preempt();
            self.reconcile_budgets();
            if self.generation == before {
                return;
            }
        }
    }

    /// Lets the owners of pods make those that are missing, and counts what budgets allow.
    pub(super) fn reconcile_pods(&mut self) {
        self.reconcile_workloads();
        self.reconcile_budgets();
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

    /// The same for a change of a node.
    pub(super) fn touch_nodes(&mut self) {
        self.nodes_generation += 1;
        self.touch();
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
            nodes: self.nodes.shared(),
            node_claims: self.node_claims.shared(),
            node_pools: self.node_pools.values().cloned().collect(),
            node_classes: self.node_classes.values().cloned().collect(),
            node_overlays: self.node_overlays.values().cloned().collect(),
            capacity_buffers: self.capacity_buffers.values().cloned().collect(),
            pod_templates: self.pod_templates.values().cloned().collect(),
            node_plans: self.node_plans.shared(),
            disruption_budgets: self.disruption_budgets.values().cloned().collect(),
            pods: self.pods.all(),
            daemon_sets: self.daemon_sets.shared(),
            deployments: with_found(self.deployments.shared(), &self.others.deployments),
            replica_sets: with_found(self.replica_sets.shared(), &self.others.replica_sets),
            pod_disruption_budgets: self.pod_disruption_budgets.shared(),
            ..self.others.clone()
        }
    }
}

/// What this world runs, and what it keeps as it was found.
fn with_found<T: Clone>(mut running: Objects<T>, found: &Objects<T>) -> Objects<T> {
    running.shared_mut().extend(found.shared().iter().cloned());
    running
}
