//! Things of which there is only so much: what a pool may have, what the whole cluster may have.

use std::collections::BTreeMap;

use crate::api::keys;
use crate::api::node_pool::IntOrString;
use crate::core::model::Resources;
use crate::core::model::resources::NODES;
use crate::core::plan::Inputs;
use crate::core::snapshot::nodes::Machine;

use super::template::Template;

/// Position of a quota in [`super::Problem::quotas`].
pub type QuotaIndex = usize;

/// Whose limits they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `spec.limits` of a NodePool.
    NodePool,
    /// `spec.limits` of `cutlist.yaml`.
    Cluster,
}

/// Limits, and what the nodes that are there take of them. Resources without a limit are absent from `limits`.
#[derive(Clone, Debug)]
pub struct Quota {
    pub scope: Scope,
    pub limits: Resources,
    pub used: Resources,
}

impl Quota {
    /// The first resource of which less is left than a node of this capacity takes, when `planned` is already taken on
    /// top of what is used, and `given_back` is not.
    pub fn exceeded(&self, planned: &Resources, given_back: &Resources, capacity: &Resources) -> Option<&str> {
        let left = |name: &str, limit: i64| {
            limit
                .saturating_sub(self.used.get(name))
                .saturating_sub(planned.get(name))
                .saturating_add(given_back.get(name))
        };
        self.limits.iter().find(|(name, limit)| capacity.get(name) > left(name, *limit)).map(|(name, _)| name)
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

/// The quotas of all templates, each of which learns which ones it draws on. O(templates + machines).
pub fn quotas(templates: &mut [Template], inputs: &Inputs<'_>, machines: &[Machine<'_>]) -> Vec<Quota> {
    let mut quotas = Vec::new();
    let cluster = parsed(&inputs.policy.limits);
    let mut of_pool: BTreeMap<String, QuotaIndex> = BTreeMap::new();
    for template in templates.iter() {
        let limits = parsed(&inputs.node_pools[template.pool].spec.limits);
        if !limits.is_empty() && !of_pool.contains_key(&template.name) {
            of_pool.insert(template.name.clone(), quotas.len());
            quotas.push(Quota { scope: Scope::NodePool, limits, used: Resources::new() });
        }
    }
    let of_cluster = (!cluster.is_empty()).then_some(quotas.len());
    if of_cluster.is_some() {
        quotas.push(Quota { scope: Scope::Cluster, limits: cluster, used: Resources::new() });
    }
    if quotas.is_empty() {
        return quotas;
    }
    for machine in machines.iter().filter(|machine| machine.is_managed()) {
        let Some(pool) = machine.node_pool() else { continue };
        let capacity = counted_capacity(machine, templates, inputs);
        for quota in of_pool.get(pool).copied().into_iter().chain(of_cluster) {
            quotas[quota].used.add(&capacity);
        }
    }
    for template in templates {
        template.quotas = of_pool.get(&template.name).copied().into_iter().chain(of_cluster).collect();
    }
    quotas
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
