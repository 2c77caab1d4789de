//! The most that one pod may say and still be planned for.
//!
//! Whoever may create a pod decides what the planner reads, and an object of the API server may hold a megabyte and a half. What goes
//! beyond these limits is dropped while the pod is read, in whatever form it comes: from a file, from a watch, or as the template of a
//! workload. So nothing behind has to think of it. Such a pod is marked: it stays pending with the reason code `TooManyTerms`, and where
//! it runs already, its node does not go to save money.
//!
//! Each limit is many times what is known of real clusters. Numbers beside them are the most that was met in those.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorTerm, PodAffinityTerm, PreferredSchedulingTerm, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::model::shared::Shared;
use cutlist_api::keys;

use super::pod::{Container, Pod, WrittenPod};

/// One limit.
#[derive(Debug)]
pub struct Limit {
    /// What is counted, as the field is called.
    pub field: &'static str,
    pub most: usize,
    count: fn(&Pod) -> usize,
    /// Takes away so much that the rest is within the limit.
    cut: fn(&mut Pod, usize),
}

/// In the order in which they are looked at; a pod is told of the first that it is beyond.
pub const LIMITS: &[Limit] = &[
    // 5, and that was a test.
    Limit {
        field: "spec.topologySpreadConstraints",
        most: 32,
        count: |pod| pod.spec.topology_spread_constraints.len(),
        cut: |pod, most| pod.spec.topology_spread_constraints.truncate(most),
    },
    // 20: one for each zone and architecture.
    Limit {
        field: "required terms of spec.affinity.nodeAffinity",
        most: 100,
        count: |pod| required_terms(pod).len(),
        cut: |pod, most| {
            change_affinity(pod, |affinity| {
                let node = affinity.node_affinity.as_mut();
                let required = node.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_mut());
                if let Some(required) = required {
                    required.node_selector_terms.truncate(most);
                }
            });
        },
    },
    Limit {
        field: "preferred terms of spec.affinity.nodeAffinity",
        most: 100,
        count: |pod| preferred_terms(pod).len(),
        cut: |pod, most| {
            change_affinity(pod, |affinity| {
                if let Some(node) = &mut affinity.node_affinity {
                    truncate(&mut node.preferred_during_scheduling_ignored_during_execution, most);
                }
            });
        },
    },
    // 12.
    Limit {
        field: "terms of spec.affinity.podAffinity and podAntiAffinity",
        most: 100,
        count: |pod| pod_affinity_terms(pod).len(),
        cut: |pod, most| {
            change_affinity(pod, |affinity| {
                // Four lists share the limit.
                if let Some(pods) = &mut affinity.pod_affinity {
                    truncate(&mut pods.required_during_scheduling_ignored_during_execution, most / 4);
                    truncate(&mut pods.preferred_during_scheduling_ignored_during_execution, most / 4);
                }
                if let Some(pods) = &mut affinity.pod_anti_affinity {
                    truncate(&mut pods.required_during_scheduling_ignored_during_execution, most / 4);
                    truncate(&mut pods.preferred_during_scheduling_ignored_during_execution, most / 4);
                }
            });
        },
    },
    // Lists of all instance types that somebody likes hold some hundreds.
    Limit {
        field: "keys and values of node selector, affinity and topology spread constraints",
        most: 5_000,
        count: values,
        cut: |pod, _| {
            pod.spec.affinity = None;
            pod.spec.topology_spread_constraints = Shared::default();
            pod.spec.node_selector = Shared::default();
        },
    },
    // 40.
    Limit {
        field: "spec.tolerations",
        most: 300,
        count: |pod| pod.spec.tolerations.len(),
        cut: |pod, most| pod.spec.tolerations.truncate(most),
    },
    // 30.
    Limit {
        field: "spec.containers and spec.initContainers",
        most: 500,
        count: |pod| pod.spec.containers.len() + pod.spec.init_containers.len(),
        cut: |pod, most| {
            pod.spec.containers.truncate(most / 2);
            pod.spec.init_containers.truncate(most / 2);
        },
    },
    // Media servers open a range of them.
    Limit {
        field: "ports of spec.containers and spec.initContainers",
        most: 2_000,
        count: |pod| containers(pod).map(|container| container.ports.len()).sum(),
        cut: |pod, _| change_containers(pod, |container| container.ports.clear()),
    },
    // 8.
    Limit { field: "names of resources", most: 64, count: |pod| resource_names(pod).len(), cut: keep_resources },
    // EC2 attaches 128 at most, and pods have other volumes too.
    Limit {
        field: "spec.volumes",
        most: 256,
        count: |pod| pod.spec.volumes.len(),
        cut: |pod, most| pod.spec.volumes.truncate(most),
    },
    Limit {
        field: "spec.resourceClaims",
        most: 64,
        count: |pod| pod.spec.resource_claims.len(),
        cut: |pod, most| pod.spec.resource_claims.truncate(most),
    },
    // 60.
    Limit {
        field: "metadata.labels",
        most: 1_000,
        count: |pod| pod.metadata.labels.len(),
        cut: |pod, most| {
            let kept = pod.metadata.labels.iter().take(most).map(|(key, value)| (key.clone(), value.clone()));
            pod.metadata.labels = Shared::from(kept.collect::<std::collections::BTreeMap<_, _>>());
        },
    },
    Limit {
        field: "metadata.ownerReferences",
        most: 100,
        count: |pod| pod.metadata.owner_references.len(),
        cut: |pod, most| pod.metadata.owner_references.truncate(most),
    },
    Limit {
        field: "spec.schedulingGates",
        most: 100,
        count: |pod| pod.spec.scheduling_gates.len(),
        cut: |pod, most| pod.spec.scheduling_gates.truncate(most),
    },
];

