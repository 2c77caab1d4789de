//! Looking things up in a snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::VolumeAttachment;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::controller::annotations::of_claims;
use crate::controller::events::Fleet;
use crate::core::catalog::{Catalog, Offering};
use crate::core::kube_scheduler::void_nominations;
use crate::core::lifecycle::volumes;
use crate::core::model::HourlyPrice;
use crate::core::model::shared::Shared;
use crate::core::offer::OverlaidOffer;
use crate::core::snapshot::doubts::Subject;
use crate::core::snapshot::{Pod, PodIndex, Snapshot};

/// A snapshot with the joins that the controller needs. Made at every look, of which there are some a second while many pods come:
/// O(objects), and nothing is copied.
pub struct View<'a> {
    pub snapshot: &'a Snapshot,
    claims_by_name: HashMap<&'a str, &'a NodeClaim>,
    nodes_by_name: HashMap<&'a str, &'a Node>,
    nodes_by_provider_id: HashMap<&'a str, &'a Node>,
    pods_by_node: HashMap<&'a str, Vec<&'a Pod>>,
    attachments_by_node: HashMap<&'a str, Vec<&'a VolumeAttachment>>,
}

/// The snapshot without the NodeClaims and NodePools that another controller looks after: EKS Auto Mode's, or those of another provider.
pub fn without_those_of_others(mut snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
    let is_foreign = |claim: &NodeClaim| claim.spec.node_class_ref.is_of_others();
    let is_foreign_pool = |pool: &NodePool| pool.spec.template.spec.node_class_ref.is_of_others();
    if snapshot.node_claims.iter().any(is_foreign) || snapshot.node_pools.iter().any(is_foreign_pool) {
        let snapshot = Arc::make_mut(&mut snapshot);
        snapshot.node_claims.retain(|claim| !is_foreign(claim));
        snapshot.node_pools.retain(|pool| !is_foreign_pool(pool));
    }
    snapshot
}

/// Pods that are found by `namespace/name`.
pub struct PodsByKey<'a>(HashMap<(&'a str, &'a str), &'a Pod>);

impl<'a> PodsByKey<'a> {
    fn new(pods: impl Iterator<Item = &'a Pod>) -> Self {
        Self(pods.map(|pod| ((pod.metadata.namespace.as_str(), pod.metadata.name.as_str()), pod)).collect())
    }

    pub fn get(&self, key: &str) -> Option<&'a Pod> {
        self.0.get(&key.split_once('/')?).copied()
    }
}

