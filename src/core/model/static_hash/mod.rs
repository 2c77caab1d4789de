//! Hashes over the parts of definitions whose change makes existing nodes drift: the very numbers that Karpenter writes
//! into `karpenter.sh/nodepool-hash` and `karpenter.k8s.aws/ec2nodeclass-hash`, so that nodes which Karpenter made do
//! not drift when Cutlist looks at them, nor the other way round.
//!
//! Sources: the Go modules `sigs.k8s.io/karpenter` and `github.com/aws/karpenter-provider-aws`, v1.14.1, and the library
//! that they hash with (`structural.rs`). The tables of the tests come from a program built from these modules.

mod structural;
#[cfg(test)]
mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::hexadecimal;
use cutlist_api::duration::NillableDuration;
use cutlist_api::ec2_node_class::{BlockDevice, BlockDeviceMapping, EC2NodeClass, EC2NodeClassSpec};
use cutlist_api::keys;
use cutlist_api::node_pool::{IntOrString, NodeClaimTemplate, NodePool, Taint};

use structural::{Field, boolean, bytes, integer, integer32, list, map, set, structure, text};

/// The version of the hashes that are computed here; those of another version cannot be compared.
pub const HASH_VERSION: &str = "v3";

/// What Karpenter writes into `karpenter.sh/nodepool-hash`, version `v3`: over the template without its requirements,
/// which are compared with each node instead.
///
/// An empty map or list that is written out (`labels: {}`) hashes as one that is absent; Karpenter tells them apart.
pub fn node_pool_hash(pool: &NodePool) -> String {
    if let Some(hash) = before_redaction(&pool.metadata) {
        return hash;
    }
    template(&pool.spec.template).to_string()
}

/// What Karpenter writes into `karpenter.k8s.aws/ec2nodeclass-hash`, version `v5`: over the class without what is looked
/// up (subnets, security groups, images, reservations), with the resolved image family and the cluster's CA bundle.
///
/// Fields of `kubelet` that v1.14.1 does not know are hashed as their JSON.
pub fn ec2_node_class_hash(spec: &EC2NodeClassSpec, cluster_ca_bundle: Option<&str>) -> String {
    let family = spec.resolved_ami_family();
    let family =
        serde_json::to_value(family).ok().and_then(|family| family.as_str().map(text)).unwrap_or_else(|| text(""));
    list([node_class(spec), family, text(cluster_ca_bundle.unwrap_or_default())]).to_string()
}

/// [`ec2_node_class_hash`] without the bundle, also of a class of which a snapshot left something out.
pub fn class_hash(class: &EC2NodeClass) -> String {
    before_redaction(&class.metadata).unwrap_or_else(|| ec2_node_class_hash(&class.spec, None))
}

/// SHA-256 over all that a definition says, in hexadecimal, for those who approve what is launched of it: Karpenter's hashes leave out what
/// is looked up, and are numbers that somebody can hit on purpose.
pub fn whole_hash(definition: &Value) -> String {
    hexadecimal(Sha256::digest(definition.to_string()))
}

fn before_redaction(metadata: &ObjectMeta) -> Option<String> {
    metadata.annotations.as_ref()?.get(keys::HASH_BEFORE_REDACTION).cloned()
}

fn template(template: &NodeClaimTemplate) -> u64 {
    let metadata = &template.metadata;
    let labels = strings(metadata.labels.iter());
    let annotations = strings(metadata.annotations.iter());
    let has_metadata = labels.is_some() || annotations.is_some();
    let metadata = structure("ObjectMeta", [("Labels", labels), ("Annotations", annotations)]);
    let spec = &template.spec;
    let reference = structure(
        "NodeClassReference",
        [
            ("Kind", word(&spec.node_class_ref.kind)),
            ("Name", word(&spec.node_class_ref.name)),
            ("Group", word(&spec.node_class_ref.group)),
        ],
    );
    let grace = spec.termination_grace_period.as_ref().and_then(nanoseconds);
    // A zero duration is left out of its wrapper, which itself stays.
    let grace = grace.map(|grace| structure("Duration", [("Duration", (grace != 0).then(|| integer(grace)))]));
    let expire_after = spec.expire_after.as_ref().and_then(nanoseconds);
    // Here the wrapper holds a pointer: zero is a value, and `Never` is none.
    let expire_after = expire_after.map(|after| structure("NillableDuration", [("Duration", Some(integer(after)))]));
    let fields = [
        ("Taints", taints(&spec.taints)),
        ("StartupTaints", taints(&spec.startup_taints)),
        ("NodeClassRef", Some(reference)),
        ("TerminationGracePeriod", grace),
        ("ExpireAfter", expire_after),
    ];
    let spec = structure("NodeClaimTemplateSpec", fields);
    structure("NodeClaimTemplate", [("ObjectMeta", has_metadata.then_some(metadata)), ("Spec", Some(spec))])
}

/// `None` for `Never`. More nanoseconds than Go counts can not be applied, so any number will do.
fn nanoseconds(duration: &NillableDuration) -> Option<i64> {
    duration.seconds().map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000_000))
}

