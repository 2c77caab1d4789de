//! Changes that let a pod in, as data: what people read, and what is done to the objects to try it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PodAffinityTerm, Toleration, WeightedPodAffinityTerm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Resources;
use crate::model::requirements::normalized;
use crate::snapshot::Pod;
use cutlist_api::ec2_node_class::{BlockDeviceMapping, EC2NodeClass, InstanceStorePolicy};
use cutlist_api::keys;
use cutlist_api::node_overlay::{NodeOverlay, NodeOverlaySpec, OverlayRequirement};
use cutlist_api::node_pool::{IntOrString, NodePool, NodeSelectorRequirement, Operator};

/// One change of a NodePool, of its EC2NodeClass or NodeOverlays, or of a pod. Amounts are Kubernetes quantities.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub enum Change {
    /// `spec.limits` of a NodePool.
    RaiseLimit { node_pool: String, resource: String, from: String, to: String },
    /// `spec.limits` of `cutlist.yaml`.
    RaiseClusterLimit { resource: String, from: String, to: String },
    /// A requirement of a NodePool allows these values too.
    OfferValues { node_pool: String, key: String, values: Vec<String> },
    /// A NodePool no longer asks for anything on this label.
    DropRequirement { node_pool: String, key: String },
    /// Nodes of a NodePool get this label.
    AddLabel { node_pool: String, key: String, value: String },
    /// A requirement of a NodePool no longer asks for a number of values.
    DropMinValues { node_pool: String, key: String },
    /// `instanceStorePolicy: RAID0` in an EC2NodeClass: pods' data is on the disks of the instance.
    UseInstanceStore { node_class: String },
    /// `volumeSize` of a device in `blockDeviceMappings` of an EC2NodeClass.
    EnlargeVolume { node_class: String, device: String, from: String, to: String },
    /// A new NodeOverlay says that nodes of a NodePool have this resource.
    AddOverlay { node_pool: String, resource: String, amount: String },
    /// The pod tolerates a taint, `key=value:Effect`.
    Tolerate { taint: String },
    /// The pod requests less.
    LowerRequest { resource: String, from: String, to: String },
    /// The pod no longer asks for anything on this label, neither by selector nor by required node affinity.
    DropSelector { key: String },
    /// The pod's topology spread over this label no longer asks for a number of domains.
    DropMinDomains { key: String },
    /// The pod's topology spread over this label becomes a wish.
    PreferSpread { key: String },
    /// The pod's required pod affinity over this label becomes a wish.
    PreferAffinity { key: String },
    /// The pod's required pod anti-affinity over this label becomes a wish.
    PreferAntiAffinity { key: String },
    /// The pod takes no port of the node.
    DropHostPorts,
}

impl std::fmt::Display for Change {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RaiseLimit { node_pool, resource, from, to } => {
                write!(formatter, "limits.{resource} {from} -> {to} in NodePool {node_pool}")
            }
            Self::RaiseClusterLimit { resource, from, to } => {
                write!(formatter, "spec.limits.{resource} {from} -> {to} in cutlist.yaml")
            }
            Self::OfferValues { node_pool, key, values } => {
                write!(formatter, "let NodePool {node_pool} offer {key} {}", values.join(", "))
            }
            Self::DropRequirement { node_pool, key } => {
                write!(formatter, "drop the requirement on {key} in NodePool {node_pool}")
            }
            Self::AddLabel { node_pool, key, value } => {
                write!(formatter, "give NodePool {node_pool} the label {key} {value}")
            }
            Self::DropMinValues { node_pool, key } => {
                write!(formatter, "drop minValues of {key} in NodePool {node_pool}")
            }
            Self::UseInstanceStore { node_class } => {
                write!(formatter, "instanceStorePolicy: RAID0 in EC2NodeClass {node_class}")
            }
            Self::EnlargeVolume { node_class, device, from, to } => {
                write!(formatter, "volumeSize of {device} {from} -> {to} in EC2NodeClass {node_class}")
            }
            Self::AddOverlay { node_pool, resource, amount } => {
                write!(formatter, "a NodeOverlay with capacity {resource} {amount} for NodePool {node_pool}")
            }
            Self::Tolerate { taint } => write!(formatter, "tolerate {taint} in the pod"),
            Self::LowerRequest { resource, from, to } => write!(formatter, "{resource} {from} -> {to} in the pod"),
            Self::DropSelector { key } => write!(formatter, "do not ask for {key} in the pod"),
            Self::DropMinDomains { key } => write!(formatter, "drop minDomains of the spread over {key} in the pod"),
            Self::PreferSpread { key } => {
                write!(formatter, "whenUnsatisfiable: ScheduleAnyway for the spread over {key} in the pod")
            }
            Self::PreferAffinity { key } => {
                write!(formatter, "prefer the pod affinity over {key} in the pod, instead of requiring it")
            }
            Self::PreferAntiAffinity { key } => {
                write!(formatter, "prefer the pod anti-affinity over {key} in the pod, instead of requiring it")
            }
            Self::DropHostPorts => write!(formatter, "take no hostPort in the pod"),
        }
    }
}

