//! Tries changes: makes them to copies of the objects, compiles those, and places the pods anew.

use std::collections::{BTreeMap, BTreeSet};

use crate::inputs::{Inputs, Policy};
use crate::model::Resources;
use crate::model::resources::format_amount;
use crate::plan::change::Change;
use crate::provision::distances::{Distance, distances};
use crate::provision::{self, provision};
use crate::scheduler::{ClassIndex, Engine, Problem, quota};
use crate::snapshot::{Doubts, Objects, Pod, PodIndex, Snapshot};
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_pool::{IntOrString, NodePool};
use cutlist_api::settings::Packing;

use super::propose::{Changed, Side, propose};

/// What is planned for in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialScope {
    /// One pod alone, on top of what the plan takes of the pools' limits.
    OnePod,
    /// Everything.
    Cluster,
}

/// What a trial came to.
#[derive(Debug)]
pub enum Outcome {
    /// With what the nodes then use of the limits.
    Placed(Used),
    /// Nearest pool first.
    Refused(Vec<Refused>),
}

/// A pool that still takes no pod.
#[derive(Debug)]
pub struct Refused {
    pub pool: String,
    /// What could be done about it, on the pool's side where there is a choice, and on the pod's; `None`: nothing.
    pub on_side_of_pool: Option<Vec<Change>>,
    pub on_side_of_pod: Option<Vec<Change>>,
}

/// What the nodes take of the limits: of each pool by its name, of the cluster under `None`.
pub type Used = Vec<(Option<String>, Resources)>;

pub fn used(engine: &Engine<'_, '_>) -> Used {
    let problem = engine.problem;
    let used = problem.templates.iter().flat_map(|template| {
        let is_limit = |quota: &&quota::QuotaIndex| {
            matches!(problem.quotas[**quota].scope, quota::LimitScope::NodePool | quota::LimitScope::Cluster)
        };
        template.quotas.iter().filter(is_limit).map(|quota| {
            let pool = (problem.quotas[*quota].scope == quota::LimitScope::NodePool).then(|| template.name.clone());
            let mut used = problem.limited.resources(&problem.quotas[*quota].used);
            used.add(&problem.limited.resources(engine.planned(*quota)));
            (pool, used)
        })
    });
    used.collect()
}

/// Of one pool, or of the cluster.
pub fn used_of<'u>(used: &'u Used, pool: Option<&str>) -> Option<&'u Resources> {
    used.iter().find(|(name, _)| name.as_deref() == pool).map(|(_, used)| used)
}

/// Makes trials, and counts what they cost.
pub struct Trials<'e, 'a> {
    inputs: &'e Inputs<'a>,
    /// What the plan is made of.
    planned: &'e Problem<'a>,
    /// The cluster without pods and nodes.
    bare: Snapshot,
    /// What the plan leaves of the limits is known by what it uses.
    used: Used,
    trials_left: u32,
    pods_left: usize,
    /// Of a trial of the whole cluster.
    cost_in_pods: usize,
}

impl<'e, 'a> Trials<'e, 'a> {
    pub fn new(
        (inputs, planned): (&'e Inputs<'a>, &'e Problem<'a>),
        used: Used,
        trials: u32,
        pods: usize,
        cost_in_pods: usize,
    ) -> Self {
        let bare = without_pods_and_nodes(inputs.snapshot);
        Self { inputs, planned, bare, used, trials_left: trials, pods_left: pods, cost_in_pods }
    }

    pub fn is_spent(&self) -> bool {
        self.trials_left == 0
    }

    /// Whether one of the pods gets a place when these changes are made. `None` when there is no work left for it.
    pub fn run(&mut self, changes: &[Change], pods: &[PodIndex], scope: TrialScope) -> Option<Outcome> {
        match scope {
            TrialScope::OnePod => {
                self.trials_left = self.trials_left.checked_sub(1)?;
                Some(self.one_pod(changes, *pods.first()?))
            }
            TrialScope::Cluster => {
                self.pods_left = self.pods_left.checked_sub(self.cost_in_pods)?;
                Some(self.cluster(changes, pods))
            }
        }
    }

