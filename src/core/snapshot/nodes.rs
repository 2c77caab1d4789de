//! Node and NodeClaim joined: one entry for each machine, whether or not it has registered yet.
//! Behaviour: reference, section 3.16.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use crate::model::Resources;
use crate::model::requirements::label;
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};
use crate::model::tenancy::asked_for;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::{IntOrString, TaintEffect};

use super::Snapshot;

/// Of a Node; empty where it says none.
pub fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// The lists of a node that merge patches replace as a whole, and whether two nodes have the same.
type ReplacedList = (&'static str, fn(&Node, &Node) -> bool);
const REPLACED_LISTS: [ReplacedList; 3] = [
    ("/spec/taints", |one, other| taints(one) == taints(other)),
    ("/metadata/finalizers", |one, other| one.metadata.finalizers == other.metadata.finalizers),
    ("/metadata/ownerReferences", |one, other| one.metadata.owner_references == other.metadata.owner_references),
];

/// Whether a merge patch of a node replaces a list.
pub fn replaces_lists(patch: &Value) -> bool {
    REPLACED_LISTS.iter().any(|(pointer, _)| patch.pointer(pointer).is_some())
}

/// Whether a list that a merge patch replaces is another one on a node as it is `now` than on the node that the patch was made from.
pub fn other_lists_replaced(before: &Node, now: &Node, patch: &Value) -> bool {
    REPLACED_LISTS.iter().any(|(pointer, are_same)| patch.pointer(pointer).is_some() && !are_same(before, now))
}

/// What a Node offers to pods; nothing where that can not be read.
pub fn allocatable(node: &Node) -> Resources {
    let quantities = node.status.as_ref().and_then(|status| status.allocatable.as_ref()).into_iter().flatten();
    Resources::parse(quantities.map(|(name, quantity)| (name.as_str(), &quantity.0))).unwrap_or_default()
}

/// One machine of the cluster, now or soon.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// Name of the Node, or of the NodeClaim while there is no Node.
    pub name: &'a str,
    pub node: Option<&'a Node>,
    pub claim: Option<&'a NodeClaim>,
    pub labels: BTreeMap<String, String>,
}

impl<'a> Machine<'a> {
    pub fn node_pool(&self) -> Option<&str> {
        self.labels.get(keys::NODE_POOL).map(String::as_str)
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        label(&self.labels, key)
    }

