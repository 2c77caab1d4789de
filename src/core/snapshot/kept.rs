//! What a written snapshot has of each kind, so that it can be shown to others. What is kept is listed, and not what is left out: a field
//! of a later Kubernetes release stays out until somebody looks at it. `schemas/snapshot.md` is made from these tables.

use serde_json::Value;

use cutlist_api::keys;

use crate::model::shown_hash::shown;

/// Fields of every object's metadata. Labels stay as they are: selectors of whatever is planned look at them.
pub const METADATA: &[&str] = &[
    "metadata.annotations",
    "metadata.creationTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.deletionTimestamp",
    "metadata.finalizers",
    "metadata.generation",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.ownerReferences",
    "metadata.uid",
];

/// Annotations that planning, disruption or the binding of volumes look at.
pub const ANNOTATIONS: &[&str] = &[
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "controller.kubernetes.io/pod-deletion-cost",
    "kubernetes.io/config.mirror",
    "kubernetes.io/config.source",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "pv.kubernetes.io/provisioned-by",
    "storageclass.kubernetes.io/is-default-class",
    "volume.beta.kubernetes.io/storage-class",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
    keys::CAPACITY_RESERVATION_ID,
    keys::CAPACITY_RESERVATION_TYPE,
    keys::DEFINED_IN,
    keys::DESTINATIONS,
    keys::DO_NOT_CONSOLIDATE,
    keys::DO_NOT_DISRUPT,
    keys::DO_NOT_EVICT,
    keys::EARLY_ENDS,
    keys::EC2_NODE_CLASS_HASH,
    keys::EC2_NODE_CLASS_HASH_VERSION,
    keys::HASH_BEFORE_REDACTION,
    keys::LAUNCHED_CLASS_HASH,
    keys::LAUNCHED_SELECTORS,
    keys::LAUNCH_ALTERNATIVES,
    keys::MIN_VALUES_RELAXED,
    keys::MOVE,
    keys::NODE_POOL_HASH,
    keys::NODE_POOL_HASH_VERSION,
    keys::PAYBACK,
    keys::PLAN,
    keys::PODS,
    keys::REFUSED_NODES,
    keys::REMOVAL_CONFIRMED,
    keys::REPLACED_BY,
    keys::REVISION,
    keys::ROLLOUT_FAILURES,
    keys::TENANCY,
    keys::TOO_MANY_TERMS,
    keys::WAVE,
    keys::WAVE_WAITS_SINCE,
];

/// Of the specification of a pod, or of the template of one, whatever decides where it can run.
pub const POD_SPEC: &[&str] = &[
    "affinity",
    "containers.name",
    "containers.ports.containerPort",
    "containers.ports.hostIP",
    "containers.ports.hostPort",
    "containers.ports.protocol",
    "containers.resources.limits",
    "containers.resources.requests",
    "containers.restartPolicy",
    "hostNetwork",
    "initContainers.name",
    "initContainers.ports.containerPort",
    "initContainers.ports.hostIP",
    "initContainers.ports.hostPort",
    "initContainers.ports.protocol",
    "initContainers.resources.limits",
    "initContainers.resources.requests",
    "initContainers.restartPolicy",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "resources.limits",
    "resources.requests",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes.ephemeral.volumeClaimTemplate.spec",
    "volumes.name",
    "volumes.persistentVolumeClaim.claimName",
];

/// Of the status of a condition that is not said to be true, and of what a plan repeats, the message stays: see [`MESSAGES`].
const CONDITION: [&str; 6] = ["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"];