    fn one_pod(&mut self, changes: &[Change], pod: PodIndex) -> Outcome {
        let mut pools = self.changed_pools(changes);
        // Static pools would buy all of their nodes anew, for the one pod to find room on.
        pools.retain(|pool| pool.spec.replicas.is_none());
        for pool in &mut pools {
            let name = pool.metadata.name.clone().unwrap_or_default();
            take_off(&mut pool.spec.limits, used_of(&self.used, Some(&name)));
        }
        let mut policy = self.changed_policy(changes);
        take_off(&mut policy.limits, used_of(&self.used, None));
        let mut pod = changed(&self.inputs.snapshot.pods[pod], changes);
        // It may be one that has to leave its node.
        pod.spec.node_name = None;
        pod.metadata.deletion_timestamp = None;
        self.bare.pods = vec![pod].into();
        let (node_classes, node_overlays) = self.changed_others(changes);
        let inputs = Inputs {
            snapshot: &self.bare,
            node_pools: &pools,
            node_classes: &node_classes,
            node_overlays: &node_overlays,
            policy,
            ..self.inputs.clone()
        };
        let problem = Problem::beside(&inputs, self.planned);
        let mut engine = provision::engine(&problem, &inputs);
        // For one pod both packings open the same node; this one does not search. What nodes have room for is that of the plan.
        let provisioning = provision(&mut engine, &inputs, Packing::Karpenter);
        if provisioning.purchases.iter().any(|purchase| !purchase.pods.is_empty()) {
            Outcome::Placed(used(&engine))
        } else {
            self.refused(&inputs, &engine, problem.class_of_pod.first().copied().flatten())
        }
    }

    fn cluster(&self, changes: &[Change], pods: &[PodIndex]) -> Outcome {
        let pools = self.changed_pools(changes);
        let mut snapshot = self.inputs.snapshot.clone();
        for pod in pods {
            snapshot.pods[*pod] = changed(&snapshot.pods[*pod], changes);
        }
        let policy = self.changed_policy(changes);
        let (node_classes, node_overlays) = self.changed_others(changes);
        let inputs = Inputs {
            snapshot: &snapshot,
            node_pools: &pools,
            node_classes: &node_classes,
            node_overlays: &node_overlays,
            policy,
            ..self.inputs.clone()
        };
        let problem = Problem::beside(&inputs, self.planned);
        let mut engine = provision::engine(&problem, &inputs);
        let provisioning = provision(&mut engine, &inputs, inputs.policy.packing);
        let backlog = &provisioning.backlog;
        let refused: BTreeSet<PodIndex> = backlog.not_schedulable.iter().map(|(pod, ..)| *pod).collect();
        let left: BTreeSet<PodIndex> = provisioning.unplaced.values().flatten().copied().chain(refused).collect();
        match pods.iter().find(|pod| left.contains(pod)) {
            Some(pod) if pods.iter().all(|pod| left.contains(pod)) => {
                self.refused(&inputs, &engine, problem.class_of_pod[*pod])
            }
            _ => Outcome::Placed(used(&engine)),
        }
    }

    fn changed_pools(&self, changes: &[Change]) -> Vec<NodePool> {
        let mut pools = self.inputs.node_pools.to_vec();
        for pool in &mut pools {
            changes.iter().for_each(|change| change.apply_to_pool(pool));
        }
        pools
    }

    fn changed_others(&self, changes: &[Change]) -> (Vec<EC2NodeClass>, Vec<NodeOverlay>) {
        let mut node_classes = self.inputs.node_classes.to_vec();
        for class in &mut node_classes {
            changes.iter().for_each(|change| change.apply_to_node_class(class));
        }
        let added = changes.iter().filter_map(Change::overlay);
        (node_classes, self.inputs.node_overlays.iter().cloned().chain(added).collect())
    }

    fn changed_policy(&self, changes: &[Change]) -> Policy {
        let mut policy = self.inputs.policy.clone();
        changes.iter().for_each(|change| change.apply_to_limits(&mut policy.limits));
        policy
    }

    /// `inputs`: those that were tried.
    fn refused(&self, inputs: &Inputs<'_>, engine: &Engine<'_, '_>, class: Option<ClassIndex>) -> Outcome {
        let Some(class) = class else { return Outcome::Refused(Vec::new()) };
        let distances = distances(engine, class);
        let refused = distances.iter().map(|distance| Refused {
            pool: distance.pool.to_owned(),
            on_side_of_pool: self.proposals(inputs, engine, class, (distance, Side::Pool)),
            on_side_of_pod: self.proposals(inputs, engine, class, (distance, Side::Pod)),
        });
        Outcome::Refused(refused.collect())
    }

