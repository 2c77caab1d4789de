//! Instances: launched once per token, booting, joining the cluster, ending, being reclaimed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Node, NodeCondition, NodeSpec, NodeStatus, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::json;

use crate::api::ec2_node_class::{EC2NodeClass, SecurityGroup};
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::IntOrString;
use crate::core::catalog::node_class::{for_node_class, image_for};
use crate::core::catalog::{InstanceType, Offering as SoldOffering};
use crate::core::model::Resources;
use crate::core::model::requirements::add_other_names;
use crate::core::model::resources::format_amount;
use crate::core::plan::Alternative;
use crate::core::snapshot::nodes;
use crate::ports::{Instance, LaunchRequest, Message, Offering};

use super::names::name_of;
use super::random::Random;
use super::state::{Machine, NodeFault, Timer, World};

/// From the kubelet's registration until the node is ready.
const SECONDS_TO_READY: (u64, u64) = (10, 14);
/// From then until the agents that start-up taints wait for, such as that of a network, have taken them off.
const SECONDS_TO_START_UP: (u64, u64) = (5, 9);
/// So often the agents look whether the node has been registered, which is when it gets the taints.
pub(super) const REGISTRATIONS_AWAITED: u32 = 100;
/// From the order to terminate until the instance is gone.
const SECONDS_TO_END: (u64, u64) = (3, 8);
/// Notice before a spot instance is taken back.
const INTERRUPTION_NOTICE_SECONDS: u64 = 120;
const ADDRESSES_TRIED: usize = 1000;
/// So long EC2 shows an instance that has ended.
const ENDED_SHOWN_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How long the catalog shows an offering as unavailable after a launch found none left.
const UNAVAILABLE_FOR: SignedDuration = SignedDuration::from_mins(3);

pub(super) const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// What Kubernetes, the cloud's controllers and readiness gates take off a node by themselves once it is up.
const TAINTS_OF_AGENTS: [&str; 3] =
    [NOT_READY_TAINT, "node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized"];
const READINESS_TAINT_PREFIX: &str = "readiness.k8s.io/";

/// Why nothing was launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MachineRefusal {
    NoCapacity,
    UnknownInstanceType(String),
    /// The class has images, and none for a type that was asked for.
    NoImage,
    NoAlternatives,
}

impl World {
    /// Launches the first alternative that has capacity. Asked again for the same claim, gives the same instance.
    pub(super) fn launch(
        &mut self,
        request: &LaunchRequest<'_>,
        claim: &NodeClaim,
    ) -> Result<Instance, MachineRefusal> {
        let uid = claim.metadata.uid.as_deref().unwrap_or_default();
        if let Some(machine) = self.machines.values().find(|machine| machine.claim_uid == uid) {
            return Ok(machine.instance.clone());
        }
        if request.alternatives.is_empty() {
            return Err(MachineRefusal::NoAlternatives);
        }
        let with_image = request.alternatives.iter().filter(|it| self.has_image(request, &it.instance_type));
        let with_image: Vec<&Alternative> = with_image.collect();
        if with_image.is_empty() {
            return Err(MachineRefusal::NoImage);
        }
        for alternative in with_image {
            let Alternative { instance_type, zone, capacity_type, .. } = alternative;
            if *capacity_type == keys::RESERVED {
                match self.take_reserved(claim, instance_type, zone) {
                    Some(id) => return Ok(self.start(request, claim, alternative, Some(id))),
                    None => continue,
                }
            }
            if self.offering(alternative).is_none() {
                return Err(MachineRefusal::UnknownInstanceType(alternative.instance_type.clone()));
            }
            let offering = Offering::from(alternative);
            if self.exhausted.contains(&offering) {
                let until = self.now.saturating_add(UNAVAILABLE_FOR).unwrap_or(self.now);
                self.unavailable_until.insert(offering, until);
                continue;
            }
            return Ok(self.start(request, claim, alternative, None));
        }
        Err(MachineRefusal::NoCapacity)
    }

