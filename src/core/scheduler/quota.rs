//! Things of which there is only so much: what a pool may have, what the whole cluster may have.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::inputs::Inputs;
use crate::lifecycle::conditions::{LAUNCHED, REGISTERED};
use crate::model::resources::NODES;
use crate::model::{IndexVec, Resources};
use crate::offer::Offer;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::node_pool::IntOrString;

use super::template::Template;

pub use super::indices::QuotaIndex;

/// Whose limits they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `spec.limits` of a NodePool.
    NodePool,
    /// `spec.limits` of `cutlist.yaml`.
    Cluster,
    /// What is left of the capacity reservation with this id.
    Reservation(String),
    /// Nodes of a pool that may be on their way, since instances of it ended before they joined: what is known of them.
    EarlyEnds(String),
}

/// Amounts by position in [`Limited`]; shared, since nodes of one type take the same.
pub type LimitedCapacity = Rc<[i64]>;

/// The resources that some limit names.
#[derive(Clone, Debug, Default)]
pub struct Limited {
    names: Vec<String>,
}

impl Limited {
    fn new<'l>(limits: impl Iterator<Item = &'l Resources>) -> Self {
        let names: BTreeSet<&str> = limits.flat_map(|limits| limits.iter().map(|(name, _)| name)).collect();
        Self { names: names.into_iter().map(str::to_owned).collect() }
    }

    pub fn name(&self, resource: usize) -> &str {
        &self.names[resource]
    }

    /// What of a capacity limits count.
    pub fn capacity(&self, capacity: &Resources) -> LimitedCapacity {
        self.names.iter().map(|name| capacity.get(name)).collect()
    }

    /// The amounts by name.
    pub fn resources(&self, amounts: &[i64]) -> Resources {
        self.names.iter().cloned().zip(amounts.iter().copied()).collect()
    }

    pub fn nothing(&self) -> LimitedCapacity {
        self.names.iter().map(|_| 0).collect()
    }
}

/// Limits, and what the nodes that are there take of them.
#[derive(Clone, Debug)]
pub struct Quota {
    pub scope: Scope,
    /// By position in [`Limited`]; `None` where there is no limit.
    pub limits: Vec<Option<i64>>,
    pub used: LimitedCapacity,
}

impl Quota {
    /// The first resource of which less is left than a node of this capacity takes, when `planned` is already taken on
    /// top of what is used, and `given_back` is not.
    pub fn exceeded(&self, planned: &[i64], given_back: &[i64], capacity: &[i64]) -> Option<usize> {
        let exceeds = |(resource, limit): (usize, &Option<i64>)| {
            let limit = (*limit)?;
            let left = limit
                .saturating_sub(self.used[resource])
                .saturating_sub(planned[resource])
                .saturating_add(given_back[resource]);
            (capacity[resource] > left).then_some(resource)
        };
        self.limits.iter().enumerate().find_map(exceeds)
    }

    /// Of how many resources a node of this capacity takes more than is left, and by how many thousandths of the limits together.
    pub fn excess(&self, planned: &[i64], capacity: &[i64]) -> (usize, i128) {
        let excesses = self.limits.iter().enumerate().filter_map(|(resource, limit)| {
            let limit = i128::from((*limit)?);
            let taken =
                [self.used[resource], planned[resource], capacity[resource]].map(i128::from).iter().sum::<i128>();
            (taken > limit).then(|| (taken - limit).saturating_mul(1000) / limit.max(1))
        });
        excesses.fold((0, 0), |(count, sum), excess| (count + 1, sum + excess))
    }
}

/// A limit that can not be read is found by lint; here it allows nothing, which is the safe side.
fn parsed(limits: &BTreeMap<String, IntOrString>) -> Resources {
    let amount = |(name, text): (&String, &IntOrString)| {
        let amount = text.to_string().parse().map_or(0, |quantity| Resources::amount(name, quantity));
        (name.clone(), amount)
    };
    limits.iter().map(amount).collect()
}

