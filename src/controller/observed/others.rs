//! What another installation of Cutlist made in the same cluster: it is seen as what it is, and is not ours to change or remove.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_plan::{HISTORY_PREFIX, NodePlan};
use crate::api::node_pool::NodePool;
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::Stored;

/// By kind and name (`namespace/name` where it has one), whose definitions these are.
pub type Others = BTreeMap<(&'static str, String), String>;

/// What is done with the definitions of one kind.
struct OfKind {
    note: fn(&Snapshot, &str, &mut Others),
    disown: fn(&mut Snapshot, &Others),
}

trait Definition: Stored {
    fn metadata(&self) -> &ObjectMeta;
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
}

macro_rules! definitions {
    ($($kind:ty),+) => {
        $(impl Definition for $kind {
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        })+

        const KINDS: &[OfKind] = &[$(OfKind { note: note::<$kind>, disown: disown::<$kind> }),+];
    };
}

definitions!(NodePool, EC2NodeClass, NodeOverlay, CapacityBuffer, PodTemplate, DisruptionBudget);

/// The snapshot with other installations' definitions as anybody's, and without their NodeClaims and plans; and which definitions those are.
/// The pages of the history are the cluster's: everybody adds to them.
pub fn without_others(mut snapshot: Arc<Snapshot>, installation: &str) -> (Arc<Snapshot>, Others) {
    let mut others = Others::new();
    KINDS.iter().for_each(|kind| (kind.note)(&snapshot, installation, &mut others));
    let is_anothers = |claim: &NodeClaim| of_another(&claim.metadata, installation).is_some();
    let is_anothers_plan =
        |plan: &NodePlan| plan.page_number().is_none() && of_another(&plan.metadata, installation).is_some();
    let has_claims = snapshot.node_claims.iter().any(is_anothers);
    let has_plans = snapshot.node_plans.iter().any(is_anothers_plan);
    let is_unreadable_plan = |object: &Unreadable| {
        let is_anothers = !object.installation.is_empty() && object.installation != installation;
        object.is_plan() && is_anothers && !object.name.starts_with(HISTORY_PREFIX)
    };
    let has_unreadable_plans = snapshot.doubts.unreadable.iter().any(is_unreadable_plan);
    if others.is_empty() && !has_claims && !has_plans && !has_unreadable_plans {
        return (snapshot, others);
    }
    let changed = Arc::make_mut(&mut snapshot);
    if has_claims {
        changed.node_claims.retain(|claim| !is_anothers(claim));
    }
    if has_plans {
        changed.node_plans.retain(|plan| !is_anothers_plan(plan));
    }
    if has_unreadable_plans {
        changed.doubts.unreadable.retain(|object| !is_unreadable_plan(object));
    }
    KINDS.iter().for_each(|kind| (kind.disown)(changed, &others));
    (snapshot, others)
}

/// The installation that made an object, if that is another one. Objects of versions that noted none are ours.
fn of_another<'m>(metadata: &'m ObjectMeta, installation: &str) -> Option<&'m str> {
    let notes = [&metadata.labels, &metadata.annotations];
    let noted = notes.into_iter().flatten().find_map(|notes| notes.get(keys::INSTALLATION));
    noted.map(String::as_str).filter(|noted| !noted.is_empty() && *noted != installation)
}

/// Whether an object of such a snapshot is another installation's definition.
pub fn is_disowned(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(keys::INSTALLATION) && !labels.contains_key(keys::MANAGED_BY))
}

fn note<T: Definition>(snapshot: &Snapshot, installation: &str, others: &mut Others) {
    for object in T::all(snapshot) {
        if let Some(owner) = of_another(object.metadata(), installation) {
            others.insert((T::KIND, key_of(object)), owner.to_owned());
        }
    }
}

fn disown<T: Definition>(snapshot: &mut Snapshot, others: &Others) {
    let objects = T::all_mut(snapshot);
    let is_anothers: Vec<bool> = objects.iter().map(|object| others.contains_key(&(T::KIND, key_of(object)))).collect();
    for (object, _) in objects.shared_mut().iter_mut().zip(is_anothers).filter(|(_, is_anothers)| *is_anothers) {
        if let Some(labels) = &mut Arc::make_mut(object).metadata_mut().labels {
            labels.remove(keys::MANAGED_BY);
        }
    }
}

/// What definitions are found by: `name`, or `namespace/name`.
pub fn key_of<T: Stored>(object: &T) -> String {
    let (namespace, name, _) = object.key();
    if T::NAMESPACED {
        format!("{}/{name}", if namespace.is_empty() { "default" } else { namespace })
    } else {
        name.to_owned()
    }
}
