//! What a snapshot keeps of each object. Everything else is dropped while reading, so that memory follows what planning
//! looks at, and once more while writing, so that nothing private leaves the cluster: no environment, no command, no
//! annotation but those that matter.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, Container, HostPathVolumeSource, LocalVolumeSource, Node, NodeStatus, PersistentVolume,
    PersistentVolumeSpec, PodSpec, PodTemplate, PodTemplateSpec, ReplicationController, Service, ServiceSpec, Volume,
};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment, VolumeAttachmentSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::model::static_hash::{class_hash, node_pool_hash};
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;

use super::pod::{ContainerStatus, Pod};

/// Annotations that planning, disruption or the binding of volumes look at; an entry that ends in `/` or `.` is a prefix.
const ANNOTATIONS: &[&str] = &[
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "controller.kubernetes.io/pod-deletion-cost",
    "cutlist.dev/",
    "karpenter.k8s.aws/",
    "karpenter.sh/",
    "kubernetes.io/config.",
    "pv.kubernetes.io/",
    "storageclass.kubernetes.io/is-default-class",
    "volume.beta.kubernetes.io/storage-class",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
];

fn matters(annotation: &str) -> bool {
    ANNOTATIONS.iter().any(|kept| annotation == *kept || (kept.ends_with(['/', '.']) && annotation.starts_with(kept)))
}

pub(super) fn metadata(metadata: &mut ObjectMeta) {
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|key, _| matters(key));
    }
    metadata.annotations.take_if(|annotations| annotations.is_empty());
    metadata.labels.take_if(|labels| labels.is_empty());
    metadata.generate_name = None;
    metadata.managed_fields = None;
    metadata.resource_version = None;
    metadata.self_link = None;
}

pub(super) fn pod(pod: &mut Pod) {
    // It says when kube-scheduler refused a pod that waits.
    if pod.spec.node_name.is_some() {
        pod.metadata.resource_version = String::new();
    }
    if !pod.metadata.annotations.keys().all(|key| matters(key)) {
        pod.metadata.annotations.retain(|key, _| matters(key));
    }
    pod.spec.volumes.retain(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some());
    let (spec, status) = (&pod.spec, &mut pod.status);
    status.container_statuses.retain(|status| differs(status, &spec.containers));
    status.init_container_statuses.retain(|status| differs(status, &spec.init_containers));
    // A list that lost its items keeps their room.
    status.container_statuses.shrink_to_fit();
    status.init_container_statuses.shrink_to_fit();
    pod.spec.volumes.shrink_to_fit();
}

/// Whether a container has other resources than it asks for: it is being resized. The status of most says nothing new.
fn differs(status: &ContainerStatus, containers: &[super::pod::Container]) -> bool {
    let Some(container) = containers.iter().find(|container| container.name == status.name) else { return false };
    let asked = &container.resources.requests;
    let allocated = &status.allocated_resources;
    (!allocated.is_empty() && allocated != asked)
        || status.resources.as_ref().is_some_and(|running| running.requests != *asked)
}

pub(super) fn node(node: &mut Node) {
    if let Some(status) = node.status.take() {
        node.status = Some(NodeStatus {
            allocatable: status.allocatable,
            capacity: status.capacity,
            conditions: status.conditions,
            phase: status.phase,
            ..NodeStatus::default()
        });
    }
}

pub(super) fn daemon_set(daemon_set: &mut DaemonSet) {
    if let Some(spec) = &mut daemon_set.spec {
        pod_template(&mut spec.template);
    }
}

pub(super) fn deployment(deployment: &mut Deployment) {
    if let Some(spec) = &mut deployment.spec {
        pod_template(&mut spec.template);
    }
}

pub(super) fn replica_set(replica_set: &mut ReplicaSet) {
    if let Some(template) = replica_set.spec.as_mut().and_then(|spec| spec.template.as_mut()) {
        pod_template(template);
    }
}

/// Only what it selects: that is what default spread constraints go by.
pub(super) fn replication_controller(controller: &mut ReplicationController) {
    controller.status = None;
    if let Some(spec) = &mut controller.spec {
        spec.template = None;
    }
}

/// Only what it selects: addresses and ports are nobody's business.
pub(super) fn service(service: &mut Service) {
    service.status = None;
    if let Some(spec) = service.spec.take() {
        service.spec = Some(ServiceSpec { selector: spec.selector, ..ServiceSpec::default() });
    }
}

pub(super) fn stateful_set(stateful_set: &mut StatefulSet) {
    let Some(spec) = &mut stateful_set.spec else { return };
    pod_template(&mut spec.template);
    for claim in spec.volume_claim_templates.iter_mut().flatten() {
        metadata(&mut claim.metadata);
    }
}

pub(super) fn pod_template_object(object: &mut PodTemplate) {
    if let Some(template) = &mut object.template {
        pod_template(template);
    }
}

/// Without what is handed to drivers, which may hold anything.
pub(super) fn device_class(class: &mut DeviceClass) {
    class.spec.config = None;
}

pub(super) fn resource_claim(claim: &mut ResourceClaim) {
    if let Some(devices) = &mut claim.spec.devices {
        devices.config = None;
    }
    let Some(status) = &mut claim.status else { return };
    status.devices = None;
    if let Some(devices) = status.allocation.as_mut().and_then(|allocation| allocation.devices.as_mut()) {
        devices.config = None;
    }
}

