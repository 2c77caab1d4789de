//! What there is before the plan, found by name: definitions, instance types, nodes with their claims, pods.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::catalog::{InstanceType, Offering, for_node_class};
use crate::inputs::Inputs;
use crate::model::tenancy::asked_for;
use crate::model::{HourlyPrice, Requirements, Resources};
use crate::plan::{Plan, StepKind};
use crate::snapshot::Pod;
use cutlist_api::ec2_node_class::{EC2NodeClass, Subnet};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_pool::{self, NodePool};

use super::steps::{alternatives, steps};
use super::{daemons, overlays};

const MIRROR_POD: &str = "kubernetes.io/config.mirror";
const DISRUPTED: &str = keys::DISRUPTED_TAINT;

/// By namespace and one label that their selector asks for by value; `None` where it asks for none.
type BudgetsByLabel<'a> = BTreeMap<(&'a str, Option<(&'a str, &'a str)>), Vec<&'a PodDisruptionBudget>>;

pub(super) struct Known<'a> {
    pub inputs: &'a Inputs<'a>,
    pub pools: BTreeMap<&'a str, &'a NodePool>,
    pub classes: BTreeMap<&'a str, &'a EC2NodeClass>,
    pub types: BTreeMap<&'a str, &'a InstanceType>,
    /// By `namespace/name`.
    pub pods: BTreeMap<String, &'a Pod>,
    /// By node, in the snapshot's order: those that still take room.
    pods_by_node: BTreeMap<&'a str, Vec<&'a Pod>>,
    /// By node name; claims whose node has not registered by the claim's name.
    pub nodes: BTreeMap<String, Existing<'a>>,
    /// Claims that EC2 had no capacity for lately.
    pub short_of_capacity: Vec<&'a NodeClaim>,
    /// A pod of each DaemonSet, named after the set.
    pub daemons: Vec<Pod>,
    budgets: BudgetsByLabel<'a>,
    /// Those that count, heaviest first.
    overlays: Vec<&'a NodeOverlay>,
    /// Types that the plan may launch, by pool and name, as nodes of the pool's class have them.
    launchable: BTreeMap<(&'a str, &'a str), InstanceType>,
}

/// A node that is there or on its way.
pub(super) struct Existing<'a> {
    /// As pods will find it: without the taints that go once it is ready.
    pub node: Node,
    pub claim: Option<&'a NodeClaim>,
    pub pool: Option<String>,
    pub initialized: bool,
    /// Somebody else is removing it already.
    pub going: bool,
}