    fn start(
        &mut self,
        request: &LaunchRequest<'_>,
        claim: &NodeClaim,
        alternative: &Alternative,
        reservation: Option<String>,
    ) -> Instance {
        let claim_uid = claim.metadata.uid.clone().unwrap_or_default();
        let mut random = self.random("instance", &claim_uid);
        let provider_id = format!("aws:///{}/i-0{}", alternative.zone, random.hexadecimal(16));
        let node_name = self.free_node_name(&mut random);
        let labels = claim.metadata.labels.as_ref();
        let node_claim = name_of(&claim.metadata);
        let instance = Instance {
            provider_id: provider_id.clone(),
            launch_id: request.launch_id.to_owned(),
            instance_type: alternative.instance_type.clone(),
            zone: alternative.zone.clone(),
            capacity_type: alternative.capacity_type.clone(),
            image_id: self.image(request, &claim.spec.node_class_ref.name, &alternative.instance_type),
            subnet_id: request.class.and_then(|class| subnet_in(class, &alternative.zone)),
            security_groups: request.class.map(security_groups).unwrap_or_default(),
            reservation_id: reservation.clone(),
            launched_at: self.now,
            node_claim: node_claim.clone(),
            node_pool: labels.and_then(|labels| labels.get(keys::NODE_POOL)).cloned().unwrap_or_default(),
            node_class: claim.spec.node_class_ref.name.clone(),
            installation: request.installation.to_owned(),
        };
        let delay = random.between(self.settings.seconds_to_join.0, self.settings.seconds_to_join.1);
        let machine =
            Machine { instance: instance.clone(), claim_uid, node_claim, node_name, ending: false, reservation };
        self.machines.insert(provider_id.clone(), machine);
        self.after_seconds(delay, Timer::NodeJoins { provider_id });
        instance
    }

    /// Whether the class has an image for the type, or nobody knows which it has.
    fn has_image(&self, request: &LaunchRequest<'_>, instance_type: &str) -> bool {
        let status = || request.class.and_then(EC2NodeClass::status_now).map(|status| status.amis.as_slice());
        let images = request.images.or_else(status).unwrap_or_default();
        let (Some(class), Some(sold)) = (request.class, self.instance_type(instance_type)) else { return true };
        images.is_empty() || image_for(&for_node_class(sold, &class.spec), &BTreeMap::new(), images).is_some()
    }

    /// What the class selects, as far as that can be known without a cloud.
    fn image(&self, request: &LaunchRequest<'_>, class_name: &str, instance_type: &str) -> String {
        let class = request.class;
        let of_class = || class.and_then(|class| class.status.as_ref()).map(|status| status.amis.as_slice());
        let found = request.images.or_else(of_class);
        let of_type = self.instance_type(instance_type);
        let found = of_type.and_then(|it| image_for(it, &BTreeMap::new(), found.unwrap_or_default()));
        let named = class.and_then(|class| class.spec.ami_selector_terms.iter().find_map(|term| term.id.as_deref()));
        let known = found.map(|image| image.id.as_str()).or(named);
        let made_up = || format!("ami-0{}", self.random("image", class_name).hexadecimal(16));
        known.map_or_else(made_up, str::to_owned)
    }

    /// By an address that no other instance has. Where most are taken, one is only tried for so long: the world has room for some
    /// forty thousand.
    fn free_node_name(&self, random: &mut Random) -> String {
        let is_taken = |name: &String| {
            self.nodes.contains_key(name) || self.machines.values().any(|machine| machine.node_name == *name)
        };
        let mut name = String::new();
        for _ in 0..ADDRESSES_TRIED {
            let (third, fourth) = (random.between(32, 191), random.between(4, 254));
            name = format!("ip-192-168-{third}-{fourth}.{}.compute.internal", self.catalog.region);
            if !is_taken(&name) {
                break;
            }
        }
        name
    }

    /// From now on no new node of this pool gets further than this; `None`: all is well again.
    pub fn spoil_nodes(&mut self, node_pool: &str, fault: Option<NodeFault>) {
        match fault {
            Some(fault) => self.node_faults.insert(node_pool.to_owned(), fault),
            None => self.node_faults.remove(node_pool),
        };
    }

    /// What a node says of itself from now on, such as `Ready` `False`.
    pub fn set_node_condition(&mut self, node: &str, type_: &str, status: &str) {
        let condition = NodeCondition { type_: type_.to_owned(), ..self.ready_condition(status, "Set") };
        let Some(conditions) = self.nodes.get_mut(node).and_then(|node| node.status.as_mut()) else { return };
        let conditions = conditions.conditions.get_or_insert_default();
        conditions.retain(|existing| existing.type_ != type_);
        conditions.push(condition);
        self.touch_nodes();
    }

