//! What the ResourceClaims of a class demand of its node.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorTerm};

use crate::devices::{Choices, ClaimDemand, ClaimIndex, DeviceError, devices_by_node, is_about_labels};
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::settings::Scheduling;

use super::Problem;
use super::class::{ClassIndex, PodClass};
use super::host::HostIndex;
use super::volumes::{NODE_NAME, VolumeDemand, combine, is_empty, selector_requirements, term_requirements};

/// A class whose pods can be on some of the nodes that exist, and on no other.
#[derive(Debug)]
pub struct DeviceDemand {
    pub demand: ClaimDemand,
    /// Nodes that can have the pods at all, each with the devices that its requests match.
    pub on_host: BTreeMap<HostIndex, Choices>,
}

impl DeviceDemand {
    pub fn identity(&self) -> &str {
        &self.demand.identity
    }
}

/// Reads the claims of pods.
pub struct DeviceIndex<'a> {
    claims: ClaimIndex<'a>,
    ignores: bool,
}

impl<'a> DeviceIndex<'a> {
    pub fn new(snapshot: &'a Snapshot, scheduling: &Scheduling) -> Self {
        Self { claims: ClaimIndex::new(snapshot), ignores: scheduling.ignore_dynamic_resource_allocation }
    }

    /// What the claims of a pod ask for beyond what node selectors say; those go to `volumes`, which are chosen among in
    /// the same way. A pod that runs keeps its devices where it is: where others could be had for it is not looked at, so
    /// its demand can be met nowhere.
    pub fn demand(&self, pod: &Pod, volumes: &mut VolumeDemand) -> Result<Option<Box<DeviceDemand>>, DeviceError> {
        if pod.spec.resource_claims.is_empty() {
            return Ok(None);
        }
        let nowhere = |identity: &str| {
            let demand = ClaimDemand { identity: identity.to_owned(), ..ClaimDemand::default() };
            Some(Box::new(DeviceDemand { demand, on_host: BTreeMap::new() }))
        };
        if pod.spec.node_name.is_some() {
            return Ok(nowhere("runs"));
        }
        if self.ignores {
            let text = "devices through resource claims are ignored, as Karpenter does by default: \
                        spec.scheduling.ignoreDynamicResourceAllocation: false in cutlist.yaml plans with those of nodes that exist";
            return Err(DeviceError::NotSupported(text.to_owned()));
        }
        let mut demand = self.claims.demand(pod)?;
        for selector in std::mem::take(&mut demand.selectors) {
            if is_about_labels(&selector) {
                let terms = selector_requirements(&selector);
                if terms.is_empty() {
                    demand.selectors.push(selector);
                    continue;
                }
                let combined = combine(std::mem::take(&mut volumes.alternatives), terms);
                volumes.alternatives = combined.map_err(|error| DeviceError::NotSupported(error.to_string()))?;
            } else {
                demand.selectors.push(selector);
            }
        }
        let needs_existing = !demand.requests.is_empty() || !demand.selectors.is_empty();
        Ok(needs_existing.then(|| Box::new(DeviceDemand { demand, on_host: BTreeMap::new() })))
    }
}

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
fn choices(demand: &ClaimDemand, devices: &[crate::devices::Device]) -> Option<Choices> {
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

/// Positions of devices that are given away, of all classes.
pub(super) fn taken(given: &[(ClassIndex, Vec<usize>)]) -> BTreeSet<usize> {
    given.iter().flat_map(|(_, devices)| devices.iter().copied()).collect()
}
