//! Instances that outlive the process, and their nodes for a cluster that is not this world's.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::ports::Instance;

use super::machines::{Machine, NOT_READY_TAINT};
use super::objects::name_of;
use super::world::{Timer, World};

/// An instance as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedMachine {
    instance: Instance,
    node_claim: String,
    node_name: String,
    ending: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reservation: Option<String>,
}

impl World {
    /// Every instance, by provider ID.
    pub fn saved_machines(&self) -> Vec<SavedMachine> {
        let saved = |machine: &Machine| SavedMachine {
            instance: machine.instance.clone(),
            node_claim: machine.node_claim.clone(),
            node_name: machine.node_name.clone(),
            ending: machine.ending,
            reservation: machine.reservation.clone(),
        };
        self.machines.values().map(saved).collect()
    }

    /// Instances of an earlier process: they boot, run or end on.
    pub fn restore_machines(&mut self, saved: Vec<SavedMachine>) {
        for SavedMachine { instance, node_claim, node_name, ending, reservation } in saved {
            let provider_id = instance.provider_id.clone();
            let timer = if ending {
                Timer::MachineEnds { provider_id: provider_id.clone() }
            } else {
                Timer::NodeJoins { provider_id: provider_id.clone() }
            };
            self.after_seconds(self.settings.seconds_to_join.0, timer);
            let machine = Machine { instance, node_claim, node_name, ending, reservation };
            self.machines.insert(provider_id, machine);
        }
    }

    /// Instances behind the claims of the other cluster that are not known here.
    pub fn restore_machines_of(&mut self, claims: &[NodeClaim]) {
        for claim in claims {
            let id = claim.status.as_ref().and_then(|status| status.provider_id.as_ref());
            if id.is_some_and(|id| !self.machines.contains_key(id)) {
                self.machine_of_claim(claim);
            }
        }
    }

    /// Whether an instance has yet to join.
    pub fn awaits_nodes(&self) -> bool {
        self.machines.values().any(|machine| !machine.ending && !self.nodes.contains_key(&machine.node_name))
    }

    /// What the claims and classes of the other cluster are: a node takes its labels from them.
    pub fn learn(&mut self, claims: Vec<NodeClaim>, classes: Vec<EC2NodeClass>) {
        self.node_claims = claims.into_iter().map(|claim| (name_of(&claim.metadata), claim)).collect();
        self.node_classes = classes.into_iter().map(|class| (name_of(&class.metadata), class)).collect();
    }

    /// The nodes that have joined, as a kubelet registers them: whether they are ready is for the other cluster to find out.
    pub fn joined_nodes(&self) -> Vec<Node> {
        let as_registered = |node: &Node| {
            let mut node = node.clone();
            // The rest of the metadata is for the other API server to give.
            node.metadata =
                ObjectMeta { name: node.metadata.name, labels: node.metadata.labels, ..ObjectMeta::default() };
            if let Some(spec) = &mut node.spec {
                spec.taints.get_or_insert_default().retain(|taint| taint.key != NOT_READY_TAINT);
            }
            if let Some(status) = &mut node.status {
                status.conditions = None;
            }
            node
        };
        self.nodes.values().map(as_registered).collect()
    }

    /// Nodes whose instance is gone leave this world; gives their names.
    pub fn forget_ended_nodes(&mut self) -> Vec<String> {
        let running: BTreeSet<&String> = self.machines.values().map(|machine| &machine.node_name).collect();
        let ended: Vec<String> = self.nodes.keys().filter(|name| !running.contains(name)).cloned().collect();
        self.nodes.retain(|name, _| !ended.contains(name));
        ended
    }
}
