//! VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::api::storage::v1::StorageClass;

use crate::model::Quantity;
use crate::snapshot::Pod;

use super::context::FilterContext;
use super::objects::{node_labels, node_name};
use super::selectors::{self, node_selector_matches};
use super::{Filter, FilterRefusal};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const EBS_DRIVER: &str = "ebs.csi.aws.com";
/// What the in-tree driver was called; its volumes are served by the CSI driver.
const EBS_IN_TREE: &str = "kubernetes.io/aws-ebs";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Labels of a volume that bind it to a place. A value may list several, joined by two underscores.
const VOLUME_ZONE_KEYS: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// What a pod mounts: a claim that exists, or one that will be made from the template of an ephemeral volume.
struct Mounted<'a> {
    namespace: String,
    name: String,
    claim: Option<&'a PersistentVolumeClaim>,
    spec: PersistentVolumeClaimSpec,
    /// Of a pod that runs: its ephemeral volume goes with it, and whoever comes in its place gets another.
    made_anew: Option<PersistentVolumeClaimSpec>,
}

pub(super) fn refusal(pod: &Pod, node: &Node, context: &FilterContext<'_>) -> Option<FilterRefusal> {
    let mounted = match mounted(pod, context) {
        Ok(mounted) if mounted.is_empty() => return None,
        Ok(mounted) => mounted,
        Err(refusal) => return Some(refusal),
    };
    mounted
        .iter()
        .find_map(|it| used_exclusively(it, pod, context))
        .or_else(|| over_attach_limit(pod, node, context))
        .or_else(|| mounted.iter().find_map(|it| it.unbindable(node, context)))
}

fn mounted<'a>(pod: &Pod, context: &FilterContext<'a>) -> Result<Vec<Mounted<'a>>, FilterRefusal> {
    let mut mounted = Vec::new();
    for volume in &pod.spec.volumes {
        let namespace = pod.metadata.namespace.clone();
        let find = |name: &str| context.claims.get(&(namespace.as_str(), name)).copied();
        if let Some(source) = &volume.persistent_volume_claim {
            let Some(claim) = find(&source.claim_name) else {
                return Err(FilterRefusal::new(
                    Filter::VolumeBinding,
                    format!("claim {} does not exist", source.claim_name),
                ));
            };
            let spec = claim.spec.clone().unwrap_or_default();
            mounted.push(Mounted {
                namespace,
                name: source.claim_name.clone(),
                claim: Some(claim),
                spec,
                made_anew: None,
            });
        } else if let Some(source) = &volume.ephemeral {
            let name = format!("{}-{}", pod.metadata.name, volume.name);
            let claim = find(&name);
            let template = source.volume_claim_template.as_ref().and_then(|template| template.get("spec"));
            let template: Option<PersistentVolumeClaimSpec> =
                template.and_then(|spec| serde_json::from_value(spec.clone()).ok());
            let spec = claim.map_or_else(|| template.clone(), |claim| claim.spec.clone()).unwrap_or_default();
            let made_anew = template.filter(|_| pod.spec.node_name.is_some() && claim.is_some());
            mounted.push(Mounted { namespace, name, claim, spec, made_anew });
        }
    }
    Ok(mounted)
}

/// A claim that is ReadWriteOncePod serves one pod in the whole cluster.
fn used_exclusively(mounted: &Mounted<'_>, pod: &Pod, context: &FilterContext<'_>) -> Option<FilterRefusal> {
    let exclusive = mounted.spec.access_modes.iter().flatten().any(|mode| mode == "ReadWriteOncePod");
    let others = context.nodes.values().filter(|_| exclusive).flat_map(|state| state.pods.values());
    let user = others
        .filter(|other| other.metadata.namespace == mounted.namespace && other.metadata.name != pod.metadata.name)
        .find(|other| claim_names(other).contains(&mounted.name))?;
    let text = format!("claim {} is ReadWriteOncePod and in use by {}", mounted.name, user.key());
    Some(FilterRefusal::new(Filter::VolumeRestrictions, text))
}