/// The quotas of all templates, each of which learns which ones it draws on, and what its types take of them.
/// O(templates x types + machines).
pub fn quotas(
    templates: &mut [Template],
    inputs: &Inputs<'_>,
    offer: &Offer,
    machines: &[Machine<'_>],
) -> (Limited, IndexVec<QuotaIndex, Quota>) {
    let mut limits: IndexVec<QuotaIndex, (Scope, Resources)> = IndexVec::new();
    let mut of_pool: BTreeMap<String, QuotaIndex> = BTreeMap::new();
    let mut of_reservation: BTreeMap<String, QuotaIndex> = BTreeMap::new();
    let mut of_paused: BTreeMap<String, QuotaIndex> = BTreeMap::new();
    for template in templates.iter() {
        let of_template = parsed(&inputs.node_pools[template.pool].spec.limits);
        if !of_template.is_empty() && !of_pool.contains_key(&template.name) {
            of_pool.insert(template.name.clone(), limits.push((Scope::NodePool, of_template)));
        }
        if let Some(paused) = offer.paused(&template.name).filter(|_| !of_paused.contains_key(&template.name)) {
            let nodes = [(NODES.to_owned(), paused.nodes)].into_iter().collect();
            of_paused.insert(template.name.clone(), limits.push((Scope::EarlyEnds(paused.why.clone()), nodes)));
        }
        if let Some(reservation) = template.reservation.as_ref().filter(|it| !of_reservation.contains_key(&it.id)) {
            let left = i64::try_from(reservation.available).unwrap_or(i64::MAX);
            let nodes = [(NODES.to_owned(), left)].into_iter().collect();
            let quota = limits.push((Scope::Reservation(reservation.id.clone()), nodes));
            of_reservation.insert(reservation.id.clone(), quota);
        }
    }
    let cluster = parsed(&inputs.policy.limits);
    let of_cluster = (!cluster.is_empty()).then(|| limits.push((Scope::Cluster, cluster)));
    let limited = Limited::new(limits.iter().map(|(_, limits)| limits));
    if limits.is_empty() {
        return (limited, IndexVec::new());
    }
    let mut used: IndexVec<QuotaIndex, Resources> = IndexVec::repeat(Resources::new(), limits.len());
    for machine in machines.iter().filter(|machine| machine.is_managed()) {
        let Some(pool) = machine.node_pool() else { continue };
        let capacity = counted_capacity(machine, templates, inputs);
        for quota in of_pool.get(pool).copied().into_iter().chain(of_cluster) {
            used[quota].add(&capacity);
        }
        if let Some(quota) = of_paused.get(pool).filter(|_| is_on_its_way(machine)) {
            used[*quota].add(&capacity);
        }
        if let Some(quota) = not_yet_launched_into(machine).and_then(|id| of_reservation.get(id)) {
            used[*quota].add(&capacity);
        }
    }
    for template in templates {
        let reservation = template.reservation.as_ref().and_then(|it| of_reservation.get(&it.id)).copied();
        let of_pool = of_pool.get(&template.name).copied();
        let of_paused = of_paused.get(&template.name).copied();
        template.quotas = of_pool.into_iter().chain(of_cluster).chain(reservation).chain(of_paused).collect();
        set_limited_capacity(template, &limited);
    }
    let quota = |((scope, limits), used): ((Scope, Resources), Resources)| Quota {
        scope,
        limits: limited.names.iter().map(|name| limits.contains(name).then(|| limits.get(name))).collect(),
        used: limited.capacity(&used),
    };
    let quotas = limits.into_iter().zip(used).map(quota).collect();
    (limited, quotas)
}

/// The reservation that a claim will take an instance of: once it is launched, EC2 no longer counts it as available.
fn not_yet_launched_into<'m>(machine: &'m Machine<'_>) -> Option<&'m str> {
    machine.claim.filter(|claim| !claim.is_true(LAUNCHED))?;
    machine.label(keys::CAPACITY_RESERVATION_ID)
}

/// Whether its node has yet to join.
fn is_on_its_way(machine: &Machine<'_>) -> bool {
    machine.claim.is_some_and(|claim| !claim.is_true(REGISTERED)) && !machine.is_being_removed()
}

fn set_limited_capacity(template: &mut Template, limited: &Limited) {
    if !template.is_limited() {
        return;
    }
    let of_type = template.offerings.types.iter().map(|entry| limited.capacity(&entry.capacity));
    template.limited_capacity = of_type.collect();
    let mut most = vec![0; limited.names.len()];
    for position in template.set.types().ones() {
        most.iter_mut().zip(template.limited_capacity[position].iter()).for_each(|(most, it)| *most = (*most).max(*it));
    }
    template.limited_capacity_most = most.into();
}

/// What a machine takes of limits: its capacity, or that of its type while neither Node nor claim say; and one node.
fn counted_capacity(machine: &Machine<'_>, templates: &[Template], inputs: &Inputs<'_>) -> Resources {
    let mut capacity = machine.capacity();
    if capacity.is_empty()
        && let Some(name) = machine.label(keys::INSTANCE_TYPE)
    {
        let own = templates.iter().filter(|template| Some(template.name.as_str()) == machine.node_pool());
        let own = own.filter_map(|template| Some(&template.offerings.types[template.offerings.position(name)?])).next();
        let sold = || inputs.catalog.instance_types.iter().find(|instance_type| instance_type.name == name);
        capacity = own
            .map(|entry| entry.capacity.clone())
            .or_else(|| sold().map(|instance_type| instance_type.capacity.clone()))
            .unwrap_or_default();
    }
    capacity.set(NODES, 1);
    capacity
}
