//! The kinds that a snapshot holds: the one table that reading, merging and writing go by.
//!
//! To add a kind: a field of [`Snapshot`], an implementation of [`Stored`], an entry in [`KINDS`].

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, PodTemplate, ReplicationController, Service,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use cutlist_api::capacity_buffer::CapacityBuffer;
use cutlist_api::disruption_budget::DisruptionBudget;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_plan::NodePlan;
use cutlist_api::node_pool::NodePool;

use super::kept;
use super::list::{Numbered, Objects};
use super::object::Object;
use super::objects::Snapshot;
use super::parse::parse;
use super::pod::{Pod, PodIndex};
use super::trim;

/// Takes one written object.
type Sink<'s> = dyn FnMut(&Value) -> serde_json::Result<()> + 's;

/// Puts an object that was read into a snapshot.
pub(super) type Keep = Box<dyn FnOnce(&mut Snapshot, &mut Makers) + Send>;

/// What is done with the objects of one kind.
pub(super) struct Kind {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    /// Reads and trims one object; the error says which field is wrong.
    pub(super) read: fn(&Object<'_>) -> Result<Keep, String>,
    /// Moves the objects of the second snapshot into the first.
    pub(super) merge: fn(&mut Snapshot, &mut Snapshot, &mut Merged),
    /// Hands over the objects by namespace and name, trimmed and redacted, one at a time.
    pub(super) write: fn(&Snapshot, &mut Sink<'_>) -> serde_json::Result<()>,
}

/// Does something once for each kind.
pub trait ForEachKind {
    fn kind<T: Stored>(&mut self);
}

macro_rules! kinds {
    ($($kind:ident),* $(,)?) => {
        /// In the order in which a snapshot is written: by kind.
        pub(super) const KINDS: &[Kind] = &[$(kind::<$kind>()),*];

        /// Calls `action` for every kind that a snapshot holds.
        pub fn for_each_kind(action: &mut impl ForEachKind) {
            $(action.kind::<$kind>();)*
        }
    };
}

kinds! {
    CSINode, CapacityBuffer, DaemonSet, Deployment, DeviceClass, DisruptionBudget, EC2NodeClass, Job, LimitRange,
    Namespace, Node, NodeClaim, NodeOverlay, NodePlan, NodePool, PersistentVolume, PersistentVolumeClaim, Pod,
    PodDisruptionBudget, PodTemplate, PriorityClass, ReplicaSet, ReplicationController, ResourceClaim,
    ResourceClaimTemplate, ResourceSlice, RuntimeClass, Service, StatefulSet, StorageClass, VolumeAttachment,
}

/// Whether every API server of a supported Kubernetes has the group in this version. One that says it has not is no such API server: it is
/// another address, or a gateway that answers for it.
pub fn is_in_every_cluster(api_version: &str) -> bool {
    let groups = ["v1", "apps/v1", "batch/v1", "policy/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1"];
    groups.contains(&api_version)
}

const fn kind<T: Stored>() -> Kind {
    Kind { api_version: T::API_VERSION, kind: T::KIND, read: read::<T>, merge: merge::<T>, write: write::<T> }
}

/// A kind that a snapshot holds.
pub trait Stored: DeserializeOwned + Serialize + Clone + Debug + Send + Sync + 'static {
    const API_VERSION: &'static str;
    const KIND: &'static str;
    /// Its name in paths and permissions.
    const RESOURCE: &'static str;
    const NAMESPACED: bool;
    fn all(snapshot: &Snapshot) -> &Objects<Self>;
    fn all_mut(snapshot: &mut Snapshot) -> &mut Objects<Self>;
    /// Namespace (empty for kinds without), name, UID (empty when unknown).
    fn key(&self) -> (&str, &str, &str);
    /// Of the API server's; empty when unknown, and after trimming.
    fn resource_version(&self) -> &str;
    /// For one that was trimmed, where somebody asks for the version.
    fn set_resource_version(&mut self, version: String);
    /// Gives a namespaced object that states no namespace the one that `kubectl` would: `default`.
    fn complete(&mut self);
    /// Takes off what planning does not look at.
    fn trim(&mut self);
    /// The UID of what made this object and others that are much the same; empty when nothing did.
    fn owner(&self) -> &str {
        ""
    }
    /// Keeps of another object of the same maker what is equal.
    fn share_with(&mut self, _other: &Self) {}
    /// Takes off what must not leave the cluster. Only before writing: planning may compare it.
    fn redact(&mut self) {}
}

/// By kind and by the UID of their maker, where the first object of those that are much the same is.
#[derive(Default)]
pub(super) struct Makers(BTreeMap<&'static str, BTreeMap<String, usize>>);

impl Makers {
    /// The first object of the maker; none where the next one is the first.
    fn first<'s, T: Stored>(&mut self, maker: &str, objects: &'s Objects<T>) -> Option<&'s T> {
        if maker.is_empty() {
            return None;
        }
        let of_kind = self.0.entry(T::KIND).or_default();
        let first = of_kind.get(maker).and_then(|first| objects.shared().get(*first)).map(Arc::as_ref);
        if first.is_none() {
            of_kind.insert(maker.to_owned(), objects.len());
        }
        first
    }
}