fn taints(taints: &[Taint]) -> Option<u64> {
    (!taints.is_empty()).then(|| set(taints.iter().map(taint)))
}

fn taint(taint: &Taint) -> u64 {
    let added = taint.time_added.as_deref().map(|added| structure("Time", [("Time", time(added))]));
    structure(
        "Taint",
        [
            ("Key", word(&taint.key)),
            ("Value", taint.value.as_deref().and_then(word)),
            ("Effect", word(&format!("{:?}", taint.effect))),
            ("TimeAdded", added),
        ],
    )
}

/// A time as Go's binary form has it: version, seconds since year 1, nanoseconds, offset in minutes. Karpenter runs in UTC.
fn time(text: &str) -> Option<u64> {
    const SECONDS_FROM_YEAR_1_TO_1970: i64 = 62_135_596_800;
    let time: jiff::Timestamp = text.parse().ok()?;
    let nanosecond = time.subsec_nanosecond();
    let (second, nanosecond) = if nanosecond < 0 {
        (time.as_second() - 1, nanosecond + 1_000_000_000)
    } else {
        (time.as_second(), nanosecond)
    };
    let mut binary = vec![1];
    binary.extend((second + SECONDS_FROM_YEAR_1_TO_1970).to_be_bytes());
    binary.extend(nanosecond.to_be_bytes());
    binary.extend(0_i16.to_be_bytes());
    Some(bytes(&binary))
}

/// Fields in the order of Go's struct, which counts.
fn node_class(spec: &EC2NodeClassSpec) -> u64 {
    let group = spec.placement_group_selector.as_ref().map(|group| {
        let fields = [("Name", optional(group.name.as_deref())), ("ID", optional(group.id.as_deref()))];
        structure("PlacementGroupSelector", fields)
    });
    let mappings = &spec.block_device_mappings;
    let interfaces = spec.network_interfaces.iter().map(|interface| {
        let fields = [
            ("NetworkCardIndex", nonzero32(interface.network_card_index)),
            ("DeviceIndex", nonzero32(interface.device_index)),
            ("InterfaceType", interface.interface_type.as_deref().and_then(word)),
        ];
        structure("NetworkInterface", fields)
    });
    let metadata = &spec.metadata_options;
    let metadata_fields = [
        ("HTTPEndpoint", optional(metadata.http_endpoint.as_deref())),
        ("HTTPProtocolIPv6", optional(metadata.http_protocol_ipv6.as_deref())),
        ("HTTPPutResponseHopLimit", metadata.http_put_response_hop_limit.map(integer)),
        ("HTTPTokens", optional(metadata.http_tokens.as_deref())),
    ];
    let tracking = spec.connection_tracking.as_ref().map(|tracking| {
        let fields = [
            ("TCPEstablishedTimeout", tracking.tcp_established_timeout.map(integer32)),
            ("UDPStreamTimeout", tracking.udp_stream_timeout.map(integer32)),
            ("UDPTimeout", tracking.udp_timeout.map(integer32)),
        ];
        structure("ConnectionTracking", fields)
    });
    let options = spec.cpu_options.as_ref().map(|options| {
        structure("CPUOptions", [("NestedVirtualization", optional(options.nested_virtualization.as_deref()))])
    });
    let policy = spec.instance_store_policy.as_ref().map(|policy| text(&format!("{policy:?}")));
    let fields: [Field<'_>; 14] = [
        ("PlacementGroupSelector", group),
        ("AssociatePublicIPAddress", spec.associate_public_ip_address.map(boolean)),
        ("UserData", optional(spec.user_data.as_deref())),
        ("Role", spec.role.as_deref().and_then(word)),
        ("InstanceProfile", optional(spec.instance_profile.as_deref())),
        ("Tags", strings(spec.tags.iter())),
        (
            "Kubelet",
            spec.kubelet.as_ref().map(|kubelet| kubelet_configuration(&|name| kubelet.get(name), kubelet.iter())),
        ),
        ("BlockDeviceMappings", (!mappings.is_empty()).then(|| set(mappings.iter().map(block_device_mapping)))),
        ("InstanceStorePolicy", policy),
        ("NetworkInterfaces", (!spec.network_interfaces.is_empty()).then(|| set(interfaces))),
        ("DetailedMonitoring", spec.detailed_monitoring.map(boolean)),
        ("MetadataOptions", Some(structure("MetadataOptions", metadata_fields))),
        ("ConnectionTracking", tracking),
        ("Context", optional(spec.context.as_deref())),
    ];
    structure("EC2NodeClassSpec", fields.into_iter().chain([("CPUOptions", options)]))
}

