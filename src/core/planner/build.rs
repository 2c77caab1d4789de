//! From what was decided to the published form: steps, NodeClaims, summary.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest, Sha256};

use crate::disrupt::drift;
use crate::disrupt::removed_pools::Adoption;
use crate::inputs::Inputs;
use crate::model::hexadecimal;
use crate::model::resources::format_amount;
use crate::model::static_hash::{HASH_VERSION, node_pool_hash};
use crate::model::{Requirement, Requirements, Resources};
use crate::offer::Reservation;
use crate::plan::{Balance, DefinitionPlace, Launch, Precondition, Reason, RemovalMode, Step, StepKind};
use crate::provision::Purchase;
use crate::scheduler::{HostIndex, Problem};
use crate::snapshot::{Pod, PodIndex};
use cutlist_api::keys;
use cutlist_api::node_claim::{NodeClaim, NodeClaimSpec, ResourceRequests};
use cutlist_api::node_pool::{IntOrString, NodePool};

use super::names::Names;

/// Makes steps; numbers moves and names nodes.
pub struct Builder<'b, 'a> {
    pub inputs: &'b Inputs<'a>,
    pub problem: &'b Problem<'a>,
    pub steps: Vec<Step>,
    pub balances: Vec<Balance>,
    names: Names,
    /// By topology key, values that nodes have or could be asked for: one that gets a value of its own gets none of them.
    taken: BTreeMap<String, BTreeSet<String>>,
    next_move: u32,
}

/// What is done to a node that exists.
pub struct NodeStep<'p> {
    pub kind: StepKind,
    pub move_number: u32,
    pub host: HostIndex,
    /// Positions of those that have to move.
    pub pods: &'p [PodIndex],
    pub reason: Reason,
    pub mode: RemovalMode,
    pub preconditions: Vec<Precondition>,
}

impl<'b, 'a> Builder<'b, 'a> {
    pub fn new(inputs: &'b Inputs<'a>, problem: &'b Problem<'a>) -> Self {
        let claims = inputs.snapshot.node_claims.iter().filter_map(|claim| claim.metadata.name.as_deref());
        let taken = claims.chain(problem.machines.iter().map(|machine| machine.name));
        let names = Names::new(taken, inputs.seed);
        Self { inputs, problem, steps: Vec::new(), balances: Vec::new(), names, taken: BTreeMap::new(), next_move: 1 }
    }

    /// Steps of one move get the same number.
    pub fn begin_move(&mut self) -> u32 {
        self.next_move += 1;
        self.next_move - 1
    }

    /// What the move that came last is to the pools it is from.
    pub fn balance(&mut self, balances: &[Balance]) {
        let move_number = self.next_move - 1;
        self.balances.extend(balances.iter().map(|balance| Balance { move_number, ..balance.clone() }));
    }

    pub fn create(
        &mut self,
        move_number: u32,
        purchase: &Purchase,
        reason: Reason,
        definition: Option<DefinitionPlace>,
    ) {
        let pods = self.pod_keys(&purchase.pods);
        let template = &self.problem.templates[purchase.template];
        let pool = &self.inputs.node_pools[template.pool];
        let name = self.names.node_claim(&template.name, &pods);
        let chosen = self.chosen_labels(&name, purchase);
        let claim = node_claim(&name, pool, (purchase, chosen), template.reservation.as_deref());
        let class = self.inputs.places.class(&claim.spec.node_class_ref.name);
        let node_class_hash = class.map(|class| class.hash.clone());
        let node_class_variables = class.map(|class| class.hidden_variables.clone()).unwrap_or_default();
        // A claim is plain data; it always has a JSON form.
        let node_claim = serde_json::to_value(&claim).unwrap_or_default();
        self.steps.push(Step {
            kind: StepKind::Create,
            move_number,
            node_pool: template.name.clone(),
            node_claim: name,
            node: None,
            instance_type: purchase.instance_type.clone(),
            zone: purchase.zone.clone(),
            capacity_type: purchase.capacity_type.clone(),
            price_per_hour: purchase.price,
            pods,
            reason,
            definition,
            preconditions: vec![Precondition::NodePoolUnchanged {
                name: template.name.clone(),
                hash: node_pool_hash(pool),
            }],
            mode: RemovalMode::Graceful,
            launch: Some(Launch {
                node_claim,
                node_class_hash,
                node_class_variables,
                alternatives: purchase.alternatives.clone(),
            }),
            allocatable: purchase.allocatable.clone(),
            requested: purchase.requested.clone(),
            also_in_base: None,
            wave: None,
        });
    }