fn claim_names(pod: &Pod) -> BTreeSet<String> {
    let names =
        pod.spec.volumes.iter().filter_map(|volume| match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(source), _) => Some(source.claim_name.clone()),
            (None, Some(_)) => Some(format!("{}-{}", pod.metadata.name, volume.name)),
            (None, None) => None,
        });
    names.collect()
}

/// Volumes by driver against what the driver says it can attach to this node.
fn over_attach_limit(pod: &Pod, node: &Node, context: &FilterContext<'_>) -> Option<FilterRefusal> {
    let drivers = &context.csi_nodes.get(node_name(node))?.spec.drivers;
    let wanted = attachments(pod, context);
    let mut attached: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for other in context.pods_on(node_name(node)) {
        for (driver, volumes) in attachments(other, context) {
            attached.entry(driver).or_default().extend(volumes);
        }
    }
    drivers.iter().find_map(|driver| {
        let limit = usize::try_from(driver.allocatable.as_ref()?.count?).unwrap_or(0);
        let wanted = wanted.get(&driver.name)?;
        let attached = attached.get(&driver.name).cloned().unwrap_or_default();
        let new = wanted.difference(&attached).count();
        let text =
            format!("{}: {} volumes attached, {new} more asked for, {limit} possible", driver.name, attached.len());
        (new > 0 && attached.len() + new > limit).then(|| FilterRefusal::new(Filter::NodeVolumeLimits, text))
    })
}

/// Driver to the identities of the volumes that a pod attaches.
fn attachments(pod: &Pod, context: &FilterContext<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut attachments: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for mounted in mounted(pod, context).unwrap_or_default() {
        let volume = mounted.volume_name().and_then(|name| context.volumes.get(name));
        let (driver, identity) = match volume.and_then(|volume| volume.spec.as_ref()) {
            Some(spec) => match (&spec.csi, &spec.aws_elastic_block_store) {
                (Some(csi), _) => (csi.driver.clone(), csi.volume_handle.clone()),
                (None, Some(ebs)) => (EBS_DRIVER.to_owned(), ebs.volume_id.clone()),
                (None, None) => continue,
            },
            None => match mounted.storage_class(context) {
                Some(class) if class.provisioner == EBS_IN_TREE => (EBS_DRIVER.to_owned(), mounted.key()),
                Some(class) => (class.provisioner.clone(), mounted.key()),
                None => continue,
            },
        };
        attachments.entry(driver).or_default().insert(identity);
    }
    attachments
}

