//! What the volumes of a pod demand of its node: where they are, and how many may be attached.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimSpec, TopologySelectorTerm,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubernetesQuantity;

use crate::model::requirements::normalized;
use crate::model::{Quantity, Requirement, Requirements};
use crate::snapshot::pod::EphemeralSource;
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::keys;
use cutlist_api::node_pool::Operator;
use cutlist_api::settings::Packing;

use crate::snapshot::selector;

/// The most places that the volumes of one pod may be in, any of which will do. A pod with more is not planned for, and said to be pending for that.
pub const ALTERNATIVES_MAX: usize = 64;

/// Set on a claim when it and its volume know each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Set by kube-scheduler on a claim: a volume is being made for this node.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Of classes whose volumes people make.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Attaches volumes of EBS.
pub const EBS_DRIVER: &str = "ebs.csi.aws.com";

/// What terms call the name of a node; among its labels it has no other name.
pub const NODE_NAME: &str = "metadata.name";

/// A volume that takes one attachment of its driver on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attachment {
    pub driver: String,
    /// The claim or volume, so that two pods that share it count once.
    pub volume: String,
}

/// A volume that is gone with the node of the pod that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    pub volume: String,
    /// Whether the pod can run nowhere else.
    pub holds_pod: bool,
}

/// What the volumes of one pod come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeDemand {
    /// Node requirements, any of which will do; empty when the volumes do not restrict the node.
    pub alternatives: Vec<Requirements>,
    pub attachments: Vec<Attachment>,
    /// Claims that other pods use as well, and that all of them can use on one node alone.
    pub shared_claims: Vec<String>,
}

impl VolumeDemand {
    /// How many volumes of EBS the pod alone uses. Those that it shares would be counted once for each pod.
    pub fn own_ebs_volumes(&self) -> i64 {
        let volumes = self.attachments.iter().filter(|attachment| attachment.driver == EBS_DRIVER);
        let volumes: BTreeSet<&Attachment> = volumes.collect();
        i64::try_from(volumes.len().saturating_sub(self.shared_claims.len())).unwrap_or(i64::MAX)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    #[error("PersistentVolumeClaim {0} does not exist")]
    MissingClaim(String),
    #[error("PersistentVolumeClaim {0} is being deleted")]
    DeletingClaim(String),
    #[error("PersistentVolumeClaim {0} has lost its volume")]
    LostClaim(String),
    #[error("PersistentVolume {0} does not exist")]
    MissingVolume(String),
    #[error("PersistentVolume {volume} is a disk of node {node}, which is not there")]
    NodeGone { volume: String, node: String },
    #[error("PersistentVolumeClaim {0} is not yet bound to the volume that it names")]
    Binding(String),
    #[error("no PersistentVolume is free for PersistentVolumeClaim {0}, and its StorageClass makes none")]
    NoVolume(String),
    #[error("StorageClass {class} of PersistentVolumeClaim {claim} does not exist")]
    MissingClass { claim: String, class: String },
    #[error("PersistentVolumeClaim {0} is not bound and names no StorageClass")]
    NoClass(String),
    #[error("PersistentVolumeClaim {0} waits for its volume: the StorageClass binds at once, not on first use")]
    ImmediateUnbound(String),
    #[error(
        "PersistentVolume {0} can be reached from no node: each term of its node affinity is empty, which matches none"
    )]
    Unreachable(String),
    #[error("StorageClass {0} makes volumes nowhere: each of its allowedTopologies is empty, which matches no node")]
    NoTopology(String),
    #[error(
        "the volumes allow more than {ALTERNATIVES_MAX} combinations of topology, which is the most that is planned for"
    )]
    TooManyAlternatives,
    #[error("the volumes can not be reached from any one node: some want {key} {some}, another {other}")]
    Contradiction { key: String, some: String, other: String },
}