/// Of a name and of a namespace: what an API server keeps of one. All that is shown is aligned by names.
pub const NAME_BYTES_MAX: usize = 253;

fn read<T: Stored>(object: &Object<'_>) -> Result<Keep, String> {
    let mut value: T = parse(object)?;
    if value.key().1.is_empty() {
        return Err("metadata.name: missing".to_owned());
    }
    let (namespace, name, _) = value.key();
    for (field, text) in [("name", name), ("namespace", namespace)] {
        if text.len() > NAME_BYTES_MAX {
            return Err(format!("metadata.{field}: it has {} bytes, and the most is {NAME_BYTES_MAX}", text.len()));
        }
    }
    value.complete();
    value.trim();
    Ok(Box::new(move |snapshot, makers| {
        if let Some(first) = makers.first(value.owner(), T::all(snapshot)) {
            value.share_with(first);
        }
        T::all_mut(snapshot).push(value);
    }))
}

fn merge<T: Stored>(into: &mut Snapshot, from: &mut Snapshot, merged: &mut Merged) {
    let objects = T::all_mut(into).shared_mut();
    objects.append(T::all_mut(from).shared_mut());
    // Stable: of two with one name the later stays behind the earlier.
    objects.sort_by(|left, right| place(left.as_ref()).cmp(&place(right.as_ref())));
    objects.dedup_by(|later, earlier| {
        let same = place(later.as_ref()) == place(earlier.as_ref());
        if same {
            merged.count(T::KIND, later.key(), earlier.key());
            std::mem::swap(later, earlier);
        }
        same
    });
}

/// Namespace and name: the order in which a snapshot keeps the objects of a kind.
pub fn place<T: Stored>(object: &T) -> (&str, &str) {
    let (namespace, name, _) = object.key();
    (namespace, name)
}

fn write<T: Stored>(snapshot: &Snapshot, hand_over: &mut Sink<'_>) -> serde_json::Result<()> {
    let mut objects: Vec<&T> = T::all(snapshot).iter().collect();
    objects.sort_by(|left, right| place(*left).cmp(&place(*right)));
    let paths = kept::paths(T::KIND);
    let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
    for object in objects {
        let mut object = object.clone();
        object.trim();
        object.redact();
        let mut fields = serde_json::Map::new();
        fields.insert("apiVersion".to_owned(), T::API_VERSION.into());
        fields.insert("kind".to_owned(), T::KIND.into());
        let mut value = serde_json::to_value(&object)?;
        kept::filter(T::KIND, &paths, &mut value);
        if let Value::Object(rest) = value {
            fields.extend(rest);
        }
        hand_over(&Value::Object(fields))?;
    }
    Ok(())
}