/// Fields of one kind beside [`METADATA`]; `(pod)` stands for [`POD_SPEC`], `(condition)` for the fields of a condition.
pub const KINDS: &[(&str, &[&str])] = &[
    ("CSINode", &["spec.drivers.allocatable", "spec.drivers.name", "spec.drivers.nodeID", "spec.drivers.topologyKeys"]),
    (
        "CapacityBuffer",
        &[
            "spec.limits",
            "spec.percentage",
            "spec.podTemplateRef",
            "spec.provisioningStrategy",
            "spec.replicas",
            "spec.scalableRef",
        ],
    ),
    (
        "DaemonSet",
        &["spec.selector", "spec.template.metadata.labels", "spec.template.spec.(pod)", "spec.updateStrategy"],
    ),
    ("Deployment", &["spec.replicas", "spec.selector", "spec.template.metadata.labels", "spec.template.spec.(pod)"]),
    ("DeviceClass", &["spec.extendedResourceName", "spec.selectors"]),
    ("DisruptionBudget", &["spec"]),
    (
        "EC2NodeClass",
        &[
            "spec.amiFamily",
            "spec.amiSelectorTerms",
            "spec.blockDeviceMappings.deviceName",
            "spec.blockDeviceMappings.ebs.volumeSize",
            "spec.blockDeviceMappings.ebs.volumeType",
            "spec.blockDeviceMappings.rootVolume",
            "spec.capacityReservationSelectorTerms",
            "spec.cpuOptions",
            "spec.instanceStorePolicy",
            "spec.ipPrefixCount",
            "spec.kubelet.cpuCFSQuota",
            "spec.kubelet.evictionHard",
            "spec.kubelet.evictionMaxPodGracePeriod",
            "spec.kubelet.evictionSoft",
            "spec.kubelet.evictionSoftGracePeriod",
            "spec.kubelet.kubeReserved",
            "spec.kubelet.maxPods",
            "spec.kubelet.podsPerCore",
            "spec.kubelet.systemReserved",
            "spec.metadataOptions",
            "spec.networkInterfaces",
            "spec.placementGroupSelector",
            "spec.securityGroupSelectorTerms",
            "spec.subnetSelectorTerms",
            "status.amis",
            "status.capacityReservations",
            "status.conditions.(condition)",
            "status.securityGroups",
            "status.subnets",
        ],
    ),
    (
        "Job",
        &[
            "spec.completions",
            "spec.parallelism",
            "spec.selector",
            "spec.suspend",
            "spec.template.metadata.labels",
            "spec.template.spec.(pod)",
            "status.active",
            "status.completionTime",
            "status.conditions.(condition)",
            "status.failed",
            "status.startTime",
            "status.succeeded",
        ],
    ),
    ("LimitRange", &["spec"]),
    ("Namespace", &["status.phase"]),
    (
        "Node",
        &[
            "spec.providerID",
            "spec.taints",
            "spec.unschedulable",
            "status.allocatable",
            "status.capacity",
            "status.conditions.(condition)",
            "status.conditions.lastHeartbeatTime",
            "status.phase",
        ],
    ),
    (
        "NodeClaim",
        &[
            "spec",
            "status.allocatable",
            "status.capacity",
            "status.conditions.(condition)",
            "status.imageID",
            "status.lastPodEventTime",
            "status.nodeName",
            "status.providerID",
        ],
    ),
    ("NodeOverlay", &["spec", "status.conditions.(condition)"]),
    (
        "NodePlan",
        &[
            "spec.generatedFor",
            "spec.leaseTransitions",
            "spec.nodesCreated",
            "spec.nodesRemoved",
            "spec.planId",
            "spec.priceChange",
            "spec.revision",
            "status.conditions.(condition)",
            "status.fidelity",
            "status.movesBegun",
            "status.observedGeneration",
            "status.phase",
        ],
    ),
    (
        "NodePool",
        &[
            "spec.disruption",
            "spec.limits",
            "spec.replicas",
            "spec.template.metadata.labels",
            "spec.template.spec",
            "spec.weight",
            "status.conditions.(condition)",
            "status.nodeClassObservedGeneration",
            "status.nodes",
            "status.resources",
        ],
    ),
    (
        "PersistentVolume",
        &[
            "spec.accessModes",
            "spec.awsElasticBlockStore.volumeID",
            "spec.capacity",
            "spec.claimRef",
            "spec.csi.driver",
            "spec.csi.volumeHandle",
            "spec.hostPath.path",
            "spec.local.path",
            "spec.nodeAffinity",
            "spec.persistentVolumeReclaimPolicy",
            "spec.storageClassName",
            "spec.volumeAttributesClassName",
            "spec.volumeMode",
            "status.phase",
        ],
    ),
    (
        "PersistentVolumeClaim",
        &[
            "spec.accessModes",
            "spec.resources",
            "spec.selector",
            "spec.storageClassName",
            "spec.volumeAttributesClassName",
            "spec.volumeMode",
            "spec.volumeName",
            "status.accessModes",
            "status.capacity",
            "status.phase",
        ],
    ),
    (
        "Pod",
        &[
            "spec.(pod)",
            "status.conditions.(condition)",
            "status.containerStatuses.allocatedResources",
            "status.containerStatuses.name",
            "status.containerStatuses.resources",
            "status.initContainerStatuses.allocatedResources",
            "status.initContainerStatuses.name",
            "status.initContainerStatuses.resources",
            "status.nominatedNodeName",
            "status.phase",
            "status.resize",
            "status.resourceClaimStatuses",
            "status.startTime",
        ],
    ),
    (
        "PodDisruptionBudget",
        &[
            "spec",
            "status.currentHealthy",
            "status.desiredHealthy",
            "status.disruptedPods",
            "status.disruptionsAllowed",
            "status.expectedPods",
            "status.observedGeneration",
        ],
    ),
    ("PodTemplate", &["template.metadata.labels", "template.spec.(pod)"]),
    ("PriorityClass", &["globalDefault", "preemptionPolicy", "value"]),
    (
        "ReplicaSet",
        &[
            "spec.replicas",
            "spec.selector",
            "spec.template.metadata.labels",
            "spec.template.spec.(pod)",
            "status.replicas",
        ],
    ),
    ("ReplicationController", &["spec.replicas", "spec.selector"]),
    ("ResourceClaim", &["spec", "status.allocation", "status.reservedFor"]),
    ("ResourceClaimTemplate", &["spec.metadata.labels", "spec.spec"]),
    ("ResourceSlice", &["spec"]),
    ("RuntimeClass", &["handler", "overhead.podFixed", "scheduling.nodeSelector", "scheduling.tolerations"]),
    ("Service", &["spec.selector"]),
    (
        "StatefulSet",
        &[
            "spec.replicas",
            "spec.selector",
            "spec.serviceName",
            "spec.template.metadata.labels",
            "spec.template.spec.(pod)",
            "spec.volumeClaimTemplates.metadata.labels",
            "spec.volumeClaimTemplates.metadata.name",
            "spec.volumeClaimTemplates.spec",
        ],
    ),
    (
        "StorageClass",
        &["allowVolumeExpansion", "allowedTopologies", "provisioner", "reclaimPolicy", "volumeBindingMode"],
    ),
    ("VolumeAttachment", &["spec.attacher", "spec.nodeName", "spec.source.persistentVolumeName"]),
];