/// Claims, volumes and classes by name, for lookups.
pub struct VolumeIndex<'a> {
    claims: BTreeMap<(&'a str, &'a str), &'a PersistentVolumeClaim>,
    volumes: BTreeMap<&'a str, &'a PersistentVolume>,
    classes: BTreeMap<&'a str, &'a StorageClass>,
    default_class: Option<&'a str>,
    /// By namespace and name of the claim that a volume is for.
    claimed: BTreeMap<(&'a str, &'a str), &'a PersistentVolume>,
    /// Host names of nodes that stay, by name of the node.
    host_names: BTreeMap<&'a str, &'a str>,
    /// Host names of all nodes.
    all_host_names: BTreeMap<&'a str, &'a str>,
    /// Claims of volumes of one node at a time that several pods use.
    shared: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> VolumeIndex<'a> {
    pub fn new(snapshot: &'a Snapshot, packing: Packing) -> Self {
        let claims = snapshot
            .persistent_volume_claims
            .iter()
            .filter_map(|claim| Some(((claim.metadata.namespace.as_deref()?, claim.metadata.name.as_deref()?), claim)));
        let volumes =
            snapshot.persistent_volumes.iter().filter_map(|volume| Some((volume.metadata.name.as_deref()?, volume)));
        let classes =
            snapshot.storage_classes.iter().filter_map(|class| Some((class.metadata.name.as_deref()?, class)));
        // Of several default classes Kubernetes takes the newest.
        let default_class = snapshot
            .storage_classes
            .iter()
            .filter(|class| {
                let annotations = class.metadata.annotations.as_ref();
                annotations
                    .and_then(|map| map.get("storageclass.kubernetes.io/is-default-class"))
                    .is_some_and(|value| value == "true")
            })
            .max_by_key(|class| class.metadata.creation_timestamp.as_ref().map(|time| time.0))
            .and_then(|class| class.metadata.name.as_deref());
        let host_name = |node: &'a Node| {
            let labels = node.metadata.labels.as_ref()?;
            Some((node.metadata.name.as_deref()?, labels.get(keys::HOSTNAME)?.as_str()))
        };
        let staying = snapshot.nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_none());
        let host_names = staying.filter_map(host_name);
        let claimed = snapshot.persistent_volumes.iter().filter_map(|volume| {
            let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
            Some(((claim.namespace.as_deref()?, claim.name.as_deref()?), volume))
        });
        Self {
            claimed: claimed.collect(),
            all_host_names: snapshot.nodes.iter().filter_map(host_name).collect(),
            claims: claims.collect(),
            volumes: volumes.collect(),
            classes: classes.collect(),
            default_class,
            host_names: host_names.collect(),
            // The reference lets them go apart: those that come second wait for the volume, nobody knows how long.
            shared: if packing == Packing::Cheapest { shared_by_pods(snapshot) } else { BTreeSet::new() },
        }
    }

    /// What this pod's volumes demand. O(volumes x alternatives).
    pub fn demand(&self, pod: &Pod) -> Result<VolumeDemand, VolumeError> {
        let mut demand = VolumeDemand::default();
        for volume in &pod.spec.volumes {
            let (alternatives, attachment) = if let Some(source) = &volume.persistent_volume_claim {
                let of_claim = self.claim_demand(pod, &source.claim_name)?;
                demand.shared_claims.extend(self.shared_claim(pod, &source.claim_name, of_claim.1.as_ref()));
                of_claim
            } else if let Some(ephemeral) = &volume.ephemeral {
                self.ephemeral_demand(pod, &volume.name, ephemeral)?
            } else {
                continue;
            };
            demand.attachments.extend(attachment);
            demand.alternatives = combine(demand.alternatives, alternatives)?;
        }
        demand.attachments.sort();
        demand.shared_claims.sort();
        demand.shared_claims.dedup();
        Ok(demand)
    }

    /// The claim, where other pods use it too. Volumes of other drivers than this one may have no attachment that is of one node.
    fn shared_claim(&self, pod: &Pod, claim: &str, attachment: Option<&Attachment>) -> Option<String> {
        let is_of_one_node = attachment.is_some_and(|attachment| attachment.driver == EBS_DRIVER);
        let is_shared = self.shared.contains(&(pod.metadata.namespace.as_str(), claim));
        (is_of_one_node && is_shared).then(|| claim.to_owned())
    }

    fn ephemeral_demand(
        &self,
        pod: &Pod,
        volume: &str,
        source: &EphemeralSource,
    ) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeError> {
        let name = format!("{}-{volume}", pod.metadata.name);
        let template = source.volume_claim_template.as_ref().and_then(|template| template.get("spec"));
        let spec = template.and_then(|spec| serde_json::from_value(spec.clone()).ok()).unwrap_or_default();
        let is_there = self.claims.contains_key(&(pod.metadata.namespace.as_str(), name.as_str()));
        if !is_there {
            return self.class_demand(&name, &pod.metadata.namespace, &spec);
        }
        let (alternatives, attachment) = self.claim_demand(pod, &name)?;
        if pod.spec.node_name.is_none() {
            return Ok((alternatives, attachment));
        }
        // The claim of a pod that runs goes with it: whoever comes in its place gets a new one.
        let anew = self.class_demand(&name, &pod.metadata.namespace, &spec);
        Ok((anew.map(|(alternatives, _)| alternatives).unwrap_or_default(), attachment))
    }

    fn claim_demand(&self, pod: &Pod, name: &str) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeError> {
        let namespace = pod.metadata.namespace.as_str();
        let claim = self.claims.get(&(namespace, name)).ok_or_else(|| VolumeError::MissingClaim(name.to_owned()))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(VolumeError::DeletingClaim(name.to_owned()));
        }
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase == Some("Lost") {
            return Err(VolumeError::LostClaim(name.to_owned()));
        }
        let no_spec = PersistentVolumeClaimSpec::default();
        let spec = claim.spec.as_ref().unwrap_or(&no_spec);
        let annotation = |key: &str| claim.metadata.annotations.as_ref()?.get(key).map(String::as_str);
        if let Some(volume) = spec.volume_name.as_deref().filter(|volume| !volume.is_empty()) {
            if annotation(BIND_COMPLETED).is_none() && phase != Some("Bound") {
                return Err(VolumeError::Binding(name.to_owned()));
            }
            return self.bound_demand(volume, pod.spec.node_name.is_none());
        }
        let (mut alternatives, attachment) = self.class_demand(name, namespace, spec)?;
        // While the node stays, no other will do; of one that is gone the provisioner takes the annotation away.
        if let Some(host_name) = annotation(SELECTED_NODE).and_then(|node| self.host_names.get(node)) {
            alternatives = vec![Requirements::from_labels(&BTreeMap::from([(
                keys::HOSTNAME.to_owned(),
                (*host_name).to_owned(),
            )]))];
        }
        Ok((alternatives, attachment))
    }

    /// `waits`: the pod is not on a node yet.
    fn bound_demand(&self, name: &str, waits: bool) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeError> {
        let volume = self.volumes.get(name).ok_or_else(|| VolumeError::MissingVolume(name.to_owned()))?;
        let alternatives = reachable_from(volume)?;
        let Some(spec) = &volume.spec else { return Ok((alternatives, None)) };
        if waits {
            self.must_be_there(name, &alternatives)?;
        }
        let in_tree = spec.aws_elastic_block_store.is_some().then_some(EBS_DRIVER);
        let driver = spec.csi.as_ref().map(|csi| csi.driver.as_str()).or(in_tree);
        Ok((alternatives, driver.map(|driver| Attachment { driver: driver.to_owned(), volume: name.to_owned() })))
    }

    /// Whether one of the nodes is there that a disk can be reached from.
    fn must_be_there(&self, volume: &str, alternatives: &[Requirements]) -> Result<(), VolumeError> {
        let mut gone = None;
        for requirements in alternatives {
            let Some(wanted) = requirements.get(keys::HOSTNAME).and_then(Requirement::values) else { return Ok(()) };
            if self.host_names.values().any(|there| wanted.contains(*there)) {
                return Ok(());
            }
            gone = gone.or(wanted.first());
        }
        gone.map_or(Ok(()), |node| Err(VolumeError::NodeGone { volume: volume.to_owned(), node: node.clone() }))
    }

    /// The volume of a pod that is gone with the pod's node: a disk of it, or such that nobody else reaches; rather one that keeps the
    /// pod there. Claims of ephemeral volumes go with the pod, so nothing that somebody counts on is on them. O(volumes)
    pub fn goes_with_node(&self, pod: &Pod) -> Option<Disk> {
        let node = pod.spec.node_name.as_deref()?;
        let host_name = self.all_host_names.get(node).copied().unwrap_or(node);
        let sources = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        let volumes = sources.filter_map(|source| self.bound(&pod.metadata.namespace, &source.claim_name));
        let disks = volumes.filter_map(|volume| {
            let holds_pod = is_reached_only_from(volume, node, host_name);
            let disk = || Some(Disk { volume: volume.metadata.name.clone()?, holds_pod });
            (holds_pod || is_on_host(volume)).then(disk).flatten()
        });
        disks.reduce(|first, next| if next.holds_pod && !first.holds_pod { next } else { first })
    }

    /// By whichever of the two names the other.
    fn bound(&self, namespace: &str, claim: &str) -> Option<&'a PersistentVolume> {
        let spec = self.claims.get(&(namespace, claim)).and_then(|claim| claim.spec.as_ref());
        let name = spec.and_then(|spec| spec.volume_name.as_deref()).filter(|name| !name.is_empty());
        match name {
            Some(name) => self.volumes.get(name).copied(),
            None => self.claimed.get(&(namespace, claim)).copied(),
        }
    }

    fn class_demand(
        &self,
        claim: &str,
        namespace: &str,
        spec: &PersistentVolumeClaimSpec,
    ) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeError> {
        let name = spec
            .storage_class_name
            .as_deref()
            .or(self.default_class)
            .filter(|name| !name.is_empty())
            .ok_or_else(|| VolumeError::NoClass(claim.to_owned()))?;
        let class = self.classes.get(name);
        let class =
            class.ok_or_else(|| VolumeError::MissingClass { claim: claim.to_owned(), class: name.to_owned() })?;
        if class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer") {
            return Err(VolumeError::ImmediateUnbound(claim.to_owned()));
        }
        if class.provisioner == NO_PROVISIONER {
            return Ok((self.free_volumes(claim, namespace, name, spec)?, None));
        }
        let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
        within_limit(topologies.len())?;
        let named = topologies.iter().filter(|term| term.match_label_expressions.iter().flatten().next().is_some());
        let alternatives: Vec<Requirements> = named.map(topology_requirements).collect();
        if alternatives.is_empty() && !topologies.is_empty() {
            return Err(VolumeError::NoTopology(name.to_owned()));
        }
        let driver = match class.provisioner.as_str() {
            "kubernetes.io/aws-ebs" => EBS_DRIVER,
            provisioner => provisioner,
        };
        Ok((alternatives, Some(Attachment { driver: driver.to_owned(), volume: format!("{namespace}/{claim}") })))
    }

    /// Where the volumes are that the claim could be bound to.
    fn free_volumes(
        &self,
        claim: &str,
        namespace: &str,
        class: &str,
        wanted: &PersistentVolumeClaimSpec,
    ) -> Result<Vec<Requirements>, VolumeError> {
        let mut places = Vec::new();
        let meets = |volume: &&&PersistentVolume| is_free_for((namespace, claim), class, wanted, volume);
        for volume in self.volumes.values().filter(meets) {
            let alternatives = match reachable_from(volume) {
                Err(VolumeError::Unreachable(_)) => continue,
                alternatives => alternatives?,
            };
            if alternatives.is_empty() {
                return Ok(Vec::new());
            }
            places.extend(alternatives);
            within_limit(places.len())?;
        }
        if places.is_empty() { Err(VolumeError::NoVolume(claim.to_owned())) } else { Ok(places) }
    }
}

