//! What the volumes of a pod demand of its node: where they are, and how many may be attached.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use k8s_openapi::api::storage::v1::StorageClass;

use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::model::{Requirement, Requirements};
use crate::core::snapshot::{Pod, Snapshot};

/// More combinations of volume alternatives than this are not tried; a pod with that many is reported.
const ALTERNATIVES_MAX: usize = 64;

/// A volume that takes one attachment of its driver on the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attachment {
    pub driver: String,
    /// The claim or volume, so that two pods that share it count once.
    pub volume: String,
}

/// What the volumes of one pod come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeDemand {
    /// Node requirements, any of which will do; empty when the volumes do not restrict the node.
    pub alternatives: Vec<Requirements>,
    pub attachments: Vec<Attachment>,
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
    #[error("StorageClass {class} of PersistentVolumeClaim {claim} does not exist")]
    MissingClass { claim: String, class: String },
    #[error("PersistentVolumeClaim {0} is not bound and names no StorageClass")]
    NoClass(String),
    #[error("PersistentVolumeClaim {0} waits for its volume: the StorageClass binds at once, not on first use")]
    ImmediateUnbound(String),
    #[error("the volumes together allow more than 64 combinations of topology")]
    TooManyAlternatives,
    #[error("the volumes can not be reached from any one node")]
    Contradiction,
}

/// Claims, volumes and classes by name, for lookups.
pub struct VolumeIndex<'a> {
    claims: BTreeMap<(&'a str, &'a str), &'a PersistentVolumeClaim>,
    volumes: BTreeMap<&'a str, &'a PersistentVolume>,
    classes: BTreeMap<&'a str, &'a StorageClass>,
    default_class: Option<&'a str>,
}

impl<'a> VolumeIndex<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
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
        Self { claims: claims.collect(), volumes: volumes.collect(), classes: classes.collect(), default_class }
    }

    /// What this pod's volumes demand. O(volumes x alternatives).
    pub fn demand(&self, pod: &Pod) -> Result<VolumeDemand, VolumeError> {
        let mut demand = VolumeDemand::default();
        for volume in &pod.spec.volumes {
            let (alternatives, attachment) = if let Some(source) = &volume.persistent_volume_claim {
                self.claim_demand(&pod.metadata.namespace, &source.claim_name)?
            } else if let Some(ephemeral) = &volume.ephemeral {
                let template = ephemeral.volume_claim_template.as_ref();
                let class = template.and_then(|template| template.pointer("/spec/storageClassName")?.as_str());
                let name = format!("{}-{}", pod.metadata.name, volume.name);
                if self.claims.contains_key(&(pod.metadata.namespace.as_str(), name.as_str())) {
                    self.claim_demand(&pod.metadata.namespace, &name)?
                } else {
                    self.class_demand(&name, &pod.metadata.namespace, class)?
                }
            } else {
                continue;
            };
            demand.attachments.extend(attachment);
            demand.alternatives = combine(demand.alternatives, alternatives)?;
        }
        demand.attachments.sort();
        Ok(demand)
    }

    fn claim_demand(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeError> {
        let claim = self.claims.get(&(namespace, name)).ok_or_else(|| VolumeError::MissingClaim(name.to_owned()))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(VolumeError::DeletingClaim(name.to_owned()));
        }
        if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
            return Err(VolumeError::LostClaim(name.to_owned()));
        }
        let spec = claim.spec.as_ref();
        match spec.and_then(|spec| spec.volume_name.as_deref()).filter(|volume| !volume.is_empty()) {
            Some(volume) => self.bound_demand(volume),
            None => self.class_demand(name, namespace, spec.and_then(|spec| spec.storage_class_name.as_deref())),
        }
    }

    fn bound_demand(&self, name: &str) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeError> {
        let volume = self.volumes.get(name).ok_or_else(|| VolumeError::MissingVolume(name.to_owned()))?;
        let Some(spec) = &volume.spec else { return Ok((Vec::new(), None)) };
        let terms = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
        let mut alternatives: Vec<Requirements> =
            terms.into_iter().flat_map(|terms| &terms.node_selector_terms).map(term_requirements).collect();
        if spec.local.is_some() || spec.host_path.is_some() {
            // The disk is on a node that may go; a pod that leaves it gets another.
            alternatives.iter_mut().for_each(|requirements| requirements.remove(keys::HOSTNAME));
        }
        let in_tree = spec.aws_elastic_block_store.is_some().then_some("ebs.csi.aws.com");
        let driver = spec.csi.as_ref().map(|csi| csi.driver.as_str()).or(in_tree);
        Ok((alternatives, driver.map(|driver| Attachment { driver: driver.to_owned(), volume: name.to_owned() })))
    }

    fn class_demand(
        &self,
        claim: &str,
        namespace: &str,
        class: Option<&str>,
    ) -> Result<(Vec<Requirements>, Option<Attachment>), VolumeError> {
        let name = class
            .or(self.default_class)
            .filter(|name| !name.is_empty())
            .ok_or_else(|| VolumeError::NoClass(claim.to_owned()))?;
        let class = self.classes.get(name);
        let class =
            class.ok_or_else(|| VolumeError::MissingClass { claim: claim.to_owned(), class: name.to_owned() })?;
        if class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer") {
            return Err(VolumeError::ImmediateUnbound(claim.to_owned()));
        }
        let alternatives = class.allowed_topologies.iter().flatten().map(topology_requirements).collect();
        let driver = match class.provisioner.as_str() {
            "kubernetes.io/aws-ebs" => "ebs.csi.aws.com",
            provisioner => provisioner,
        };
        Ok((alternatives, Some(Attachment { driver: driver.to_owned(), volume: format!("{namespace}/{claim}") })))
    }
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
        }
    }
    match combined.len() {
        0 => Err(VolumeError::Contradiction),
        count if count > ALTERNATIVES_MAX => Err(VolumeError::TooManyAlternatives),
        _ => Ok(combined),
    }
}

/// The requirements of one term of a node selector; an operator that Kubernetes does not know allows nothing.
pub fn term_requirements(term: &NodeSelectorTerm) -> Requirements {
    let mut requirements = Requirements::new();
    for expression in term.match_expressions.iter().flatten() {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "Gt" => Operator::Gt,
            "Lt" => Operator::Lt,
            "Gte" => Operator::Gte,
            "Lte" => Operator::Lte,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => Operator::In,
        };
        let known = !matches!(operator, Operator::In) || expression.operator == "In";
        let values = expression.values.iter().flatten().filter(|_| known).cloned();
        requirements.add(&expression.key, Requirement::new(operator, values));
    }
    requirements
}

fn topology_requirements(term: &TopologySelectorTerm) -> Requirements {
    let mut requirements = Requirements::new();
    for expression in term.match_label_expressions.iter().flatten() {
        requirements.add(&expression.key, Requirement::is_in(expression.values.iter().cloned()));
    }
    requirements
}
