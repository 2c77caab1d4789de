//! The cluster as the filters look at it: borrowed objects, found by name, and which pod is on which node.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::model::Resources;
use crate::snapshot::requests::effective_requests;
use crate::snapshot::{Pod, Snapshot};

use super::labelled::Labelled;
use super::objects::{Labels, labels, name, repels};

/// Nodes with the pods on them, and everything else a filter looks up. Borrows all objects; placing and removing a pod
/// costs O(log pods).
pub struct FilterContext<'a> {
    pub(super) nodes: BTreeMap<&'a str, NodeState<'a>>,
    pub(super) namespaces: BTreeMap<&'a str, &'a Labels>,
    /// By namespace and name.
    pub(super) claims: BTreeMap<(&'a str, &'a str), &'a PersistentVolumeClaim>,
    pub(super) volumes: BTreeMap<&'a str, &'a PersistentVolume>,
    pub(super) storage_classes: BTreeMap<&'a str, &'a StorageClass>,
    pub(super) csi_nodes: BTreeMap<&'a str, &'a CSINode>,
    /// Claims and slices, where devices are to be judged; else no pod with a claim may run anywhere.
    pub(super) devices: Option<&'a Snapshot>,
    /// `namespace/name` of a pod, and its node.
    placed: BTreeMap<String, &'a str>,
    /// Pods whose required anti-affinity keeps others away, with the node each is on.
    pub(super) repelling: BTreeMap<String, (&'a Pod, &'a str)>,
    /// The pods that are on nodes, where they are to be found by labels.
    labelled: Option<Labelled<'a>>,
    looks: Cell<u64>,
}

pub(super) struct NodeState<'a> {
    pub node: &'a Node,
    /// By `namespace/name`.
    pub pods: BTreeMap<String, &'a Pod>,
    /// Sum of what they ask for, once somebody wants to know.
    requested: OnceCell<Resources>,
}

impl NodeState<'_> {
    pub fn requested(&self) -> &Resources {
        self.requested.get_or_init(|| {
            let mut requested = Resources::new();
            self.pods.values().for_each(|pod| requested.add(&effective_requests(pod).unwrap_or_default()));
            requested
        })
    }
}