/// Whether what is on the volume is on a disk of a node, whichever that is.
fn is_on_host(volume: &PersistentVolume) -> bool {
    volume.spec.as_ref().is_some_and(|spec| spec.local.is_some() || spec.host_path.is_some())
}

/// Whether a volume can be reached from one node and no other, by the name of the host or of the node.
pub fn is_reached_only_from(volume: &PersistentVolume, node: &str, host_name: &str) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
    let terms = affinity.map_or(&[][..], |selector| &selector.node_selector_terms);
    let names_it = |term: &NodeSelectorTerm| {
        let names = |key: &str, operator: &str, values: &Option<Vec<String>>, wanted: (&str, &str)| {
            let values: BTreeSet<&str> = values.iter().flatten().map(String::as_str).collect();
            key == wanted.0 && operator == "In" && values.len() == 1 && values.contains(wanted.1)
        };
        let by = |wanted: (&'static str, &str), requirements: &Option<Vec<NodeSelectorRequirement>>| {
            requirements.iter().flatten().any(|it| names(&it.key, &it.operator, &it.values, wanted))
        };
        by((keys::HOSTNAME, host_name), &term.match_expressions) || by(("metadata.name", node), &term.match_fields)
    };
    !terms.is_empty() && terms.iter().all(names_it)
}