/// Conditions whose message a plan repeats.
#[derive(Debug)]
pub struct Messages {
    pub kind: &'static str,
    pub always: &'static [&'static str],
    /// Those of them that are not true.
    pub unless_true: &'static [&'static str],
}

/// Of all other conditions the message is empty.
pub const MESSAGES: &[Messages] = &[
    Messages {
        kind: "EC2NodeClass",
        always: &[],
        unless_true: &[
            "AMIsReady",
            "CapacityReservationsReady",
            "InstanceProfileReady",
            "PlacementGroupReady",
            "Ready",
            "SecurityGroupsReady",
            "SubnetsReady",
            "ValidationSucceeded",
        ],
    },
    Messages { kind: "Node", always: &[], unless_true: &["Ready"] },
    Messages {
        kind: "NodeClaim",
        always: &["Drifted", "Interrupted"],
        unless_true: &["Launched", "Registered", "Initialized"],
    },
    Messages { kind: "Pod", always: &[], unless_true: &["PodScheduled"] },
];

/// Every path that is kept of a kind, in the order of the alphabet.
pub fn paths(kind: &str) -> Vec<String> {
    let fields = KINDS.iter().find(|(name, _)| *name == kind).map(|(_, fields)| *fields).unwrap_or_default();
    let mut paths: Vec<String> = METADATA.iter().map(|path| (*path).to_owned()).collect();
    for field in fields {
        if let Some(before) = field.strip_suffix("(pod)") {
            paths.extend(POD_SPEC.iter().map(|of_pod| format!("{before}{of_pod}")));
        } else if let Some(before) = field.strip_suffix("(condition)") {
            paths.extend(CONDITION.map(|of_condition| format!("{before}{of_condition}")));
        } else {
            paths.push((*field).to_owned());
        }
    }
    paths.sort();
    paths
}

