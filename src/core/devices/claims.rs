//! What the ResourceClaims of a pod ask for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorTerm};
use k8s_openapi::api::resource::v1::{
    DeviceClaim, DeviceClass, DeviceRequest, DeviceSelector, ResourceClaim, ResourceClaimTemplate,
};

use crate::snapshot::Snapshot;
use crate::snapshot::pod::{Pod, PodResourceClaim};

use super::CLAIM_DEVICES_MAX;
use super::selector::Selector;

/// More claims of one pod than this are not planned for.
const POD_CLAIMS_MAX: usize = 16;

/// What a pod asks for beside what it has already.
#[derive(Debug, Default)]
pub struct ClaimDemand {
    /// Of all claims that have no devices yet, in order.
    pub requests: Vec<Request>,
    pub constraints: Vec<Constraint>,
    /// Where claims that have their devices can be used: a node must satisfy one term of each.
    pub selectors: Vec<NodeSelector>,
    /// Everything above, written, so that pods that ask for the same are known to.
    pub identity: String,
}

#[derive(Debug)]
pub struct Request {
    /// Number of the claim within the pod.
    pub claim: usize,
    pub name: String,
    /// The first that can be met counts.
    pub alternatives: Vec<Alternative>,
}

#[derive(Debug)]
pub struct Alternative {
    /// Empty, or the name of a request under `firstAvailable`.
    pub name: String,
    pub mode: Mode,
    /// Of the class and of the request: a device must match all.
    pub selectors: Vec<Selector>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    ExactCount(usize),
    All,
}

/// Devices that must agree in an attribute.
#[derive(Debug)]
pub struct Constraint {
    pub claim: usize,
    /// With its domain.
    pub attribute: String,
    /// Names of requests, or `request/alternative`; empty: all.
    requests: Vec<String>,
}

impl Constraint {
    #[cfg(test)]
    pub fn of_all(claim: usize, attribute: &str) -> Self {
        Self { claim, attribute: attribute.to_owned(), requests: Vec::new() }
    }

