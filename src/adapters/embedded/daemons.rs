//! DaemonSets: one pod on each node that accepts it.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Toleration;

use crate::core::plan::check::daemons::TOLERATED;
use crate::core::plan::check::filters::{FilterContext, refusal};
use crate::core::snapshot::Pod;

use super::objects::name_of;
use super::random::Random;
use super::workloads::owner_reference;
use super::world::World;

impl World {
    pub(super) fn reconcile_daemons(&mut self) {
        if self.daemons_at_generation == self.generation {
            return;
        }
        for key in self.daemon_keys() {
            let Some(set) = self.daemon_sets.get(&key).cloned() else { continue };
            for node in self.nodes.keys().cloned().collect::<Vec<_>>() {
                self.reconcile_daemon(&set, &node);
            }
        }
        self.daemons_at_generation = self.generation;
    }

    /// Makes the daemon's pod on a node that has none, once the node accepts it.
    fn reconcile_daemon(&mut self, set: &DaemonSet, node_name: &str) {
        let owner = set.metadata.uid.as_deref().unwrap_or_default();
        let is_here = |pod: &Pod| {
            pod.spec.node_name.as_deref() == Some(node_name)
                && pod.controller().is_some_and(|reference| reference.uid == owner)
        };
        if self.pods.values().any(is_here) {
            return;
        }
        let Some(mut pod) = self.daemon_pod(set, node_name) else { return };
        let snapshot = self.snapshot();
        let context = FilterContext::new(&snapshot);
        let Some(node) = context.node(node_name) else { return };
        if refusal(&pod, node, &context).is_some() {
            return;
        }
        pod.spec.node_name = Some(node_name.to_owned());
        let key = pod.key();
        self.pods.insert(key.clone(), pod);
        self.bound(&key);
    }

    fn daemon_pod(&self, set: &DaemonSet, node: &str) -> Option<Pod> {
        let template = &set.spec.as_ref()?.template;
        let set_name = name_of(&set.metadata);
        // From the node's name, so that asking again for the same node gives the same pod.
        let mut random = Random::new(self.settings.seed, "daemon", &format!("{set_name} {node}"));
        let uid = random.uid();
        let name = format!("{set_name}-{}", random.suffix(5));
        let owner = owner_reference("apps/v1", "DaemonSet", &set.metadata);
        let namespace = set.metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
        let mut pod = self.pod_from_template(template, namespace, name, uid, owner)?;
        pod.spec.tolerations.extend(TOLERATED.map(|(key, effect)| Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        }));
        Some(pod)
    }
}