/// What nodes must have that reach a volume, any of which will do: by its affinity, and by the labels of its place, of which
/// one may name several, joined by two underscores. Empty: every node does.
fn reachable_from(volume: &PersistentVolume) -> Result<Vec<Requirements>, VolumeError> {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
    within_limit(affinity.map_or(0, |selector| selector.node_selector_terms.len()))?;
    let terms = affinity.map(selector_requirements);
    if terms.as_ref().is_some_and(Vec::is_empty) {
        return Err(VolumeError::Unreachable(volume.metadata.name.clone().unwrap_or_default()));
    }
    let mut of_labels = Requirements::new();
    for (key, places) in volume.metadata.labels.iter().flatten() {
        if matches!(normalized(key), keys::ZONE | keys::REGION) {
            of_labels.add(key, Requirement::is_in(places.split("__").map(str::to_owned)));
        }
    }
    combine(terms.unwrap_or_default(), if of_labels.is_empty() { Vec::new() } else { vec![of_labels] })
}

/// Whether a volume can be bound to a claim of this namespace and name.
fn is_free_for(
    (namespace, name): (&str, &str),
    class: &str,
    wanted: &PersistentVolumeClaimSpec,
    volume: &PersistentVolume,
) -> bool {
    let Some(spec) = &volume.spec else { return false };
    let is_free = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available");
    let is_kept_for_it = spec
        .claim_ref
        .as_ref()
        .is_none_or(|claim| claim.namespace.as_deref() == Some(namespace) && claim.name.as_deref() == Some(name));
    let mode = |mode: &Option<String>| mode.as_deref() == Some("Block");
    let modes = wanted.access_modes.iter().flatten();
    let storage = |amounts: Option<&BTreeMap<String, KubernetesQuantity>>| -> Option<Quantity> {
        amounts?.get("storage")?.0.parse().ok()
    };
    let asked = wanted.resources.as_ref().and_then(|resources| storage(resources.requests.as_ref()));
    let no_labels = BTreeMap::new();
    let labels = volume.metadata.labels.as_ref().unwrap_or(&no_labels);
    is_free
        && is_kept_for_it
        && spec.storage_class_name.as_deref() == Some(class)
        && mode(&spec.volume_mode) == mode(&wanted.volume_mode)
        && modes.into_iter().all(|mode| spec.access_modes.iter().flatten().any(|offered| offered == mode))
        && storage(spec.capacity.as_ref()).is_some_and(|capacity| capacity >= asked.unwrap_or(Quantity::ZERO))
        && wanted.selector.as_ref().is_none_or(|selector| selector::matches(Some(selector), labels))
}

