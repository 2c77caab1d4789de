//! From definitions, and the cluster that they are for, to the inputs of a plan: the one place where that is done.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::kustomization;
use crate::api::node_pool::NodePool;
use crate::core::catalog::Catalog;
use crate::core::inputs::{Inputs, LockedImages, Policy};
use crate::core::model::static_hash::whole_hash;
use crate::core::plan::{ClassAsWritten, DefinitionPlace, DefinitionPlaces, IMAGE_LOCK, Note, NoteCode, Revision};
use crate::core::prepare::classes_of_catalog::take_over;
use crate::core::prepare::classes_of_cluster::add_classes_of_cluster;
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubled::doubled;
use crate::definitions::{Definition, Definitions};

/// What a plan depends on beside its definitions.
#[derive(Debug)]
pub struct Beside<'a> {
    pub revision: &'a Revision,
    /// Where the paths of its files begin, from the root of the repository: empty, or with `/` at its end.
    pub prefix: &'a str,
    pub snapshot: &'a Snapshot,
    pub catalog: &'a Catalog,
    pub policy: Policy,
    pub seed: u64,
    pub now: Timestamp,
    pub notes: Vec<Note>,
}

/// Hands over the inputs of a plan. Classes that only the cluster has are added, with a note for each.
pub fn with_inputs<T>(definitions: &Definitions, beside: Beside<'_>, then: impl FnOnce(&Inputs<'_>) -> T) -> T {
    let Beside { revision, prefix, snapshot, catalog, policy, seed, now, mut notes } = beside;
    let mut node_pools = values(&definitions.node_pools);
    let mut node_classes = values(&definitions.node_classes);
    let snapshot = &*with_doubled(take_over(catalog, &mut node_pools, &mut node_classes, snapshot));
    notes.extend(add_classes_of_cluster(&node_pools, &mut node_classes, snapshot));
    let images = locked_images(definitions, &node_classes);
    notes.extend(notes_of_lock(definitions, &node_pools, &node_classes, &images));
    let policy = Policy { images, ..policy };
    then(&Inputs {
        revision: revision.clone(),
        cluster: &definitions.settings.cluster_name,
        node_pools: &node_pools,
        node_classes: &node_classes,
        node_overlays: &values(&definitions.node_overlays),
        capacity_buffers: &values(&definitions.capacity_buffers),
        pod_templates: &values(&definitions.pod_templates),
        disruption_budgets: &values(&definitions.disruption_budgets),
        places: &places(definitions, prefix),
        snapshot,
        catalog,
        policy,
        seed,
        now,
        notes,
    })
}

/// Also where it is no controller that looks: what is reviewed is what runs.
fn with_doubled(snapshot: Cow<'_, Snapshot>) -> Cow<'_, Snapshot> {
    let doubled = doubled(&snapshot);
    if snapshot.doubts.doubled == doubled {
        return snapshot;
    }
    let mut snapshot = snapshot.into_owned();
    snapshot.doubts.doubled = doubled;
    Cow::Owned(snapshot)
}

/// The images that the lock of the definitions has for these classes.
pub fn locked_images(definitions: &Definitions, node_classes: &[EC2NodeClass]) -> LockedImages {
    let lock = definitions.image_lock.as_ref().map(|lock| &lock.value);
    LockedImages::of(lock, node_classes, definitions.settings.images.require_lock)
}

/// What is not as the lock was made for, or lacks in it.
fn notes_of_lock(
    definitions: &Definitions,
    node_pools: &[NodePool],
    node_classes: &[EC2NodeClass],
    images: &LockedImages,
) -> Vec<Note> {
    let is_used = |name: &str| {
        let mut references = node_pools.iter().map(|pool| &pool.spec.template.spec.node_class_ref);
        references.any(|reference| reference.name == name && !reference.is_of_others())
    };
    let in_lock = |name: &str| {
        let lock = definitions.image_lock.as_ref().map(|lock| &lock.value);
        lock.is_some_and(|lock| lock.node_classes.iter().any(|locked| locked.name == name))
    };
    let note = |class: &EC2NodeClass| {
        let name = class.metadata.name.as_deref().filter(|name| is_used(name))?;
        let is_outdated = in_lock(name) && images.of_class(name).is_none();
        let then = match images.is_missing(name) {
            true => "it launches no node, and none of its nodes is replaced because of its image",
            false => "its terms decide",
        };
        let (code, text) = match is_outdated {
            true => (
                NoteCode::ImageLockOutdated,
                format!("cutlist.lock has images for other terms than EC2NodeClass {name} has: {then}"),
            ),
            false if images.is_missing(name) => {
                (NoteCode::ImagesNotLocked, format!("cutlist.lock has no images for EC2NodeClass {name}: {then}"))
            }
            false => return None,
        };
        Some(Note::new(code, format!("{text}; `cutlist ami lock` renews it")))
    };
    node_classes.iter().filter_map(note).collect()
}

/// A path of the repository, from its root. Kustomizations name files outside of what was asked for.
pub fn from_root(prefix: &str, file: &str) -> String {
    kustomization::join(prefix, file).unwrap_or_else(|| file.to_owned())
}

fn places(definitions: &Definitions, prefix: &str) -> DefinitionPlaces {
    let mut places = DefinitionPlaces::default();
    add(&mut places, prefix, "NodePool", &definitions.node_pools, |it| &it.metadata);
    add(&mut places, prefix, "EC2NodeClass", &definitions.node_classes, |it| &it.metadata);
    for class in &definitions.node_classes {
        let hash = || serde_json::to_value(&class.value.spec).map(|spec| whole_hash(&spec)).unwrap_or_default();
        let name = class.value.metadata.name.as_deref().unwrap_or_default();
        let of_class = ClassAsWritten {
            hash: class.hash_as_written.clone().unwrap_or_else(hash),
            hidden_variables: class.hidden_variables.iter().cloned().collect(),
        };
        places.add_class(name, of_class);
    }
    if let Some(lock) = &definitions.image_lock {
        places.add(IMAGE_LOCK, "", from_root_all(prefix, &lock.places));
    }
    add(&mut places, prefix, "DisruptionBudget", &definitions.disruption_budgets, |it| &it.metadata);
    add(&mut places, prefix, "NodeOverlay", &definitions.node_overlays, |it| &it.metadata);
    add(&mut places, prefix, "CapacityBuffer", &definitions.capacity_buffers, |it| &it.metadata);
    places
}

fn add<T>(
    places: &mut DefinitionPlaces,
    prefix: &str,
    kind: &str,
    definitions: &[Definition<T>],
    metadata: fn(&T) -> &ObjectMeta,
) {
    for definition in definitions {
        let ObjectMeta { name, namespace, .. } = metadata(&definition.value);
        let name = name.as_deref().unwrap_or_default();
        let key = namespace.as_ref().map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
        places.add(kind, &key, from_root_all(prefix, &definition.places));
    }
}

fn from_root_all(prefix: &str, places: &BTreeMap<String, DefinitionPlace>) -> BTreeMap<String, DefinitionPlace> {
    let from_root = |(pointer, place): (&String, &DefinitionPlace)| {
        (pointer.clone(), DefinitionPlace { file: from_root(prefix, &place.file), line: place.line })
    };
    places.iter().map(from_root).collect()
}

fn values<T: Clone>(definitions: &[Definition<T>]) -> Vec<T> {
    definitions.iter().map(|definition| definition.value.clone()).collect()
}