/// Objects that occurred twice.
#[derive(Default)]
pub(super) struct Merged {
    count: usize,
    first: Option<String>,
    /// Nodes of one name and different UIDs: captured at different moments, or from different clusters.
    nodes: Vec<String>,
}

impl Merged {
    fn count(&mut self, kind: &str, later: (&str, &str, &str), earlier: (&str, &str, &str)) {
        let (namespace, name, uid) = later;
        self.count += 1;
        let separator = if namespace.is_empty() { "" } else { "/" };
        self.first.get_or_insert_with(|| format!("{kind} {namespace}{separator}{name}"));
        if kind == "Node" && uid != earlier.2 {
            self.nodes.push(name.to_owned());
        }
    }

    pub(super) fn notes(self) -> Vec<String> {
        let mut notes = Vec::new();
        for name in self.nodes {
            notes.push(format!(
                "two nodes are called {name}; the last one counts; do the files show one cluster at one moment?"
            ));
        }
        match (self.count, self.first) {
            (0, _) | (_, None) => {}
            (1, Some(first)) => notes.push(format!("{first} occurs twice; the last one counts")),
            (count, Some(first)) => notes
                .push(format!("{count} objects occur more than once; the last of each counts (the first is {first})")),
        }
        notes
    }
}

impl Numbered for Pod {
    type Position = PodIndex;
}

impl Stored for Pod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const RESOURCE: &'static str = "pods";
    const NAMESPACED: bool = true;
    fn all(snapshot: &Snapshot) -> &Objects<Self> {
        &snapshot.pods
    }
    fn all_mut(snapshot: &mut Snapshot) -> &mut Objects<Self> {
        &mut snapshot.pods
    }
    fn key(&self) -> (&str, &str, &str) {
        (&self.metadata.namespace, &self.metadata.name, &self.metadata.uid)
    }
    fn resource_version(&self) -> &str {
        &self.metadata.resource_version
    }
    fn set_resource_version(&mut self, version: String) {
        self.metadata.resource_version = version;
    }
    fn complete(&mut self) {
        if self.metadata.namespace.is_empty() {
            "default".clone_into(&mut self.metadata.namespace);
        }
    }
    fn trim(&mut self) {
        trim::pod(self);
    }
    fn owner(&self) -> &str {
        self.controller().map_or("", |owner| owner.uid.as_str())
    }
    fn share_with(&mut self, other: &Self) {
        Self::share_with(self, other);
    }
}

/// The kinds whose metadata is that of `k8s-openapi`.
macro_rules! stored {
    ($($type:ident of $api_version:literal $resource:literal in $field:ident, namespaced: $namespaced:literal $(, trim: $trim:path)? $(, redact: $redact:path)?;)*) => {$(
        impl Numbered for $type {
            type Position = usize;
        }

        impl Stored for $type {
            const API_VERSION: &'static str = $api_version;
            const KIND: &'static str = stringify!($type);
            const RESOURCE: &'static str = $resource;
            const NAMESPACED: bool = $namespaced;
            fn all(snapshot: &Snapshot) -> &Objects<Self> {
                &snapshot.$field
            }
            fn all_mut(snapshot: &mut Snapshot) -> &mut Objects<Self> {
                &mut snapshot.$field
            }
            fn key(&self) -> (&str, &str, &str) {
                key_of(&self.metadata)
            }
            fn resource_version(&self) -> &str {
                self.metadata.resource_version.as_deref().unwrap_or_default()
            }
            fn set_resource_version(&mut self, version: String) {
                self.metadata.resource_version = Some(version);
            }
            fn complete(&mut self) {
                if Self::NAMESPACED {
                    self.metadata.namespace.get_or_insert_with(|| "default".to_owned());
                }
            }
            fn trim(&mut self) {
                trim::metadata(&mut self.metadata);
                $($trim(self);)?
            }
            $(fn redact(&mut self) {
                $redact(self);
            })?
        }
    )*};
}