    fn node_fault(&self, machine: &Machine) -> Option<NodeFault> {
        let claim = self.node_claims.get(&machine.node_claim)?;
        let pool = claim.metadata.labels.as_ref()?.get(keys::NODE_POOL)?;
        self.node_faults.get(pool).copied()
    }

    /// The kubelet of a booted instance registers its node.
    pub(super) fn node_joins(&mut self, provider_id: &str) {
        let Some(machine) = self.machines.get(provider_id).filter(|machine| !machine.ending).cloned() else { return };
        match self.node_fault(&machine) {
            Some(NodeFault::NeverJoins) => return,
            Some(NodeFault::Ends(cause)) => {
                let now = self.now;
                self.ended.retain(|_, (_, at)| now.duration_since(*at) < ENDED_SHOWN_FOR);
                self.ended.insert(provider_id.to_owned(), (cause, now));
                return self.machine_ends(provider_id);
            }
            Some(NodeFault::NeverReady) | None => {}
        }
        let claim = self.node_claims.get(&machine.node_claim).cloned();
        let Some(mut node) = self.node_of(&machine, claim.as_ref()) else { return };
        self.complete("Node", &mut node.metadata);
        self.nodes.insert(machine.node_name, node);
        let delay = self.random("ready", &machine.claim_uid).between(SECONDS_TO_READY.0, SECONDS_TO_READY.1);
        self.after_seconds(delay, Timer::NodeReady { provider_id: provider_id.to_owned() });
        self.touch_nodes();
    }

    fn node_of(&self, machine: &Machine, claim: Option<&NodeClaim>) -> Option<Node> {
        let instance = &machine.instance;
        let sold = self.instance_type(&instance.instance_type)?;
        let class = claim.and_then(|claim| self.node_classes.get(&claim.spec.node_class_ref.name));
        let adjusted = class.map(|class| for_node_class(sold, &class.spec));
        let instance_type = adjusted.as_ref().unwrap_or(sold);
        let mut labels = BTreeMap::from([
            (keys::HOSTNAME.to_owned(), machine.node_name.clone()),
            (keys::INSTANCE_TYPE.to_owned(), instance.instance_type.clone()),
            (keys::ZONE.to_owned(), instance.zone.clone()),
            (keys::REGION.to_owned(), self.catalog.region.clone()),
        ]);
        for key in [keys::ARCHITECTURE, keys::OPERATING_SYSTEM] {
            if let Some(value) = instance_type.requirements.get(key).and_then(|values| values.first()) {
                labels.insert(key.to_owned(), value.clone());
            }
        }
        let mut offerings = instance_type.offerings.iter().filter(|offering| offering.zone == instance.zone);
        if let Some(zone_id) = offerings.find_map(|offering| offering.zone_id.clone()) {
            labels.insert(keys::ZONE_ID.to_owned(), zone_id);
        }
        add_other_names(&mut labels);
        // A kubelet may not give itself labels of kubernetes.io; those come with registration.
        let own = claim.and_then(|claim| claim.metadata.labels.clone()).unwrap_or_default();
        labels.extend(own.into_iter().filter(|(key, _)| !key.contains("kubernetes.io/")));
        // What a NodeOverlay promises of the node is there: nobody would write one for devices that no plugin has.
        let promised = claim.and_then(|claim| claim.status.as_ref());
        let mut capacity = quantities(&instance_type.capacity);
        let mut allocatable = quantities(&instance_type.allocatable());
        if let Some(status) = promised {
            capacity.extend(status.capacity.iter().map(as_quantity));
            allocatable.extend(status.allocatable.iter().map(as_quantity));
        }
        Some(Node {
            metadata: ObjectMeta {
                name: Some(machine.node_name.clone()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                provider_id: Some(instance.provider_id.clone()),
                taints: Some(vec![
                    taint(keys::UNREGISTERED_TAINT, "NoExecute"),
                    taint(NOT_READY_TAINT, "NoSchedule"),
                    taint(NOT_READY_TAINT, "NoExecute"),
                ]),
                ..NodeSpec::default()
            }),
            status: Some(NodeStatus {
                capacity: Some(capacity),
                allocatable: Some(allocatable),
                conditions: Some(vec![self.ready_condition("False", "KubeletNotReady")]),
                ..NodeStatus::default()
            }),
        })
    }