    /// The labels that a node of this name gets of those that its pool leaves open. O(nodes) for the first of a topology key.
    fn chosen_labels(&mut self, name: &str, purchase: &Purchase) -> BTreeMap<String, String> {
        let mut chosen = BTreeMap::new();
        for (key, requirement) in purchase.custom.iter() {
            let number = choice(name, key);
            let domains = &self.problem.domains;
            let own_of = domains.find(key).filter(|_| requirement.listed().is_none());
            let own = own_of.and_then(|index| {
                let known = || domains.values(index).map(|(value, _)| value.to_owned()).collect();
                let taken = self.taken.entry(key.to_owned()).or_insert_with(known);
                let value = requirement.value_beside(number, taken)?;
                taken.insert(value.clone());
                Some(value)
            });
            chosen.extend(own.or_else(|| requirement.value_for(number)).map(|value| (key.to_owned(), value)));
        }
        chosen
    }

    pub fn add(&mut self, step: NodeStep<'_>) {
        let NodeStep { kind, move_number, host, pods, reason, mode, preconditions } = step;
        let machine = &self.problem.machines[host];
        let mut requested = Resources::new();
        for (_, class) in &self.problem.nodes[host].pods {
            requested.add(&self.problem.classes[*class].requests);
        }
        self.steps.push(Step {
            kind,
            move_number,
            node_pool: machine.node_pool().unwrap_or_default().to_owned(),
            node_claim: machine.claim.and_then(|claim| claim.metadata.name.clone()).unwrap_or_default(),
            node: machine.node.map(|_| machine.name.to_owned()),
            instance_type: machine.label(keys::INSTANCE_TYPE).unwrap_or_default().to_owned(),
            zone: machine.label(keys::ZONE).unwrap_or_default().to_owned(),
            capacity_type: machine.label(keys::CAPACITY_TYPE).unwrap_or_default().to_owned(),
            price_per_hour: self.problem.offer.price_of(self.inputs, machine).unwrap_or_default(),
            pods: self.pod_keys(pods),
            definition: drift::definition(self.inputs, machine, reason.code),
            reason,
            preconditions,
            mode,
            launch: None,
            allocatable: machine.allocatable(),
            requested,
            also_in_base: None,
            wave: None,
        });
    }

    /// Another pool takes a node over.
    pub fn adopt(&mut self, adoption: &Adoption) {
        let heir = self.inputs.node_pools.iter().find(|pool| pool.metadata.name.as_ref() == Some(&adoption.by));
        let hash = heir.map(node_pool_hash).unwrap_or_default();
        let preconditions = vec![Precondition::NodePoolUnchanged { name: adoption.by.clone(), hash }];
        let step = NodeStep {
            kind: StepKind::Adopt,
            move_number: self.begin_move(),
            host: adoption.host,
            pods: &[],
            reason: adoption.reason(),
            mode: RemovalMode::Graceful,
            preconditions,
        };
        self.add(step);
        if let Some(step) = self.steps.last_mut() {
            step.node_pool.clone_from(&adoption.by);
        }
    }

    /// The node still holds just these pods that have to move. None where no node came up: there are no pods to count.
    pub fn holds_only(&self, host: HostIndex, pods: &[PodIndex]) -> Option<Precondition> {
        let machine = &self.problem.machines[host];
        let moved = pods.iter().map(|pod| &self.inputs.snapshot.pods[*pod]);
        machine.node.map(|_| Precondition::NodeHoldsOnly {
            node: machine.name.to_owned(),
            pods: pods.len(),
            pods_hash: (!pods.is_empty()).then(|| hash_of_pods(moved)),
        })
    }

    pub fn pod_keys(&self, pods: &[PodIndex]) -> Vec<String> {
        let mut keys: Vec<String> = pods.iter().map(|pod| self.inputs.snapshot.pods[*pod].key()).collect();
        keys.sort();
        keys
    }
}

/// Characters of a hash over pods; as many as no two sets of pods of one node will share by chance.
const HASH_DIGITS: usize = 16;

/// Over which pods these are, in any order, and what they say about being disturbed.
pub fn hash_of_pods<'p>(pods: impl Iterator<Item = &'p Pod>) -> String {
    let line = |pod: &Pod| {
        let do_not_disrupt = pod.metadata.annotations.get(keys::DO_NOT_DISRUPT).map_or("", String::as_str);
        format!("{} {} {do_not_disrupt}\n", pod.key(), pod.metadata.uid)
    };
    let mut lines: Vec<String> = pods.map(line).collect();
    lines.sort();
    let hash = hexadecimal(Sha256::digest(lines.concat()));
    hash.chars().take(HASH_DIGITS).collect()
}

