//! Machines that are not what everybody says they are, and a plugin that only kube-scheduler knows: for tests of what the planner does
//! when kube-scheduler finds something else than was planned.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::api::keys;
use crate::core::model::resources::format_amount;
use crate::core::snapshot::nodes;

use super::machines::taint;
use super::state::{Disagreement, World};

impl World {
    /// From now on every node of this pool that gets ready is so; `None`: all is well again, on the nodes to come.
    pub fn disagree(&mut self, node_pool: &str, disagreement: Option<Disagreement>) {
        match disagreement {
            Some(disagreement) => self.disagreements.insert(node_pool.to_owned(), disagreement),
            None => self.disagreements.remove(node_pool),
        };
        self.touch_nodes();
    }

    pub(super) fn disagree_on(&mut self, node: &str) {
        let Some(node) = self.nodes.get_mut(node) else { return };
        let Some(disagreement) = pool_of(node).and_then(|pool| self.disagreements.get(pool)) else { return };
        match disagreement {
            Disagreement::LacksLabel(key) => {
                node.metadata.labels.get_or_insert_default().remove(key);
            }
            Disagreement::Taint(key) => {
                node.spec.get_or_insert_default().taints.get_or_insert_default().push(taint(key, "NoSchedule"));
            }
            Disagreement::Offers { resource, percent } => {
                let amount = i128::from(nodes::allocatable(node).get(resource)) * i128::from(*percent) / 100;
                let quantity = Quantity(format_amount(resource, i64::try_from(amount).unwrap_or(i64::MAX)));
                let status = node.status.get_or_insert_default();
                status.allocatable.get_or_insert_default().insert(resource.clone(), quantity);
            }
            Disagreement::Plugin(_) => {}
        }
    }

    pub(super) fn refuses_by_plugin(&self, node: &Node) -> bool {
        let disagreement = pool_of(node).and_then(|pool| self.disagreements.get(pool));
        matches!(disagreement, Some(Disagreement::Plugin(_)))
    }

    /// Says which plugin it was, as kube-scheduler does.
    pub(super) fn quote_plugin(&mut self, pod: &str) {
        let mut plugins = self.disagreements.values().filter_map(|disagreement| match disagreement {
            Disagreement::Plugin(name) => Some(name.as_str()),
            _ => None,
        });
        let Some(plugin) = plugins.next() else { return };
        let message = format!("0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [{plugin}].");
        let refused = self.pods.get(pod).and_then(|pod| pod.scheduling_refused());
        if refused.is_none_or(|refused| refused.message.as_ref() == Some(&message)) {
            return;
        }
        self.pods.change(pod, |pod| {
            for condition in pod.status.conditions.iter_mut().filter(|it| it.type_ == "PodScheduled") {
                condition.message = Some(message.clone());
            }
        });
        self.touch();
    }
}

fn pool_of(node: &Node) -> Option<&str> {
    node.metadata.labels.as_ref()?.get(keys::NODE_POOL).map(String::as_str)
}
