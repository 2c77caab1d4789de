//! InterPodAffinity: required affinity and anti-affinity, of the pod and of the pods that are there.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PodAffinityTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::snapshot::Pod;

use super::context::FilterContext;
use super::objects::{node_labels, required_affinity, required_anti_affinity};
use super::{Filter, FilterRefusal, selectors};

/// Topology key and value.
type Domain = (String, String);

/// How many pods of each domain count for the pod's terms, and which domains others forbid.
pub(super) struct Counts {
    affinity_keys: Vec<String>,
    anti_affinity_keys: Vec<String>,
    /// Pods that match every affinity term.
    attracting: BTreeMap<Domain, usize>,
    /// Pods that match one anti-affinity term, for the key of that term; with one of them for the explanation.
    repelling: BTreeMap<Domain, String>,
    /// Domains in which the anti-affinity of another pod covers this one.
    forbidden: BTreeMap<Domain, String>,
    /// The pod would be the first of its kind, and its own terms select it.
    is_first: bool,
}

/// A term with its selector written out.
struct Term {
    topology_key: String,
    selector: Option<LabelSelector>,
    namespaces: Vec<String>,
    namespace_selector: Option<LabelSelector>,
}

impl Counts {
    pub(super) fn new(pod: &Pod, context: &FilterContext<'_>) -> Self {
        let affinity = terms(pod, required_affinity(pod));
        let anti_affinity = terms(pod, required_anti_affinity(pod));
        let mut counts = Self {
            affinity_keys: affinity.iter().map(|term| term.topology_key.clone()).collect(),
            anti_affinity_keys: anti_affinity.iter().map(|term| term.topology_key.clone()).collect(),
            attracting: BTreeMap::new(),
            repelling: BTreeMap::new(),
            forbidden: forbidden(pod, context),
            is_first: false,
        };
        if affinity.is_empty() && anti_affinity.is_empty() {
            return counts;
        }
        for (node, other) in affinity.first().into_iter().flat_map(|first| first.near(context)) {
            let attracts = affinity.iter().all(|term| term.covers(other, context));
            for domain in affinity.iter().filter(|_| attracts).filter_map(|term| term.domain_of(node, context)) {
                *counts.attracting.entry(domain).or_default() += 1;
            }
        }
        // The last one explains it, by its node and name.
        let mut last: BTreeMap<Domain, (&str, String)> = BTreeMap::new();
        for term in &anti_affinity {
            for (node, other) in term.near(context).filter(|(_, other)| term.covers(other, context)) {
                let Some(domain) = term.domain_of(node, context) else { continue };
                let it = (node, other.key());
                last.entry(domain).and_modify(|last| *last = it.clone().max(last.clone())).or_insert(it);
            }
        }
        counts.repelling = last.into_iter().map(|(domain, (_, key))| (domain, key)).collect();
        counts.is_first = counts.attracting.is_empty() && affinity.iter().all(|term| term.covers(pod, context));
        counts
    }

    pub(super) fn refusal(&self, node: &Node) -> Option<FilterRefusal> {
        let refuse = |text: String| Some(FilterRefusal::new(Filter::InterPodAffinity, text));
        let labels = node_labels(node);
        for key in &self.affinity_keys {
            let Some(value) = labels.get(key) else {
                return refuse(format!("required affinity: the node has no label {key}"));
            };
            if !self.is_first && !self.attracting.contains_key(&(key.clone(), value.clone())) {
                return refuse(format!("required affinity: no matching pod in {key}={value}"));
            }
        }
        let domain = |key: &String| labels.get(key).map(|value| (key.clone(), value.clone()));
        for domain in self.anti_affinity_keys.iter().filter_map(domain) {
            if let Some(other) = self.repelling.get(&domain) {
                return refuse(format!("required anti-affinity: {other} is in {}={}", domain.0, domain.1));
            }
        }
        let forbidden = self.forbidden.iter().find(|((key, value), _)| labels.get(key) == Some(value));
        forbidden.and_then(|((key, value), other)| {
            refuse(format!("required anti-affinity of {other} covers this pod in {key}={value}"))
        })
    }
}

fn forbidden(pod: &Pod, context: &FilterContext<'_>) -> BTreeMap<Domain, String> {
    let mut forbidden = BTreeMap::new();
    context.count_looks(context.repelling.len());
    for (other, node) in context.repelling.values() {
        let Some(node) = context.node(node) else { continue };
        for term in terms(other, required_anti_affinity(other)) {
            if let Some(value) = node_labels(node).get(&term.topology_key)
                && term.covers(pod, context)
            {
                forbidden.insert((term.topology_key.clone(), value.clone()), other.key());
            }
        }
    }
    forbidden
}

impl Term {
    fn covers(&self, other: &Pod, context: &FilterContext<'_>) -> bool {
        self.covers_namespace(&other.metadata.namespace, context)
            && selectors::matches(self.selector.as_ref(), &other.metadata.labels)
    }

    fn covers_namespace(&self, namespace: &str, context: &FilterContext<'_>) -> bool {
        let selector = self.namespace_selector.as_ref();
        self.namespaces.iter().any(|it| it == namespace)
            || selector.is_some_and(|selector| selectors::matches(Some(selector), &context.namespace_labels(namespace)))
    }

    /// All pods that the term covers, and maybe others, each with its node.
    fn near<'c>(&'c self, context: &'c FilterContext<'_>) -> impl Iterator<Item = (&'c str, &'c Pod)> {
        context.near(self.selector.as_ref(), |namespace| self.covers_namespace(namespace, context))
    }

    fn domain_of(&self, node: &str, context: &FilterContext<'_>) -> Option<Domain> {
        let value = node_labels(context.node(node)?).get(&self.topology_key)?;
        Some((self.topology_key.clone(), value.clone()))
    }
}

/// Without namespaces and without a namespace selector a term means the pod's own namespace.
fn terms(pod: &Pod, terms: &[PodAffinityTerm]) -> Vec<Term> {
    let own_namespace = |term: &PodAffinityTerm| match (&term.namespaces, &term.namespace_selector) {
        (Some(namespaces), _) if !namespaces.is_empty() => namespaces.clone(),
        (_, None) => vec![pod.metadata.namespace.clone()],
        (_, Some(_)) => Vec::new(),
    };
    terms
        .iter()
        .map(|term| Term {
            topology_key: term.topology_key.clone(),
            selector: selectors::with_label_keys(
                term.label_selector.as_ref(),
                &pod.metadata.labels,
                term.match_label_keys.as_deref(),
                term.mismatch_label_keys.as_deref(),
            ),
            namespaces: own_namespace(term),
            namespace_selector: term.namespace_selector.clone(),
        })
        .collect()
}