/// `A`, or `A; and B`.
pub fn text(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; and ")
}

impl Change {
    /// Without amounts and values: what changes that are alike have in common.
    #[must_use]
    pub fn kind(&self) -> Self {
        let mut kind = self.clone();
        match &mut kind {
            Self::RaiseLimit { from, to, .. }
            | Self::RaiseClusterLimit { from, to, .. }
            | Self::EnlargeVolume { from, to, .. }
            | Self::LowerRequest { from, to, .. } => {
                from.clear();
                to.clear();
            }
            Self::OfferValues { values, .. } => values.clear(),
            Self::AddLabel { value, .. } => value.clear(),
            Self::AddOverlay { amount, .. } => amount.clear(),
            Self::Tolerate { taint } => *taint = key_of_taint(taint).to_owned(),
            Self::DropRequirement { .. }
            | Self::DropMinValues { .. }
            | Self::UseInstanceStore { .. }
            | Self::DropSelector { .. }
            | Self::DropMinDomains { .. }
            | Self::PreferSpread { .. }
            | Self::PreferAffinity { .. }
            | Self::PreferAntiAffinity { .. }
            | Self::DropHostPorts => {}
        }
        kind
    }

    /// Whether the pod gets less.
    pub fn lowers(&self) -> bool {
        matches!(self, Self::LowerRequest { .. })
    }

    /// Changes the limits of the cluster, if it is they that are meant.
    pub fn apply_to_limits(&self, limits: &mut BTreeMap<String, IntOrString>) {
        if let Self::RaiseClusterLimit { resource, to, .. } = self {
            limits.insert(resource.clone(), IntOrString::String(to.clone()));
        }
    }

    /// Changes the pool, if it is the one that is meant.
    pub fn apply_to_pool(&self, pool: &mut NodePool) {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let template = &mut pool.spec.template;
        let on = |requirement: &NodeSelectorRequirement, key: &str| normalized(&requirement.key) == normalized(key);
        match self {
            Self::RaiseLimit { node_pool, resource, to, .. } if *node_pool == name => {
                pool.spec.limits.insert(resource.clone(), IntOrString::String(to.clone()));
            }
            Self::OfferValues { node_pool, key, values } if *node_pool == name => {
                for requirement in template.spec.requirements.iter_mut().filter(|requirement| on(requirement, key)) {
                    match requirement.operator {
                        Operator::In => {
                            let missing = values.iter().filter(|value| !requirement.values.contains(value)).cloned();
                            let missing: Vec<String> = missing.collect();
                            requirement.values.extend(missing);
                        }
                        Operator::NotIn => requirement.values.retain(|value| !values.contains(value)),
                        _ => {}
                    }
                }
                // Bounds can not be widened value by value, and an empty NotIn says nothing.
                template.spec.requirements.retain(|requirement| {
                    !on(requirement, key)
                        || requirement.operator == Operator::In
                        || (requirement.operator == Operator::NotIn && !requirement.values.is_empty())
                });
            }
            Self::DropRequirement { node_pool, key } if *node_pool == name => {
                template.spec.requirements.retain(|requirement| !on(requirement, key));
                template.metadata.labels.retain(|label, _| normalized(label) != normalized(key));
            }
            Self::AddLabel { node_pool, key, value } if *node_pool == name => {
                template.metadata.labels.insert(key.clone(), value.clone());
            }
            Self::DropMinValues { node_pool, key } if *node_pool == name => {
                let alike = template.spec.requirements.iter_mut().filter(|requirement| on(requirement, key));
                alike.for_each(|requirement| requirement.min_values = None);
            }
            _ => {}
        }
    }

