//! DaemonSets: one pod on each node that accepts it.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Toleration;

use crate::core::check::daemons::TOLERATED;
use crate::core::kube_scheduler::{FilterContext, refusal};
use crate::core::snapshot::Pod;
use crate::core::snapshot::pod::PodSpec;
use crate::core::snapshot::requests::effective_requests;

use super::names::name_of;
use super::random::Random;
use super::state::World;
use super::workloads::owner_reference;

impl World {
    /// Makes the pod of each DaemonSet on each node that has none, once the node accepts it.
    pub(super) fn reconcile_daemons(&mut self) {
        let state = (self.nodes_generation, self.pods.room_changes());
        if self.daemons_at == state {
            return;
        }
        let missing = self.missing_daemons();
        if !missing.is_empty() {
            let snapshot = self.visible_to(&missing);
            let mut context = FilterContext::new(&snapshot);
            let mut rooms = self.rooms();
            for pod in &missing {
                let Some(name) = pod.spec.node_name.as_deref() else { continue };
                let unbound = Pod { spec: PodSpec { node_name: None, ..pod.spec.clone() }, ..pod.clone() };
                let requests = effective_requests(&unbound).unwrap_or_default();
                let has_room = rooms.get(name).is_some_and(|room| room.has_room_for(&requests));
                let Some(node) = context.node(name).filter(|_| has_room) else { continue };
                if refusal(&unbound, node, &context).is_some() {
                    continue;
                }
                context.place(pod, name);
                if let Some(room) = rooms.get_mut(name) {
                    room.take(&requests);
                }
                self.pods.insert(pod.clone());
                self.bound(&pod.key());
            }
        }
        self.daemons_at = (self.nodes_generation, self.pods.room_changes());
    }

    /// Pods that DaemonSets want on nodes that do not have them, with the node of each.
    fn missing_daemons(&self) -> Vec<Pod> {
        let mut missing = Vec::new();
        for set in self.daemon_sets.values() {
            let owner = set.metadata.uid.as_deref().unwrap_or_default();
            for node in self.nodes.keys().filter(|node| !self.pods.has_on(node, owner)) {
                if let Some(mut pod) = self.daemon_pod(set, node) {
                    pod.spec.node_name = Some(node.clone());
                    missing.push(pod);
                }
            }
        }
        missing
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
