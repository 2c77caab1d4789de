//! Deployments and ReplicaSets: pods are made and removed until there are as many as asked for.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::core::snapshot::Pod;

use super::kubelet::seen_by_its_scheduler;
use super::names::{key_of, name_of, written};
use super::random::Random;
use super::state::World;

/// The label that tells the pods of one template from those of another.
const TEMPLATE_HASH: &str = "pod-template-hash";

impl World {
    pub(super) fn reconcile_workloads(&mut self) {
        let mut owners = self.pods.take_changed_owners();
        if std::mem::take(&mut self.workloads_changed) {
            self.collect_replica_sets();
            for deployment in self.deployments.shared().shared() {
                self.reconcile_deployment(deployment);
            }
            owners.extend(self.replica_sets.values().filter_map(|set| set.metadata.uid.clone()));
            let sets = self.replica_sets.shared();
            let uids = sets.iter().filter_map(|set| Some((set.metadata.uid.clone()?, key_of(&set.metadata))));
            self.replica_sets_by_uid = uids.collect();
        }
        let mut counted = BTreeSet::new();
        for owner in owners {
            self.reconcile_kept(&owner);
            let Some(key) = self.replica_sets_by_uid.get(&owner).cloned() else { continue };
            let Some(set) = self.replica_sets.get(&key).cloned() else { continue };
            self.reconcile_replica_set(&set);
            counted.insert(key);
        }
        self.count_deployments(&counted);
    }

    /// Makes the ReplicaSet of the current template and scales it; older ones go to zero at once.
    fn reconcile_deployment(&mut self, deployment: &Deployment) {
        let Some(spec) = &deployment.spec else { return };
        let namespace = deployment.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let hash = template_hash(&spec.template);
        let name = format!("{}-{hash}", name_of(&deployment.metadata));
        let key = format!("{namespace}/{name}");
        let wanted = spec.replicas.unwrap_or(1);
        if !self.replica_sets.contains_key(&key) {
            if wanted == 0 {
                return;
            }
            let mut set = replica_set_of(deployment, &namespace, &name, &hash);
            self.complete("ReplicaSet", &mut set.metadata);
            self.replica_sets.insert(key.clone(), set);
            self.touch();
        }
        let owner = deployment.metadata.uid.clone();
        let mut changed = false;
        for set in self.replica_sets.values_mut() {
            let owners = set.metadata.owner_references.as_deref().unwrap_or_default();
            if !owners.iter().any(|reference| Some(&reference.uid) == owner.as_ref()) {
                continue;
            }
            let replicas = if key_of(&set.metadata) == key { wanted } else { 0 };
            let spec = set.spec.get_or_insert_default();
            changed |= spec.replicas != Some(replicas);
            spec.replicas = Some(replicas);
        }
        if changed {
            self.touch();
        }
    }

    fn reconcile_replica_set(&mut self, set: &ReplicaSet) {
        let Some(spec) = &set.spec else { return };
        let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let mut alive = self.pods.going_on_of(set.metadata.uid.as_deref().unwrap_or_default());
        while alive.len() < wanted {
            let Some(pod) = self.pod_from(set) else { return };
            alive.push(pod.key());
            self.pods.insert(pod);
            self.touch();
        }
        if alive.len() > wanted {
            alive.sort_by_key(|key| self.pods.get(key).map(removal_rank));
            for key in alive.iter().take(alive.len() - wanted) {
                self.delete_pod(key, None);
            }
        }
    }

    fn pod_from(&mut self, set: &ReplicaSet) -> Option<Pod> {
        let template = set.spec.as_ref()?.template.as_ref()?;
        let set_name = name_of(&set.metadata);
        let uid = self.new_uid("Pod", &set_name);
        let suffix = Random::new(self.settings.seed, "pod", &uid).suffix(5);
        let owner = owner_reference("apps/v1", "ReplicaSet", &set.metadata);
        let namespace = set.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
        self.pod_from_template(template, namespace, format!("{set_name}-{suffix}"), uid, owner)
    }

    /// A pod as a controller creates it, with what admission adds.
    pub(super) fn pod_from_template(
        &self,
        template: &PodTemplateSpec,
        namespace: String,
        name: String,
        uid: String,
        owner: OwnerReference,
    ) -> Option<Pod> {
        let value = serde_json::json!({ "spec": template.spec });
        let mut pod: Pod = serde_json::from_value(value).ok()?;
        let metadata = template.metadata.clone().unwrap_or_default();
        pod.metadata.name = name;
        pod.metadata.namespace = namespace;
        pod.metadata.uid = uid;
        pod.metadata.labels = metadata.labels.unwrap_or_default().into();
        pod.metadata.annotations = metadata.annotations.unwrap_or_default().into();
        pod.metadata.owner_references = vec![owner].into();
        pod.metadata.creation_timestamp = Some(written(self.now));
        pod.status.phase = Some("Pending".to_owned());
        pod.spec.scheduler_name.get_or_insert_with(|| "default-scheduler".to_owned());
        self.admit(&mut pod);
        seen_by_its_scheduler(&mut pod);
        Some(pod)
    }