impl<'a> Known<'a> {
    pub(super) fn new(plan: &Plan, inputs: &'a Inputs<'a>) -> Self {
        let name = |metadata: &'a k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
            metadata.name.as_deref().unwrap_or_default()
        };
        let mut known = Self {
            inputs,
            pools: inputs.node_pools.iter().map(|pool| (name(&pool.metadata), pool)).collect(),
            classes: inputs.node_classes.iter().map(|class| (name(&class.metadata), class)).collect(),
            types: inputs.catalog.instance_types.iter().map(|it| (it.name.as_str(), it)).collect(),
            pods: inputs.snapshot.pods.iter().map(|pod| (pod.key(), pod)).collect(),
            pods_by_node: pods_by_node(inputs),
            nodes: existing_nodes(inputs),
            short_of_capacity: short_of_capacity(inputs),
            daemons: daemons::daemon_pods(inputs.snapshot),
            budgets: budgets(inputs),
            overlays: overlays::applied(inputs),
            launchable: BTreeMap::new(),
        };
        known.launchable = known.launchable_types(plan);
        known
    }

    /// O(types that each pool may launch): once for a type, however many nodes may be of it.
    fn launchable_types(&self, plan: &Plan) -> BTreeMap<(&'a str, &'a str), InstanceType> {
        let mut named: BTreeSet<(&str, String)> = BTreeSet::new();
        for step in steps(plan, StepKind::Create) {
            let types = alternatives(step).iter().map(|it| it.instance_type.clone()).collect::<BTreeSet<_>>();
            named.extend(
                types.into_iter().chain([step.instance_type.clone()]).map(|name| (step.node_pool.as_str(), name)),
            );
        }
        let launchable = named.iter().filter_map(|(pool, name)| {
            let (pool_name, pool) = self.pools.get_key_value(*pool)?;
            let (name, instance_type) = self.types.get_key_value(name.as_str())?;
            let class = self.classes.get(pool.spec.template.spec.node_class_ref.name.as_str());
            let of_class = class.map(|class| for_node_class(instance_type, &class.spec));
            let of_class = of_class.as_ref().unwrap_or(instance_type);
            Some(((*pool_name, *name), overlays::with_capacity(&self.overlays, pool, of_class)))
        });
        launchable.collect()
    }

    /// A type that the plan may launch for this pool, as nodes of the pool's class have it.
    pub(super) fn launchable_type(&self, pool: &NodePool, name: &str) -> Option<&InstanceType> {
        let (pool, _) = self.pools.get_key_value(pool.metadata.name.as_deref()?)?;
        let (name, _) = self.types.get_key_value(name)?;
        self.launchable.get(&(*pool, *name))
    }

    /// PodDisruptionBudgets that may cover a pod: those of its namespace that ask for one of its labels, or for none by value.
    pub(super) fn budgets_near(&self, pod: &Pod) -> Vec<&'a PodDisruptionBudget> {
        let namespace = pod.metadata.namespace.as_str();
        let labels = pod.metadata.labels.iter().map(|(key, value)| Some((key.as_str(), value.as_str())));
        let near = labels.chain([None]).filter_map(move |label| self.budgets.get(&(namespace, label)));
        near.flatten().copied().collect()
    }

    /// Less than three minutes ago: what EC2 had no capacity for then, it is not asked for again.
    pub(super) fn is_recent(&self, at: Timestamp) -> bool {
        is_recent(at, self.inputs.now)
    }

    /// Pods bound to this node that still take room on it.
    pub(super) fn pods_on(&self, node: &str) -> impl Iterator<Item = &'a Pod> {
        self.pods_by_node.get(node).into_iter().flatten().copied()
    }

    /// What a node of a pool costs, by the catalog and the overlays; `None` when it is not on sale.
    pub(super) fn price(&self, pool: &str, name: &str, zone: &str, capacity_type: &str) -> Option<HourlyPrice> {
        let instance_type = *self.types.get(name)?;
        if capacity_type == keys::RESERVED {
            return Some(reserved_offering(instance_type, zone)?.price);
        }
        let mut offerings = instance_type.offerings.iter();
        let offering = offerings.find(|it| it.zone == zone && it.capacity_type == capacity_type)?;
        let overlaid = self.pools.get(pool).filter(|pool| {
            // What a pool can not launch, nobody overlays.
            self.classes.contains_key(pool.spec.template.spec.node_class_ref.name.as_str())
        });
        Some(overlaid.map_or(offering.price, |pool| overlays::price(&self.overlays, pool, instance_type, offering)))
    }

    /// What a node costs that is there, whoever made it. Where nobody says how it was bought, it was bought on demand.
    pub(super) fn price_of(&self, existing: &Existing<'_>) -> Option<HourlyPrice> {
        let labels = existing.node.metadata.labels.as_ref()?;
        let capacity_type = labels.get(keys::CAPACITY_TYPE).map_or(keys::ON_DEMAND, String::as_str);
        let pool = existing.pool.as_deref().unwrap_or_default();
        self.price(pool, labels.get(keys::INSTANCE_TYPE)?, labels.get(keys::ZONE)?, capacity_type)
    }

    /// Whether neither the cloud nor the status of the pool's class says that there is no subnet in the zone.
    pub(super) fn may_have_subnet(&self, pool: &NodePool, zone: &str) -> bool {
        let class = pool.spec.template.spec.node_class_ref.name.as_str();
        let asked = self.inputs.policy.zones_with_subnet.get(class);
        let found = self.subnets(pool);
        asked.is_none_or(|zones| zones.iter().any(|it| it == zone))
            && (found.is_empty() || found.iter().any(|subnet| subnet.zone == zone))
    }

    /// What the status of the class in the cluster, or of the defined one where the cluster has none, says of its subnets.
    fn subnets(&self, pool: &NodePool) -> &[Subnet] {
        let name = pool.spec.template.spec.node_class_ref.name.as_str();
        let Some(defined) = self.classes.get(name) else { return &[] };
        let applied = self.inputs.snapshot.node_classes.iter().find(|it| it.metadata.name.as_deref() == Some(name));
        let class = applied.unwrap_or(defined);
        let is_same = class.spec.subnet_selector_terms == defined.spec.subnet_selector_terms;
        let status = class.status.as_ref().filter(|_| is_same);
        let generation = class.metadata.generation;
        let is_old = |observed: Option<i64>| observed.is_some_and(|it| generation.is_some_and(|now| it < now));
        let current = status.filter(|it| !it.conditions.iter().any(|condition| is_old(condition.observed_generation)));
        current.map(|status| status.subnets.as_slice()).unwrap_or_default()
    }

    /// The type as nodes of this pool's class have it, and its offering.
    pub(super) fn launched(
        &self,
        pool: &NodePool,
        name: &str,
        zone: &str,
        capacity_type: &str,
    ) -> Option<(&InstanceType, Offering)> {
        let changed = self.launchable_type(pool, name)?;
        let instance_type = *self.types.get(name)?;
        let mut offering = if capacity_type == keys::RESERVED {
            reserved_offering(instance_type, zone)?
        } else {
            let mut offerings = instance_type.offerings.iter();
            let mut offering = offerings.find(|it| it.zone == zone && it.capacity_type == capacity_type)?.clone();
            offering.price = overlays::price(&self.overlays, pool, instance_type, &offering);
            offering
        };
        let subnet = self.subnets(pool).iter().find(|subnet| subnet.zone == zone && subnet.zone_id.is_some());
        offering.zone_id = subnet.and_then(|subnet| subnet.zone_id.clone()).or(offering.zone_id);
        Some((changed, offering))
    }
}