/// Every pair of alternatives that does not contradict itself.
pub(super) fn combine(one: Vec<Requirements>, two: Vec<Requirements>) -> Result<Vec<Requirements>, VolumeError> {
    if one.is_empty() || two.is_empty() {
        return Ok(if one.is_empty() { two } else { one });
    }
    let mut combined = Vec::new();
    for first in &one {
        for second in two.iter().filter(|second| first.conflict(second).is_none()) {
            let mut both = first.clone();
            both.extend(second);
            combined.push(both);
            within_limit(combined.len())?;
        }
    }
    if combined.is_empty() { Err(contradiction(&one, &two)) } else { Ok(combined) }
}

/// What volumes that exclude each other want.
fn contradiction(one: &[Requirements], two: &[Requirements]) -> VolumeError {
    let key = one.first().zip(two.first()).and_then(|(one, two)| one.conflict(two)).unwrap_or_default();
    let wanted = |alternatives: &[Requirements]| {
        let values = alternatives.iter().filter_map(|alternative| alternative.get(key)?.values()).flatten();
        let values: BTreeSet<&str> = values.map(String::as_str).collect();
        values.into_iter().collect::<Vec<_>>().join(", ")
    };
    VolumeError::Contradiction { key: key.to_owned(), some: wanted(one), other: wanted(two) }
}

