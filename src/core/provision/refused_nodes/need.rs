//! Which pods are the same need: those that kube-scheduler would send to the same nodes, for the same workload.
//!
//! A pod that is made anew has another name, a new version of a Deployment another ReplicaSet, and each run of a CronJob another Job:
//! none of them begins from the start what the pods before could not have. Pods of Jobs, of what runs once like them, and of nobody
//! are told apart by what they ask for alone.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Affinity, Toleration, TopologySpreadConstraint};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::model::{IndexVec, hexadecimal};
use crate::scheduler::ClassIndex;
use crate::scheduler::host_ports::host_ports;
use crate::snapshot::requests::effective_requests;
use crate::snapshot::{Pod, PodIndex, Snapshot};

/// Characters of a hash that tell the needs of one cluster apart.
const HASH_CHARACTERS: usize = 16;
/// The label by which a Deployment tells its ReplicaSets apart; their names end with its value.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Needs of the pods of a snapshot, each found once.
pub struct Needs<'a> {
    snapshot: &'a Snapshot,
    replica_sets: HashMap<(&'a str, &'a str), &'a ReplicaSet>,
    class_of_pod: &'a IndexVec<PodIndex, Option<ClassIndex>>,
    /// By class, and kind and name of the owner, for pods without volumes and devices of their own.
    known: HashMap<(ClassIndex, &'a str, &'a str), String>,
}

/// All that kube-scheduler looks at, but the labels: some are different for each run.
#[derive(Serialize)]
struct Content<'p> {
    namespace: &'p str,
    owner: Option<&'p str>,
    scheduler: Option<&'p str>,
    node_selector: &'p BTreeMap<String, String>,
    affinity: Option<&'p Affinity>,
    tolerations: &'p [Toleration],
    spread: &'p [TopologySpreadConstraint],
    requests: Vec<(String, i64)>,
    host_ports: Vec<(i32, String, String)>,
    claims: Vec<&'p str>,
    volumes: Vec<&'p serde_json::Value>,
    devices: Vec<&'p str>,
}

impl<'a> Needs<'a> {
    pub fn new(snapshot: &'a Snapshot, class_of_pod: &'a IndexVec<PodIndex, Option<ClassIndex>>) -> Self {
        let name = |set: &'a ReplicaSet| {
            Some((set.metadata.namespace.as_deref().unwrap_or("default"), set.metadata.name.as_deref()?))
        };
        let replica_sets = snapshot.replica_sets.iter().filter_map(|set| Some((name(set)?, set)));
        Self { snapshot, replica_sets: replica_sets.collect(), class_of_pod, known: HashMap::new() }
    }

    /// The need of the pod at this position; `None` for one that can not be planned for.
    pub fn of(&mut self, position: PodIndex) -> Option<String> {
        let class = self.class_of_pod.get(position).copied().flatten()?;
        let pod = &self.snapshot.pods[position];
        let has_own = !(pod.spec.volumes.is_empty() && pod.spec.resource_claims.is_empty());
        let owner = pod.controller();
        let key = (class, owner.map_or("", |it| it.kind.as_str()), owner.map_or("", |it| it.name.as_str()));
        if let Some(known) = self.known.get(&key).filter(|_| !has_own) {
            return Some(known.clone());
        }
        let need = need_of(pod, self.owner_of(pod).as_deref());
        if !has_own {
            self.known.insert(key, need.clone());
        }
        Some(need)
    }

    /// What makes the pod again, where that stays when the pod goes.
    fn owner_of(&self, pod: &Pod) -> Option<String> {
        let owner = pod.controller()?;
        match owner.kind.as_str() {
            "ReplicaSet" => {
                let set = self.replica_sets.get(&(pod.metadata.namespace.as_str(), owner.name.as_str()));
                let of_set = set.and_then(|set| set.metadata.owner_references.as_deref()?.first());
                let hash = pod.metadata.labels.get(TEMPLATE_HASH);
                let without_hash = hash
                    .and_then(|hash| owner.name.strip_suffix(hash.as_str()))
                    .and_then(|name| name.strip_suffix('-'));
                let name = of_set.map(|owner| owner.name.as_str()).or(without_hash).unwrap_or(&owner.name);
                Some(format!("ReplicaSet/{name}"))
            }
            kind @ ("StatefulSet" | "ReplicationController") => Some(format!("{kind}/{}", owner.name)),
            _ => None,
        }
    }
}