    /// Writes how many pods there are and run into the status of these ReplicaSets, and of the Deployments behind them.
    fn count_deployments(&mut self, sets: &BTreeSet<String>) {
        let mut owners: BTreeSet<String> = BTreeSet::new();
        for key in sets {
            let Some(uid) = self.replica_sets.get(key).and_then(|set| set.metadata.uid.clone()) else { continue };
            let pods: Vec<String> = self.pods.going_on_of(&uid);
            let is_running =
                |key: &&String| self.pods.get(key).is_some_and(|pod| pod.status.phase.as_deref() == Some("Running"));
            let running = count(pods.iter().filter(is_running).count());
            let status = ReplicaSetStatus {
                replicas: count(pods.len()),
                ready_replicas: Some(running),
                available_replicas: Some(running),
                ..ReplicaSetStatus::default()
            };
            let Some(set) = self.replica_sets.get_mut(key) else { continue };
            set.status = Some(status);
            owners.extend(set.metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone()));
        }
        if owners.is_empty() {
            return;
        }
        let mut by_deployment: BTreeMap<String, (i32, i32)> = BTreeMap::new();
        for set in self.replica_sets.values() {
            for owner in set.metadata.owner_references.iter().flatten().filter(|owner| owners.contains(&owner.uid)) {
                let count = by_deployment.entry(owner.uid.clone()).or_default();
                count.0 += set.status.as_ref().map_or(0, |status| status.replicas);
                count.1 += set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
            }
        }
        for (key, uid) in
            self.deployments.values().map(|it| (key_of(&it.metadata), it.metadata.uid.clone())).collect::<Vec<_>>()
        {
            let Some((pods, running)) = uid.and_then(|uid| by_deployment.get(&uid).copied()) else { continue };
            let Some(deployment) = self.deployments.get_mut(&key) else { continue };
            let status = deployment.status.get_or_insert_default();
            status.replicas = Some(pods);
            status.ready_replicas = Some(running);
            status.available_replicas = Some(running);
            status.unavailable_replicas = Some(pods - running);
        }
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn replica_set_of(deployment: &Deployment, namespace: &str, name: &str, hash: &str) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let mut template = spec.template;
    let mut selector = spec.selector;
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.to_owned());
    selector.match_labels.get_or_insert_default().insert(TEMPLATE_HASH.to_owned(), hash.to_owned());
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels.clone()),
        owner_references: Some(vec![owner_reference("apps/v1", "Deployment", &deployment.metadata)]),
        ..ObjectMeta::default()
    };
    ReplicaSet {
        metadata,
        spec: Some(ReplicaSetSpec {
            replicas: spec.replicas,
            selector,
            template: Some(template),
            min_ready_seconds: spec.min_ready_seconds,
        }),
        status: None,
    }
}

pub(super) fn owner_reference(api_version: &str, kind: &str, owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: name_of(owner),
        uid: owner.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Ten characters that change when the template does.
fn template_hash(template: &PodTemplateSpec) -> String {
    let text = serde_json::to_string(template).unwrap_or_default();
    Random::new(0, "template", &text).suffix(10)
}

/// Which pod goes first when there are too many: unbound, then not running, then the cheapest to delete, then the newest.
pub(super) fn removal_rank(pod: &Pod) -> impl Ord + use<> {
    let cost = pod.metadata.annotations.get("controller.kubernetes.io/pod-deletion-cost");
    (
        pod.spec.node_name.is_some(),
        pod.status.phase.as_deref() == Some("Running"),
        cost.and_then(|text| text.parse::<i32>().ok()).unwrap_or(0),
        std::cmp::Reverse(pod.metadata.creation_timestamp.clone()),
        pod.metadata.name.clone(),
    )
}

impl World {
    /// Removes the ReplicaSets of Deployments that are gone; their pods follow.
    fn collect_replica_sets(&mut self) {
        let deployments: BTreeSet<_> =
            self.deployments.values().filter_map(|object| object.metadata.uid.clone()).collect();
        let mut gone: Vec<String> = Vec::new();
        self.replica_sets.retain(|_, set| {
            let owners = set.metadata.owner_references.as_deref().unwrap_or_default();
            let stays = owners.iter().all(|owner| owner.kind != "Deployment" || deployments.contains(&owner.uid));
            gone.extend(set.metadata.uid.clone().filter(|_| !stays));
            stays
        });
        for uid in gone {
            self.touch();
            for key in self.pods.of(&uid) {
                if self.pods.get(&key).is_some_and(|pod| !pod.is_terminating()) {
                    self.delete_pod(&key, None);
                }
            }
        }
    }

    /// Removes the pods of nodes that are gone.
    pub(super) fn collect_orphans(&mut self) {
        if self.orphans_at_generation == self.nodes_generation {
            return;
        }
        let nodes = self.pods.nodes().filter(|node| !self.nodes.contains_key(node));
        let orphans: Vec<String> = nodes.flat_map(|node| self.pods.on(node)).collect();
        for key in orphans {
            self.remove_pod(&key);
        }
        self.orphans_at_generation = self.nodes_generation;
    }

    /// How many pods run and how many wait for a node, DaemonSet pods left out.
    pub fn pod_counts(&self) -> (usize, usize) {
        let counted = |pod: &&Pod| !pod.is_owned_by("DaemonSet") && !pod.is_terminating() && !pod.is_terminal();
        let (bound, waiting): (Vec<_>, Vec<_>) =
            self.pods.values().filter(counted).partition(|pod| pod.spec.node_name.is_some());
        (bound.len(), waiting.len())
    }
}