/// Whether something that is there was left out when an object of this kind was written.
pub fn leaves_out(kind: &str, object: &Value, pointer: &str) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    let is_redacted = annotations.and_then(|annotations| annotations.get(keys::HASH_BEFORE_REDACTION)).is_some();
    if !is_redacted {
        return false;
    }
    let names = pointer.split('/').skip(1).filter(|name| name.parse::<usize>().is_err());
    let path = names.collect::<Vec<_>>().join(".");
    !paths(kind).iter().any(|kept| {
        let is_below = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        is_below(&path, kept) || is_below(kept, &path)
    })
}

/// Takes away what is not kept of an object of this kind.
pub(super) fn filter(kind: &str, paths: &[Vec<&str>], object: &mut Value) {
    let all: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
    retain(object, &all);
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| ANNOTATIONS.contains(&key.as_str()));
        for (key, value) in annotations {
            if let Some(shown) = value.as_str().and_then(|text| without_whole_hash(kind, key, text)) {
                *value = Value::from(shown);
            }
        }
    }
    let kept = MESSAGES.iter().find(|messages| messages.kind == kind);
    for condition in object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
        let (type_, is_true) = (text("type"), text("status") == "True");
        let is_repeated =
            kept.is_some_and(|kept| kept.always.contains(&type_) || (!is_true && kept.unless_true.contains(&type_)));
        let keeps = is_repeated && (kind != "Pod" || is_of_scheduler(condition));
        if let Some(message) = condition.get_mut("message").filter(|_| !keeps) {
            *message = Value::from("");
        }
    }
}

/// An annotation that holds a hash over a class, user data and all, with a part of it; `None` where it holds none.
fn without_whole_hash(kind: &str, key: &str, text: &str) -> Option<String> {
    match key {
        keys::EC2_NODE_CLASS_HASH | keys::LAUNCHED_CLASS_HASH => Some(shown(text)),
        keys::HASH_BEFORE_REDACTION if kind == "EC2NodeClass" => Some(shown(text)),
        keys::EARLY_ENDS | keys::REFUSED_NODES | keys::ROLLOUT_FAILURES => {
            let mut noted: Value = serde_json::from_str(text).ok()?;
            let hash = noted.get_mut("templateHash")?;
            *hash = Value::from(shown(hash.as_str()?));
            Some(noted.to_string())
        }
        _ => None,
    }
}

/// `0/5 nodes are available: ...`
fn is_of_scheduler(condition: &Value) -> bool {
    let message = condition.get("message").and_then(Value::as_str).unwrap_or_default();
    let counts = message.split_once(" nodes are available").and_then(|(counts, _)| counts.split_once('/'));
    counts.is_some_and(|(some, all)| [some, all].iter().all(|count| count.parse::<u64>().is_ok()))
}

fn retain(value: &mut Value, paths: &[&[&str]]) {
    match value {
        Value::Object(fields) => fields.retain(|key, value| {
            let below: Vec<&[&str]> = paths
                .iter()
                .filter_map(|path| {
                    path.split_first().filter(|(first, _)| **first == key.as_str()).map(|(_, rest)| rest)
                })
                .collect();
            if !below.is_empty() && !below.iter().any(|rest| rest.is_empty()) {
                retain(value, &below);
            }
            !below.is_empty()
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| retain(item, paths)),
        // A text where fields are expected is none of those that are kept.
        other => *other = Value::Null,
    }
}