impl From<WrittenPod> for Pod {
    fn from(written: WrittenPod) -> Self {
        let WrittenPod { metadata, spec, status } = written;
        let mut pod = Self { metadata, spec, status };
        keep_within(&mut pod);
        pod
    }
}

/// Drops what goes beyond a limit, and marks the pod with what that was.
fn keep_within(pod: &mut Pod) {
    let mut first = None;
    for Limit { field, most, count, cut } in LIMITS {
        let there = count(pod);
        if there > *most {
            first.get_or_insert_with(|| format!("{there} {field}, and {most} is the most that is planned for"));
            cut(pod, *most);
        }
    }
    if let Some(text) = first {
        pod.metadata.annotations.insert(keys::TOO_MANY_TERMS.to_owned(), text);
    }
}

/// What a pod has too much of, if anything: `2000 spec.topologySpreadConstraints, and 32 is the most that is planned for`.
pub fn beyond(pod: &Pod) -> Option<&str> {
    pod.metadata.annotations.get(keys::TOO_MANY_TERMS).map(String::as_str)
}

/// How much there is of what decides where a pod goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Topology spread constraints, and terms of pod affinity and anti-affinity.
    pub constraints: usize,
    /// Those of them, and of node affinity, that may be given up.
    pub preferences: usize,
    /// Required ones of node affinity.
    pub node_terms: usize,
    pub spreads: usize,
    pub required_affinity: usize,
    /// Terms that look into the namespaces that a selector names.
    pub namespace_selectors: usize,
    /// Keys and values of all that.
    pub values: usize,
}

pub fn terms(pod: &Pod) -> Terms {
    if pod.spec.affinity.is_none() && pod.spec.topology_spread_constraints.is_empty() {
        return Terms { values: pod.spec.node_selector.len(), ..Terms::default() };
    }
    let of_pods = pod_affinity_terms(pod);
    let affinity = pod.spec.affinity.as_deref();
    let (with, without) =
        (affinity.and_then(|it| it.pod_affinity.as_ref()), affinity.and_then(|it| it.pod_anti_affinity.as_ref()));
    let length = |terms: Option<&Vec<WeightedPodAffinityTerm>>| terms.map_or(0, Vec::len);
    let preferred = length(with.and_then(|pods| pods.preferred_during_scheduling_ignored_during_execution.as_ref()))
        + length(without.and_then(|pods| pods.preferred_during_scheduling_ignored_during_execution.as_ref()));
    let required = with.and_then(|pods| pods.required_during_scheduling_ignored_during_execution.as_ref());
    let spreads = &pod.spec.topology_spread_constraints;
    let soft = spreads.iter().filter(|spread| spread.when_unsatisfiable == "ScheduleAnyway").count();
    Terms {
        constraints: spreads.len() + of_pods.len(),
        preferences: soft + preferred + preferred_terms(pod).len(),
        node_terms: required_terms(pod).len(),
        spreads: spreads.len(),
        required_affinity: required.map_or(0, Vec::len),
        namespace_selectors: of_pods.iter().filter(|term| term.namespace_selector.is_some()).count(),
        values: values(pod),
    }
}

/// Takes away all that decides where a pod goes beside what it takes of its node.
pub fn without_terms(pod: &Pod) -> Pod {
    let mut plain = pod.clone();
    plain.spec.affinity = None;
    plain.spec.topology_spread_constraints = Shared::default();
    plain
}

fn truncate<T>(list: &mut Option<Vec<T>>, most: usize) {
    if let Some(list) = list {
        list.truncate(most);
    }
}