/// Fields of `kubelet` that v1.14.1 knows: name in the document, name in Go, form.
const KUBELET: [(&str, &str, KubeletForm); 12] = [
    ("clusterDNS", "ClusterDNS", KubeletForm::Strings),
    ("maxPods", "MaxPods", KubeletForm::Integer32),
    ("podsPerCore", "PodsPerCore", KubeletForm::Integer32),
    ("systemReserved", "SystemReserved", KubeletForm::Map),
    ("kubeReserved", "KubeReserved", KubeletForm::Map),
    ("evictionHard", "EvictionHard", KubeletForm::Map),
    ("evictionSoft", "EvictionSoft", KubeletForm::Map),
    ("evictionSoftGracePeriod", "EvictionSoftGracePeriod", KubeletForm::Durations),
    ("evictionMaxPodGracePeriod", "EvictionMaxPodGracePeriod", KubeletForm::Integer32),
    ("imageGCHighThresholdPercent", "ImageGCHighThresholdPercent", KubeletForm::Integer32),
    ("imageGCLowThresholdPercent", "ImageGCLowThresholdPercent", KubeletForm::Integer32),
    ("cpuCFSQuota", "CPUCFSQuota", KubeletForm::Boolean),
];

#[derive(Clone, Copy)]
enum KubeletForm {
    Strings,
    Integer32,
    Map,
    Durations,
    Boolean,
}

fn kubelet_configuration<'a>(
    get: &dyn Fn(&str) -> Option<&'a Value>,
    all: impl Iterator<Item = (&'a String, &'a Value)>,
) -> u64 {
    let known = KUBELET.map(|(name, field, form)| (field, get(name).map(|value| kubelet_value(value, form))));
    let unknown = all.filter(|(name, _)| !KUBELET.iter().any(|(known, ..)| known == name));
    let unknown = unknown.map(|(name, value)| (name.as_str(), Some(text(&value.to_string()))));
    structure("KubeletConfiguration", known.into_iter().chain(unknown))
}

/// A value that has not the form of its field can not be applied; it is hashed as its JSON.
fn kubelet_value(value: &Value, form: KubeletForm) -> u64 {
    let hash = match form {
        KubeletForm::Strings => value.as_array().map(|list| set(list.iter().map(plain))),
        KubeletForm::Integer32 => value.as_i64().and_then(|value| i32::try_from(value).ok()).map(integer32),
        KubeletForm::Map => {
            value.as_object().map(|object| map(object.iter().map(|(key, value)| (text(key), plain(value)))))
        }
        KubeletForm::Durations => {
            value.as_object().map(|object| map(object.iter().map(|(key, value)| (text(key), grace_period(value)))))
        }
        KubeletForm::Boolean => value.as_bool().map(boolean),
    };
    hash.unwrap_or_else(|| text(&value.to_string()))
}

fn plain(value: &Value) -> u64 {
    value.as_str().map_or_else(|| text(&value.to_string()), text)
}

fn grace_period(value: &Value) -> u64 {
    let duration = value.as_str().and_then(|text| text.parse().ok());
    match duration.as_ref().and_then(nanoseconds) {
        Some(duration) => structure("Duration", [("Duration", (duration != 0).then(|| integer(duration)))]),
        None => plain(value),
    }
}

fn block_device_mapping(mapping: &BlockDeviceMapping) -> u64 {
    let fields = [
        ("DeviceName", optional(mapping.device_name.as_deref())),
        ("EBS", mapping.ebs.as_ref().map(block_device)),
        ("RootVolume", mapping.root_volume.then(|| boolean(true))),
    ];
    structure("BlockDeviceMapping", fields)
}

fn block_device(device: &BlockDevice) -> u64 {
    let fields = [
        ("DeleteOnTermination", device.delete_on_termination.map(boolean)),
        ("Encrypted", device.encrypted.map(boolean)),
        ("IOPS", device.iops.map(integer)),
        ("KMSKeyID", optional(device.kms_key_id.as_deref())),
        ("SnapshotID", optional(device.snapshot_id.as_deref())),
        ("Throughput", device.throughput.map(integer)),
        ("VolumeInitializationRate", device.volume_initialization_rate.map(integer32)),
        ("VolumeSize", device.volume_size.as_ref().map(|size| text(&volume_size(size)))),
        ("VolumeType", optional(device.volume_type.as_deref())),
    ];
    structure("BlockDevice", fields)
}

/// The size as Kubernetes writes it back: in the largest unit that it is a whole number of.
fn volume_size(size: &IntOrString) -> String {
    let size = size.to_string();
    for (unit, larger, factor) in [("Gi", "Ti", 1024), ("G", "T", 1000)] {
        let count = size.strip_suffix(unit).and_then(|count| count.parse::<u64>().ok());
        if let Some(count) = count.filter(|count| *count > 0 && count.is_multiple_of(factor)) {
            return format!("{}{larger}", count / factor);
        }
    }
    size
}

/// A string in Go: empty is zero, and left out.
fn word(value: &str) -> Option<u64> {
    (!value.is_empty()).then(|| text(value))
}

/// A pointer to a string in Go: empty is a value.
fn optional(value: Option<&str>) -> Option<u64> {
    value.map(text)
}

fn nonzero32(value: i32) -> Option<u64> {
    (value != 0).then(|| integer32(value))
}

fn strings<'a>(entries: impl ExactSizeIterator<Item = (&'a String, &'a String)>) -> Option<u64> {
    (entries.len() > 0).then(|| map(entries.map(|(key, value)| (text(key), text(value)))))
}