    /// A change for each of the pool's obstacles; `None` as soon as there is one that nothing can be done about.
    fn proposals(
        &self,
        inputs: &Inputs<'_>,
        engine: &Engine<'_, '_>,
        class: ClassIndex,
        (distance, side): (&Distance<'_>, Side),
    ) -> Option<Vec<Change>> {
        let changed = Changed { before: self.inputs, now: inputs };
        let limit_and_use = |scope: &quota::LimitScope, resource: &str| {
            let name = Some(distance.pool).filter(|_| *scope == quota::LimitScope::NodePool);
            let pool = || self.inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == name);
            let limits = match scope {
                quota::LimitScope::NodePool => pool().map(|pool| &pool.spec.limits),
                quota::LimitScope::Cluster => Some(&self.inputs.policy.limits),
                quota::LimitScope::Reservation(_) | quota::LimitScope::EarlyEnds(_) => None,
            };
            let limit = limits.and_then(|limits| limits.get(resource)?.to_string().parse().ok());
            let limit = limit.map_or(0, |limit| Resources::amount(resource, limit));
            (limit, used_of(&self.used, name).map_or(0, |used| used.get(resource)))
        };
        let proposals = distance
            .obstacles
            .iter()
            .map(|refusal| propose((engine, class), distance.pool, refusal, side, &limit_and_use, changed));
        proposals.collect()
    }
}

fn changed(pod: &Pod, changes: &[Change]) -> Pod {
    let mut pod = pod.clone();
    changes.iter().for_each(|change| change.apply_to_pod(&mut pod));
    pod
}

/// What is left of the limits stands for the nodes that the trial does without.
fn take_off(limits: &mut BTreeMap<String, IntOrString>, used: Option<&Resources>) {
    let Some(used) = used else { return };
    for (resource, limit) in limits {
        // A limit that can not be read allows nothing, here as everywhere.
        let amount = limit.to_string().parse().map_or(0, |quantity| Resources::amount(resource, quantity));
        let left = amount.saturating_sub(used.get(resource)).max(0);
        *limit = IntOrString::String(format_amount(resource, left));
    }
}

/// What their status says of subnets and images counts in trials too. What the plan leaves of reservations is not known here.
fn classes_without_reservations(snapshot: &Snapshot) -> Objects<EC2NodeClass> {
    let mut classes: Vec<EC2NodeClass> = snapshot.node_classes.iter().cloned().collect();
    for status in classes.iter_mut().filter_map(|class| class.status.as_mut()) {
        status.capacity_reservations.clear();
    }
    classes.into()
}

/// Everything else that a pod may refer to. Every field is named, so that one that is added is thought of.
fn without_pods_and_nodes(snapshot: &Snapshot) -> Snapshot {
    Snapshot {
        nodes: Objects::default(),
        node_claims: Objects::default(),
        node_pools: Objects::default(),
        node_classes: classes_without_reservations(snapshot),
        node_overlays: snapshot.node_overlays.clone(),
        node_plans: Objects::default(),
        disruption_budgets: Objects::default(),
        pods: Objects::default(),
        resource_claims: snapshot.resource_claims.clone(),
        resource_claim_templates: snapshot.resource_claim_templates.clone(),
        device_classes: snapshot.device_classes.clone(),
        resource_slices: Objects::default(),
        namespaces: snapshot.namespaces.clone(),
        daemon_sets: snapshot.daemon_sets.clone(),
        deployments: Objects::default(),
        replica_sets: snapshot.replica_sets.clone(),
        replication_controllers: snapshot.replication_controllers.clone(),
        stateful_sets: snapshot.stateful_sets.clone(),
        services: snapshot.services.clone(),
        jobs: Objects::default(),
        pod_disruption_budgets: Objects::default(),
        persistent_volumes: snapshot.persistent_volumes.clone(),
        persistent_volume_claims: snapshot.persistent_volume_claims.clone(),
        storage_classes: snapshot.storage_classes.clone(),
        csi_nodes: Objects::default(),
        volume_attachments: Objects::default(),
        limit_ranges: snapshot.limit_ranges.clone(),
        doubts: Doubts::default(),
        // Their pods are among the pods already.
        capacity_buffers: Objects::default(),
        pod_templates: Objects::default(),
        priority_classes: snapshot.priority_classes.clone(),
        runtime_classes: snapshot.runtime_classes.clone(),
        ignored: BTreeMap::new(),
    }
}