fn change_affinity(pod: &mut Pod, change: impl FnOnce(&mut Affinity)) {
    if let Some(affinity) = &mut pod.spec.affinity {
        change(affinity);
    }
}

fn change_containers(pod: &mut Pod, change: impl Fn(&mut Container)) {
    pod.spec.containers.iter_mut().for_each(&change);
    pod.spec.init_containers.iter_mut().for_each(&change);
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.containers.iter().chain(&pod.spec.init_containers)
}

fn required_terms(pod: &Pod) -> &[NodeSelectorTerm] {
    let node = pod.spec.affinity.as_deref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = node.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    required.map(|selector| selector.node_selector_terms.as_slice()).unwrap_or_default()
}

fn preferred_terms(pod: &Pod) -> &[PreferredSchedulingTerm] {
    let node = pod.spec.affinity.as_deref().and_then(|affinity| affinity.node_affinity.as_ref());
    node.and_then(|node| node.preferred_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn pod_affinity_terms(pod: &Pod) -> Vec<&PodAffinityTerm> {
    let Some(affinity) = pod.spec.affinity.as_deref() else { return Vec::new() };
    let (with, without) = (affinity.pod_affinity.as_ref(), affinity.pod_anti_affinity.as_ref());
    let required = [
        with.and_then(|pods| pods.required_during_scheduling_ignored_during_execution.as_deref()),
        without.and_then(|pods| pods.required_during_scheduling_ignored_during_execution.as_deref()),
    ];
    let preferred: [Option<&[WeightedPodAffinityTerm]>; 2] = [
        with.and_then(|pods| pods.preferred_during_scheduling_ignored_during_execution.as_deref()),
        without.and_then(|pods| pods.preferred_during_scheduling_ignored_during_execution.as_deref()),
    ];
    let preferred = preferred.into_iter().flatten().flatten().map(|term| &term.pod_affinity_term);
    required.into_iter().flatten().flatten().chain(preferred).collect()
}

/// Keys and values of everything that selects nodes or pods.
fn values(pod: &Pod) -> usize {
    let of_term = |term: &NodeSelectorTerm| -> usize {
        let expressions = term.match_expressions.iter().chain(&term.match_fields).flatten();
        expressions.map(|expression| 1 + expression.values.as_ref().map_or(0, Vec::len)).sum()
    };
    let nodes = required_terms(pod).iter().chain(preferred_terms(pod).iter().map(|term| &term.preference));
    let of_pods = pod_affinity_terms(pod).into_iter().map(|term| {
        let lists = [&term.namespaces, &term.match_label_keys, &term.mismatch_label_keys];
        let namespaces = term.namespace_selector.as_ref().map_or(0, of_selector);
        let listed: usize = lists.into_iter().map(|list| list.as_ref().map_or(0, Vec::len)).sum();
        term.label_selector.as_ref().map_or(0, of_selector) + namespaces + listed
    });
    let of_spreads = pod.spec.topology_spread_constraints.iter().map(|spread| {
        spread.label_selector.as_ref().map_or(0, of_selector) + spread.match_label_keys.as_ref().map_or(0, Vec::len)
    });
    pod.spec.node_selector.len()
        + nodes.map(of_term).sum::<usize>()
        + of_pods.sum::<usize>()
        + of_spreads.sum::<usize>()
}

fn of_selector(selector: &LabelSelector) -> usize {
    let expressions = selector.match_expressions.iter().flatten();
    selector.match_labels.as_ref().map_or(0, std::collections::BTreeMap::len)
        + expressions.map(|expression| 1 + expression.values.as_ref().map_or(0, Vec::len)).sum::<usize>()
}

fn resource_names(pod: &Pod) -> BTreeSet<&str> {
    let of_containers = containers(pod).map(|container| &container.resources).chain(&pod.spec.resources);
    let names = of_containers.flat_map(|resources| resources.requests.keys().chain(resources.limits.keys()));
    names.chain(pod.spec.overhead.keys()).map(String::as_str).collect()
}

/// Keeps the names without a domain, which are Kubernetes' own, before all others.
fn keep_resources(pod: &mut Pod, most: usize) {
    let mut names: Vec<String> = resource_names(pod).into_iter().map(str::to_owned).collect();
    names.sort_by_key(|name| name.contains('/'));
    let kept: BTreeSet<String> = names.into_iter().take(most).collect();
    let keep = |resources: &mut super::pod::ContainerResources| {
        resources.requests.retain(|name, _| kept.contains(name));
        resources.limits.retain(|name, _| kept.contains(name));
    };
    change_containers(pod, |container| keep(&mut container.resources));
    if let Some(resources) = &mut pod.spec.resources {
        keep(resources);
    }
    pod.spec.overhead.retain(|name, _| kept.contains(name));
}