pub(super) fn resource_claim_template(template: &mut ResourceClaimTemplate) {
    if let Some(metadata_of_claims) = &mut template.spec.metadata {
        metadata(metadata_of_claims);
    }
    if let Some(devices) = &mut template.spec.spec.devices {
        devices.config = None;
    }
}

pub(super) fn job(job: &mut Job) {
    if let Some(spec) = &mut job.spec {
        pod_template(&mut spec.template);
    }
}

fn pod_template(template: &mut PodTemplateSpec) {
    if let Some(template_metadata) = &mut template.metadata {
        metadata(template_metadata);
    }
    if let Some(spec) = template.spec.take() {
        template.spec = Some(pod_spec(spec));
    }
}

/// The part of a pod's specification that decides where it can run. What is kept is listed, not what is dropped, so that a
/// field of a later Kubernetes release stays out until somebody looks at it.
fn pod_spec(spec: PodSpec) -> PodSpec {
    PodSpec {
        affinity: spec.affinity,
        containers: spec.containers.into_iter().map(container).collect(),
        host_network: spec.host_network,
        init_containers: spec.init_containers.map(|containers| containers.into_iter().map(container).collect()),
        node_name: spec.node_name,
        node_selector: spec.node_selector,
        os: spec.os,
        overhead: spec.overhead,
        preemption_policy: spec.preemption_policy,
        priority: spec.priority,
        priority_class_name: spec.priority_class_name,
        resource_claims: spec.resource_claims,
        resources: spec.resources,
        restart_policy: spec.restart_policy,
        runtime_class_name: spec.runtime_class_name,
        scheduler_name: spec.scheduler_name,
        scheduling_gates: spec.scheduling_gates,
        termination_grace_period_seconds: spec.termination_grace_period_seconds,
        tolerations: spec.tolerations,
        topology_spread_constraints: spec.topology_spread_constraints,
        volumes: spec.volumes.map(|volumes| volumes.into_iter().filter_map(volume).collect()),
        ..PodSpec::default()
    }
}

fn container(container: Container) -> Container {
    Container {
        name: container.name,
        ports: container.ports,
        resources: container.resources,
        restart_policy: container.restart_policy,
        ..Container::default()
    }
}

fn volume(volume: Volume) -> Option<Volume> {
    let ephemeral = volume.ephemeral.map(|mut source| {
        if let Some(template) = source.volume_claim_template.as_mut().and_then(|claim| claim.metadata.as_mut()) {
            metadata(template);
        }
        source
    });
    let kept = volume.persistent_volume_claim.is_some() || ephemeral.is_some();
    kept.then(|| Volume {
        name: volume.name,
        persistent_volume_claim: volume.persistent_volume_claim,
        ephemeral,
        ..Volume::default()
    })
}

/// Where a volume can be attached, by whom it is claimed, and which driver counts it.
pub(super) fn persistent_volume(volume: &mut PersistentVolume) {
    let Some(spec) = volume.spec.take() else { return };
    volume.spec = Some(PersistentVolumeSpec {
        access_modes: spec.access_modes,
        aws_elastic_block_store: spec.aws_elastic_block_store,
        capacity: spec.capacity,
        claim_ref: spec.claim_ref,
        csi: spec.csi.map(|csi| CSIPersistentVolumeSource {
            driver: csi.driver,
            volume_handle: csi.volume_handle,
            ..CSIPersistentVolumeSource::default()
        }),
        // Whether it is one is what counts; its path is nobody's business.
        host_path: spec.host_path.map(|_| HostPathVolumeSource::default()),
        local: spec.local.map(|_| LocalVolumeSource::default()),
        node_affinity: spec.node_affinity,
        persistent_volume_reclaim_policy: spec.persistent_volume_reclaim_policy,
        storage_class_name: spec.storage_class_name,
        volume_attributes_class_name: spec.volume_attributes_class_name,
        volume_mode: spec.volume_mode,
        ..PersistentVolumeSpec::default()
    });
}

/// Which volume is attached where is all that is looked at; drivers keep what they like in the status.
pub(super) fn volume_attachment(attachment: &mut VolumeAttachment) {
    attachment.status = None;
    let persistent_volume_name = attachment.spec.source.persistent_volume_name.take();
    attachment.spec.source = VolumeAttachmentSource { persistent_volume_name, ..VolumeAttachmentSource::default() };
}

pub(super) fn storage_class(class: &mut StorageClass) {
    class.parameters = None;
    class.mount_options = None;
}

/// Most of what an instance gets is nobody's business. What drift looks at of it is the hash, which stays.
pub(super) fn class(class: &mut EC2NodeClass) {
    let hash = class_hash(class);
    class.metadata.annotations.get_or_insert_default().insert(keys::HASH_BEFORE_REDACTION.to_owned(), hash);
}

/// Annotations of nodes may be anything, and are part of the hash.
pub(super) fn pool(pool: &mut NodePool) {
    if !pool.spec.template.metadata.annotations.is_empty() {
        let hash = node_pool_hash(pool);
        pool.metadata.annotations.get_or_insert_default().insert(keys::HASH_BEFORE_REDACTION.to_owned(), hash);
    }
}