    /// Changes the class, if it is the one that is meant.
    pub fn apply_to_node_class(&self, class: &mut EC2NodeClass) {
        let name = class.metadata.name.clone().unwrap_or_default();
        match self {
            Self::UseInstanceStore { node_class } if *node_class == name => {
                class.spec.instance_store_policy = Some(InstanceStorePolicy::RAID0);
            }
            Self::EnlargeVolume { node_class, device, to, .. } if *node_class == name => {
                let mappings = &mut class.spec.block_device_mappings;
                let position = mappings.iter().position(|it| it.device_name.as_ref() == Some(device)).or_else(|| {
                    // A root volume need not say what it is called.
                    mappings.iter().position(|it| it.root_volume && it.device_name.is_none())
                });
                let position = position.unwrap_or_else(|| {
                    mappings.push(BlockDeviceMapping { device_name: Some(device.clone()), ..Default::default() });
                    mappings.len() - 1
                });
                mappings[position].ebs.get_or_insert_default().volume_size = Some(IntOrString::String(to.clone()));
            }
            _ => {}
        }
    }

    /// The overlay that is new, if it is one.
    pub fn overlay(&self) -> Option<NodeOverlay> {
        let Self::AddOverlay { node_pool, resource, amount } = self else { return None };
        let pool = OverlayRequirement {
            key: keys::NODE_POOL.to_owned(),
            operator: Operator::In,
            values: vec![node_pool.clone()],
        };
        let spec = NodeOverlaySpec {
            requirements: vec![pool],
            price: None,
            price_adjustment: None,
            capacity: BTreeMap::from([(resource.clone(), IntOrString::String(amount.clone()))]),
            weight: None,
        };
        Some(NodeOverlay::new(&overlay_name(node_pool, resource), spec))
    }

    /// Changes the pod, if it is the pod that is meant.
    pub fn apply_to_pod(&self, pod: &mut Pod) {
        match self {
            Self::Tolerate { taint } => pod.spec.tolerations.extend(toleration(taint)),
            Self::LowerRequest { resource, from: _, to } => lower_request(pod, resource, to),
            Self::DropSelector { key } => drop_selector(pod, key),
            Self::DropMinDomains { key } => {
                let spreads = pod.spec.topology_spread_constraints.iter_mut();
                let alike = spreads.filter(|spread| normalized(&spread.topology_key) == normalized(key));
                alike.for_each(|spread| spread.min_domains = None);
            }
            Self::PreferSpread { key } => {
                let spreads = pod.spec.topology_spread_constraints.iter_mut();
                for spread in spreads.filter(|spread| normalized(&spread.topology_key) == normalized(key)) {
                    "ScheduleAnyway".clone_into(&mut spread.when_unsatisfiable);
                    // Only a spread that is required may ask for a number of domains.
                    spread.min_domains = None;
                }
            }
            Self::PreferAffinity { key } => {
                if let Some(terms) = pod.spec.affinity.as_deref_mut().and_then(|all| all.pod_affinity.as_mut()) {
                    prefer(
                        key,
                        &mut terms.required_during_scheduling_ignored_during_execution,
                        &mut terms.preferred_during_scheduling_ignored_during_execution,
                    );
                }
            }
            Self::PreferAntiAffinity { key } => {
                if let Some(terms) = pod.spec.affinity.as_deref_mut().and_then(|all| all.pod_anti_affinity.as_mut()) {
                    prefer(
                        key,
                        &mut terms.required_during_scheduling_ignored_during_execution,
                        &mut terms.preferred_during_scheduling_ignored_during_execution,
                    );
                }
            }
            Self::DropHostPorts => {
                pod.spec.host_network = false;
                for container in pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers) {
                    container.ports.iter_mut().for_each(|port| port.host_port = None);
                }
            }
            _ => {}
        }
    }
}