impl Mounted<'_> {
    fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn volume_name(&self) -> Option<&str> {
        self.spec.volume_name.as_deref().filter(|name| !name.is_empty())
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.claim?.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The class it names, or the newest of those marked as default.
    fn storage_class<'c>(&self, context: &FilterContext<'c>) -> Option<&'c StorageClass> {
        if let Some(name) = self.spec.storage_class_name.as_deref() {
            return context.storage_classes.get(name).copied();
        }
        let is_default = |class: &StorageClass| {
            class
                .metadata
                .annotations
                .as_ref()
                .and_then(|it| it.get(DEFAULT_CLASS))
                .is_some_and(|value| value == "true")
        };
        let defaults = context.storage_classes.values().copied().filter(|class| is_default(class));
        defaults.max_by_key(|class| class.metadata.creation_timestamp.as_ref().map(|time| time.0))
    }

    fn unbindable(&self, node: &Node, context: &FilterContext<'_>) -> Option<FilterRefusal> {
        if let Some(spec) = self.made_anew.clone() {
            let (namespace, name) = (self.namespace.clone(), self.name.clone());
            return Mounted { namespace, name, claim: None, spec, made_anew: None }.unbindable(node, context);
        }
        let refuse =
            |text: String| Some(FilterRefusal::new(Filter::VolumeBinding, format!("claim {}: {text}", self.name)));
        if self.claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some()) {
            return refuse("is being deleted".to_owned());
        }
        let phase = self.claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref());
        if phase == Some("Lost") {
            return refuse("its volume is lost".to_owned());
        }
        if let Some(name) = self.volume_name() {
            // The phase is written after the annotation.
            if self.annotation(BIND_COMPLETED).is_none() && phase != Some("Bound") {
                return refuse(format!("binding to volume {name} has not finished"));
            }
            let Some(volume) = context.volumes.get(name) else {
                return refuse(format!("volume {name} does not exist"));
            };
            return bound_elsewhere(volume, node);
        }
        let Some(class) = self.storage_class(context) else {
            return refuse("is not bound, and there is no storage class to make a volume".to_owned());
        };
        if class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer") {
            return refuse("is not bound, and its class binds without regard to nodes".to_owned());
        }
        // The provisioner forgets a node that is gone.
        if let Some(selected) = self.annotation(SELECTED_NODE).filter(|selected| context.node(selected).is_some()) {
            return if selected == node_name(node) {
                None
            } else {
                refuse(format!("is being made for node {selected}"))
            };
        }
        if context.volumes.values().any(|volume| self.is_met_by(volume, node)) {
            return None;
        }
        if class.provisioner == NO_PROVISIONER {
            return refuse("no volume that exists can be bound on this node, and none can be made".to_owned());
        }
        if !topology_allowed(class, node) {
            return refuse("its class makes no volumes in the node's topology".to_owned());
        }
        None
    }

    /// Whether a volume that exists can be bound to this claim for a pod on this node.
    fn is_met_by(&self, volume: &PersistentVolume, node: &Node) -> bool {
        let Some(spec) = &volume.spec else { return false };
        let free = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available");
        let for_this_claim = spec.claim_ref.as_ref().is_none_or(|reference| {
            reference.name.as_deref() == Some(&self.name) && reference.namespace.as_deref() == Some(&self.namespace)
        });
        let modes = |modes: &Option<Vec<String>>| modes.clone().unwrap_or_default();
        let offered = modes(&spec.access_modes);
        let asked = self.spec.resources.as_ref().and_then(|it| storage(it.requests.as_ref())).unwrap_or(Quantity::ZERO);
        let labels = volume.metadata.labels.clone().unwrap_or_default();
        let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
        free && for_this_claim
            && spec.storage_class_name.clone().unwrap_or_default()
                == self.spec.storage_class_name.clone().unwrap_or_default()
            && mode(&spec.volume_mode) == mode(&self.spec.volume_mode)
            && modes(&self.spec.access_modes).iter().all(|mode| offered.contains(mode))
            && storage(spec.capacity.as_ref()).is_some_and(|capacity| capacity >= asked)
            && self.spec.selector.as_ref().is_none_or(|selector| selectors::matches(Some(selector), &labels))
            && bound_elsewhere(volume, node).is_none()
    }
}

fn storage(
    quantities: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> Option<Quantity> {
    quantities?.get("storage")?.0.parse().ok()
}

/// A volume is reachable only from the nodes that its node affinity and its zone labels name.
fn bound_elsewhere(volume: &PersistentVolume, node: &Node) -> Option<FilterRefusal> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let required = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
    if required.is_some_and(|required| !node_selector_matches(required, node)) {
        return Some(FilterRefusal::new(
            Filter::VolumeBinding,
            format!("volume {name} can not be reached from the node"),
        ));
    }
    let labels = volume.metadata.labels.as_ref()?;
    let elsewhere = VOLUME_ZONE_KEYS.iter().find(|key| {
        let Some(places) = labels.get(**key) else { return false };
        let new_key = key.replace("failure-domain.beta.kubernetes.io", "topology.kubernetes.io");
        let node_place = node_labels(node).get(**key).or_else(|| node_labels(node).get(&new_key));
        !node_labels(node).is_empty() && node_place.is_none_or(|place| !places.split("__").any(|it| it == place))
    })?;
    Some(FilterRefusal::new(Filter::VolumeZone, format!("volume {name} is in another place by label {elsewhere}")))
}

/// Terms are alternatives; a class without terms makes volumes everywhere.
fn topology_allowed(class: &StorageClass, node: &Node) -> bool {
    let terms = class.allowed_topologies.as_deref().unwrap_or_default();
    let labels = node_labels(node);
    terms.is_empty()
        || terms.iter().any(|term| {
            let expressions = term.match_label_expressions.as_deref().unwrap_or_default();
            // An empty term matches nothing.
            !expressions.is_empty()
                && expressions.iter().all(|expression| {
                    labels.get(&expression.key).is_some_and(|value| expression.values.contains(value))
                })
        })
}
