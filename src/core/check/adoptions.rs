//! Nodes that another pool takes over: theirs is gone, and the other one would make just the same.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::Resources;
use crate::plan::{Plan, StepKind};
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;

use super::known::{Existing, Known};
use super::steps::{removed_node, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let mut adopted: BTreeMap<&str, Vec<&Existing<'_>>> = BTreeMap::new();
    for step in steps(plan, StepKind::Adopt) {
        let Some(existing) = known.nodes.get(removed_node(step)) else { continue };
        adopted.entry(&step.node_pool).or_default().push(existing);
        let refuse = |findings: &mut Findings, text: String| {
            findings.add(ViolationCode::NotAdoptable, ViolationPlace::step(step), text);
        };
        let of_claim = existing.claim.and_then(|claim| claim.metadata.labels.as_ref()?.get(keys::NODE_POOL).cloned());
        let from = of_claim.or_else(|| existing.pool.clone()).unwrap_or_default();
        if known.pools.contains_key(from.as_str()) {
            refuse(findings, format!("its pool {from} is there"));
        }
        if existing.going || !existing.initialized {
            refuse(findings, "it comes or goes".to_owned());
        }
        let applied = known.inputs.snapshot.node_pools.iter().find(|pool| pool.metadata.name.as_ref() == Some(&from));
        match applied.zip(known.pools.get(step.node_pool.as_str())) {
            Some((from, to)) if template(from) == template(to) => {}
            _ => refuse(findings, format!("pool {} would make another node than {from}", step.node_pool)),
        }
    }
    for (pool, adopted) in adopted {
        within_limits(pool, &adopted, known, findings);
    }
}

/// What nodes are made from, as JSON; the order of requirements and of their values does not matter.
fn template(pool: &NodePool) -> Value {
    let mut template = serde_json::to_value(&pool.spec.template).unwrap_or_default();
    if let Some(requirements) = template.pointer_mut("/spec/requirements").and_then(Value::as_array_mut) {
        for values in requirements.iter_mut().filter_map(|it| it.get_mut("values")?.as_array_mut()) {
            values.sort_by_key(ToString::to_string);
        }
        requirements.sort_by_key(ToString::to_string);
    }
    template
}

fn within_limits(pool: &str, adopted: &[&Existing<'_>], known: &Known<'_>, findings: &mut Findings) {
    let Some(definition) = known.pools.get(pool) else { return };
    let limits = definition.spec.limits.iter().map(|(name, limit)| (name.as_str(), limit.to_string()));
    let limits = Resources::parse(limits).unwrap_or_default();
    let own = known.nodes.values().filter(|existing| existing.pool.as_deref() == Some(pool));
    let mut used = Resources::new();
    for existing in own.chain(adopted.iter().copied()) {
        let capacity = existing.node.status.as_ref().and_then(|status| status.capacity.clone()).unwrap_or_default();
        let capacity = capacity.iter().map(|(name, amount)| (name.as_str(), amount.0.clone()));
        used.add(&Resources::parse(capacity).unwrap_or_default());
        used.add(&[("nodes".to_owned(), 1)].into_iter().collect());
    }
    for (name, limit) in limits.iter().filter(|(name, limit)| used.get(name) > *limit) {
        let text = format!("{name} {} is used with the nodes that it takes over, {limit} allowed", used.get(name));
        findings.add(ViolationCode::NotAdoptable, ViolationPlace::pool(pool), text);
    }
}