fn budgets<'a>(inputs: &'a Inputs<'a>) -> BudgetsByLabel<'a> {
    let mut budgets = BudgetsByLabel::new();
    for budget in &inputs.snapshot.pod_disruption_budgets {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let label = selector.and_then(|selector| selector.match_labels.as_ref()?.first_key_value());
        let namespace = budget.metadata.namespace.as_deref().unwrap_or("default");
        let label = label.map(|(key, value)| (key.as_str(), value.as_str()));
        budgets.entry((namespace, label)).or_default().push(budget);
    }
    budgets
}

fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.duration_since(at).as_secs() < 180
}

fn short_of_capacity<'a>(inputs: &'a Inputs<'a>) -> Vec<&'a NodeClaim> {
    let is_short = |claim: &&NodeClaim| {
        claim.condition("Launched").is_some_and(|it| {
            it.status != "True"
                && it.reason.starts_with("InsufficientCapacity")
                && is_recent(it.last_transition_time.0, inputs.now)
        })
    };
    inputs.snapshot.node_claims.iter().filter(is_short).collect()
}

/// Whether a pod has to run somewhere else when its node goes: not those that belong to the node, nor those that are over.
pub(super) fn must_move(pod: &Pod) -> bool {
    !belongs_to_node(pod) && !pod.is_terminal() && (!pod.is_terminating() || pod.is_owned_by("StatefulSet"))
}

pub(super) fn belongs_to_node(pod: &Pod) -> bool {
    pod.is_owned_by("DaemonSet") || is_mirror(pod)
}

pub(super) fn is_mirror(pod: &Pod) -> bool {
    pod.is_owned_by("Node") || pod.metadata.annotations.contains_key(MIRROR_POD)
}

fn pods_by_node<'a>(inputs: &'a Inputs<'a>) -> BTreeMap<&'a str, Vec<&'a Pod>> {
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in inputs.snapshot.pods.iter().filter(|pod| !pod.is_terminal()) {
        if let Some(node) = pod.spec.node_name.as_deref() {
            by_node.entry(node).or_default().push(pod);
        }
    }
    by_node
}

fn existing_nodes<'a>(inputs: &'a Inputs<'a>) -> BTreeMap<String, Existing<'a>> {
    let snapshot = inputs.snapshot;
    let mut nodes = BTreeMap::new();
    let mut claimed = BTreeSet::new();
    let claims = Claims::new(inputs);
    for node in &snapshot.nodes {
        let name = node.metadata.name.clone().unwrap_or_default();
        let claim = claims.of(node);
        claimed.extend(claim.and_then(|claim| claim.metadata.name.clone()));
        nodes.insert(name, existing(node.clone(), claim));
    }
    let node_names: BTreeSet<&str> = snapshot.nodes.iter().filter_map(|it| it.metadata.name.as_deref()).collect();
    let of_node = |node: &'a Node| node.spec.as_ref()?.provider_id.as_deref();
    let mut instances: BTreeSet<&str> = snapshot.nodes.iter().filter_map(of_node).collect();
    for claim in &snapshot.node_claims {
        let name = claim.metadata.name.clone().unwrap_or_default();
        let status = claim.status.as_ref();
        let id = status.and_then(|status| status.provider_id.as_deref()).filter(|id| !id.is_empty());
        let node = status.and_then(|status| status.node_name.as_deref());
        // Of several claims of one instance one stands.
        let is_another =
            node.is_some_and(|node| node_names.contains(node)) || id.is_some_and(|id| !instances.insert(id));
        if !claimed.contains(&name) && !is_another {
            nodes.insert(name, existing(node_of_claim(claim, inputs), Some(claim)));
        }
    }
    nodes
}