/// Of lower-case letters, digits and dashes.
fn overlay_name(node_pool: &str, resource: &str) -> String {
    let text = format!("{node_pool}-{resource}").to_ascii_lowercase();
    let name: String = text.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    name.trim_matches('-').to_owned()
}

/// Of `key=value:Effect`.
pub fn key_of_taint(taint: &str) -> &str {
    taint.split(['=', ':']).next().unwrap_or_default()
}

/// `key=value:Effect` as the pod would tolerate it.
fn toleration(taint: &str) -> Option<Toleration> {
    let (taint, effect) = taint.rsplit_once(':')?;
    let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
    Some(Toleration {
        key: Some(key.to_owned()),
        operator: Some("Equal".to_owned()),
        value: Some(value.to_owned()),
        effect: Some(effect.to_owned()),
        toleration_seconds: None,
    })
}

/// The container that requests most of the resource gives up what is too much; a pod-level request is set.
fn lower_request(pod: &mut Pod, resource: &str, to: &str) {
    let amount = |text: &str| text.parse().map(|quantity| Resources::amount(resource, quantity)).unwrap_or_default();
    let requested = crate::snapshot::requests::effective_requests(pod).map_or(0, |all| all.get(resource));
    let excess = requested.saturating_sub(amount(to));
    if let Some(resources) = pod
        .spec
        .resources
        .as_mut()
        .filter(|resources| resources.requests.contains_key(resource) || resources.limits.contains_key(resource))
    {
        let now = resources.requests.get(resource).or_else(|| resources.limits.get(resource));
        let now = now.map_or(0, |text| amount(&text.to_string()));
        set_request(&mut resources.requests, &mut resources.limits, resource, now.saturating_sub(excess));
        return;
    }
    let of = |container: &crate::snapshot::pod::Container| {
        let resources = &container.resources;
        let text = resources.requests.get(resource).or_else(|| resources.limits.get(resource));
        text.map_or(0, |text| amount(&text.to_string()))
    };
    // What asks while the pod starts may be what decides.
    let containers = pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers);
    if let Some(largest) = containers.max_by_key(|container| of(container)) {
        let left = of(largest).saturating_sub(excess).max(0);
        set_request(&mut largest.resources.requests, &mut largest.resources.limits, resource, left);
    }
}

fn set_request(
    requests: &mut BTreeMap<String, IntOrString>,
    limits: &mut BTreeMap<String, IntOrString>,
    resource: &str,
    amount: i64,
) {
    let text = crate::model::resources::format_amount(resource, amount);
    // Devices and huge pages can not be limited to more than is requested.
    if limits.contains_key(resource) && !matches!(resource, "cpu" | "memory" | "ephemeral-storage") {
        limits.insert(resource.to_owned(), IntOrString::String(text.clone()));
    }
    requests.insert(resource.to_owned(), IntOrString::String(text));
}

fn drop_selector(pod: &mut Pod, key: &str) {
    let is_on = |other: &str| normalized(other) == normalized(key);
    pod.spec.node_selector.retain(|label, _| !is_on(label));
    let node = pod.spec.affinity.as_deref_mut().and_then(|affinity| affinity.node_affinity.as_mut());
    let required = node.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_mut());
    let Some(required) = required else { return };
    let mut asks_nothing = false;
    for term in &mut required.node_selector_terms {
        for all in [&mut term.match_expressions, &mut term.match_fields].into_iter().flatten() {
            all.retain(|one| !is_on(&one.key));
        }
        asks_nothing |= is_empty(term);
    }
    // Terms are alternatives: one that asks for nothing makes the others superfluous, and Kubernetes takes it for never.
    if asks_nothing && let Some(node) = pod.spec.affinity.as_deref_mut().and_then(|all| all.node_affinity.as_mut()) {
        node.required_during_scheduling_ignored_during_execution = None;
    }
}

