//! The pods of a snapshot on their way to classes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use serde::Serialize;

use crate::devices::DeviceError;
use crate::model::resources::PODS;
use crate::model::{IndexVec, Resources};
use crate::snapshot::limits as of_a_pod;
use crate::snapshot::{Pod, PodIndex, Snapshot};
use cutlist_api::settings::{Packing, Scheduling};

use super::attachable::Attachable;
use super::class::{ClassBuilder, ClassIndex, PodClass, matches_no_node, repels, selector_keys};
use super::daemons::{Daemon, DaemonIndex};
use super::devices::{DeviceDemand, DeviceIndex};
use super::host_ports::host_ports;
use super::known_requests::KnownRequests;
use super::limits;
use super::topology::{Group, GroupIndex};
use super::vectors::Dimensions;
use super::volumes::{Disk, VolumeDemand, VolumeIndex};

pub struct PodTable {
    packing: Packing,
    pub dimensions: Dimensions,
    requests: IndexVec<PodIndex, Option<Rc<Resources>>>,
    /// Pods that can not be planned for, with the reason, by position in the snapshot.
    pub invalid: BTreeMap<PodIndex, String>,
    /// Pods that say more than is planned for, with what they have too much of.
    pub too_large: BTreeMap<PodIndex, String>,
    /// Pods that ask for something that is not planned for, with what it is.
    pub not_supported: BTreeMap<PodIndex, String>,
    /// By position of the pod, the volume that is gone with its node.
    pub disks: BTreeMap<PodIndex, Disk>,
}

