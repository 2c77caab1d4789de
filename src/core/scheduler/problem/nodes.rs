//! Nodes that exist: what is free on each, who is on it and who is to come, and which of them are alike.

use std::collections::{BTreeMap, BTreeSet};

use crate::inputs::Inputs;
use crate::kube_scheduler::void_nominations;
use crate::model::requirements::normalized;
use crate::model::{HourlyPrice, IndexVec, Requirement, Requirements, Resources};
use crate::scheduler::beside::cost_beside;
use crate::scheduler::class::ClassIndex;
use crate::scheduler::host::{ExistingNode, HostIndex};
use crate::scheduler::host_ports::HostPort;
use crate::scheduler::taints::EffectiveTaint;
use crate::scheduler::topology::GroupKind;
use crate::scheduler::vectors::{self, Vector};
use crate::scheduler::volumes::{EBS_DRIVER, NODE_NAME};
use crate::snapshot::nodes::Machine;
use crate::snapshot::{PodIndex, Snapshot};
use cutlist_api::keys;

use super::Problem;

/// Position of a pod in the snapshot, and its class.
type PodOfClass = (PodIndex, ClassIndex);

/// Labels that some requirement looks at, by key.
type Labels = Vec<(String, String)>;

impl Problem<'_> {
    pub(super) fn compile_nodes(&mut self, inputs: &Inputs<'_>, node_taints: Vec<Vec<EffectiveTaint>>) {
        let looked_at = self.labels_looked_at();
        let attachment_limits = attachment_limits(self.snapshot);
        let position_by_name: BTreeMap<&str, HostIndex> =
            self.machines.enumerated().map(|(position, machine)| (machine.name, position)).collect();
        let mut pods_by_machine: IndexVec<HostIndex, Vec<PodOfClass>> =
            IndexVec::repeat(Vec::new(), self.machines.len());
        let mut nominated_by_machine: BTreeMap<HostIndex, Vec<PodOfClass>> = BTreeMap::new();
        let void = void_nominations(self.snapshot, inputs.now);
        for (pod_position, pod) in self.snapshot.pods.enumerated() {
            let node = pod.spec.node_name.as_deref().filter(|_| !pod.is_terminal());
            let machine = node.and_then(|name| position_by_name.get(name));
            if let (Some(machine), Some(class)) = (machine, self.class_of_pod[pod_position]) {
                pods_by_machine[*machine].push((pod_position, class));
            }
            let nominated = pod.preempting_on().filter(|_| !void.contains(&pod_position));
            let nominated = nominated.and_then(|name| position_by_name.get(name));
            if let (Some(machine), Some(class)) = (nominated, self.class_of_pod[pod_position]) {
                nominated_by_machine.entry(*machine).or_default().push((pod_position, class));
            }
        }
        if looked_at.contains(NODE_NAME) {
            for machine in &mut self.machines {
                machine.labels.insert(NODE_NAME.to_owned(), machine.name.to_owned());
            }
        }
        let mut groups: BTreeMap<(Labels, Vec<EffectiveTaint>), usize> = BTreeMap::new();
        for (position, (taints, pods)) in self.machines.indices().zip(node_taints.into_iter().zip(pods_by_machine)) {
            let machine = &self.machines[position];
            let labels: Labels = machine
                .labels
                .iter()
                .map(|(key, value)| (normalized(key).to_owned(), value.clone()))
                .filter(|(key, _)| looked_at.contains(key))
                .collect();
            let next = groups.len();
            let group = *groups.entry((labels, taints.clone())).or_insert(next);
            let nominated = nominated_by_machine.remove(&position).unwrap_or_default();
            let limits = attachment_limits.get(machine.name).cloned().unwrap_or_default();
            let room = self.room_of(machine, &limits);
            let mut node = self.compile_node(position, taints, (pods, nominated), group, room);
            node.attachment_limits = limits;
            let machine = &self.machines[position];
            node.cost_beside = cost_beside(inputs, self.offer.costs_of_machine(inputs, machine));
            self.nodes.push(node);
        }
    }

    fn compile_node(
        &self,
        position: HostIndex,
        taints: Vec<EffectiveTaint>,
        (pods, mut nominated): (Vec<PodOfClass>, Vec<PodOfClass>),
        group: usize,
        mut free: Vector,
    ) -> ExistingNode {
        let machine = &self.machines[position];
        let mut host_ports = Vec::new();
        let mut daemons_present: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (pod, class) in &pods {
            vectors::add(&mut free, &self.classes[*class].request, -1);
            host_ports.extend(self.classes[*class].host_ports.iter().cloned());
            let pod = &self.snapshot.pods[*pod];
            let owners = pod.metadata.owner_references.iter().filter(|owner| owner.kind == "DaemonSet");
            daemons_present.extend(owners.map(|owner| (pod.metadata.namespace.as_str(), owner.name.as_str())));
        }
        // Of a node that goes, nobody holds the room.
        nominated.retain(|_| !machine.is_being_removed());
        for (_, class) in &nominated {
            vectors::add(&mut free, &self.classes[*class].request, -1);
            host_ports.extend(self.classes[*class].host_ports.iter().cloned());
        }
        let mut node_requirements = Requirements::from_labels(&machine.labels);
        node_requirements.add(NODE_NAME, Requirement::is_in([machine.name.to_owned()]));
        let mut neighbours = Vec::new();
        for (number, daemon) in self
            .daemons
            .enumerated()
            .filter(|(_, daemon)| !daemons_present.contains(&(daemon.namespace.as_str(), daemon.name.as_str())))
        {
            let defined = |key: &str, requirement: &Requirement| {
                node_requirements.get(key).is_some() || requirement.allows_absence()
            };
            if daemon.runs_on(&node_requirements, &taints, &defined) {
                let requested = self.dimensions.vector(&daemon.requests);
                let has_port = |port: &HostPort| !host_ports.iter().any(|taken| taken.conflicts_with(port));
                let has_place = vectors::fits(&requested, &free) && daemon.host_ports.iter().all(has_port);
                vectors::add(&mut free, &requested, -1);
                host_ports.extend(daemon.host_ports.iter().cloned());
                // On a node that has been up for a while it comes at once, or waits for a place, nobody knows how long.
                if daemon.is_looked_at() && (has_place || !machine.is_initialized()) {
                    neighbours.push(number);
                }
            }
        }
        ExistingNode {
            machine: position,
            labels: machine.labels.clone(),
            taints,
            free,
            group,
            pods,
            nominated,
            neighbours,
            host_ports,
            attachment_limits: BTreeMap::new(),
            being_removed: machine.is_being_removed(),
            cost_beside: HourlyPrice::ZERO,
        }
    }

    /// What a machine has for pods. How many volumes it takes, its driver says once it has joined, which is looked at for each volume; until
    /// then its type does.
    fn room_of(&self, machine: &Machine<'_>, limits: &BTreeMap<String, usize>) -> Vector {
        let is_to_say = !machine.is_initialized() && !limits.contains_key(EBS_DRIVER);
        let instance_type = machine.label(keys::INSTANCE_TYPE).filter(|_| is_to_say);
        self.dimensions.room(&self.allocatable_of(machine), instance_type)
    }

    /// Allocatable of a machine; of its instance type in the catalog while neither Node nor claim say. Nothing where its node is gone, for
    /// which pods would wait for ever.
    fn allocatable_of(&self, machine: &Machine<'_>) -> Resources {
        // Where something could not be read, the Node may be there.
        if machine.has_lost_its_node() && self.snapshot.doubts.leave_all_known() {
            return Resources::new();
        }
        let stated = machine.allocatable();
        if !stated.is_empty() {
            return stated;
        }
        let mut templates = self.templates.iter().filter(|template| !template.is_reserved());
        let template = templates.find(|template| Some(template.name.as_str()) == machine.node_pool());
        let instance_type = machine.label(keys::INSTANCE_TYPE);
        template
            .zip(instance_type)
            .and_then(|(template, name)| {
                Some(template.offerings.types[template.offerings.position(name)?].allocatable_resources.clone())
            })
            .unwrap_or_default()
    }

    /// Label keys that requirements or node filters name; nodes that agree on these are alike.
    fn labels_looked_at(&self) -> BTreeSet<String> {
        let mut looked_at: BTreeSet<String> = BTreeSet::new();
        let mut look_at =
            |requirements: &Requirements| looked_at.extend(requirements.iter().map(|(key, _)| key.to_owned()));
        self.variants.iter().for_each(|variant| look_at(&variant.requirements));
        for group in &self.groups {
            if let GroupKind::Spread(spread) = &group.kind {
                spread.node_filter.iter().for_each(&mut look_at);
            }
        }
        looked_at
    }
}

pub(super) fn taints_of(machine: &Machine<'_>) -> Vec<EffectiveTaint> {
    let ephemeral = |key: &str, value: &str, effect| {
        EffectiveTaint { key: key.to_owned(), value: value.to_owned(), effect }.is_ephemeral()
    };
    let taints = machine.effective_taints(ephemeral).into_iter();
    taints.map(|(key, value, effect)| EffectiveTaint { key, value, effect }).collect()
}

/// By node, the most volumes that each driver may attach.
fn attachment_limits(snapshot: &Snapshot) -> BTreeMap<&str, BTreeMap<String, usize>> {
    let limits = snapshot.csi_nodes.iter().filter_map(|csi_node| {
        let drivers = csi_node.spec.drivers.iter().filter_map(|driver| {
            let count = driver.allocatable.as_ref()?.count?;
            Some((driver.name.clone(), usize::try_from(count).ok()?))
        });
        Some((csi_node.metadata.name.as_deref()?, drivers.collect()))
    });
    limits.collect()
}