    /// The name of its NodeClaim.
    pub fn claim_name(&self) -> Option<&'a str> {
        self.claim?.metadata.name.as_deref()
    }

    /// Whether Karpenter or Cutlist made it.
    pub fn is_managed(&self) -> bool {
        self.claim.is_some()
    }

    /// A Node that nobody manages counts as initialized.
    pub fn is_initialized(&self) -> bool {
        match (self.claim, self.node) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(claim), Some(node)) => {
                let labelled = node.metadata.labels.as_ref().and_then(|labels| labels.get(keys::INITIALIZED));
                claim.is_true("Initialized") || labelled.is_some_and(|value| value == "true")
            }
        }
    }

    /// Whether what its claim says of labels and taints is on the Node. A Node that nobody manages has what it will have.
    pub fn is_registered(&self) -> bool {
        let labelled = || self.node.and_then(|node| node.metadata.labels.as_ref()?.get(keys::REGISTERED));
        self.node.is_some()
            && self.claim.is_none_or(|claim| claim.is_true("Registered") || labelled().is_some_and(|it| it == "true"))
    }

    /// Whether it has taken pods for so long; of one that does not say since when, whether it does.
    pub fn has_been_open_for(&self, duration: SignedDuration, now: Timestamp) -> bool {
        let opened = self.claim.and_then(|claim| claim.condition("Initialized")).filter(|it| it.status == "True");
        let is_long_ago = |opened: &Condition| now.duration_since(opened.last_transition_time.0) >= duration;
        self.is_initialized() && opened.is_none_or(is_long_ago)
    }

    /// Whether it is on its way out: deleted, or tainted for disruption.
    pub fn is_being_removed(&self) -> bool {
        let claim_deleted = self.claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some());
        let node_deleted = self.node.is_some_and(|node| node.metadata.deletion_timestamp.is_some());
        claim_deleted || node_deleted || self.node_taints().any(|(key, _, _)| key == keys::DISRUPTED_TAINT)
    }

    /// When its removal was asked for; `None`: it was not, or it is only kept from new pods.
    pub fn deleted_at(&self) -> Option<Timestamp> {
        let of_claim = self.claim.and_then(|claim| claim.metadata.deletion_timestamp.as_ref());
        let of_node = self.node.and_then(|node| node.metadata.deletion_timestamp.as_ref());
        of_claim.into_iter().chain(of_node).map(|time| time.0).min()
    }

    /// Whether its node was there, and is gone: nothing runs on it any more, and it does not come back. The cloud's controllers remove the
    /// Node of an instance that has ended.
    pub fn has_lost_its_node(&self) -> bool {
        self.node.is_none() && self.claim.is_some_and(|claim| claim.is_true("Registered"))
    }

    pub fn is_ready(&self) -> bool {
        let conditions = self.node.and_then(|node| node.status.as_ref()).and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }

    /// Of the Node, to which those of the claim are copied when it registers, and where people change them afterwards; of the
    /// claim while there is none.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        let of_claim = self.claim.and_then(|claim| claim.metadata.annotations.as_ref());
        let annotations = self.node.map_or(of_claim, |node| node.metadata.annotations.as_ref());
        annotations?.get(key).map(String::as_str)
    }

    /// Taints of the Node, as key, value and effect. Those that last only while the pods of a consolidation move keep nobody away.
    fn node_taints(&self) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        self.node
            .into_iter()
            .flat_map(taints)
            .filter(|taint| taint.key != keys::HELD_FOR_MOVE_TAINT)
            .map(|taint| (taint.key.as_str(), taint.value.as_deref().unwrap_or_default(), taint.effect.as_str()))
    }

    /// Taints that repel pods now or will once it is up, as key, value and effect. What a managed machine carries only
    /// while it starts does not count, but a disruption always does. Those of its claim come when it registers, where it does not
    /// bring them itself.
    pub fn effective_taints(
        &self,
        is_ephemeral: impl Fn(&str, &str, TaintEffect) -> bool,
    ) -> Vec<(String, String, TaintEffect)> {
        let starting = self.is_managed() && !self.is_initialized();
        let startup: Vec<(&str, TaintEffect)> = self
            .claim
            .filter(|_| starting)
            .map(|claim| claim.spec.startup_taints.iter().map(|taint| (taint.key.as_str(), taint.effect)).collect())
            .unwrap_or_default();
        let of_node = self.node_taints();
        let of_node = of_node.filter_map(|(key, value, effect)| Some((key, value, TaintEffect::of_name(effect)?)));
        let of_node = of_node.filter(|(key, value, effect)| {
            !(starting && (is_ephemeral(key, value, *effect) || startup.contains(&(*key, *effect))))
        });
        let mut taints: Vec<(String, String, TaintEffect)> =
            of_node.map(|(key, value, effect)| (key.to_owned(), value.to_owned(), effect)).collect();
        for taint in self.claim.filter(|_| !self.is_registered()).into_iter().flat_map(|claim| &claim.spec.taints) {
            if !taints.iter().any(|(key, _, effect)| *key == taint.key && *effect == taint.effect) {
                taints.push((taint.key.clone(), taint.value.clone().unwrap_or_default(), taint.effect));
            }
        }
        let cordoned =
            self.node.and_then(|node| node.spec.as_ref()).is_some_and(|spec| spec.unschedulable == Some(true));
        if cordoned && !taints.iter().any(|(key, ..)| key == UNSCHEDULABLE_TAINT) {
            taints.push((UNSCHEDULABLE_TAINT.to_owned(), String::new(), TaintEffect::NoSchedule));
        }
        taints
    }

    /// Capacity: of the Node once it is initialized, else of the claim.
    pub fn capacity(&self) -> Resources {
        let of_node = self.node.and_then(|node| node.status.as_ref()).and_then(|status| status.capacity.as_ref());
        let of_claim = self.claim.and_then(|claim| claim.status.as_ref()).map(|status| &status.capacity);
        self.merged(of_node, of_claim)
    }

    /// What it offers to pods. Of a claim that is not launched yet it is known that it will be enough for what it was created for.
    pub fn allocatable(&self) -> Resources {
        let of_node = self.node.and_then(|node| node.status.as_ref()).and_then(|status| status.allocatable.as_ref());
        let of_claim = self.claim.and_then(|claim| claim.status.as_ref()).map(|status| &status.allocatable);
        let requested = || self.claim.filter(|_| of_node.is_none()).map(|claim| &claim.spec.resources.requests);
        self.merged(of_node, of_claim.filter(|allocatable| !allocatable.is_empty()).or_else(requested))
    }

    /// An uninitialized machine reports less than it will have, and zero of what a device plugin has yet to publish.
    fn merged(
        &self,
        of_node: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
        of_claim: Option<&BTreeMap<String, IntOrString>>,
    ) -> Resources {
        let node = of_node.into_iter().flatten().map(|(name, quantity)| (name.as_str(), quantity.0.clone()));
        let node = readable(node);
        let claim =
            readable(of_claim.into_iter().flatten().map(|(name, quantity)| (name.as_str(), quantity.to_string())));
        if self.is_initialized() || claim.is_empty() {
            return node;
        }
        let mut merged = node;
        for (name, amount) in claim.iter() {
            merged.set(name, amount);
        }
        // It is not initialized before it has these; until then whoever they are for has a place here.
        for (name, amount) in self.claim.map(awaited).unwrap_or_default().iter() {
            if merged.get(name) == 0 {
                merged.set(name, amount);
            }
        }
        merged
    }
}