    pub(super) fn node_ready(&mut self, provider_id: &str) {
        let condition = self.ready_condition("True", "KubeletReady");
        let Some(machine) = self.machines.get(provider_id) else { return };
        if self.node_fault(machine).is_some() {
            return;
        }
        let node_name = machine.node_name.clone();
        let Some(node) = self.nodes.get_mut(&node_name) else { return };
        if let Some(spec) = &mut node.spec {
            spec.taints.get_or_insert_default().retain(|taint| taint.key != NOT_READY_TAINT);
        }
        if let Some(status) = &mut node.status {
            status.conditions = Some(vec![condition]);
        }
        self.disagree_on(&node_name);
        self.start_up_later(provider_id, REGISTRATIONS_AWAITED);
        self.touch_nodes();
    }

    /// Nobody knows who takes the start-up taints of a pool off, or registers devices, but whoever asks for them has somebody who does.
    pub(super) fn start_up_later(&mut self, provider_id: &str, tries: u32) {
        if tries == 0 || !self.waits_for_agents(provider_id) {
            return;
        }
        let delay = self.random("start up", provider_id).between(SECONDS_TO_START_UP.0, SECONDS_TO_START_UP.1);
        self.after_seconds(delay, Timer::NodeStartsUp { provider_id: provider_id.to_owned(), tries: tries - 1 });
    }

    fn waits_for_agents(&self, provider_id: &str) -> bool {
        let Some(machine) = self.machines.get(provider_id) else { return false };
        let Some(claim) = self.node_claims.get(&machine.node_claim) else { return false };
        let lacks_something =
            |node: &Node| taints_of_agents(node).next().is_some() || !missing_resources(claim, node).is_empty();
        !claim.spec.startup_taints.is_empty() || self.nodes.get(&machine.node_name).is_some_and(lacks_something)
    }

    /// Start-up taints go, once registration has put them there, and so does what else a node waits for while it starts.
    pub(super) fn node_starts_up(&mut self, provider_id: &str, tries: u32) {
        let Some(machine) = self.machines.get(provider_id).cloned() else { return };
        let claim = self.node_claims.get(&machine.node_claim);
        let mut gone: BTreeSet<String> =
            claim.into_iter().flat_map(|claim| &claim.spec.startup_taints).map(|taint| taint.key.clone()).collect();
        let Some(node) = self.nodes.get(&machine.node_name) else { return };
        if nodes::taints(node).iter().any(|taint| taint.key == keys::UNREGISTERED_TAINT) {
            return self.start_up_later(provider_id, tries);
        }
        gone.extend(taints_of_agents(node).map(|taint| taint.key.clone()));
        let devices = claim.map(|claim| self.devices_to_come(&machine, claim, node)).unwrap_or_default();
        let Some(node) = self.nodes.get_mut(&machine.node_name) else { return };
        if let Some(spec) = &mut node.spec {
            spec.taints.get_or_insert_default().retain(|taint| !gone.contains(&taint.key));
        }
        let status = node.status.get_or_insert_default();
        status.capacity.get_or_insert_default().extend(devices.clone());
        status.allocatable.get_or_insert_default().extend(devices);
        self.touch_nodes();
    }

    /// What its claim asks for, its instance type has, and the node has not registered yet.
    fn devices_to_come(&self, machine: &Machine, claim: &NodeClaim, node: &Node) -> BTreeMap<String, Quantity> {
        let Some(sold) = self.instance_type(&machine.instance.instance_type) else { return BTreeMap::new() };
        let mut devices = quantities(&sold.capacity);
        let missing = missing_resources(claim, node);
        devices.retain(|name, _| missing.contains(name));
        devices
    }

