//! Instances that outlive the process, and their nodes for a cluster that is not this world's.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::api::ec2_node_class::{EC2NodeClass, SecurityGroup};
use crate::api::node_claim::NodeClaim;
use crate::ports::Instance;

use super::machines::NOT_READY_TAINT;
use super::names::name_of;
use super::state::{Machine, Timer, World};

/// An instance as it is kept in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedMachine {
    provider_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    launch_id: String,
    claim_uid: String,
    instance_type: String,
    zone: String,
    capacity_type: String,
    image_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subnet_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    security_groups: Vec<SecurityGroup>,
    launched_at: Timestamp,
    node_claim: String,
    node_name: String,
    ending: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reservation: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    node_pool: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    node_class: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    installation: String,
}

impl From<&Machine> for SavedMachine {
    fn from(machine: &Machine) -> Self {
        let instance = machine.instance.clone();
        Self {
            provider_id: instance.provider_id,
            launch_id: instance.launch_id,
            claim_uid: machine.claim_uid.clone(),
            instance_type: instance.instance_type,
            zone: instance.zone,
            capacity_type: instance.capacity_type,
            image_id: instance.image_id,
            subnet_id: instance.subnet_id,
            security_groups: instance.security_groups,
            launched_at: instance.launched_at,
            node_claim: machine.node_claim.clone(),
            node_name: machine.node_name.clone(),
            ending: machine.ending,
            reservation: machine.reservation.clone(),
            node_pool: instance.node_pool,
            node_class: instance.node_class,
            installation: instance.installation,
        }
    }
}

impl From<SavedMachine> for Machine {
    fn from(saved: SavedMachine) -> Self {
        let instance = Instance {
            provider_id: saved.provider_id,
            launch_id: saved.launch_id,
            instance_type: saved.instance_type,
            zone: saved.zone,
            capacity_type: saved.capacity_type,
            image_id: saved.image_id,
            subnet_id: saved.subnet_id,
            security_groups: saved.security_groups,
            reservation_id: saved.reservation.clone(),
            launched_at: saved.launched_at,
            node_claim: saved.node_claim.clone(),
            node_pool: saved.node_pool,
            node_class: saved.node_class,
            installation: saved.installation,
        };
        Self {
            instance,
            claim_uid: saved.claim_uid,
            node_claim: saved.node_claim,
            node_name: saved.node_name,
            ending: saved.ending,
            reservation: saved.reservation,
        }
    }
}

impl World {
    /// Every instance, by provider ID.
    pub fn saved_machines(&self) -> Vec<SavedMachine> {
        self.machines.values().map(SavedMachine::from).collect()
    }

    /// Instances of an earlier process: they boot, run or end on.
    pub fn restore_machines(&mut self, saved: Vec<SavedMachine>) {
        for machine in saved.into_iter().map(Machine::from) {
            let provider_id = machine.instance.provider_id.clone();
            let timer = if machine.ending {
                Timer::MachineEnds { provider_id: provider_id.clone() }
            } else {
                Timer::NodeJoins { provider_id: provider_id.clone() }
            };
            self.after_seconds(self.settings.seconds_to_join.0, timer);
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
