//! Default spread constraints, written into the pods that they apply to, so that the filters find them there.
//! kube-scheduler does the same each time it looks at a pod, if its configuration lists the same constraints.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use serde_json::json;

use crate::inputs::Inputs;
use crate::snapshot::{Pod, Snapshot};

/// So many Services of a namespace are looked at that select differently.
const SERVICES_MAX: usize = 1_000;

/// A copy of the cluster in which pods carry the defaults of the settings. O(pods x services of their namespaces).
pub(super) fn written_out(inputs: &Inputs<'_>) -> Snapshot {
    let mut snapshot = inputs.snapshot.clone();
    let defaults = &inputs.policy.scheduling.default_topology_spread_constraints;
    if defaults.is_empty() {
        return snapshot;
    }
    let selectors = Selectors::new(inputs.snapshot);
    for pod in &mut snapshot.pods {
        let of_a_daemon = pod.metadata.owner_references.iter().any(|owner| owner.kind == "DaemonSet");
        if !pod.spec.topology_spread_constraints.is_empty() || of_a_daemon {
            continue;
        }
        let required = selectors.requirements(pod);
        if required.is_empty() {
            continue;
        }
        for default in defaults {
            // Settings are plain data; they always have a JSON form, and it is that of a constraint.
            let form = serde_json::to_value(default).unwrap_or(json!({}));
            if let Ok(mut constraint) = serde_json::from_value::<TopologySpreadConstraint>(form) {
                let match_expressions = Some(required.clone());
                constraint.label_selector = Some(LabelSelector { match_expressions, match_labels: None });
                pod.spec.topology_spread_constraints.push(constraint);
            }
        }
    }
    snapshot
}

/// What pods belong to, and how that selects them.
struct Selectors<'a> {
    /// By namespace.
    services: BTreeMap<&'a str, BTreeSet<&'a BTreeMap<String, String>>>,
    /// By kind, namespace and name.
    controllers: BTreeMap<(&'static str, &'a str, &'a str), Selector<'a>>,
}

type Selector<'a> = (Option<&'a BTreeMap<String, String>>, Option<&'a Vec<LabelSelectorRequirement>>);

impl<'a> Selectors<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let mut services: BTreeMap<&str, BTreeSet<&BTreeMap<String, String>>> = BTreeMap::new();
        for service in &snapshot.services {
            let asked = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            if let Some(asked) = asked.filter(|asked| !asked.is_empty()) {
                services.entry(namespace(&service.metadata)).or_default().insert(asked);
            }
        }
        let mut controllers = BTreeMap::new();
        let mut add = |kind, metadata: &'a ObjectMeta, selector: Selector<'a>| {
            controllers.insert((kind, namespace(metadata), metadata.name.as_deref().unwrap_or_default()), selector);
        };
        for it in &snapshot.replication_controllers {
            add("ReplicationController", &it.metadata, (it.spec.as_ref().and_then(|it| it.selector.as_ref()), None));
        }
        let of_set = |it: &'a LabelSelector| (it.match_labels.as_ref(), it.match_expressions.as_ref());
        for it in &snapshot.replica_sets {
            let selector = it.spec.as_ref().map(|it| of_set(&it.selector));
            add("ReplicaSet", &it.metadata, selector.unwrap_or_default());
        }
        for it in &snapshot.stateful_sets {
            let selector = it.spec.as_ref().map(|it| of_set(&it.selector));
            add("StatefulSet", &it.metadata, selector.unwrap_or_default());
        }
        Self { services, controllers }
    }

    /// What the Services that select the pod ask for, each once, and what its controller does.
    fn requirements(&self, pod: &Pod) -> Vec<LabelSelectorRequirement> {
        let namespace = pod.metadata.namespace.as_str();
        let labels = &pod.metadata.labels;
        let services = self.services.get(namespace).into_iter().flatten().take(SERVICES_MAX);
        let selecting = services.filter(|it| it.iter().all(|(key, value)| labels.get(key) == Some(value)));
        let mut asked: BTreeMap<String, String> = BTreeMap::new();
        for (key, value) in selecting.copied().flatten() {
            if !asked.contains_key(key) {
                asked.insert(key.clone(), value.clone());
            }
        }
        let owner = pod.metadata.owner_references.iter().find(|owner| owner.controller == Some(true));
        let of_owner = owner.and_then(|owner| {
            let kinds = ["ReplicationController", "ReplicaSet", "StatefulSet"];
            let kind = kinds.into_iter().find(|kind| *kind == owner.kind)?;
            self.controllers.get(&(kind, namespace, owner.name.as_str())).copied()
        });
        let (by_labels, by_expressions) = of_owner.unwrap_or_default();
        let mut required: Vec<_> = equalities(&asked).collect();
        required.extend(by_labels.into_iter().flat_map(equalities));
        required.extend(by_expressions.into_iter().flatten().cloned());
        required
    }
}

fn namespace(metadata: &ObjectMeta) -> &str {
    metadata.namespace.as_deref().unwrap_or("default")
}

fn equalities(labels: &BTreeMap<String, String>) -> impl Iterator<Item = LabelSelectorRequirement> {
    labels.iter().map(|(key, value)| LabelSelectorRequirement {
        key: key.clone(),
        operator: "In".to_owned(),
        values: Some(vec![value.clone()]),
    })
}