/// The extended resources that a claim asks for: a node is not initialized before it has some of each.
pub fn awaited(claim: &NodeClaim) -> Resources {
    let own = [CPU, MEMORY, PODS, EPHEMERAL_STORAGE];
    let requests = claim.spec.resources.requests.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    readable(requests.map(|(name, quantity)| (name.as_str(), quantity.to_string())))
}

const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";

/// Quantities that can be read; one that can not counts as absent, so that it is never planned with.
fn readable<'a>(quantities: impl Iterator<Item = (&'a str, String)>) -> Resources {
    let mut resources = Resources::new();
    for (name, text) in quantities {
        if let Ok(quantity) = text.parse() {
            resources.set(name, Resources::amount(name, quantity));
        }
    }
    resources
}

/// Joins Nodes and NodeClaims by provider id, else by the claim's node name. O((nodes + claims) log nodes).
/// Nodes come in the order of the snapshot, then claims that have no Node.
pub fn machines(snapshot: &Snapshot) -> Vec<Machine<'_>> {
    let mut by_provider_id: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    let mut machines: Vec<Machine<'_>> = Vec::with_capacity(snapshot.nodes.len());
    for node in &snapshot.nodes {
        let Some(name) = node.metadata.name.as_deref() else { continue };
        if by_name.contains_key(name) {
            continue;
        }
        by_name.insert(name, machines.len());
        if let Some(provider_id) =
            node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).filter(|id| !id.is_empty())
        {
            by_provider_id.entry(provider_id).or_insert(machines.len());
        }
        let labels = node.metadata.labels.clone().unwrap_or_default();
        machines.push(Machine { name, node: Some(node), claim: None, labels });
    }
    // Nodes of EKS Auto Mode are there, and managed by somebody else.
    for claim in snapshot.node_claims.iter().filter(|claim| !claim.spec.node_class_ref.is_of_others()) {
        let status = claim.status.as_ref();
        let provider_id = status.and_then(|status| status.provider_id.as_deref());
        let node_name = status.and_then(|status| status.node_name.as_deref());
        let position = provider_id.and_then(|id| by_provider_id.get(id)).or_else(|| by_name.get(node_name?)).copied();
        match position.map(|position| &mut machines[position]) {
            // Two claims for one node: the first stands, as for the reference.
            Some(machine) if machine.claim.is_none() => {
                machine.claim = Some(claim);
                if !machine.is_initialized() {
                    for (key, value) in claim_labels(claim) {
                        machine.labels.entry(key).or_insert(value);
                    }
                }
            }
            Some(_) => {}
            None => {
                let Some(name) = claim.metadata.name.as_deref() else { continue };
                let mut labels = claim_labels(claim);
                // Every node has one, and nobody knows this one's yet.
                labels.entry(keys::HOSTNAME.to_owned()).or_insert_with(|| name.to_owned());
                // Of another claim of the instance this one stands, too.
                if let Some(id) = provider_id.filter(|id| !id.is_empty()) {
                    by_provider_id.insert(id, machines.len());
                }
                machines.push(Machine { name, node: None, claim: Some(claim), labels });
            }
        }
    }
    machines
}