    pub fn covers(&self, request: &Request, alternative: &Alternative) -> bool {
        let full = format!("{}/{}", request.name, alternative.name);
        self.requests.is_empty() || self.requests.iter().any(|name| *name == request.name || *name == full)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    #[error("ResourceClaim {0} does not exist")]
    MissingClaim(String),
    #[error("ResourceClaim {0} is being deleted")]
    DeletingClaim(String),
    #[error("ResourceClaimTemplate {0} does not exist")]
    MissingTemplate(String),
    #[error("DeviceClass {class} of ResourceClaim {claim} does not exist")]
    MissingClass { claim: String, class: String },
    #[error("a device selector of ResourceClaim {claim} is not valid: {problem}")]
    Selector { claim: String, problem: String },
    #[error("not supported: {0}")]
    NotSupported(String),
}

/// Claims, templates and classes by name.
pub struct ClaimIndex<'a> {
    claims: BTreeMap<(&'a str, &'a str), &'a ResourceClaim>,
    templates: BTreeMap<(&'a str, &'a str), &'a ResourceClaimTemplate>,
    classes: BTreeMap<&'a str, &'a DeviceClass>,
    /// By claim that pods name, how many do.
    users: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> ClaimIndex<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let claims = snapshot
            .resource_claims
            .iter()
            .filter_map(|claim| Some(((claim.metadata.namespace.as_deref()?, claim.metadata.name.as_deref()?), claim)));
        let templates = snapshot.resource_claim_templates.iter().filter_map(|template| {
            Some(((template.metadata.namespace.as_deref()?, template.metadata.name.as_deref()?), template))
        });
        let classes = snapshot.device_classes.iter().filter_map(|class| Some((class.metadata.name.as_deref()?, class)));
        let mut users = BTreeMap::new();
        for pod in snapshot.pods.iter().filter(|pod| !pod.is_terminal()) {
            for name in pod.spec.resource_claims.iter().filter_map(|claim| claim.resource_claim_name.as_deref()) {
                *users.entry((pod.metadata.namespace.as_str(), name)).or_default() += 1;
            }
        }
        Self { claims: claims.collect(), templates: templates.collect(), classes: classes.collect(), users }
    }

    /// What a pod that waits asks for.
    pub fn demand(&self, pod: &Pod) -> Result<ClaimDemand, DeviceError> {
        if pod.spec.resource_claims.len() > POD_CLAIMS_MAX {
            return Err(DeviceError::NotSupported(format!("a pod with more than {POD_CLAIMS_MAX} resource claims")));
        }
        let mut demand = ClaimDemand::default();
        for (number, reference) in pod.spec.resource_claims.iter().enumerate() {
            if let Some((name, claim)) = self.resolve(pod, reference, &mut demand)? {
                self.add(&name, number, claim, &mut demand)?;
            }
        }
        Ok(demand)
    }

    /// Name and content of a claim that needs devices.
    fn resolve(
        &self,
        pod: &Pod,
        reference: &PodResourceClaim,
        demand: &mut ClaimDemand,
    ) -> Result<Option<(String, &'a DeviceClaim)>, DeviceError> {
        let namespace = pod.metadata.namespace.as_str();
        let generated = pod.status.resource_claim_statuses.iter().find(|status| status.name == reference.name);
        let name = match (&reference.resource_claim_name, generated) {
            (Some(name), _) => Some(name),
            // Kubernetes found that the pod needs no claim.
            (None, Some(status)) if status.resource_claim_name.is_none() => return Ok(None),
            (None, status) => status.and_then(|status| status.resource_claim_name.as_ref()),
        };
        let Some(name) = name else {
            // The claim is made from its template in a moment.
            let template = reference.resource_claim_template_name.clone().unwrap_or_default();
            let found = self.templates.get(&(namespace, template.as_str()));
            let found = found.ok_or_else(|| DeviceError::MissingTemplate(template.clone()))?;
            return Ok(found.spec.spec.devices.as_ref().map(|devices| (template, devices)));
        };
        let claim = self.claims.get(&(namespace, name.as_str()));
        let claim = claim.ok_or_else(|| DeviceError::MissingClaim(name.clone()))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(DeviceError::DeletingClaim(name.clone()));
        }
        if let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) {
            demand.identity.push_str(&format!("at {:?};", allocation.node_selector));
            demand.selectors.extend(allocation.node_selector.clone());
            return Ok(None);
        }
        let users = self.users.get(&(namespace, name.as_str())).copied().unwrap_or_default();
        if reference.resource_claim_name.is_some() && users > 1 {
            let text = format!("ResourceClaim {name} has no devices yet and is shared by {users} pods");
            return Err(DeviceError::NotSupported(text));
        }
        Ok(claim.spec.devices.as_ref().map(|devices| (name.clone(), devices)))
    }

    fn add(&self, name: &str, number: usize, claim: &DeviceClaim, demand: &mut ClaimDemand) -> Result<(), DeviceError> {
        for request in claim.requests.iter().flatten() {
            let alternatives = self.alternatives(name, request)?;
            demand.requests.push(Request { claim: number, name: request.name.clone(), alternatives });
        }
        for constraint in claim.constraints.iter().flatten() {
            let Some(attribute) = constraint.match_attribute.clone() else {
                let text = format!("a constraint of ResourceClaim {name} is not matchAttribute");
                return Err(DeviceError::NotSupported(text));
            };
            let requests = constraint.requests.clone().unwrap_or_default();
            demand.constraints.push(Constraint { claim: number, attribute, requests });
        }
        demand.identity.push_str(&format!("{number} {:?} {:?};", claim.requests, claim.constraints));
        Ok(())
    }

    fn alternatives(&self, claim: &str, request: &DeviceRequest) -> Result<Vec<Alternative>, DeviceError> {
        if let Some(exactly) = &request.exactly {
            if exactly.admin_access == Some(true) || exactly.capacity.is_some() {
                let text = format!("ResourceClaim {claim} asks for a share of a device or for access to administer it");
                return Err(DeviceError::NotSupported(text));
            }
            let mode = mode(claim, exactly.allocation_mode.as_deref(), exactly.count)?;
            let selectors = self.selectors(claim, &exactly.device_class_name, exactly.selectors.as_deref())?;
            return Ok(vec![Alternative { name: String::new(), mode, selectors }]);
        }
        let alternatives = request.first_available.iter().flatten().map(|request| {
            if request.capacity.is_some() {
                let text = format!("ResourceClaim {claim} asks for a share of a device");
                return Err(DeviceError::NotSupported(text));
            }
            let mode = mode(claim, request.allocation_mode.as_deref(), request.count)?;
            let selectors = self.selectors(claim, &request.device_class_name, request.selectors.as_deref())?;
            Ok(Alternative { name: request.name.clone(), mode, selectors })
        });
        alternatives.collect()
    }

    fn selectors(
        &self,
        claim: &str,
        class: &str,
        own: Option<&[DeviceSelector]>,
    ) -> Result<Vec<Selector>, DeviceError> {
        let of_class = self
            .classes
            .get(class)
            .ok_or_else(|| DeviceError::MissingClass { claim: claim.to_owned(), class: class.to_owned() })?;
        let all = of_class.spec.selectors.iter().flatten().chain(own.unwrap_or_default());
        let compiled = all.map(|selector| {
            let Some(cel) = &selector.cel else {
                let text = format!("a device selector of ResourceClaim {claim} is not CEL");
                return Err(DeviceError::NotSupported(text));
            };
            let invalid = |problem| DeviceError::Selector { claim: claim.to_owned(), problem };
            Selector::new(&cel.expression).map_err(invalid)
        });
        compiled.collect()
    }
}

fn mode(claim: &str, mode: Option<&str>, count: Option<i64>) -> Result<Mode, DeviceError> {
    match mode.unwrap_or("ExactCount") {
        "All" => Ok(Mode::All),
        "ExactCount" => match usize::try_from(count.unwrap_or(1)) {
            Ok(count @ 1..=CLAIM_DEVICES_MAX) => Ok(Mode::ExactCount(count)),
            _ => {
                let text =
                    format!("ResourceClaim {claim} asks for a number of devices other than 1 to {CLAIM_DEVICES_MAX}");
                Err(DeviceError::NotSupported(text))
            }
        },
        other => Err(DeviceError::NotSupported(format!("allocation mode {other} of ResourceClaim {claim}"))),
    }
}

/// Whether every term of a selector is about labels alone, so that a node that does not exist yet can be judged.
pub fn is_about_labels(selector: &NodeSelector) -> bool {
    let is_about_labels = |term: &NodeSelectorTerm| term.match_fields.as_ref().is_none_or(Vec::is_empty);
    selector.node_selector_terms.iter().all(is_about_labels)
}