/// Claims by what they say of their nodes; of several that say the same, the first.
struct Claims<'a> {
    by_node: BTreeMap<&'a str, (usize, &'a NodeClaim)>,
    by_provider_id: BTreeMap<&'a str, (usize, &'a NodeClaim)>,
}

impl<'a> Claims<'a> {
    fn new(inputs: &'a Inputs<'a>) -> Self {
        let mut claims = Self { by_node: BTreeMap::new(), by_provider_id: BTreeMap::new() };
        for (index, claim) in inputs.snapshot.node_claims.iter().enumerate() {
            let Some(status) = &claim.status else { continue };
            if let Some(node) = status.node_name.as_deref() {
                claims.by_node.entry(node).or_insert((index, claim));
            }
            if let Some(provider_id) = status.provider_id.as_deref() {
                claims.by_provider_id.entry(provider_id).or_insert((index, claim));
            }
        }
        claims
    }

    fn of(&self, node: &Node) -> Option<&'a NodeClaim> {
        let by_name = node.metadata.name.as_deref().and_then(|name| self.by_node.get(name));
        let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        let by_id = provider_id.and_then(|id| self.by_provider_id.get(id));
        by_name.into_iter().chain(by_id).min_by_key(|(index, _)| *index).map(|(_, claim)| *claim)
    }
}

fn existing<'a>(mut node: Node, claim: Option<&'a NodeClaim>) -> Existing<'a> {
    let says =
        |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|it| it == "true");
    let initialized = says(keys::INITIALIZED) || claim.is_some_and(|claim| claim.is_true("Initialized"));
    let registered = says(keys::REGISTERED) || claim.is_some_and(|claim| claim.is_true("Registered"));
    if let Some(claim) = claim.filter(|_| !initialized) {
        let labels = node.metadata.labels.get_or_insert_default();
        labels_to_come(claim).into_iter().for_each(|(key, value)| {
            labels.entry(key).or_insert(value);
        });
        let taints = node.spec.get_or_insert_default().taints.get_or_insert_default();
        taints.retain(|taint| !goes_by_itself(taint, claim));
        let to_come = claim.spec.taints.iter().filter(|_| !registered).map(to_core_taint);
        let missing = to_come.filter(|it| !taints.iter().any(|there| there.key == it.key && there.effect == it.effect));
        let missing: Vec<Taint> = missing.collect();
        taints.extend(missing);
        promised(&mut node, claim);
    }
    node.metadata.labels.as_mut().into_iter().for_each(add_old_names);
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let going = node.metadata.deletion_timestamp.is_some()
        || claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some())
        || taints.iter().any(|taint| taint.key == DISRUPTED);
    Existing { node, claim, pool: labels.get(keys::NODE_POOL).cloned(), initialized, going }
}

/// What a node that has not initialized will have: what its claim says, and the devices that the claim waits for.
fn promised(node: &mut Node, claim: &NodeClaim) {
    let Some(status) = claim.status.as_ref().filter(|status| !status.allocatable.is_empty()) else { return };
    let amounts = node.status.get_or_insert_default().allocatable.get_or_insert_default();
    for (name, amount) in &status.allocatable {
        amounts.insert(name.clone(), Quantity(amount.to_string()));
    }
    for (name, amount) in &claim.spec.resources.requests {
        let is_of_every_node = ["cpu", "memory", "pods", "ephemeral-storage"].contains(&name.as_str());
        if !is_of_every_node && amounts.get(name).is_none_or(|there| there.0 == "0") {
            amounts.insert(name.clone(), Quantity(amount.to_string()));
        }
    }
}