    fn ready_condition(&self, status: &str, reason: &str) -> NodeCondition {
        NodeCondition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            last_transition_time: Some(Time(self.now)),
            ..NodeCondition::default()
        }
    }

    /// Orders an instance to end. `false` when there is none any more.
    pub(super) fn terminate(&mut self, provider_id: &str) -> bool {
        let Some(machine) = self.machines.get_mut(provider_id) else { return false };
        if !machine.ending {
            machine.ending = true;
            let uid = machine.claim_uid.clone();
            let delay = self.random("end", &uid).between(SECONDS_TO_END.0, SECONDS_TO_END.1);
            self.after_seconds(delay, Timer::MachineEnds { provider_id: provider_id.to_owned() });
        }
        true
    }

    pub(super) fn machine_ends(&mut self, provider_id: &str) {
        if let Some(id) = self.machines.remove(provider_id).and_then(|machine| machine.reservation) {
            self.give_back_reserved(&id);
        }
        self.touch();
    }

    /// EC2 wants a spot instance back: two minutes later it ends, and the cloud controller removes its node.
    /// `false` when there is no such instance or it is not spot.
    pub fn interrupt(&mut self, provider_id: &str) -> bool {
        let spot = self.machines.get(provider_id).is_some_and(|machine| machine.instance.capacity_type == keys::SPOT);
        if spot {
            self.announce_interruption(provider_id);
            let provider_id = provider_id.to_owned();
            self.after_seconds(INTERRUPTION_NOTICE_SECONDS, Timer::MachineReclaimed { provider_id });
        }
        spot
    }

    /// As EventBridge words it.
    fn announce_interruption(&mut self, provider_id: &str) {
        let instance = provider_id.rsplit('/').next().unwrap_or_default();
        let body = json!({
            "version": "0",
            "source": "aws.ec2",
            "detail-type": "EC2 Spot Instance Interruption Warning",
            "time": self.now.to_string(),
            "resources": [format!("arn:aws:ec2:{}::instance/{instance}", self.catalog.region)],
            "detail": { "instance-id": instance, "instance-action": "terminate" },
        });
        self.announce(body.to_string());
    }

    /// Puts a message into the queue.
    pub fn announce(&mut self, body: String) {
        self.messages_sent += 1;
        let receipt = format!("{:020}", self.messages_sent);
        let sent_at = Some(self.now);
        self.messages.insert(receipt.clone(), Message { receipt, body, sent_at });
        self.touch();
    }

    pub fn messages_waiting(&self) -> usize {
        self.messages.len()
    }

    /// EC2 takes so many spot instances back, in the order of their provider IDs; the instances.
    pub fn interrupt_some(&mut self, count: usize) -> Vec<String> {
        let mut ids: Vec<String> = self.machines.keys().cloned().collect();
        ids.retain(|id| self.machines[id].instance.capacity_type == keys::SPOT && !self.machines[id].ending);
        ids.truncate(count);
        ids.iter().for_each(|id| {
            self.interrupt(id);
        });
        ids
    }

    pub(super) fn machine_reclaimed(&mut self, provider_id: &str) {
        let Some(machine) = self.machines.remove(provider_id) else { return };
        self.nodes.remove(&machine.node_name);
        self.touch_nodes();
    }

    /// Somebody changes the security groups of an instance. `false` when there is no such instance.
    pub fn set_security_groups(&mut self, provider_id: &str, groups: Vec<SecurityGroup>) -> bool {
        let machine = self.machines.get_mut(provider_id);
        machine.map(|machine| machine.instance.security_groups = groups).is_some()
    }

    /// From now on EC2 has none of this offering.
    pub fn exhaust(&mut self, offering: Offering) {
        self.exhausted.insert(offering);
    }

    /// EC2 has this offering again.
    pub fn replenish(&mut self, offering: &Offering) {
        self.exhausted.remove(offering);
        self.unavailable_until.remove(offering);
    }

    /// Instances that run, by provider ID.
    pub fn instances(&self) -> Vec<Instance> {
        self.machines.values().filter(|machine| !machine.ending).map(|machine| machine.instance.clone()).collect()
    }

    /// A claim that was loaded with an instance behind it: the instance is there.
    pub(super) fn machine_of_claim(&mut self, claim: &NodeClaim) {
        let Some(status) = &claim.status else { return };
        let Some(provider_id) = status.provider_id.clone() else { return };
        let labels = claim.metadata.labels.clone().unwrap_or_default();
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let instance = Instance {
            provider_id: provider_id.clone(),
            launch_id: claim.launch_id().to_owned(),
            instance_type: label(keys::INSTANCE_TYPE),
            zone: label(keys::ZONE),
            capacity_type: label(keys::CAPACITY_TYPE),
            image_id: status.image_id.clone().unwrap_or_default(),
            // What it was launched with the class may not say any more.
            subnet_id: None,
            security_groups: Vec::new(),
            reservation_id: labels.get(keys::CAPACITY_RESERVATION_ID).cloned(),
            launched_at: claim.metadata.creation_timestamp.as_ref().map_or(self.now, |time| time.0),
            node_claim: name_of(&claim.metadata),
            node_pool: label(keys::NODE_POOL),
            node_class: claim.spec.node_class_ref.name.clone(),
            installation: String::new(),
        };
        let node_name = status.node_name.clone().unwrap_or_default();
        let reservation = labels.get(keys::CAPACITY_RESERVATION_ID).cloned();
        let node_claim = name_of(&claim.metadata);
        let claim_uid = claim.metadata.uid.clone().unwrap_or_default();
        let machine = Machine { instance, claim_uid, node_claim, node_name, ending: false, reservation };
        self.machines.insert(provider_id, machine);
    }

    /// An instance that was found without a node boots.
    pub(super) fn boot(&mut self, provider_id: &str) {
        let mut random = self.random("instance", provider_id);
        let name = self.free_node_name(&mut random);
        let delay = random.between(self.settings.seconds_to_join.0, self.settings.seconds_to_join.1);
        let Some(machine) = self.machines.get_mut(provider_id) else { return };
        if machine.node_name.is_empty() {
            machine.node_name = name;
        }
        self.after_seconds(delay, Timer::NodeJoins { provider_id: provider_id.to_owned() });
    }

    /// The node of an instance that was found.
    pub(super) fn name_machine(&mut self, provider_id: &str, node_name: String) {
        if let Some(machine) = self.machines.get_mut(provider_id) {
            machine.node_name = node_name;
        }
    }

    /// A node that was found starting becomes ready.
    pub(super) fn get_ready(&mut self, provider_id: &str) {
        let delay = self.random("ready", provider_id).between(SECONDS_TO_READY.0, SECONDS_TO_READY.1);
        self.after_seconds(delay, Timer::NodeReady { provider_id: provider_id.to_owned() });
    }

    fn instance_type(&self, name: &str) -> Option<&InstanceType> {
        self.catalog.instance_types.iter().find(|instance_type| instance_type.name == name)
    }

    fn offering(&self, alternative: &Alternative) -> Option<&SoldOffering> {
        self.instance_type(&alternative.instance_type)?
            .offerings
            .iter()
            .find(|offering| offering.zone == alternative.zone && offering.capacity_type == alternative.capacity_type)
    }
}