impl<'a> FilterContext<'a> {
    /// The snapshot with every pod where it is bound. Finished pods take no room; pods of nodes that are not there are left out.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut context = Self {
            nodes: BTreeMap::new(),
            namespaces: snapshot
                .namespaces
                .iter()
                .filter_map(|it| Some((name(&it.metadata)?, labels(&it.metadata))))
                .collect(),
            claims: snapshot
                .persistent_volume_claims
                .iter()
                .filter_map(|it| {
                    Some(((it.metadata.namespace.as_deref().unwrap_or("default"), name(&it.metadata)?), it))
                })
                .collect(),
            volumes: snapshot.persistent_volumes.iter().filter_map(|it| Some((name(&it.metadata)?, it))).collect(),
            storage_classes: snapshot.storage_classes.iter().filter_map(|it| Some((name(&it.metadata)?, it))).collect(),
            csi_nodes: snapshot.csi_nodes.iter().filter_map(|it| Some((name(&it.metadata)?, it))).collect(),
            devices: None,
            placed: BTreeMap::new(),
            repelling: BTreeMap::new(),
            labelled: None,
            looks: Cell::new(0),
        };
        for node in &snapshot.nodes {
            context.add_node(node);
        }
        for pod in snapshot.pods.iter().filter(|pod| !pod.is_terminal()) {
            if let Some(node) = &pod.spec.node_name {
                context.place(pod, node);
            }
        }
        context
    }

    /// From now on a pod with resource claims may run where there are devices for it.
    pub fn judge_devices(&mut self, snapshot: &'a Snapshot) {
        self.devices = Some(snapshot);
    }

    /// Adds a node without pods. A node of that name which is there already keeps its pods.
    pub fn add_node(&mut self, node: &'a Node) {
        let Some(name) = node.metadata.name.as_deref() else { return };
        self.nodes.entry(name).and_modify(|state| state.node = node).or_insert_with(|| NodeState {
            node,
            pods: BTreeMap::new(),
            requested: OnceCell::new(),
        });
    }

    /// Takes a node away and returns the pods that were on it, in the order of namespace and name.
    pub fn remove_node(&mut self, name: &str) -> Vec<&'a Pod> {
        let pods: Vec<&'a Pod> =
            self.nodes.get(name).map(|state| state.pods.values().copied().collect()).unwrap_or_default();
        for pod in &pods {
            self.remove(pod);
        }
        self.nodes.remove(name);
        pods
    }

    /// Puts a pod on a node, without asking any filter; a pod that is elsewhere moves. False when there is no such node.
    pub fn place(&mut self, pod: &'a Pod, node: &str) -> bool {
        let key = pod.key();
        self.remove_by_key(&key);
        let Some(state) = self.nodes.get_mut(node) else { return false };
        let Some(name) = state.node.metadata.name.as_deref() else { return false };
        if let Some(requested) = state.requested.get_mut() {
            requested.add(&effective_requests(pod).unwrap_or_default());
        }
        state.pods.insert(key.clone(), pod);
        if let Some(labelled) = &mut self.labelled {
            labelled.add(pod, name);
        }
        if repels(pod) {
            self.repelling.insert(key.clone(), (pod, name));
        }
        self.placed.insert(key, name);
        true
    }

    /// Takes a pod off its node. True when it was on one.
    pub fn remove(&mut self, pod: &Pod) -> bool {
        self.remove_by_key(&pod.key())
    }

    fn remove_by_key(&mut self, key: &str) -> bool {
        let Some(node) = self.placed.remove(key) else { return false };
        self.repelling.remove(key);
        if let Some(state) = self.nodes.get_mut(node)
            && let Some(removed) = state.pods.remove(key)
        {
            if let Some(requested) = state.requested.get_mut() {
                requested.subtract(&effective_requests(removed).unwrap_or_default());
            }
            if let Some(labelled) = &mut self.labelled {
                labelled.remove(removed, node);
            }
        }
        true
    }

    /// The node a pod is on.
    pub fn node_of(&self, pod: &Pod) -> Option<&'a str> {
        self.placed.get(&pod.key()).copied()
    }

    /// Node of that name.
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        self.nodes.get(name).map(|state| state.node)
    }

    /// Pods on a node, in the order of namespace and name.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &'a Pod> {
        self.nodes.get(node).into_iter().flat_map(|state| state.pods.values().copied())
    }

    /// Sum of the effective requests of the pods on a node.
    pub fn requested_on(&self, node: &str) -> Resources {
        self.nodes.get(node).map(|state| state.requested().clone()).unwrap_or_default()
    }

    /// Looks at nodes and at pods that examinations took so far: a measure of their cost that is the same on every machine.
    pub fn looks(&self) -> u64 {
        self.looks.get()
    }

    pub(super) fn count_looks(&self, looks: usize) {
        self.looks.set(self.looks.get().saturating_add(looks as u64));
    }

    /// From now on pods are found by the labels that the constraints of `asking` ask for. O(pods); worth it where more than one pod with
    /// constraints over others is examined.
    pub fn find_by_labels(&mut self, asking: &'a Snapshot) {
        self.count_looks(self.placed.len());
        self.labelled = Some(Labelled::new(asking.pods.iter(), on_nodes(&self.nodes)));
    }

    /// Pods that a selector may select in the namespaces that count, and maybe others, each with its node.
    pub(super) fn near<'c>(
        &'c self,
        selector: Option<&'c LabelSelector>,
        counts: impl Fn(&str) -> bool + 'c,
    ) -> Box<dyn Iterator<Item = (&'c str, &'c Pod)> + 'c> {
        let near: Box<dyn Iterator<Item = (&'c str, &'c Pod)> + 'c> = match &self.labelled {
            Some(labelled) => {
                let namespaces = labelled.namespaces().filter(move |namespace| counts(namespace));
                Box::new(namespaces.flat_map(move |namespace| labelled.near(namespace, selector)))
            }
            None => Box::new(on_nodes(&self.nodes).map(|(pod, node)| (node, pod))),
        };
        Box::new(near.inspect(|_| self.count_looks(1)))
    }

    /// Labels of a namespace. Every API server sets the name as a label, so it is there even without the object.
    pub(super) fn namespace_labels(&self, namespace: &str) -> Labels {
        let mut labels = self.namespaces.get(namespace).map(|labels| (*labels).clone()).unwrap_or_default();
        labels.entry("kubernetes.io/metadata.name".to_owned()).or_insert_with(|| namespace.to_owned());
        labels
    }
}

fn on_nodes<'c, 'a>(nodes: &'c BTreeMap<&'a str, NodeState<'a>>) -> impl Iterator<Item = (&'a Pod, &'a str)> + 'c {
    nodes.iter().flat_map(|(name, state)| {
        let name = *name;
        state.pods.values().map(move |pod| (*pod, name))
    })
}
