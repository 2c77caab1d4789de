//! Devices of nodes, and which of them each class could have.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorTerm};

use crate::devices::{Choices, ClaimDemand, Device, devices_by_node};
use crate::scheduler::class::PodClass;
use crate::scheduler::devices::DeviceDemand;
use crate::scheduler::volumes::{NODE_NAME, is_empty, term_requirements};

use super::Problem;

impl Problem<'_> {
    /// Looks up the devices of nodes, and which of them each class could have. O(classes with claims x devices).
    pub(super) fn compile_devices(&mut self) {
        if self.classes.iter().all(|class| class.devices.is_none()) {
            return;
        }
        let mut by_node = devices_by_node(self.snapshot);
        let nodes = self.nodes.iter().map(|node| &self.machines[node.machine]);
        self.devices = nodes
            .map(|machine| by_node.remove(machine.name).filter(|_| machine.is_initialized()).unwrap_or_default())
            .collect();
        let mut classes = std::mem::take(&mut self.classes);
        for class in &mut classes {
            self.choices_of(class);
        }
        self.classes = classes;
    }

    fn choices_of(&self, class: &mut PodClass) {
        let Some(devices) = &mut class.devices else { return };
        let DeviceDemand { demand, on_host } = &mut **devices;
        // A pod that runs asks for nothing, and can go nowhere.
        if demand.requests.is_empty() && demand.selectors.is_empty() {
            return;
        }
        for (host, node) in self.nodes.enumerated() {
            let machine = &self.machines[node.machine];
            let is_reachable = |selector: &NodeSelector| {
                selector.node_selector_terms.iter().any(|term| allows(term, &node.labels, machine.name))
            };
            if machine.is_initialized() && demand.selectors.iter().all(is_reachable) {
                on_host.extend(choices(demand, &self.devices[host]).map(|choices| (host, choices)));
            }
        }
    }
}

/// By request and alternative the devices that match; `None` where an expression stumbles over one of the devices, as
/// kube-scheduler then takes no node for it.
fn choices(demand: &ClaimDemand, devices: &[Device]) -> Option<Choices> {
    let mut all = Vec::new();
    for request in &demand.requests {
        let mut of_request = Vec::new();
        for alternative in &request.alternatives {
            let mut matching = Vec::new();
            for (position, device) in devices.iter().enumerate() {
                let mut matches = true;
                for selector in &alternative.selectors {
                    matches = matches && selector.matches(device).ok()?;
                }
                if matches {
                    matching.push(position);
                }
            }
            of_request.push(matching);
        }
        all.push(of_request);
    }
    Some(all)
}

/// Whether a term allows a node, by its labels and its name; an empty one allows none.
fn allows(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>, name: &str) -> bool {
    let mut labels = labels.clone();
    labels.insert(NODE_NAME.to_owned(), name.to_owned());
    !is_empty(term) && term_requirements(term).allow_labels(&labels)
}
