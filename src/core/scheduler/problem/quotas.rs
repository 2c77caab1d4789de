//! What templates draw on: limits of pools and of the cluster, reservations, and what is on its way.

use std::collections::BTreeMap;

use crate::inputs::Inputs;
use crate::lifecycle::conditions::{LAUNCHED, REGISTERED};
use crate::model::resources::NODES;
use crate::model::{IndexVec, Resources};
use crate::offer::Offer;
use crate::scheduler::quota::{LimitScope, Limited, Quota, QuotaIndex};
use crate::scheduler::template::Template;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::node_pool::IntOrString;

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
    let mut limits: IndexVec<QuotaIndex, (LimitScope, Resources)> = IndexVec::new();
    let mut of_pool: BTreeMap<String, QuotaIndex> = BTreeMap::new();
    let mut of_reservation: BTreeMap<String, QuotaIndex> = BTreeMap::new();
    let mut of_paused: BTreeMap<String, QuotaIndex> = BTreeMap::new();
    for template in templates.iter() {
        let of_template = parsed(&inputs.node_pools[template.pool].spec.limits);
        if !of_template.is_empty() && !of_pool.contains_key(&template.name) {
            of_pool.insert(template.name.clone(), limits.push((LimitScope::NodePool, of_template)));
        }
        if let Some(paused) = offer.paused(&template.name).filter(|_| !of_paused.contains_key(&template.name)) {
            let nodes = [(NODES.to_owned(), paused.nodes)].into_iter().collect();
            of_paused.insert(template.name.clone(), limits.push((LimitScope::EarlyEnds(paused.why.clone()), nodes)));
        }
        if let Some(reservation) = template.reservation.as_ref().filter(|it| !of_reservation.contains_key(&it.id)) {
            let left = i64::try_from(reservation.available).unwrap_or(i64::MAX);
            let nodes = [(NODES.to_owned(), left)].into_iter().collect();
            let quota = limits.push((LimitScope::Reservation(reservation.id.clone()), nodes));
            of_reservation.insert(reservation.id.clone(), quota);
        }
    }
    let cluster = parsed(&inputs.policy.limits);
    let of_cluster = (!cluster.is_empty()).then(|| limits.push((LimitScope::Cluster, cluster)));
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
    let quota = |((scope, limits), used): ((LimitScope, Resources), Resources)| Quota {
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
    for position in template.set.each_type() {
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