stored! {
    CSINode of "storage.k8s.io/v1" "csinodes" in csi_nodes, namespaced: false;
    CapacityBuffer of "autoscaling.x-k8s.io/v1beta1" "capacitybuffers" in capacity_buffers, namespaced: true;
    DaemonSet of "apps/v1" "daemonsets" in daemon_sets, namespaced: true, trim: trim::daemon_set;
    Deployment of "apps/v1" "deployments" in deployments, namespaced: true, trim: trim::deployment;
    DeviceClass of "resource.k8s.io/v1" "deviceclasses" in device_classes, namespaced: false, trim: trim::device_class;
    DisruptionBudget of "cutlist.dev/v1alpha1" "disruptionbudgets" in disruption_budgets, namespaced: false;
    EC2NodeClass of "karpenter.k8s.aws/v1" "ec2nodeclasses" in node_classes, namespaced: false, redact: trim::class;
    Job of "batch/v1" "jobs" in jobs, namespaced: true, trim: trim::job;
    LimitRange of "v1" "limitranges" in limit_ranges, namespaced: true;
    Namespace of "v1" "namespaces" in namespaces, namespaced: false;
    Node of "v1" "nodes" in nodes, namespaced: false, trim: trim::node;
    NodeClaim of "karpenter.sh/v1" "nodeclaims" in node_claims, namespaced: false;
    NodeOverlay of "karpenter.sh/v1alpha1" "nodeoverlays" in node_overlays, namespaced: false;
    NodePlan of "cutlist.dev/v1alpha1" "nodeplans" in node_plans, namespaced: false;
    NodePool of "karpenter.sh/v1" "nodepools" in node_pools, namespaced: false, redact: trim::pool;
    PersistentVolume of "v1" "persistentvolumes" in persistent_volumes, namespaced: false, trim: trim::persistent_volume;
    PersistentVolumeClaim of "v1" "persistentvolumeclaims" in persistent_volume_claims, namespaced: true;
    PodDisruptionBudget of "policy/v1" "poddisruptionbudgets" in pod_disruption_budgets, namespaced: true;
    PodTemplate of "v1" "podtemplates" in pod_templates, namespaced: true, trim: trim::pod_template_object;
    PriorityClass of "scheduling.k8s.io/v1" "priorityclasses" in priority_classes, namespaced: false;
    ReplicaSet of "apps/v1" "replicasets" in replica_sets, namespaced: true, trim: trim::replica_set;
    ReplicationController of "v1" "replicationcontrollers" in replication_controllers, namespaced: true, trim: trim::replication_controller;
    ResourceClaim of "resource.k8s.io/v1" "resourceclaims" in resource_claims, namespaced: true, trim: trim::resource_claim;
    ResourceClaimTemplate of "resource.k8s.io/v1" "resourceclaimtemplates" in resource_claim_templates, namespaced: true, trim: trim::resource_claim_template;
    ResourceSlice of "resource.k8s.io/v1" "resourceslices" in resource_slices, namespaced: false;
    RuntimeClass of "node.k8s.io/v1" "runtimeclasses" in runtime_classes, namespaced: false;
    Service of "v1" "services" in services, namespaced: true, trim: trim::service;
    StatefulSet of "apps/v1" "statefulsets" in stateful_sets, namespaced: true, trim: trim::stateful_set;
    StorageClass of "storage.k8s.io/v1" "storageclasses" in storage_classes, namespaced: false, trim: trim::storage_class;
    VolumeAttachment of "storage.k8s.io/v1" "volumeattachments" in volume_attachments, namespaced: false, trim: trim::volume_attachment;
}

fn key_of(metadata: &ObjectMeta) -> (&str, &str, &str) {
    (
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
        metadata.uid.as_deref().unwrap_or_default(),
    )
}