impl<'a> View<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let claims = snapshot.node_claims.iter().map(|claim| (name_of(claim), claim));
        let nodes = snapshot.nodes.iter();
        let provider_id = |node: &'a Node| Some((id_of_node(node)?, node));
        let mut pods_by_node: HashMap<&str, Vec<&Pod>> = HashMap::new();
        for pod in &snapshot.pods {
            if let Some(node) = pod.spec.node_name.as_deref() {
                pods_by_node.entry(node).or_default().push(pod);
            }
        }
        let mut attachments_by_node: HashMap<&str, Vec<&VolumeAttachment>> = HashMap::new();
        for attachment in &snapshot.volume_attachments {
            attachments_by_node.entry(&attachment.spec.node_name).or_default().push(attachment);
        }
        let mut nodes_by_provider_id: HashMap<&str, &Node> = nodes.clone().filter_map(provider_id).collect();
        // Of two that say that they are of one instance neither is taken for it.
        for doubled in snapshot.doubts.doubled.iter().filter(|doubled| doubled.kind == "Node") {
            nodes_by_provider_id.remove(doubled.provider_id.as_str());
        }
        Self {
            snapshot,
            claims_by_name: claims.collect(),
            nodes_by_name: nodes.map(|node| (node_name(node), node)).collect(),
            nodes_by_provider_id,
            pods_by_node,
            attachments_by_node,
        }
    }

    /// Volumes that have to be detached before the instance of a drained node may end.
    pub fn attached_volumes(&self, node: Option<&Node>, now: Timestamp) -> Vec<String> {
        let attachments = node.and_then(|node| self.attachments_by_node.get(node_name(node)));
        let attachments = attachments.map_or(&[][..], Vec::as_slice);
        volumes::attached(attachments, self.pods_on(node), self.snapshot, now)
    }

    pub fn node_of(&self, claim: &NodeClaim) -> Option<&'a Node> {
        self.nodes_by_provider_id.get(provider_id(claim)?).copied()
    }

    pub fn pods_on(&self, node: Option<&Node>) -> &[&'a Pod] {
        let name = node.and_then(|node| node.metadata.name.as_deref());
        name.and_then(|name| self.pods_by_node.get(name)).map_or(&[], Vec::as_slice)
    }

    /// Why nothing about the end of a claim is decided now: something that speaks for its node is not known as it is.
    pub fn doubt(&self, claim: &NodeClaim) -> Option<String> {
        let doubts = &self.snapshot.doubts;
        if doubts.is_empty() {
            return None;
        }
        let node = self.node_of(claim).map(node_name);
        let node = node.or_else(|| claim.status.as_ref()?.node_name.as_deref());
        let node_class = claim.spec.node_class_ref.name.as_str();
        let subject = Subject { node, node_pool: label(claim, keys::NODE_POOL), node_class };
        doubts.about(&subject, &self.snapshot.pods).map(|doubt| doubt.text().to_owned())
    }

    pub fn claim(&self, name: &str) -> Option<&'a NodeClaim> {
        self.claims_by_name.get(name).copied()
    }

    pub fn node(&self, name: &str) -> Option<&'a Node> {
        self.nodes_by_name.get(name).copied()
    }

    /// Pods that a node would have to be found for, by UID.
    pub fn provisionable_pods(&self, now: Timestamp) -> BTreeMap<&'a str, &'a Pod> {
        let void = void_nominations(self.snapshot, now);
        let has_place = |position: &PodIndex, pod: &Pod| self.is_nominated(pod) && !void.contains(position);
        let pods = self.snapshot.pods.enumerated();
        let pods = pods.filter(|(position, pod)| is_provisionable(pod) && !has_place(position, pod));
        pods.map(|(_, pod)| (pod.metadata.uid.as_str(), pod)).collect()
    }

    /// Pods that are on no node.
    pub fn unbound_pods(&self) -> PodsByKey<'a> {
        let pods = self.snapshot.pods.iter();
        PodsByKey::new(pods.filter(|pod| pod.spec.node_name.is_none() && !pod.is_terminal()))
    }

    /// Whether kube-scheduler was told a node for the pod, or makes room for it there. It forgets a node that is gone only
    /// when it tries again.
    fn is_nominated(&self, pod: &Pod) -> bool {
        let name = pod.status.nominated_node_name.as_deref().unwrap_or_default();
        !name.is_empty() && self.node(name).is_some()
    }

    /// Whether every claim has its instance; before that a plan would count on nodes of unknown size.
    pub fn is_synced(&self) -> bool {
        let waits = |claim: &NodeClaim| claim.metadata.deletion_timestamp.is_none() && provider_id(claim).is_none();
        !self.snapshot.node_claims.iter().any(waits)
    }

    /// Whether no claim is on its way up or down.
    pub fn is_at_rest(&self) -> bool {
        self.snapshot.node_claims.iter().all(|claim| {
            claim.metadata.deletion_timestamp.is_none()
                && claim.is_true(crate::core::lifecycle::conditions::INITIALIZED)
                && !of_claims::goes(claim)
        })
    }

    /// Claims that a node waits for before it goes.
    pub fn awaited_claims(&self) -> BTreeSet<String> {
        let claims = self.snapshot.node_claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
        claims.filter_map(of_claims::replacements).flatten().collect()
    }

    pub fn fleet(&self, prices: NodePrices<'_>) -> Fleet {
        let is_workload = |pod: &&Pod| !pod.is_owned_by("DaemonSet") && !pod.is_terminal() && !pod.is_terminating();
        let bound = self.snapshot.pods.iter().filter(is_workload).filter(|pod| pod.spec.node_name.is_some()).count();
        let pending = self.snapshot.pods.iter().filter(is_workload).filter(|pod| pod.spec.node_name.is_none()).count();
        // An instance costs from its launch until it ends, whether or not its node is there, and once, however many claims name it.
        let mut instances: HashSet<&str> = HashSet::new();
        let claims = self.snapshot.node_claims.iter();
        let launched = claims.filter_map(|claim| Some((provider_id(claim)?, claim.metadata.labels.as_ref()?)));
        let nodes = self.snapshot.nodes.iter();
        let nodes = nodes.filter_map(|node| Some((id_of_node(node)?, node.metadata.labels.as_ref()?)));
        // Those that others look after have no such class.
        let of_pools = nodes.filter(|(_, labels)| labels.contains_key(keys::EC2_NODE_CLASS));
        let counted = launched.chain(of_pools).filter(|(id, _)| instances.insert(*id));
        let price_per_hour = counted.map(|(_, labels)| prices.of_labels(labels)).sum();
        Fleet { nodes: self.snapshot.nodes.len(), pods_bound: bound, pods_pending: pending, price_per_hour }
    }
}