impl PodTable {
    pub fn new(snapshot: &Snapshot, packing: Packing) -> Self {
        let mut table = Self {
            packing,
            dimensions: Dimensions::default(),
            requests: IndexVec::new(),
            invalid: BTreeMap::new(),
            too_large: BTreeMap::new(),
            not_supported: BTreeMap::new(),
            disks: BTreeMap::new(),
        };
        let mut known = KnownRequests::default();
        for (position, pod) in snapshot.pods.enumerated() {
            let requests = match known.of(pod) {
                Ok(requests) => Some(requests),
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                    table.invalid.insert(position, format!("{error}{cause}"));
                    // A pod that runs all the same takes at least its place.
                    let one_place = || Rc::new([(PODS.to_owned(), 1)].into_iter().collect());
                    pod.spec.node_name.is_some().then(one_place)
                }
            };
            table.requests.push(requests);
        }
        table.leave_out_resources(snapshot);
        let requests = table.requests.clone();
        requests.iter().flatten().for_each(|requests| table.intern_dimensions(requests));
        table
    }

    fn intern_dimensions(&mut self, requests: &Resources) {
        for (name, _) in requests.iter().filter(|(_, amount)| *amount > 0) {
            self.dimensions.intern(name);
        }
    }

    /// What DaemonSets ask for, and volumes where they are counted.
    pub fn intern_dimensions_of(&mut self, daemons: &IndexVec<DaemonIndex, Daemon>, attachable: Option<Attachable>) {
        daemons.iter().for_each(|daemon| self.intern_dimensions(&daemon.requests));
        if let Some(attachable) = attachable {
            self.dimensions.count_volumes(attachable);
        }
    }

    /// Pods that name resources which are too many together count as nothing but a pod.
    fn leave_out_resources(&mut self, snapshot: &Snapshot) {
        let there = self.requests.enumerated();
        let there = there.filter_map(|(pod, requests)| Some((pod, requests.as_deref()?)));
        for pod in limits::too_many_resources(there, snapshot) {
            self.too_large.insert(pod, limits::TOO_MANY_RESOURCES.to_owned());
            let kept = self.requests[pod].iter().flat_map(|requests| requests.iter());
            let kept = kept.filter(|(name, _)| !name.contains('/')).map(|(name, amount)| (name.to_owned(), amount));
            self.requests[pod] = Some(Rc::new(kept.collect()));
        }
    }

    /// Notes the pods that make too much work, each alone or all together.
    fn leave_out_terms(&mut self, snapshot: &Snapshot, selected_keys: &BTreeSet<String>, by_workload: bool) {
        let mut identity = Identity::default();
        let no_requests = Resources::new();
        let together = limits::too_much(snapshot, |position, pod| {
            let selected = pod.metadata.labels.iter().filter(|(key, _)| selected_keys.contains(*key));
            let requests = self.requests[position].as_deref().unwrap_or(&no_requests);
            let workload = pod.workload().filter(|_| by_workload).map(|workload| workload.to_string());
            identity.of(pod, selected, requests, (&VolumeDemand::default(), None), workload.as_deref()).to_vec()
        });
        self.too_large.extend(together.into_iter().map(|pod| (pod, limits::TOO_MUCH.to_owned())));
        for (position, pod) in snapshot.pods.enumerated() {
            if let Some(text) = of_a_pod::beyond(pod) {
                self.too_large.insert(position, text.to_owned());
            }
        }
    }

    /// Classes in the order in which their first pod stands in the snapshot. `by_workload`: pods of different workloads are
    /// told apart.
    pub fn classes(
        &mut self,
        snapshot: &Snapshot,
        soft_taints_exist: bool,
        scheduling: &Scheduling,
        by_workload: bool,
        daemons: &mut [Daemon],
    ) -> (IndexVec<ClassIndex, PodClass>, IndexVec<PodIndex, Option<ClassIndex>>, ClassBuilder) {
        let volume_index = VolumeIndex::new(snapshot, self.packing);
        let device_index = DeviceIndex::new(snapshot, scheduling);
        let selected_keys = selected_keys(snapshot, daemons);
        self.leave_out_terms(snapshot, &selected_keys, by_workload);
        let mut builder = ClassBuilder::new(snapshot, soft_taints_exist, scheduling.preference_policy, self.packing);
        let mut classes: IndexVec<ClassIndex, PodClass> = IndexVec::new();
        let mut positions: HashMap<Vec<u8>, ClassIndex> = HashMap::new();
        let mut identity = Identity::default();
        let mut siblings = Siblings::default();
        let mut class_of_pod = IndexVec::repeat(None, snapshot.pods.len());
        for (position, pod) in snapshot.pods.enumerated() {
            let Some(requests) = self.requests[position].take() else { continue };
            let too_large = self.too_large.contains_key(&position);
            let plain = too_large.then(|| of_a_pod::without_terms(pod));
            let (of_snapshot, pod) = (pod, plain.as_ref().unwrap_or(pod));
            if too_large && pod.spec.node_name.is_none() {
                continue;
            }
            if pod.spec.node_name.is_none() && matches_no_node(pod) {
                let text = "its required node affinity has no term that matches a node: an empty term matches none";
                self.invalid.insert(position, text.to_owned());
                continue;
            }
            if let Some(disk) = volume_index.goes_with_node(pod) {
                self.disks.insert(position, disk);
            }
            let mut volumes = match volume_index.demand(pod) {
                Ok(volumes) => volumes,
                Err(error) if pod.spec.node_name.is_none() => {
                    self.invalid.insert(position, error.to_string());
                    continue;
                }
                Err(_) => VolumeDemand::default(),
            };
            let devices = match device_index.demand(pod, &mut volumes) {
                Ok(devices) => devices,
                Err(error) => {
                    let refused = match error {
                        DeviceError::NotSupported(_) => &mut self.not_supported,
                        _ => &mut self.invalid,
                    };
                    refused.insert(position, error.to_string());
                    continue;
                }
            };
            let is_plain = devices.is_none() && volumes == VolumeDemand::default() && host_ports(pod).is_empty();
            if let Some(class) = siblings.class_of_one_like(pod, &requests).filter(|_| is_plain) {
                class_of_pod[position] = Some(class);
                continue;
            }
            let plain_requests = is_plain.then(|| Rc::clone(&requests));
            let selected = || pod.metadata.labels.iter().filter(|(key, _)| selected_keys.contains(*key));
            let workload = pod.workload().filter(|_| by_workload).map(|workload| workload.to_string());
            let identity = identity.of(pod, selected(), &requests, (&volumes, devices.as_deref()), workload.as_deref());
            let class = positions.get(identity).copied().unwrap_or_else(|| {
                let labels = selected().map(|(key, value)| (key.clone(), value.clone())).collect();
                let class = classes.push(builder.class(pod, labels, (*requests).clone(), volumes, devices));
                positions.insert(identity.to_vec(), class);
                class
            });
            if let Some(requests) = plain_requests.filter(|_| !too_large) {
                siblings.add(of_snapshot, requests, class);
            }
            class_of_pod[position] = Some(class);
        }
        self.count_in_groups(&mut builder, &mut classes, daemons);
        (classes, class_of_pod, builder)
    }

    /// Which groups of topology count the pods of each class and of each DaemonSet, when all groups are known.
    fn count_in_groups(
        &self,
        builder: &mut ClassBuilder,
        classes: &mut IndexVec<ClassIndex, PodClass>,
        daemons: &mut [Daemon],
    ) {
        for daemon in daemons.iter_mut() {
            daemon.anti_affinity = builder.anti_affinity_groups(&daemon.pod);
        }
        let selectors = SelectorIndex::new(&builder.groups);
        for daemon in daemons {
            let labels = &daemon.pod.metadata.labels;
            daemon.counted_in = selectors.groups_that_select(&builder.groups, &daemon.namespace, labels);
        }
        for class in classes {
            class.request = self.dimensions.request(&class.requests, class.own_ebs_volumes);
            class.counted_in.extend(selectors.groups_that_select(&builder.groups, &class.namespace, &class.labels));
            class.counted_in.sort_unstable();
        }
    }
}

