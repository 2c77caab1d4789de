//! Pods by the labels that selectors ask for, so that those who count for a constraint are found without a look at every pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::snapshot::Pod;

use super::objects::{required_affinity, required_anti_affinity};

/// Labels by which pods are found, at most: those that most pods ask for. Clusters use two or three.
const KEYS_MAX: usize = 16;

/// By the node that they are on, and by name.
type Placed<'a> = BTreeMap<(&'a str, &'a str), &'a Pod>;

/// By namespace and by the value of a label.
type ByValue<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Placed<'a>>>;

/// Pods that are on nodes.
pub(super) struct Labelled<'a> {
    by_namespace: BTreeMap<&'a str, Placed<'a>>,
    /// By the keys of the labels that are asked for.
    by_label: BTreeMap<&'a str, ByValue<'a>>,
}

impl<'a> Labelled<'a> {
    /// `asking`: the pods whose selectors say which labels matter. O(pods x [`KEYS_MAX`]).
    pub(super) fn new(asking: impl Iterator<Item = &'a Pod>, placed: impl Iterator<Item = (&'a Pod, &'a str)>) -> Self {
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        for key in asking.flat_map(keys) {
            *asked.entry(key).or_default() += 1;
        }
        let mut most_asked: Vec<(&str, usize)> = asked.into_iter().collect();
        most_asked.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let by_label = most_asked.into_iter().take(KEYS_MAX).map(|(key, _)| (key, ByValue::new())).collect();
        let mut labelled = Self { by_namespace: BTreeMap::new(), by_label };
        placed.for_each(|(pod, node)| labelled.add(pod, node));
        labelled
    }

    pub(super) fn add(&mut self, pod: &'a Pod, node: &'a str) {
        let (namespace, place) = (pod.metadata.namespace.as_str(), (node, pod.metadata.name.as_str()));
        self.by_namespace.entry(namespace).or_default().insert(place, pod);
        for (key, by_value) in &mut self.by_label {
            if let Some(value) = pod.metadata.labels.get(*key) {
                by_value.entry(namespace).or_default().entry(value).or_default().insert(place, pod);
            }
        }
    }

    pub(super) fn remove(&mut self, pod: &'a Pod, node: &'a str) {
        let (namespace, place) = (pod.metadata.namespace.as_str(), (node, pod.metadata.name.as_str()));
        if let Some(placed) = self.by_namespace.get_mut(namespace) {
            placed.remove(&place);
        }
        for (key, by_value) in &mut self.by_label {
            let value = pod.metadata.labels.get(*key);
            let placed = value.and_then(|value| by_value.get_mut(namespace)?.get_mut(value.as_str()));
            if let Some(placed) = placed {
                placed.remove(&place);
            }
        }
    }

    pub(super) fn namespaces(&self) -> impl Iterator<Item = &'a str> {
        self.by_namespace.keys().copied()
    }

    /// Pods of a namespace with the node that each is on: all that the selector selects, and as few others as its labels tell apart.
    pub(super) fn near<'c>(
        &'c self,
        namespace: &str,
        selector: Option<&LabelSelector>,
    ) -> impl Iterator<Item = (&'c str, &'c Pod)> + use<'c, 'a> {
        let labels = selector.and_then(|selector| selector.match_labels.as_ref()).into_iter().flatten();
        let with_label = |(key, value): (&String, &String)| {
            let by_value = self.by_label.get(key.as_str())?;
            Some(by_value.get(namespace).and_then(|by_value| by_value.get(value.as_str())))
        };
        let fewest = labels.filter_map(with_label).min_by_key(|placed| placed.map_or(0, BTreeMap::len));
        let all = || self.by_namespace.get(namespace);
        // An absent selector selects nobody.
        let near = if selector.is_none() { None } else { fewest.unwrap_or_else(all) };
        near.into_iter().flatten().map(|((node, _), pod)| (*node, *pod))
    }
}

/// Keys of labels that the pod's constraints over others ask for by value.
fn keys(pod: &Pod) -> impl Iterator<Item = &str> {
    let spread = pod.spec.topology_spread_constraints.iter().map(|constraint| constraint.label_selector.as_ref());
    let terms = required_affinity(pod).iter().chain(required_anti_affinity(pod));
    let selectors = spread.chain(terms.map(|term| term.label_selector.as_ref())).flatten();
    selectors.flat_map(|selector| selector.match_labels.iter().flatten()).map(|(key, _)| key.as_str())
}
