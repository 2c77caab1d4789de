//! What goes wrong around a controller: pods that do not end, a zone that is lost, webhooks that change what is written.

use std::collections::BTreeSet;

use crate::api::keys;
use crate::core::snapshot::Pod;
use crate::ports::Offering;

use super::machines::taint;
use super::state::{Webhook, World};

/// What the node controller puts on a node that it does not hear from.
const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";

impl World {
    /// Pods of this namespace and name do not end when they are told to: somebody's finalizer stays, or their kubelet is gone.
    pub fn hold_pod(&mut self, key: &str) {
        let uid = self.pods.get(key).map(|pod| pod.metadata.uid.clone());
        self.held_pods.extend(uid);
    }

    /// They end again; those that were told to are gone.
    pub fn let_pods_go(&mut self) {
        self.held_pods.clear();
        let is_held = |pod: &&std::sync::Arc<Pod>| pod.is_terminating() && !self.is_held(pod);
        let all = self.pods.all();
        let gone: Vec<String> = all.shared().iter().filter(is_held).map(|pod| pod.key()).collect();
        gone.iter().for_each(|key| self.remove_pod(key));
    }

    pub(super) fn is_held(&self, pod: &Pod) -> bool {
        self.held_pods.contains(&pod.metadata.uid) || self.is_in_lost_zone(pod)
    }

    pub(super) fn is_in_lost_zone(&self, pod: &Pod) -> bool {
        let node = pod.spec.node_name.as_ref().and_then(|node| self.nodes.get(node));
        let zone = node.and_then(|node| node.metadata.labels.as_ref()?.get(keys::ZONE));
        zone.is_some_and(|zone| self.lost_zones.contains(zone))
    }

    /// Nothing answers there any more, and nothing is sold there; names of the nodes. What the node controller does then follows: nodes are
    /// not ready, their pods are told to end, and do not.
    pub fn lose_zone(&mut self, zone: &str) -> Vec<String> {
        self.lost_zones.insert(zone.to_owned());
        let is_there = |node: &k8s_openapi::api::core::v1::Node| {
            node.metadata.labels.as_ref().and_then(|labels| labels.get(keys::ZONE)).is_some_and(|its| its == zone)
        };
        let nodes = self.nodes.shared();
        let names: Vec<String> =
            nodes.iter().filter(|node| is_there(node)).filter_map(|node| node.metadata.name.clone()).collect();
        for name in &names {
            self.set_node_condition(name, "Ready", "Unknown");
            let Some(spec) = self.nodes.get_mut(name).and_then(|node| node.spec.as_mut()) else { continue };
            spec.taints.get_or_insert_default().push(taint(UNREACHABLE_TAINT, "NoSchedule"));
        }
        let sold = self.catalog.clone();
        let offerings =
            sold.instance_types.iter().flat_map(|it| it.offerings.iter().map(move |offering| (it, offering)));
        for (instance_type, offering) in offerings.filter(|(_, offering)| offering.zone == zone) {
            self.exhaust(Offering {
                instance_type: instance_type.name.clone(),
                zone: zone.to_owned(),
                capacity_type: offering.capacity_type.clone(),
            });
        }
        let on_them: BTreeSet<String> = names.iter().flat_map(|node| self.pods.on(node)).collect();
        on_them.iter().for_each(|key| self.delete_pod(key, None));
        names
    }

    /// What is written as a definition is changed by this from now on.
    pub fn change_definitions(&mut self, webhook: Option<Webhook>) {
        self.webhook = webhook;
    }
}