/// One that the class has found there.
fn subnet_in(class: &EC2NodeClass, zone: &str) -> Option<String> {
    let mut subnets = class.status.iter().flat_map(|status| &status.subnets);
    subnets.find(|subnet| subnet.zone == zone).map(|subnet| subnet.id.clone())
}

/// Those that the class names, else those that it has found; nothing where that is not known.
pub(super) fn security_groups(class: &EC2NodeClass) -> Vec<SecurityGroup> {
    let found = class.status.as_ref().map(|status| status.security_groups.clone()).unwrap_or_default();
    let named = |id: &String| {
        let known = found.iter().find(|group| group.id == *id).cloned();
        known.unwrap_or_else(|| SecurityGroup { id: id.clone(), name: None })
    };
    let terms = class.spec.security_group_selector_terms.iter();
    let by_id: Option<Vec<SecurityGroup>> = terms.map(|term| term.id.as_ref().map(named)).collect();
    by_id.filter(|groups| !groups.is_empty()).unwrap_or(found)
}

fn taints_of_agents(node: &Node) -> impl Iterator<Item = &Taint> {
    nodes::taints(node)
        .iter()
        .filter(|taint| TAINTS_OF_AGENTS.contains(&taint.key.as_str()) || taint.key.starts_with(READINESS_TAINT_PREFIX))
}

/// Extended resources that a claim asks for and its node does not have yet.
fn missing_resources(claim: &NodeClaim, node: &Node) -> BTreeSet<String> {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let is_missing = |name: &&str| allocatable.and_then(|it| it.get(*name)).is_none_or(|quantity| quantity.0 == "0");
    nodes::awaited(claim).iter().map(|(name, _)| name).filter(is_missing).map(str::to_owned).collect()
}

pub(super) fn taint(key: &str, effect: &str) -> Taint {
    Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() }
}

fn as_quantity((name, amount): (&String, &IntOrString)) -> (String, Quantity) {
    (name.clone(), Quantity(amount.to_string()))
}

fn quantities(resources: &Resources) -> BTreeMap<String, Quantity> {
    resources.iter().map(|(name, amount)| (name.to_owned(), Quantity(format_amount(name, amount)))).collect()
}
