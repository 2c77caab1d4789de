//! DaemonSets: what each new node will have to carry besides the pods it is bought for.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Toleration;

use crate::core::model::{Requirement, Requirements, Resources};
use crate::core::snapshot::Pod;
use crate::core::snapshot::requests::effective_requests;

use super::taints::{EffectiveTaint, repelling};
use super::volumes::term_requirements;

/// A DaemonSet as scheduling sees it.
#[derive(Debug)]
pub struct Daemon {
    pub namespace: String,
    pub name: String,
    pub requests: Resources,
    /// Any of these will do.
    pub requirements: Vec<Requirements>,
    pub tolerations: Vec<Toleration>,
    pub host_ports: Vec<super::class::HostPort>,
}

impl Daemon {
    /// `None` when the template can not be read as a pod or its requests make no sense; such a DaemonSet runs nothing.
    pub fn new(daemon_set: &DaemonSet) -> Option<Self> {
        let template = &daemon_set.spec.as_ref()?.template;
        let pod: Pod = serde_json::from_value(serde_json::to_value(template).ok()?).ok()?;
        let selector = Requirements::from_labels(&pod.spec.node_selector);
        let affinity = pod.spec.affinity.as_deref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
        let mut requirements: Vec<Requirements> = required
            .iter()
            .flat_map(|terms| &terms.node_selector_terms)
            .map(|term| {
                let mut both = selector.clone();
                both.extend(&term_requirements(term));
                both
            })
            .collect();
        if requirements.is_empty() {
            requirements.push(selector);
        }
        let mut tolerations = pod.spec.tolerations.clone();
        tolerations.extend(implied_tolerations());
        Some(Self {
            namespace: daemon_set.metadata.namespace.clone().unwrap_or_default(),
            name: daemon_set.metadata.name.clone().unwrap_or_default(),
            requests: effective_requests(&pod).ok()?,
            requirements,
            tolerations,
            host_ports: super::class::host_ports(&pod),
        })
    }

    /// Whether it runs on a node whose labels may still have any of these values.
    pub fn runs_on(
        &self,
        node: &Requirements,
        taints: &[EffectiveTaint],
        defines: &dyn Fn(&str, &Requirement) -> bool,
    ) -> bool {
        repelling(taints, &self.tolerations, false).is_none()
            && self.requirements.iter().any(|requirements| {
                requirements.iter().all(|(key, requirement)| match node.get(key) {
                    Some(mine) => mine.intersects(requirement) && defines(key, requirement),
                    None => defines(key, requirement),
                })
            })
    }
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
