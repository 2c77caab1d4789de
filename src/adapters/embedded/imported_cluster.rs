//! A cluster that was found elsewhere, and goes on here: its nodes have machines behind them, its pods come back when they
//! are evicted, and what was under way goes on.
//!
//! Nobody here rolls out Deployments or counts Jobs. Whoever owned pods is run as it was found: so many pods, and where they were not
//! all alike, so many of each kind. That is also right for owners that the snapshot does not show, and for pods that admission changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Node, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::core::model::requirements::add_other_names;
use crate::core::snapshot::pod::PodStatus;
use crate::core::snapshot::requests::effective_requests;
use crate::core::snapshot::{Objects, Pod, Snapshot};

use super::kubelet::{seen_by_its_scheduler, set_condition};
use super::machines::REGISTRATIONS_AWAITED;
use super::names::{key_of, name_of, written};
use super::random::Random;
use super::state::{Kept, Names, Pattern, Timer, World};
use super::workloads::{owner_reference, removal_rank};

/// A node that was found younger than this is only starting.
const STARTING_MAX: SignedDuration = SignedDuration::from_mins(15);

/// Why a workload can not have another size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    #[error("there is no workload {workload}")]
    Unknown { workload: String },
    #[error("pods of {workload} have volumes of their own, and nobody here makes further ones")]
    OwnVolumes { workload: String },
}

impl World {
    /// Adds everything of a snapshot and lets it go on. The owner of pods need not be in it; a pod without an owner does not
    /// come back.
    pub fn take_over(&mut self, mut snapshot: Snapshot) {
        let deployments = std::mem::take(&mut snapshot.deployments);
        let replica_sets = std::mem::take(&mut snapshot.replica_sets);
        self.keep_what_admission_reads(&mut snapshot);
        self.keep_owners_of(&snapshot);
        self.keep_templates(&snapshot);
        for set in &replica_sets {
            let workload = Self::workload_of(&set.metadata);
            let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
            self.keep_template("ReplicaSet", &set.metadata, workload, template);
        }
        let with_sets: BTreeSet<String> = self.kept.values().map(|kept| kept.workload.clone()).collect();
        for deployment in deployments.iter().filter(|it| !with_sets.contains(&key_of(&it.metadata))) {
            let template = deployment.spec.as_ref().map(|spec| &spec.template);
            self.keep_template("Deployment", &deployment.metadata, key_of(&deployment.metadata), template);
        }
        let nodes = by_provider_id(&snapshot.nodes);
        let coming = coming(&snapshot.node_claims);
        for claim in &mut snapshot.node_claims {
            complete_labels(claim, &nodes);
            carry_on(claim, &nodes, &coming);
            hold(&mut claim.metadata);
        }
        let ids = snapshot.node_claims.iter().filter_map(|claim| claim.status.as_ref()?.provider_id.clone());
        let ids: BTreeSet<String> = ids.collect();
        let id = |node: &Node| node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
        for node in snapshot.nodes.iter_mut().filter(|node| id(node).is_some_and(|id| ids.contains(&id))) {
            hold(&mut node.metadata);
        }
        for node in &mut snapshot.nodes {
            // The cloud's controllers keep these on every node. Snapshots that were written by hand do not have them.
            node.metadata.labels.as_mut().into_iter().for_each(add_other_names);
        }
        self.load(snapshot);
        self.others.deployments.extend(deployments);
        self.others.replica_sets.extend(replica_sets);
        self.go_on();
    }

    /// Owners by their pods.
    fn keep_owners_of(&mut self, snapshot: &Snapshot) {
        for pod in snapshot.pods.shared() {
            let Some(owner) = pod.controller().filter(|owner| !matches!(owner.kind.as_str(), "DaemonSet" | "Node"))
            else {
                continue;
            };
            let is_fixed = owner.kind == "StatefulSet";
            if pod.is_terminal() || (pod.is_terminating() && !is_fixed) {
                continue;
            }
            let kept = self.kept.entry(owner.uid.clone()).or_insert_with(|| Kept {
                workload: workload_name(pod, owner),
                patterns: vec![Pattern { pod: pod.clone(), found: 0 }],
                names: if is_fixed {
                    Names::Fixed(BTreeMap::new())
                } else {
                    Names::Generated { prefix: owner.name.clone(), replicas: 0 }
                },
            });
            match &mut kept.names {
                Names::Generated { replicas, .. } => {
                    *replicas += 1;
                    kept.see(pod);
                }
                Names::Fixed(pods) => {
                    pods.insert(pod.key(), pod.clone());
                }
            }
        }
    }