fn need_of(pod: &Pod, owner: Option<&str>) -> String {
    let spec = &pod.spec;
    let claims = spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let ephemeral = spec.volumes.iter().filter_map(|volume| volume.ephemeral.as_ref());
    let devices = spec.resource_claims.iter().map(|claim| {
        let named = claim.resource_claim_name.as_deref().or(claim.resource_claim_template_name.as_deref());
        named.unwrap_or(&claim.name)
    });
    let content = Content {
        namespace: &pod.metadata.namespace,
        owner,
        scheduler: spec.scheduler_name.as_deref(),
        node_selector: &spec.node_selector,
        affinity: spec.affinity.as_deref(),
        tolerations: &spec.tolerations,
        spread: &spec.topology_spread_constraints,
        requests: effective_requests(pod)
            .unwrap_or_default()
            .iter()
            .map(|(name, amount)| (name.to_owned(), amount))
            .collect(),
        host_ports: host_ports(pod).into_iter().map(|port| (port.port, port.protocol, port.address)).collect(),
        claims: claims.map(|source| source.claim_name.as_str()).collect(),
        volumes: ephemeral.filter_map(|source| source.volume_claim_template.as_ref()).collect(),
        devices: devices.collect(),
    };
    // Plain data; it always has a JSON form.
    let digest = Sha256::digest(serde_json::to_vec(&content).unwrap_or_default());
    hexadecimal(digest).chars().take(HASH_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildPod, Merge, pod};

    /// Needs of pods of one class.
    fn needs(pods: Vec<Pod>) -> Vec<String> {
        let classes: IndexVec<PodIndex, Option<ClassIndex>> = (0..pods.len()).map(|class| Some(class.into())).collect();
        let snapshot = Snapshot { pods: pods.into(), ..Snapshot::default() };
        let mut needs = Needs::new(&snapshot, &classes);
        classes.indices().map(|position| needs.of(position).unwrap()).collect()
    }

    fn replica(name: &str, hash: &str) -> Pod {
        pod(name).cpu("1").label("pod-template-hash", hash).owned_by("ReplicaSet", &format!("web-{hash}"))
    }

    #[test]
    fn pods_in_the_place_of_others_are_the_same_need() {
        let image = replica("b", "2").merge(json!({ "spec": { "containers": [
            { "name": "main", "image": "v2", "resources": { "requests": { "cpu": "1" } } },
        ] } }));
        let replicas = needs(vec![replica("a", "1"), image]);
        assert_eq!(replicas[0], replicas[1], "another version of the Deployment");
        let job = |name: &str| pod(name).cpu("1").label("run", name).owned_by("Job", name);
        let runs = needs(vec![job("night-1"), job("night-2"), pod("alone").cpu("1"), pod("other").cpu("1")]);
        assert!(runs.iter().all(|need| *need == runs[0]), "{runs:?}");
    }

    #[test]
    fn what_asks_for_something_else_is_another_need() {
        let with_claim = |claim: &str| {
            let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": claim } });
            replica("a", "1").merge(json!({ "spec": { "volumes": [volume] } }))
        };
        let pods = vec![
            replica("a", "1"),
            replica("a", "1").cpu("2"),
            replica("a", "1").node_selector("disk", "fast"),
            replica("a", "1").namespace("other"),
            pod("a").cpu("1").owned_by("ReplicaSet", "api-1"),
            pod("a").cpu("1"),
            with_claim("data-0"),
            with_claim("data-1"),
            replica("a", "1").merge(json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } })),
        ];
        let mut needs = needs(pods);
        let count = needs.len();
        needs.sort();
        needs.dedup();
        assert_eq!(needs.len(), count);
    }
}
