//! Objects that exist from the start, and writing to objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::core::snapshot::Snapshot;

use super::names::{key_of, name_of};
use super::state::World;

impl World {
    /// Adds the objects of a snapshot; those of the same kind and name are replaced. Nodes are taken as they are, without an
    /// instance behind them unless a claim names one.
    pub fn load(&mut self, snapshot: Snapshot) {
        let mut others = snapshot;
        for mut node in std::mem::take(&mut others.nodes) {
            self.complete("Node", &mut node.metadata);
            self.nodes.insert(name_of(&node.metadata), node);
        }
        for mut claim in std::mem::take(&mut others.node_claims) {
            self.complete("NodeClaim", &mut claim.metadata);
            self.machine_of_claim(&claim);
            self.node_claims.insert(name_of(&claim.metadata), claim);
        }
        for mut pool in std::mem::take(&mut others.node_pools) {
            self.complete("NodePool", &mut pool.metadata);
            self.node_pools.insert(name_of(&pool.metadata), pool);
        }
        for mut class in std::mem::take(&mut others.node_classes) {
            self.complete("EC2NodeClass", &mut class.metadata);
            self.node_classes.insert(name_of(&class.metadata), class);
        }
        for mut overlay in std::mem::take(&mut others.node_overlays) {
            self.complete("NodeOverlay", &mut overlay.metadata);
            self.node_overlays.insert(name_of(&overlay.metadata), overlay);
        }
        for mut plan in std::mem::take(&mut others.node_plans) {
            self.complete("NodePlan", &mut plan.metadata);
            self.node_plans.insert(name_of(&plan.metadata), plan);
        }
        for mut buffer in std::mem::take(&mut others.capacity_buffers) {
            self.complete("CapacityBuffer", &mut buffer.metadata);
            self.capacity_buffers.insert(key_of(&buffer.metadata), buffer);
        }
        for mut template in std::mem::take(&mut others.pod_templates) {
            self.complete("PodTemplate", &mut template.metadata);
            self.pod_templates.insert(key_of(&template.metadata), template);
        }
        for mut budget in std::mem::take(&mut others.disruption_budgets) {
            self.complete("DisruptionBudget", &mut budget.metadata);
            self.disruption_budgets.insert(name_of(&budget.metadata), budget);
        }
        for mut pod in std::mem::take(&mut others.pods) {
            if pod.metadata.uid.is_empty() {
                pod.metadata.uid = self.new_uid("Pod", &pod.key());
            }
            pod.metadata.creation_timestamp.get_or_insert_with(|| self.now.to_string());
            self.pods.insert(pod);
        }
        for mut set in std::mem::take(&mut others.daemon_sets) {
            self.complete("DaemonSet", &mut set.metadata);
            self.daemon_sets.insert(key_of(&set.metadata), set);
        }
        for mut deployment in std::mem::take(&mut others.deployments) {
            self.complete("Deployment", &mut deployment.metadata);
            self.deployments.insert(key_of(&deployment.metadata), deployment);
        }
        for mut set in std::mem::take(&mut others.replica_sets) {
            self.complete("ReplicaSet", &mut set.metadata);
            self.replica_sets.insert(key_of(&set.metadata), set);
        }
        for mut budget in std::mem::take(&mut others.pod_disruption_budgets) {
            self.complete("PodDisruptionBudget", &mut budget.metadata);
            self.pod_disruption_budgets.insert(key_of(&budget.metadata), budget);
        }
        self.keep_others(others);
        self.pods.count_for(self.pod_disruption_budgets.shared());
        self.workloads_changed = true;
        self.touch_nodes();
        self.reconcile();
    }

    /// By which pods are completed that templates make. Taken out of what is loaded.
    pub(super) fn keep_what_admission_reads(&mut self, loaded: &mut Snapshot) {
        let kept = &mut self.others;
        kept.limit_ranges.extend(std::mem::take(&mut loaded.limit_ranges));
        kept.priority_classes.extend(std::mem::take(&mut loaded.priority_classes));
        kept.runtime_classes.extend(std::mem::take(&mut loaded.runtime_classes));
    }

    fn keep_others(&mut self, mut others: Snapshot) {
        self.keep_what_admission_reads(&mut others);
        let kept = &mut self.others;
        kept.namespaces.extend(others.namespaces);
        kept.resource_claims.extend(others.resource_claims);
        kept.resource_claim_templates.extend(others.resource_claim_templates);
        kept.device_classes.extend(others.device_classes);
        kept.resource_slices.extend(others.resource_slices);
        kept.stateful_sets.extend(others.stateful_sets);
        kept.jobs.extend(others.jobs);
        kept.replication_controllers.extend(others.replication_controllers);
        kept.services.extend(others.services);
        kept.persistent_volumes.extend(others.persistent_volumes);
        kept.persistent_volume_claims.extend(others.persistent_volume_claims);
        kept.storage_classes.extend(others.storage_classes);
        kept.csi_nodes.extend(others.csi_nodes);
        // Volumes are let go with their pods here: attachments would keep nodes for ever.
        for (kind, count) in others.ignored {
            *kept.ignored.entry(kind).or_default() += count;
        }
    }

    /// What an API server adds to a new object.
    pub(super) fn complete(&mut self, kind: &str, metadata: &mut ObjectMeta) {
        if metadata.uid.is_none() {
            metadata.uid = Some(self.new_uid(kind, &key_of(metadata)));
        }
        metadata.creation_timestamp.get_or_insert(Time(self.now));
        metadata.generation.get_or_insert(1);
        metadata.resource_version.get_or_insert_with(|| self.generation.to_string());
    }

    /// Says how many pods a Deployment should have. `false` when there is no such Deployment.
    pub fn scale(&mut self, deployment: &str, replicas: u32) -> bool {
        let Some(object) = self.deployments.get_mut(deployment) else { return false };
        object.spec.get_or_insert_default().replicas = i32::try_from(replicas).ok();
        self.workloads_changed = true;
        self.touch();
        true
    }
}