/// Keys of labels that some selector looks at.
fn selected_keys(snapshot: &Snapshot, daemons: &[Daemon]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    snapshot.pods.iter().for_each(|pod| selector_keys(pod, &mut keys));
    let keep_others_away = daemons.iter().filter(|daemon| repels(&daemon.pod));
    keep_others_away.for_each(|daemon| selector_keys(&daemon.pod, &mut keys));
    keys
}

/// What an [`Identity`] is made of is compared here as well.
///
/// Of each owner the pod that was looked at last, without host ports, volumes and devices: most pods are like the one before, and to
/// compare two takes less time than to write down the identity of one.
#[derive(Default)]
struct Siblings<'a> {
    of_owner: HashMap<&'a str, (&'a Pod, Rc<Resources>, ClassIndex)>,
}

impl<'a> Siblings<'a> {
    /// The class of a pod that has neither host ports nor volumes nor devices either.
    fn class_of_one_like(&self, pod: &Pod, requests: &Rc<Resources>) -> Option<ClassIndex> {
        let (other, its_requests, class) = self.of_owner.get(pod.controller()?.uid.as_str())?;
        let is_alike = (Rc::ptr_eq(requests, its_requests) || requests == its_requests)
            && pod.metadata.namespace == other.metadata.namespace
            && pod.metadata.labels == other.metadata.labels
            && pod.spec.node_selector == other.spec.node_selector
            && pod.spec.os == other.spec.os
            && pod.spec.affinity == other.spec.affinity
            && pod.spec.tolerations == other.spec.tolerations
            && pod.spec.topology_spread_constraints == other.spec.topology_spread_constraints
            && pod.spec.priority == other.spec.priority
            && pod.spec.preemption_policy == other.spec.preemption_policy;
        is_alike.then_some(*class)
    }

    fn add(&mut self, pod: &'a Pod, requests: Rc<Resources>, class: ClassIndex) {
        if let Some(owner) = pod.controller().filter(|owner| !owner.uid.is_empty()) {
            self.of_owner.insert(&owner.uid, (pod, requests, class));
        }
    }
}

/// Everything of a pod that scheduling can see, as bytes that differ when it differs.
#[derive(Default)]
struct Identity {
    bytes: Vec<u8>,
}

impl Identity {
    fn of<'l>(
        &mut self,
        pod: &Pod,
        labels: impl Iterator<Item = (&'l String, &'l String)>,
        requests: &Resources,
        (volumes, devices): (&VolumeDemand, Option<&DeviceDemand>),
        workload: Option<&str>,
    ) -> &[u8] {
        let spec = &pod.spec;
        self.bytes.clear();
        self.text(&pod.metadata.namespace);
        self.pairs(labels);
        self.pairs(spec.node_selector.iter());
        for (name, amount) in requests.iter() {
            self.text(name);
            self.bytes.extend(amount.to_le_bytes());
        }
        self.bytes.push(b';');
        self.part(b'o', spec.os.as_ref());
        self.part(b'a', spec.affinity.as_ref());
        self.part(b't', Some(&spec.tolerations).filter(|tolerations| !tolerations.is_empty()));
        self.part(b's', Some(&spec.topology_spread_constraints).filter(|spreads| !spreads.is_empty()));
        let ports = host_ports(pod);
        if !ports.is_empty() {
            self.text(&format!("{ports:?}"));
        }
        if *volumes != VolumeDemand::default() {
            self.text(&format!("{volumes:?}"));
        }
        if let Some(devices) = devices {
            self.bytes.push(b'd');
            self.text(devices.identity());
        }
        self.bytes.extend(spec.priority.unwrap_or(0).to_le_bytes());
        self.part(b'p', spec.preemption_policy.as_ref());
        self.part(b'w', workload.as_ref());
        &self.bytes
    }

    /// With its length, so that two texts are not another two.
    fn text(&mut self, text: &str) {
        self.bytes.extend(text.len().to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }

    fn pairs<'l>(&mut self, pairs: impl Iterator<Item = (&'l String, &'l String)>) {
        for (key, value) in pairs {
            self.text(key);
            self.text(value);
        }
        self.bytes.push(b';');
    }

    fn part(&mut self, name: u8, part: Option<&impl Serialize>) {
        if let Some(part) = part {
            self.bytes.push(name);
            // Writing to memory can not fail, and these types have only keys that are texts.
            let _ = serde_json::to_writer(&mut self.bytes, part);
        }
    }
}

