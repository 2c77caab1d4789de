//! Default topology spread constraints, as the operator of kube-scheduler may configure them (`PodTopologySpreadArgs`,
//! `defaultingType: List`). They apply to pods that declare none, and select what the pod belongs to.
//! Source: `k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper` (DefaultSelector).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::snapshot::{Pod, Snapshot};
use cutlist_api::settings::DefaultTopologySpreadConstraint;

type Labels = BTreeMap<String, String>;

/// Services of one namespace that are looked at, of those that select differently: whoever may make pods and Services there may make
/// thousands of both, and each pod is held against each Service. What the others ask for makes a constraint narrower, and no more.
pub const SERVICES_MAX: usize = 1_000;

/// Gives pods without constraints the default ones, as far as a Service or an owner says what they belong to. Pods of
/// DaemonSets are left as they are: nobody spreads them. O(pods + services of their namespaces that share a label with them).
pub fn apply(snapshot: &mut Snapshot, constraints: &[DefaultTopologySpreadConstraint]) {
    let mut pods = std::mem::take(&mut snapshot.pods);
    let owners = Owners::new(snapshot);
    for pod in &mut pods {
        if !pod.spec.topology_spread_constraints.is_empty() || pod.is_owned_by("DaemonSet") || pod.is_owned_by("Node") {
            continue;
        }
        if let Some(selector) = owners.selector_of(pod) {
            let of_pod = constraints.iter().map(|constraint| with_selector(constraint, &selector));
            pod.spec.topology_spread_constraints = of_pod.collect::<Vec<_>>().into();
        }
    }
    snapshot.pods = pods;
}

fn with_selector(constraint: &DefaultTopologySpreadConstraint, selector: &LabelSelector) -> TopologySpreadConstraint {
    TopologySpreadConstraint {
        label_selector: Some(selector.clone()),
        match_label_keys: None,
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains,
        node_affinity_policy: constraint.node_affinity_policy.map(|policy| format!("{policy:?}")),
        node_taints_policy: constraint.node_taints_policy.map(|policy| format!("{policy:?}")),
        topology_key: constraint.topology_key.clone(),
        when_unsatisfiable: format!("{:?}", constraint.when_unsatisfiable),
    }
}

/// What pods can belong to.
struct Owners<'a> {
    /// By namespace and one label that the selector asks for: the whole selector.
    services: BTreeMap<(&'a str, &'a str, &'a str), Vec<&'a Labels>>,
    /// By namespace and name.
    replication_controllers: BTreeMap<(&'a str, &'a str), &'a Labels>,
    /// By kind, namespace and name.
    sets: BTreeMap<(&'static str, &'a str, &'a str), &'a LabelSelector>,
}

impl<'a> Owners<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let mut of_namespaces: BTreeMap<&str, BTreeSet<&Labels>> = BTreeMap::new();
        for service in &snapshot.services {
            let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            // An empty selector would add nothing.
            let Some(selector) = selector.filter(|selector| !selector.is_empty()) else { continue };
            let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
            of_namespaces.entry(namespace).or_default().insert(selector);
        }
        let mut services: BTreeMap<(&str, &str, &str), Vec<&Labels>> = BTreeMap::new();
        for (namespace, selectors) in of_namespaces {
            for selector in selectors.into_iter().take(SERVICES_MAX) {
                let Some((key, value)) = selector.first_key_value() else { continue };
                services.entry((namespace, key, value)).or_default().push(selector);
            }
        }
        let name = |metadata: &'a k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
            (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
        };
        let controllers = snapshot.replication_controllers.iter();
        let replica_sets = snapshot.replica_sets.iter().filter_map(|set| {
            let (namespace, name) = name(&set.metadata);
            Some((("ReplicaSet", namespace, name), &set.spec.as_ref()?.selector))
        });
        let stateful_sets = snapshot.stateful_sets.iter().filter_map(|set| {
            let (namespace, name) = name(&set.metadata);
            Some((("StatefulSet", namespace, name), &set.spec.as_ref()?.selector))
        });
        Self {
            services,
            replication_controllers: controllers
                .filter_map(|it| Some((name(&it.metadata), it.spec.as_ref()?.selector.as_ref()?)))
                .collect(),
            sets: replica_sets.chain(stateful_sets).collect(),
        }
    }

    /// What selects the pod and its like; `None` when nothing does, and the defaults do not apply.
    fn selector_of(&self, pod: &Pod) -> Option<LabelSelector> {
        let namespace = pod.metadata.namespace.as_str();
        let labels = &pod.metadata.labels;
        let candidates = labels.iter().filter_map(|(key, value)| self.services.get(&(namespace, key, value)));
        let selecting =
            candidates.flatten().filter(|selector| selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
        // All of them select this pod, so they do not contradict each other.
        let asked: BTreeMap<&String, &String> = selecting.copied().flatten().collect();
        let mut match_labels: Labels = asked.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let mut expressions = Vec::new();
        if let Some(owner) = pod.controller() {
            match (owner.api_version.as_str(), owner.kind.as_str()) {
                ("v1", "ReplicationController") => {
                    let selector = self.replication_controllers.get(&(namespace, &owner.name)).copied();
                    match_labels
                        .extend(selector.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
                }
                ("apps/v1", "ReplicaSet") => {
                    self.add_set("ReplicaSet", namespace, &owner.name, &mut match_labels, &mut expressions);
                }
                ("apps/v1", "StatefulSet") => {
                    self.add_set("StatefulSet", namespace, &owner.name, &mut match_labels, &mut expressions);
                }
                _ => {}
            }
        }
        let is_empty = match_labels.is_empty() && expressions.is_empty();
        (!is_empty).then(|| LabelSelector {
            match_labels: (!match_labels.is_empty()).then_some(match_labels),
            match_expressions: (!expressions.is_empty()).then_some(expressions),
        })
    }

    /// Narrows the selector by that of a set; both have to hold.
    fn add_set(
        &self,
        kind: &'static str,
        namespace: &str,
        name: &str,
        labels: &mut Labels,
        expressions: &mut Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement>,
    ) {
        let Some(selector) = self.sets.get(&(kind, namespace, name)) else { return };
        for (key, value) in selector.match_labels.iter().flatten() {
            labels.insert(key.clone(), value.clone());
        }
        expressions.extend(selector.match_expressions.iter().flatten().cloned());
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use serde_json::json;

    use super::*;
    use crate::snapshot::PodIndex;
    use crate::testing::{BuildPod, object, pod};

    #[test]
    fn of_very_many_services_some_say_what_a_pod_belongs_to() {
        let key = |number: usize| format!("key-{number:05}");
        let services: Vec<Service> = (0..1_500)
            .map(|number| {
                object(json!({
                    "metadata": { "name": format!("service-{number}"), "namespace": "default" },
                    "spec": { "selector": { "app": "web", (key(number)): "value" } },
                }))
            })
            .collect();
        let of_all = (0..1_500).fold(pod("web").label("app", "web"), |pod, number| pod.label(&key(number), "value"));
        let mut snapshot = Snapshot { services: services.into(), pods: vec![of_all].into(), ..Snapshot::default() };
        let constraint = json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway" });
        apply(&mut snapshot, &[object(constraint)]);
        let spread = &snapshot.pods[PodIndex::from(0)].spec.topology_spread_constraints[0];
        let selector = spread.label_selector.as_ref().and_then(|selector| selector.match_labels.as_ref());
        assert_eq!(selector.map(BTreeMap::len), Some(SERVICES_MAX + 1));
    }
}