    /// Owners without pods, for those who want some.
    fn keep_templates(&mut self, snapshot: &Snapshot) {
        for set in &snapshot.stateful_sets {
            let template = set.spec.as_ref().map(|spec| &spec.template);
            self.keep_template("StatefulSet", &set.metadata, key_of(&set.metadata), template);
        }
    }

    fn keep_template(
        &mut self,
        kind: &str,
        metadata: &ObjectMeta,
        workload: String,
        template: Option<&PodTemplateSpec>,
    ) {
        let uid = metadata.uid.clone().unwrap_or_else(|| format!("{kind} {}", key_of(metadata)));
        if self.kept.contains_key(&uid) {
            return;
        }
        let named = ObjectMeta { uid: Some(uid.clone()), ..metadata.clone() };
        let owner = owner_reference("apps/v1", kind, &named);
        let namespace = metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let pattern = template
            .and_then(|template| self.pod_from_template(template, namespace, name_of(metadata), uid.clone(), owner));
        let Some(pattern) = pattern else { return };
        let names = match kind {
            "StatefulSet" => Names::Fixed(BTreeMap::new()),
            _ => Names::Generated { prefix: name_of(metadata), replicas: 0 },
        };
        let patterns = vec![Pattern { pod: Arc::new(pattern), found: 0 }];
        self.kept.insert(uid, Kept { workload, patterns, names });
    }

    /// The Deployment behind a ReplicaSet, else the set itself.
    fn workload_of(metadata: &ObjectMeta) -> String {
        let owners = metadata.owner_references.iter().flatten();
        let deployment = owners.filter(|owner| owner.kind == "Deployment").map(|owner| owner.name.clone()).next();
        let namespace = metadata.namespace.as_deref().unwrap_or("default");
        format!("{namespace}/{}", deployment.unwrap_or_else(|| name_of(metadata)))
    }

    /// What has kept a node from starting for longer keeps it still.
    fn is_young(&self, node: &Node) -> bool {
        let created = node.metadata.creation_timestamp.as_ref();
        created.is_some_and(|created| self.now.duration_since(created.0) < STARTING_MAX)
    }

    /// Starts what was starting and ends what was ending.
    fn go_on(&mut self) {
        let nodes = self.nodes.shared();
        let nodes = by_provider_id(&nodes);
        for claim in &self.node_claims.shared() {
            let Some(id) = claim.status.as_ref().and_then(|status| status.provider_id.clone()) else { continue };
            let Some(node) = nodes.get(id.as_str()) else {
                let node_name = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
                let is_there = node_name.is_some_and(|name| self.nodes.contains_key(name));
                // Whose node was there and is gone has ended: the cloud's controllers remove no other nodes.
                match claim.is_true("Registered") && !is_there {
                    true => self.machine_ends(&id),
                    false => self.boot(&id),
                }
                continue;
            };
            self.name_machine(&id, name_of(&node.metadata));
            if claim.is_true("Initialized") {
                continue;
            }
            if !is_ready(node) {
                self.get_ready(&id);
            } else if self.is_young(node) {
                self.start_up_later(&id, REGISTRATIONS_AWAITED);
            }
        }
        for pod in &self.pods.all() {
            let (key, uid) = (pod.key(), pod.metadata.uid.clone());
            if pod.is_terminating() && pod.spec.node_name.is_some() {
                self.after_seconds(1, Timer::PodEnds { key, uid });
            } else if pod.is_terminating() {
                self.remove_pod(&key);
            } else if pod.spec.node_name.is_some() && pod.status.phase.as_deref() == Some("Pending") {
                self.after_seconds(1, Timer::PodStarts { key, uid });
            } else if pod.status.phase.as_deref() == Some("Running") && pod.status.conditions.is_empty() {
                // A snapshot written by hand: nothing speaks against its health.
                self.pods.change(&key, |pod| set_condition(pod, "Ready", "True", None));
            }
        }
        self.touch_nodes();
        self.reconcile();
    }

