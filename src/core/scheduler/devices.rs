//! What the ResourceClaims of a class demand of its node.

use std::collections::{BTreeMap, BTreeSet};

use crate::devices::{Choices, ClaimDemand, ClaimIndex, DeviceError, is_about_labels};
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::settings::Scheduling;

use super::indices::{ClassIndex, HostIndex};
use super::volumes::{VolumeDemand, combine, selector_requirements};

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

/// Positions of devices that are given away, of all classes.
pub(super) fn taken(given: &[(ClassIndex, Vec<usize>)]) -> BTreeSet<usize> {
    given.iter().flat_map(|(_, devices)| devices.iter().copied()).collect()
}