/// The NodeClaim as it will be written.
fn node_claim(
    name: &str,
    pool: &NodePool,
    (purchase, chosen): (&Purchase, BTreeMap<String, String>),
    reservation: Option<&Reservation>,
) -> NodeClaim {
    let template = &pool.spec.template;
    let spec = &template.spec;
    let mut labels = template.metadata.labels.clone();
    labels.insert(keys::NODE_POOL.to_owned(), pool.metadata.name.clone().unwrap_or_default());
    labels.insert(keys::EC2_NODE_CLASS.to_owned(), spec.node_class_ref.name.clone());
    if let Some(reservation) = reservation {
        labels.insert(keys::CAPACITY_RESERVATION_ID.to_owned(), reservation.id.clone());
        labels.insert(keys::CAPACITY_RESERVATION_TYPE.to_owned(), reservation.reservation_type.clone());
    }
    let custom = Requirements::from_labels(&chosen);
    labels.extend(chosen);
    let mut annotations = template.metadata.annotations.clone();
    annotations.insert(keys::NODE_POOL_HASH.to_owned(), node_pool_hash(pool));
    annotations.insert(keys::NODE_POOL_HASH_VERSION.to_owned(), HASH_VERSION.to_owned());
    if !purchase.lowered.is_empty() {
        annotations.insert(keys::MIN_VALUES_RELAXED.to_owned(), "true".to_owned());
    }
    let requests = purchase
        .requested
        .iter()
        .map(|(name, amount)| (name.to_owned(), IntOrString::String(format_amount(name, amount))));
    let mut claim = NodeClaim::new(
        name,
        NodeClaimSpec {
            node_class_ref: spec.node_class_ref.clone(),
            requirements: claim_requirements(pool, purchase, &custom, reservation),
            resources: ResourceRequests { requests: requests.collect() },
            taints: spec.taints.clone(),
            startup_taints: spec.startup_taints.clone(),
            expire_after: spec.expire_after.clone(),
            termination_grace_period: spec.termination_grace_period.clone(),
        },
    );
    claim.metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(labels),
        annotations: Some(annotations),
        finalizers: Some(vec![keys::TERMINATION_FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    claim
}

/// A number for a label of a node, which has no other reason for one value than for the next: the same each time.
fn choice(name: &str, key: &str) -> u64 {
    let digest = Sha256::digest(format!("{name} {key}"));
    digest.iter().take(size_of::<u64>()).fold(0, |number, byte| number << u8::BITS | u64::from(*byte))
}

/// Requirements of the pool, with the labels, types, zones and capacity type that the launch may use.
fn claim_requirements(
    pool: &NodePool,
    purchase: &Purchase,
    custom: &Requirements,
    reservation: Option<&Reservation>,
) -> Vec<cutlist_api::node_pool::NodeSelectorRequirement> {
    let mut requirements = Requirements::from_entries(&pool.spec.template.spec.requirements);
    requirements.extend(custom);
    let zones: BTreeSet<&str> = purchase.alternatives.iter().map(|alternative| alternative.zone.as_str()).collect();
    requirements.add(keys::ZONE, Requirement::is_in(zones));
    requirements.add(keys::CAPACITY_TYPE, Requirement::is_in([purchase.capacity_type.as_str()]));
    if let Some(reservation) = reservation {
        requirements.add(keys::CAPACITY_RESERVATION_ID, Requirement::is_in([reservation.id.as_str()]));
    }
    let of_types = requirements.get(keys::INSTANCE_TYPE).and_then(|requirement| requirement.min_values);
    requirements.remove(keys::INSTANCE_TYPE);
    let mut entries: Vec<_> = requirements.iter().flat_map(|(key, requirement)| requirement.to_entries(key)).collect();
    for entry in &mut entries {
        entry.min_values = lowered_min_values(&entry.key, entry.min_values, purchase);
    }
    // In the order of price, which a set would lose.
    let mut types: Vec<String> = Vec::new();
    for alternative in &purchase.alternatives {
        if !types.contains(&alternative.instance_type) {
            types.push(alternative.instance_type.clone());
        }
    }
    entries.push(cutlist_api::node_pool::NodeSelectorRequirement {
        key: keys::INSTANCE_TYPE.to_owned(),
        operator: cutlist_api::node_pool::Operator::In,
        values: types,
        min_values: lowered_min_values(keys::INSTANCE_TYPE, of_types, purchase),
    });
    entries
}

fn lowered_min_values(key: &str, asked: Option<u32>, purchase: &Purchase) -> Option<u32> {
    let lowered = purchase.lowered.iter().find(|lowered| lowered.key == key);
    asked.map(|asked| lowered.and_then(|lowered| u32::try_from(lowered.there).ok()).unwrap_or(asked))
}