    /// Makes and removes pods until an owner has those that it should.
    pub(super) fn reconcile_kept(&mut self, owner: &str) {
        let Some(kept) = self.kept.get(owner).cloned() else { return };
        match &kept.names {
            Names::Generated { prefix, replicas } => {
                let mut alive = self.pods.going_on_of(owner);
                let missing = replicas.saturating_sub(alive.len());
                for pattern in kept.missing(alive.iter().filter_map(|key| self.pods.get(key)), missing) {
                    let uid = self.new_uid("Pod", prefix);
                    let suffix = Random::new(self.settings.seed, "pod", &uid).suffix(5);
                    self.make_like(pattern, format!("{prefix}-{suffix}"), uid);
                }
                if alive.len() > *replicas {
                    alive.sort_by_key(|key| self.pods.get(key).map(removal_rank));
                    for key in alive.iter().take(alive.len() - replicas) {
                        self.delete_pod(key, None);
                    }
                }
            }
            Names::Fixed(pods) => {
                for (key, pattern) in pods {
                    if !self.pods.contains_key(key) {
                        let uid = self.new_uid("Pod", key);
                        self.make_like(pattern, pattern.metadata.name.clone(), uid);
                    }
                }
                for key in self.pods.going_on_of(owner) {
                    if !pods.contains_key(&key) {
                        self.delete_pod(&key, None);
                    }
                }
            }
        }
    }

    fn make_like(&mut self, pattern: &Pod, name: String, uid: String) {
        let mut pod = pattern.clone();
        pod.metadata.name = name;
        pod.metadata.uid = uid;
        pod.metadata.creation_timestamp = Some(written(self.now));
        pod.metadata.deletion_timestamp = None;
        pod.spec.node_name = None;
        pod.status = PodStatus {
            phase: Some("Pending".to_owned()),
            // Devices that are claimed by the pod's own claims stay claimed by the pod that takes its place.
            resource_claim_statuses: pattern.status.resource_claim_statuses.clone(),
            ..PodStatus::default()
        };
        seen_by_its_scheduler(&mut pod);
        self.pods.insert(pod);
        self.touch();
    }

    /// Workloads that were found, as `namespace/name`.
    pub fn workloads(&self) -> BTreeSet<String> {
        self.kept.values().map(|kept| kept.workload.clone()).collect()
    }

    /// Gives a workload that was found another size. Where it has pods of several templates, those of the one with the most
    /// pods stay.
    pub fn resize(&mut self, workload: &str, replicas: usize) -> Result<(), ScaleError> {
        let of_workload = |(uid, kept): (&String, &Kept)| (kept.workload == workload).then(|| uid.clone());
        let mut owners: Vec<String> = self.kept.iter().filter_map(of_workload).collect();
        owners.sort_by_key(|uid| std::cmp::Reverse(self.kept.get(uid).map_or(0, Kept::size)));
        if owners.is_empty() {
            return Err(ScaleError::Unknown { workload: workload.to_owned() });
        }
        for (position, owner) in owners.iter().enumerate() {
            let wanted = if position == 0 { replicas } else { 0 };
            if let Some(kept) = self.kept.get_mut(owner) {
                kept.resize(wanted)?;
            }
            self.reconcile_kept(owner);
        }
        self.touch();
        self.reconcile();
        Ok(())
    }
}

impl Kept {
    fn see(&mut self, pod: &Arc<Pod>) {
        match self.patterns.iter_mut().find(|pattern| is_alike(&pattern.pod, pod)) {
            Some(pattern) => pattern.found += 1,
            None => self.patterns.push(Pattern { pod: pod.clone(), found: 1 }),
        }
    }

    /// What so many new pods are like beside those that are there: each as that of which most are missing.
    /// O((pods there + missing) x patterns) where there are several.
    fn missing<'a>(&self, there: impl Iterator<Item = &'a Pod>, missing: usize) -> Vec<&Pod> {
        if let [only] = self.patterns.as_slice() {
            return vec![&only.pod; missing];
        }
        let mut there_of = vec![0_usize; self.patterns.len()];
        for pod in there {
            if let Some(pattern) = self.patterns.iter().position(|pattern| is_alike(&pattern.pod, pod)) {
                there_of[pattern] += 1;
            }
        }
        let mut like = Vec::new();
        for _ in 0..missing {
            // Of equals the first, for which the others have to be less.
            let lack = |pattern: &usize| self.patterns[*pattern].found.cast_signed() - there_of[*pattern].cast_signed();
            let Some(most) = (0..self.patterns.len()).rev().max_by_key(lack) else { break };
            there_of[most] += 1;
            like.push(self.patterns[most].pod.as_ref());
        }
        like
    }

    fn size(&self) -> usize {
        match &self.names {
            Names::Generated { replicas, .. } => *replicas,
            Names::Fixed(pods) => pods.len(),
        }
    }

    fn resize(&mut self, wanted: usize) -> Result<(), ScaleError> {
        let pods = match &mut self.names {
            Names::Generated { replicas, .. } => {
                *replicas = wanted;
                return Ok(());
            }
            Names::Fixed(pods) => pods,
        };
        let has_volumes = |pod: &Pod| pod.spec.volumes.iter().any(|volume| volume.persistent_volume_claim.is_some());
        let Some(pattern) = self.patterns.first().map(|pattern| &pattern.pod) else { return Ok(()) };
        if wanted > pods.len() && (has_volumes(pattern) || !pattern.spec.resource_claims.is_empty()) {
            return Err(ScaleError::OwnVolumes { workload: self.workload.clone() });
        }
        let name = self.workload.split_once('/').map_or(self.workload.as_str(), |(_, name)| name).to_owned();
        // The highest numbers go first, and come last.
        let number = |key: &String| key.rsplit_once('-').and_then(|(_, text)| text.parse::<usize>().ok()).unwrap_or(0);
        while pods.len() > wanted {
            let Some(last) = pods.keys().max_by_key(|key| number(key)).cloned() else { break };
            pods.remove(&last);
        }
        for ordinal in 0_usize.. {
            if pods.len() >= wanted {
                break;
            }
            let mut pod = pattern.as_ref().clone();
            pod.metadata.name = format!("{name}-{ordinal}");
            pods.entry(pod.key()).or_insert_with(|| Arc::new(pod));
        }
        Ok(())
    }
}