/// Startup taints, and those that the cluster takes off a node that becomes ready.
fn goes_by_itself(taint: &Taint, claim: &NodeClaim) -> bool {
    const TEMPORARY: [&str; 4] = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        keys::UNREGISTERED_TAINT,
    ];
    let startup = claim.spec.startup_taints.iter().map(to_core_taint);
    TEMPORARY.contains(&taint.key.as_str())
        || taint.key.starts_with("readiness.k8s.io/")
        || startup.into_iter().any(|it| it.key == taint.key && it.effect == taint.effect)
}

pub(super) fn to_core_taint(taint: &node_pool::Taint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone(),
        effect: format!("{:?}", taint.effect),
        time_added: None,
    }
}

/// The labels that Kubernetes and the CSI driver set under older names.
pub(super) fn add_old_names(labels: &mut BTreeMap<String, String>) {
    for (old, current) in [
        ("failure-domain.beta.kubernetes.io/zone", keys::ZONE),
        ("failure-domain.beta.kubernetes.io/region", keys::REGION),
        ("beta.kubernetes.io/arch", keys::ARCHITECTURE),
        ("beta.kubernetes.io/os", keys::OPERATING_SYSTEM),
        ("beta.kubernetes.io/instance-type", keys::INSTANCE_TYPE),
        ("topology.ebs.csi.aws.com/zone", keys::ZONE),
    ] {
        if let Some(value) = labels.get(current).cloned() {
            labels.entry(old.to_owned()).or_insert(value);
        }
    }
}

/// Labels that the node of a claim has once it is registered.
fn labels_to_come(claim: &NodeClaim) -> BTreeMap<String, String> {
    let mut labels = claim.metadata.labels.clone().unwrap_or_default();
    for requirement in &claim.spec.requirements {
        if let (node_pool::Operator::In, [value]) = (requirement.operator, requirement.values.as_slice()) {
            labels.entry(requirement.key.clone()).or_insert_with(|| value.clone());
        }
    }
    let asked = Requirements::from_entries(&claim.spec.requirements);
    if let Some(tenancy) = asked.get(keys::TENANCY).and_then(asked_for) {
        labels.entry(keys::TENANCY.to_owned()).or_insert_with(|| tenancy.to_owned());
    }
    labels
}

/// The node that a claim will become, as far as the claim and the catalog say.
fn node_of_claim(claim: &NodeClaim, inputs: &Inputs<'_>) -> Node {
    let name = claim.metadata.name.clone().unwrap_or_default();
    let mut labels = labels_to_come(claim);
    labels.insert(keys::HOSTNAME.to_owned(), name.clone());
    add_old_names(&mut labels);
    let status = claim.status.as_ref();
    let amounts = status.map(|status| &status.allocatable).filter(|amounts| !amounts.is_empty());
    let from_status =
        amounts.map(|amounts| amounts.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect());
    let of_type = || {
        let name = labels.get(keys::INSTANCE_TYPE)?;
        let instance_type = inputs.catalog.instance_types.iter().find(|it| it.name == *name)?;
        Some(quantities(&instance_type.allocatable()))
    };
    let allocatable: BTreeMap<String, String> = from_status.or_else(of_type).unwrap_or_default();
    new_node(&name, labels, claim.spec.taints.iter().map(to_core_taint).collect(), allocatable)
}

pub(super) fn quantities(resources: &Resources) -> BTreeMap<String, String> {
    use crate::model::resources::format_amount;
    resources.iter().map(|(name, amount)| (name.to_owned(), format_amount(name, amount))).collect()
}

pub(super) fn new_node(
    name: &str,
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    allocatable: BTreeMap<String, String>,
) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    node.metadata.labels = Some(labels);
    node.spec.get_or_insert_default().taints = Some(taints);
    let allocatable = allocatable.into_iter().map(|(name, amount)| (name, Quantity(amount))).collect();
    node.status.get_or_insert_default().allocatable = Some(allocatable);
    node
}

/// The offering of a reserved instance: a ten-millionth of the price on demand.
fn reserved_offering(instance_type: &InstanceType, zone: &str) -> Option<Offering> {
    let mut offerings = instance_type.offerings.iter();
    let on_demand = offerings.find(|it| it.zone == zone && it.capacity_type == keys::ON_DEMAND)?;
    let price = on_demand.price.nanodollars();
    Some(Offering {
        capacity_type: keys::RESERVED.to_owned(),
        price: HourlyPrice::from_nanodollars(price / 10_000_000 + i64::from(price % 10_000_000 >= 5_000_000)),
        available: true,
        ..on_demand.clone()
    })
}