fn is_empty(term: &NodeSelectorTerm) -> bool {
    term.match_expressions.as_ref().is_none_or(Vec::is_empty) && term.match_fields.as_ref().is_none_or(Vec::is_empty)
}

/// Required terms over a label become preferred ones of the largest weight.
fn prefer(
    key: &str,
    required: &mut Option<Vec<PodAffinityTerm>>,
    preferred: &mut Option<Vec<WeightedPodAffinityTerm>>,
) {
    let is_on = |term: &PodAffinityTerm| normalized(&term.topology_key) == normalized(key);
    let (wishes, rest) = required.take().unwrap_or_default().into_iter().partition::<Vec<_>, _>(is_on);
    *required = Some(rest).filter(|rest| !rest.is_empty());
    let wishes = wishes.into_iter().map(|term| WeightedPodAffinityTerm { pod_affinity_term: term, weight: 100 });
    preferred.get_or_insert_with(Vec::new).extend(wishes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::requests::effective_requests;
    use crate::testing::{BuildPod, Merge, pod};

    #[test]
    fn a_lower_request_is_what_the_whole_pod_requests() {
        let lower = |mut pod: Pod| {
            Change::LowerRequest { resource: "cpu".into(), from: "8".into(), to: "7.5".into() }.apply_to_pod(&mut pod);
            effective_requests(&pod).unwrap().get("cpu")
        };
        assert_eq!(lower(pod("a").cpu("8")), 7500);
        let two = serde_json::json!({ "spec": { "containers": [
            { "name": "a", "resources": { "requests": { "cpu": "6" } } },
            { "name": "b", "resources": { "limits": { "cpu": "2" } } } ] } });
        assert_eq!(lower(pod("a").merge(two)), 7500);
        let whole =
            serde_json::json!({ "spec": { "resources": { "requests": { "cpu": "7" } }, "overhead": { "cpu": "1" } } });
        assert_eq!(lower(pod("a").cpu("1").merge(whole)), 7500);
    }

    #[test]
    fn what_is_not_asked_for_any_more_leaves_no_empty_term() {
        let mut selective = pod("a").node_affinity("topology.kubernetes.io/zone", "In", &["z1"]);
        Change::DropSelector { key: "topology.kubernetes.io/zone".into() }.apply_to_pod(&mut selective);
        let node = selective.spec.affinity.unwrap().node_affinity.unwrap();
        assert_eq!(node.required_during_scheduling_ignored_during_execution, None);
    }

    #[test]
    fn changes_that_differ_in_amounts_and_values_are_of_one_kind() {
        let tolerate = |taint: &str| Change::Tolerate { taint: taint.to_owned() }.kind();
        assert_eq!(tolerate("example.com/rack=17:NoSchedule"), tolerate("example.com/rack=18:NoSchedule"));
        assert_ne!(tolerate("example.com/rack=17:NoSchedule"), tolerate("gpu:NoSchedule"));
        let raise = |node_pool: &str, to: &str| {
            let (node_pool, resource) = (node_pool.to_owned(), "cpu".to_owned());
            Change::RaiseLimit { node_pool, resource, from: "1".to_owned(), to: to.to_owned() }.kind()
        };
        assert_eq!(raise("a", "2"), raise("a", "3"));
        assert_ne!(raise("a", "2"), raise("b", "2"));
    }

    #[test]
    fn a_taint_without_a_value_can_be_tolerated() {
        let tolerated = toleration("dedicated:NoSchedule").unwrap();
        assert_eq!((tolerated.key.as_deref(), tolerated.value.as_deref()), (Some("dedicated"), Some("")));
        assert_eq!(tolerated.effect.as_deref(), Some("NoSchedule"));
    }
}
