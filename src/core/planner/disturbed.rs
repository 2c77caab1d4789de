//! Whom the removals of a plan disturb: read once from the snapshot, for all that is said of it.

use std::collections::{HashMap, HashSet};

use crate::disrupt::waves::{PodCounts, Replicas, by_workload, replicas};
use crate::lifecycle::drain::is_evicted;
use crate::lifecycle::pod_disruption_budgets::PodDisruptionBudgets;
use crate::plan::{Step, StepKind};
use crate::snapshot::{Pod, Snapshot, Workload};

pub(super) struct Disturbed<'s> {
    /// By namespace and name, pods that removals make move.
    moving: HashMap<(&'s str, &'s str), &'s Pod>,
    /// How many replicas each workload has running.
    pub replicas: Replicas<'s>,
    pub budgets: PodDisruptionBudgets<'s>,
}

impl<'s> Disturbed<'s> {
    /// O(pods).
    pub fn new(steps: &[Step], snapshot: &'s Snapshot) -> Self {
        let removals = steps.iter().filter(|step| step.kind == StepKind::Remove);
        let named: HashSet<(&str, &str)> =
            removals.flat_map(|step| &step.pods).filter_map(|pod| pod.split_once('/')).collect();
        let names = |pod: &'s Pod| (pod.metadata.namespace.as_str(), pod.metadata.name.as_str());
        let moving = snapshot.pods.iter().filter(|pod| !named.is_empty() && named.contains(&names(pod)));
        Self {
            moving: moving.map(|pod| (names(pod), pod)).collect(),
            replicas: replicas(snapshot),
            budgets: PodDisruptionBudgets::new(snapshot),
        }
    }

    /// Pods that a removal makes move.
    pub fn by(&self, step: &Step) -> impl Iterator<Item = &'s Pod> {
        step.pods.iter().filter_map(|pod| self.moving.get(&pod.split_once('/')?).copied())
    }

    /// Those of them that the drain evicts: what tolerates the removal ends with the instance.
    pub fn evicted_by(&self, step: &Step) -> impl Iterator<Item = &'s Pod> {
        self.by(step).filter(|pod| is_evicted(pod))
    }

    /// How many pods of each workload a removal makes move.
    pub fn workloads_by(&self, step: &Step) -> PodCounts<'s> {
        by_workload(self.by(step))
    }

    /// How many replicas of a workload run.
    pub fn replicas_of(&self, workload: &Workload<'s>) -> usize {
        self.replicas.get(workload).copied().unwrap_or(0)
    }
}