/// Each alternative is read, and tried, for each pod that uses the volume: so they are counted before.
fn within_limit(alternatives: usize) -> Result<(), VolumeError> {
    if alternatives > ALTERNATIVES_MAX { Err(VolumeError::TooManyAlternatives) } else { Ok(()) }
}

/// The requirements of the terms of a node selector, any of which will do. An empty term matches no node, and stands for nothing; so
/// where there are only such, or none, the selector matches no node.
pub fn selector_requirements(selector: &NodeSelector) -> Vec<Requirements> {
    selector.node_selector_terms.iter().filter(|term| !is_empty(term)).map(term_requirements).collect()
}

/// Whether a term names nothing.
pub fn is_empty(term: &NodeSelectorTerm) -> bool {
    term.match_expressions.as_ref().is_none_or(Vec::is_empty) && term.match_fields.as_ref().is_none_or(Vec::is_empty)
}

/// The requirements of one term, of a required one that is not empty; an operator that Kubernetes does not know allows nothing, and
/// `Gte` and `Lte` are Karpenter's alone. The
/// only field of a node that a term may name is one that it has as [`NODE_NAME`].
pub fn term_requirements(term: &NodeSelectorTerm) -> Requirements {
    let mut requirements = Requirements::new();
    for expression in term.match_expressions.iter().chain(&term.match_fields).flatten() {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "Gt" => Operator::Gt,
            "Lt" => Operator::Lt,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => Operator::In,
        };
        let known = !matches!(operator, Operator::In) || expression.operator == "In";
        let values = expression.values.iter().flatten().filter(|_| known).cloned();
        requirements.add(&expression.key, Requirement::new(operator, values));
    }
    requirements
}

/// Claims that are ReadWriteOnce and nothing else, and that several pods use. O(claims + pods).
fn shared_by_pods(snapshot: &Snapshot) -> BTreeSet<(&str, &str)> {
    let is_of_one_node = |claim: &&PersistentVolumeClaim| {
        let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
        !modes.is_empty() && modes.iter().all(|mode| mode == "ReadWriteOnce")
    };
    let claims = snapshot.persistent_volume_claims.iter().filter(is_of_one_node).map(|claim| &claim.metadata);
    let claims = claims.filter_map(|claim| Some((claim.namespace.as_deref()?, claim.name.as_deref()?)));
    let mut users: BTreeMap<(&str, &str), usize> = claims.map(|claim| (claim, 0)).collect();
    for pod in snapshot.pods.iter().filter(|pod| !pod.is_terminal() && !pod.is_terminating()) {
        let sources = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        let used: BTreeSet<&str> = sources.map(|source| source.claim_name.as_str()).collect();
        for claim in used {
            users.entry((&pod.metadata.namespace, claim)).and_modify(|users| *users += 1);
        }
    }
    users.into_iter().filter(|(_, users)| *users > 1).map(|(claim, _)| claim).collect()
}

fn topology_requirements(term: &TopologySelectorTerm) -> Requirements {
    let mut requirements = Requirements::new();
    for expression in term.match_label_expressions.iter().flatten() {
        requirements.add(&expression.key, Requirement::is_in(expression.values.iter().cloned()));
    }
    requirements
}