/// Whether kube-scheduler tells two pods of one owner apart in nothing.
fn is_alike(one: &Pod, two: &Pod) -> bool {
    let asks = |pod: &Pod| effective_requests(pod).ok();
    let (first, second) = (&one.spec, &two.spec);
    first.node_selector == second.node_selector
        && first.affinity == second.affinity
        && first.tolerations == second.tolerations
        && first.topology_spread_constraints == second.topology_spread_constraints
        && first.priority == second.priority
        && one.metadata.labels == two.metadata.labels
        && asks(one) == asks(two)
}

/// `namespace/name` of the workload by its pod: a ReplicaSet of a Deployment has a hash behind its name, which its pods carry.
fn workload_name(pod: &Pod, owner: &OwnerReference) -> String {
    let hash = pod.metadata.labels.get("pod-template-hash").filter(|_| owner.kind == "ReplicaSet");
    let name = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-')).unwrap_or(&owner.name);
    format!("{}/{name}", pod.metadata.namespace)
}

/// Nodes that are managed do not go before they are drained. Snapshots that were written by hand do not say so.
fn hold(metadata: &mut ObjectMeta) {
    let finalizers = metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == keys::TERMINATION_FINALIZER) {
        finalizers.push(keys::TERMINATION_FINALIZER.to_owned());
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn by_provider_id(nodes: &Objects<Node>) -> BTreeMap<&str, &Node> {
    nodes.iter().filter_map(|node| Some((node.spec.as_ref()?.provider_id.as_deref()?, node))).collect()
}

/// The names of claims whose nodes are on their way.
fn coming(claims: &Objects<NodeClaim>) -> String {
    let coming = claims.iter().filter(|it| it.metadata.deletion_timestamp.is_none() && !it.is_true("Initialized"));
    coming.filter_map(|claim| claim.metadata.name.clone()).collect::<Vec<_>>().join(",")
}

/// A node that Karpenter tainted goes when its replacement is up. Which one that is stands nowhere, so it waits for all that are on their way.
fn carry_on(claim: &mut NodeClaim, nodes: &BTreeMap<&str, &Node>, coming: &str) {
    let node = claim.status.as_ref().and_then(|status| nodes.get(status.provider_id.as_deref()?));
    let mut taints = node.and_then(|node| node.spec.as_ref()?.taints.as_ref()).into_iter().flatten();
    let is_tainted = taints.any(|taint| taint.key == keys::DISRUPTED_TAINT);
    if is_tainted && claim.metadata.deletion_timestamp.is_none() {
        let annotations = claim.metadata.annotations.get_or_insert_default();
        annotations.entry(keys::REPLACED_BY.to_owned()).or_insert_with(|| coming.to_owned());
    }
}

/// What a claim lacks of the labels that its price is found by is on its node.
fn complete_labels(claim: &mut NodeClaim, nodes: &BTreeMap<&str, &Node>) {
    let lacks = |key: &str| claim.metadata.labels.as_ref().is_none_or(|labels| !labels.contains_key(key));
    let wanted = [keys::INSTANCE_TYPE, keys::ZONE, keys::CAPACITY_TYPE, keys::NODE_POOL];
    let missing: Vec<&str> = wanted.into_iter().filter(|key| lacks(key)).collect();
    let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
    let Some(labels) = id.and_then(|id| nodes.get(id)?.metadata.labels.as_ref()) else { return };
    for key in missing {
        if let Some(value) = labels.get(key) {
            claim.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.clone());
        }
    }
}