/// Labels that the node of this claim will have: those of the claim, and what its requirements leave no choice about.
fn claim_labels(claim: &NodeClaim) -> BTreeMap<String, String> {
    let mut labels = claim.metadata.labels.clone().unwrap_or_default();
    let requirements = crate::model::Requirements::from_entries(&claim.spec.requirements);
    for (key, requirement) in requirements.iter() {
        if let Some(value) = requirement.single_value() {
            labels.entry(key.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    // Of several the launch takes one.
    if let Some(tenancy) = requirements.get(keys::TENANCY).and_then(asked_for) {
        labels.entry(keys::TENANCY.to_owned()).or_insert_with(|| tenancy.to_owned());
    }
    labels
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildNode, Merge, node};

    fn claim(name: &str, provider_id: &str, registered: &str) -> NodeClaim {
        let condition = json!({
            "type": "Registered", "status": registered, "reason": "R", "message": "", "lastTransitionTime": "2026-11-20T09:00:00Z",
        });
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": name },
            "spec": { "requirements": [], "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } },
            "status": { "providerID": provider_id, "conditions": [condition] },
        }))
        .unwrap()
    }

    #[test]
    fn an_instance_is_one_machine_however_many_claims_name_it() {
        let of_node = node("a").merge(json!({ "spec": { "providerID": "i-1" } }));
        let claims = [("c1", "i-1"), ("c2", "i-1"), ("c3", "i-2"), ("c4", "i-2"), ("c5", ""), ("c6", "")];
        let claims: Vec<NodeClaim> = claims.into_iter().map(|(name, id)| claim(name, id, "True")).collect();
        let snapshot = Snapshot { nodes: vec![of_node].into(), node_claims: claims.into(), ..Snapshot::default() };
        let machines = machines(&snapshot);
        let names: Vec<&str> = machines.iter().map(|machine| machine.name).collect();
        assert_eq!(names, ["a", "c3", "c5", "c6"]);
        let lost: Vec<bool> = machines.iter().map(Machine::has_lost_its_node).collect();
        assert_eq!(lost, [false, true, true, true]);
        let coming = Snapshot { node_claims: vec![claim("c1", "i-1", "Unknown")].into(), ..Snapshot::default() };
        assert!(!super::machines(&coming)[0].has_lost_its_node());
    }

    #[test]
    fn a_patch_replaces_only_lists_that_it_has() {
        let before = node("a").taint("node.kubernetes.io/not-ready", "", "NoSchedule");
        let now = node("a").merge(json!({ "metadata": { "finalizers": ["example.com/keep"] } }));
        let replaced = |patch: Value| other_lists_replaced(&before, &now, &patch);
        assert!(
            replaced(json!({ "spec": { "taints": [] } })),
            "the taint that went would come back, or one that came would go"
        );
        assert!(replaced(json!({ "metadata": { "finalizers": null } })));
        assert!(!replaced(json!({ "metadata": { "ownerReferences": [], "labels": { "a": "b" } } })));
        assert!(!other_lists_replaced(&now, &now, &json!({ "spec": { "taints": [] } })));
    }
}