/// Groups by a label that whatever they select must have, so that a class is compared with few of them.
struct SelectorIndex<'g> {
    by_label: HashMap<(&'g str, &'g str), Vec<GroupIndex>>,
    /// Groups whose selector names no label with its value.
    others: Vec<GroupIndex>,
}

impl<'g> SelectorIndex<'g> {
    /// O(groups).
    fn new(groups: &'g IndexVec<GroupIndex, Group>) -> Self {
        let mut index = Self { by_label: HashMap::new(), others: Vec::new() };
        for (position, group) in groups.enumerated() {
            // Without a selector nothing is selected.
            let Some(selector) = &group.selector else { continue };
            match selector.match_labels.iter().flatten().next() {
                Some((key, value)) => index.by_label.entry((key, value)).or_default().push(position),
                None => index.others.push(position),
            }
        }
        index
    }

    /// Ascending. O(labels + groups that share a label).
    fn groups_that_select(
        &self,
        groups: &IndexVec<GroupIndex, Group>,
        namespace: &str,
        labels: &BTreeMap<String, String>,
    ) -> Vec<GroupIndex> {
        let of_labels = labels.iter().filter_map(|(key, value)| self.by_label.get(&(key.as_str(), value.as_str())));
        let candidates = of_labels.flatten().chain(&self.others).copied();
        let mut selecting: Vec<GroupIndex> =
            candidates.filter(|group| groups[*group].selects(namespace, labels)).collect();
        selecting.sort_unstable();
        selecting
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildPod, Merge, pod};

    fn classes_of(pods: Vec<Pod>) -> IndexVec<PodIndex, Option<ClassIndex>> {
        let snapshot = Snapshot { pods: pods.into(), ..Snapshot::default() };
        let mut table = PodTable::new(&snapshot, Packing::Cheapest);
        table.classes(&snapshot, false, &Scheduling::default(), false, &mut []).1
    }

    /// Of the same owner as all others here.
    fn sibling(name: &str) -> Pod {
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true });
        pod(name).cpu("1").label("app", "web").merge(json!({ "metadata": { "ownerReferences": [owner] } }))
    }

    #[test]
    fn pods_of_one_owner_are_one_class_only_as_far_as_they_are_alike() {
        let others = [
            sibling("cpu").cpu("2"),
            sibling("label").label("app", "shop"),
            sibling("selector").node_selector("zone", "a"),
            sibling("os").merge(json!({ "spec": { "os": { "name": "linux" } } })),
            sibling("affinity").affinity_to("web", "kubernetes.io/hostname"),
            sibling("toleration").tolerate(json!({ "key": "team", "operator": "Exists" })),
            sibling("spread").spread("topology.kubernetes.io/zone", 1, "web"),
            sibling("port").host_port(80),
            sibling("priority").merge(json!({ "spec": { "priority": 7 } })),
            sibling("preemption").merge(json!({ "spec": { "preemptionPolicy": "Never" } })),
        ];
        let with_plain = others.into_iter().flat_map(|other| [sibling("plain"), other]);
        let classes = classes_of(with_plain.collect());
        let distinct: BTreeSet<_> = classes.iter().collect();
        assert_eq!(distinct.len(), 11, "{classes:?}");
        assert!(classes.iter().step_by(2).all(|class| *class == Some(ClassIndex::default())), "{classes:?}");
    }
}
