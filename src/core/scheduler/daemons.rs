//! DaemonSets: what each new node will have to carry besides the pods it is bought for.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Toleration;

use crate::model::{IndexVec, Requirement, Requirements, Resources};
use crate::prepare::limit_range::LimitRanges;
use crate::prepare::runtime_class::RuntimeClasses;
use crate::snapshot::requests::effective_requests;
use crate::snapshot::{Pod, Snapshot};

use super::host_ports::{HostPort, host_ports};
use super::indices::GroupIndex;
use super::taints::{EffectiveTaint, repelling};
use super::volumes::selector_requirements;

pub use super::indices::DaemonIndex;

/// Required node affinity terms of one DaemonSet that are looked at; those of real ones have three.
const TERMS_MAX: usize = 20;

/// A DaemonSet as scheduling sees it.
#[derive(Debug)]
pub struct Daemon {
    pub namespace: String,
    pub name: String,
    pub requests: Resources,
    /// Any of these will do.
    pub requirements: Vec<Requirements>,
    pub tolerations: Vec<Toleration>,
    pub host_ports: Vec<HostPort>,
    /// As the template says: what terms of other pods look at, and its own terms.
    pub pod: Pod,
    /// Groups that count its pods.
    pub counted_in: Vec<GroupIndex>,
    /// Its required anti-affinity terms.
    pub anti_affinity: Vec<GroupIndex>,
}

/// The DaemonSets of a cluster. O(pods + DaemonSets).
pub fn daemons(snapshot: &Snapshot) -> IndexVec<DaemonIndex, Daemon> {
    let limit_ranges = LimitRanges::new(snapshot);
    let newest = newest_pods(snapshot);
    let runtime_classes = RuntimeClasses::new(snapshot);
    let daemon = |set: &DaemonSet| {
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let name = set.metadata.name.as_deref().unwrap_or_default();
        Daemon::new(set, newest.get(&(namespace, name)).copied(), &limit_ranges, &runtime_classes)
    };
    snapshot.daemon_sets.iter().filter_map(daemon).collect()
}

/// DaemonSets without a pod whose RuntimeClass may take room of which the snapshot says nothing: those, and the class.
pub fn without_known_overhead(snapshot: &Snapshot) -> Vec<(String, String)> {
    let classes = RuntimeClasses::new(snapshot);
    let known: BTreeSet<&str> = snapshot.pods.iter().filter_map(|pod| pod.spec.runtime_class_name.as_deref()).collect();
    let of_set = |set: &DaemonSet| {
        let class = set.spec.as_ref()?.template.spec.as_ref()?.runtime_class_name.clone()?;
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let name = format!("{namespace}/{}", set.metadata.name.as_deref().unwrap_or_default());
        (!known.contains(class.as_str()) && !classes.knows(&class)).then_some((name, class))
    };
    snapshot.daemon_sets.iter().filter_map(of_set).collect()
}

/// By namespace and name of the DaemonSet. What runs knows more than the template: it has been through admission.
fn newest_pods(snapshot: &Snapshot) -> BTreeMap<(&str, &str), &Pod> {
    let mut newest: BTreeMap<(&str, &str), &Pod> = BTreeMap::new();
    for pod in snapshot.pods.iter().filter(|pod| !pod.is_terminal()) {
        let Some(owner) = pod.controller().filter(|owner| owner.kind == "DaemonSet") else { continue };
        let age = |pod: &Pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone());
        let known = newest.entry((&pod.metadata.namespace, &owner.name)).or_insert(pod);
        if age(known) < age(pod) {
            *known = pod;
        }
    }
    newest
}

impl Daemon {
    /// `None` when the template can not be read as a pod or its requests make no sense; such a DaemonSet runs nothing.
    fn new(
        daemon_set: &DaemonSet,
        running: Option<&Pod>,
        limit_ranges: &LimitRanges<'_>,
        runtime_classes: &RuntimeClasses<'_>,
    ) -> Option<Self> {
        let template = &daemon_set.spec.as_ref()?.template;
        let mut of_template: Pod = serde_json::from_value(serde_json::to_value(template).ok()?).ok()?;
        of_template.metadata.namespace = daemon_set.metadata.namespace.clone().unwrap_or_default();
        limit_ranges.complete(&mut of_template);
        runtime_classes.complete(&mut of_template);
        let pod = running.unwrap_or(&of_template);
        let selector = Requirements::from_labels(&pod.spec.node_selector);
        // A pod that runs is held to its node by an affinity that the controller added; the template's is what counts.
        let affinity = of_template.spec.affinity.as_deref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
        let with_selector = |term: Requirements| {
            let mut both = selector.clone();
            both.extend(&term);
            both
        };
        let terms = required.map(selector_requirements);
        // Each is held against every instance type of every pool. Of one with more it counts as said that it runs everywhere.
        let terms = terms.filter(|terms| terms.len() <= TERMS_MAX);
        let requirements =
            terms.map_or_else(|| vec![selector.clone()], |terms| terms.into_iter().map(with_selector).collect());
        let mut tolerations = pod.spec.tolerations.to_vec();
        tolerations.extend(implied_tolerations());
        Some(Self {
            namespace: daemon_set.metadata.namespace.clone().unwrap_or_default(),
            name: daemon_set.metadata.name.clone().unwrap_or_default(),
            requests: effective_requests(pod).ok()?,
            requirements,
            tolerations,
            host_ports: host_ports(pod),
            pod: of_template,
            counted_in: Vec::new(),
            anti_affinity: Vec::new(),
        })
    }

    /// Whether other pods look at where its pods are, or it keeps them away.
    pub fn is_looked_at(&self) -> bool {
        !self.counted_in.is_empty() || !self.anti_affinity.is_empty()
    }

    pub fn tolerates(&self, taints: &[EffectiveTaint]) -> bool {
        repelling(taints, &self.tolerations, false).is_none()
    }

    /// Whether it runs on a node whose labels may still have any of these values.
    pub fn runs_on(
        &self,
        node: &Requirements,
        taints: &[EffectiveTaint],
        defines: &dyn Fn(&str, &Requirement) -> bool,
    ) -> bool {
        self.tolerates(taints) && self.requirements.iter().any(|term| is_met(term, node, defines))
    }
}

/// Whether a node whose labels may still have any of these values is one of a term.
pub fn is_met(term: &Requirements, node: &Requirements, defines: &dyn Fn(&str, &Requirement) -> bool) -> bool {
    term.iter().all(|(key, requirement)| match node.get(key) {
        Some(mine) => mine.intersects(requirement) && defines(key, requirement),
        None => defines(key, requirement),
    })
}

/// Tolerations that the DaemonSet controller adds to every pod it makes.
fn implied_tolerations() -> Vec<Toleration> {
    [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ]
    .into_iter()
    .map(|(key, effect)| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some(effect.to_owned()),
        ..Toleration::default()
    })
    .collect()
}