/// kube-scheduler found no node, and a new node may help.
fn is_provisionable(pod: &Pod) -> bool {
    pod.spec.node_name.is_none()
        && !pod.is_owned_by("DaemonSet")
        && !pod.is_owned_by("Node")
        && !pod.is_terminating()
        && !pod.is_terminal()
        && pod.scheduling_refused().is_some_and(|refused| refused.reason.as_deref() == Some("Unschedulable"))
}

/// Whether a running pod has to find another node when its own goes.
pub fn must_move(pod: &Pod) -> bool {
    !pod.is_terminal() && !pod.is_terminating() && !pod.is_owned_by("DaemonSet") && !pod.is_owned_by("Node")
}

pub fn provider_id(claim: &NodeClaim) -> Option<&str> {
    claim.status.as_ref()?.provider_id.as_deref()
}

fn id_of_node(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

pub fn name_of(claim: &NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

/// Empty where nobody knows it.
pub fn uid_of(claim: &NodeClaim) -> &str {
    claim.metadata.uid.as_deref().unwrap_or_default()
}

pub fn node_name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Value of a label of a claim; empty when it has none.
pub fn label<'a>(claim: &'a NodeClaim, key: &str) -> &'a str {
    claim.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map_or("", String::as_str)
}

/// Zones and capacity types with their prices, by instance type.
#[derive(Debug, Default)]
pub struct Prices(BTreeMap<String, Shared<Vec<Offering>>>);

impl Prices {
    pub fn new(catalog: &Catalog) -> Self {
        let types = catalog.instance_types.iter();
        Self(types.map(|instance_type| (instance_type.name.clone(), instance_type.offerings.clone())).collect())
    }

    /// `None`: nobody sells it, as far as is known.
    pub fn of(&self, instance_type: &str, (zone, capacity_type): (&str, &str)) -> Option<HourlyPrice> {
        let mut offerings = self.0.get(instance_type)?.iter();
        let offering = offerings.rfind(|offering| offering.zone == zone && offering.capacity_type == capacity_type);
        offering.map(|offering| offering.price)
    }
}

/// What nodes cost, as plans count it: by the catalog, and by the NodeOverlays for their pools.
#[derive(Clone, Copy)]
pub struct NodePrices<'a> {
    pub of_catalog: &'a Prices,
    pub overlaid: &'a OverlaidOffer,
}

impl NodePrices<'_> {
    /// Zero for an offering that nobody knows.
    pub fn of(&self, claim: &NodeClaim) -> HourlyPrice {
        claim.metadata.labels.as_ref().map_or(HourlyPrice::ZERO, |labels| self.of_labels(labels))
    }

    fn of_labels(&self, labels: &BTreeMap<String, String>) -> HourlyPrice {
        let value = |key: &str| labels.get(key).map_or("", String::as_str);
        let [pool, instance_type, zone, capacity_type] =
            [keys::NODE_POOL, keys::INSTANCE_TYPE, keys::ZONE, keys::CAPACITY_TYPE].map(value);
        let place = (zone, capacity_type);
        let overlaid = self.overlaid.price(pool, instance_type, place);
        overlaid.or_else(|| self.of_catalog.of(instance_type, place)).unwrap_or_default()
    }
}
