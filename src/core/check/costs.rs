//! What nodes cost beside their instances, counted node by node.

use std::collections::BTreeSet;

use crate::catalog::NodeCosts;
use crate::plan::{Plan, Step, StepKind};
use cutlist_api::node_pool::NodeClassReference;
use cutlist_api::settings::Packing;

use super::known::{Existing, Known};
use super::steps::{removed_node, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// Prices are rounded to a billionth of a dollar, once for each node.
const ROUNDING_DOLLARS: f64 = 1e-6;

/// Dollars per hour of one node or of several.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    volumes: f64,
    addresses: f64,
    monitoring: f64,
    per_node: f64,
}

impl Beside {
    fn of_class(class: &NodeClassReference, known: &Known<'_>) -> Self {
        let is_known = class.group != "eks.amazonaws.com";
        let costs = known.classes.get(class.name.as_str()).filter(|_| is_known);
        let costs = costs.map(|class| NodeCosts::of_class(&class.spec)).unwrap_or_default();
        Self {
            volumes: costs.volumes.dollars(),
            addresses: costs.addresses.dollars(),
            monitoring: costs.monitoring.dollars(),
            per_node: per_node(known),
        }
    }

    fn of_pool(pool: &str, known: &Known<'_>) -> Self {
        let nothing_known = Self { per_node: per_node(known), ..Self::default() };
        let pool = known.pools.get(pool);
        pool.map_or(nothing_known, |pool| Self::of_class(&pool.spec.template.spec.node_class_ref, known))
    }

    fn of_node(node: &Existing<'_>, known: &Known<'_>) -> Self {
        match node.claim {
            Some(claim) => Self::of_class(&claim.spec.node_class_ref, known),
            None => Self::of_pool(node.pool.as_deref().unwrap_or_default(), known),
        }
    }

    fn total(&self) -> f64 {
        self.volumes + self.addresses + self.monitoring + self.per_node
    }

    fn count(&mut self, one: Self) {
        self.volumes += one.volumes;
        self.addresses += one.addresses;
        self.monitoring += one.monitoring;
        self.per_node += one.per_node;
    }
}

fn per_node(known: &Known<'_>) -> f64 {
    known.inputs.policy.penalties.per_node_per_hour.max(0.0)
}

/// Dollars per hour that the node of a step costs beside its instance; nothing where that is not counted.
pub(super) fn of_step(step: &Step, known: &Known<'_>) -> f64 {
    if known.inputs.policy.packing == Packing::Karpenter {
        return 0.0;
    }
    match known.nodes.get(removed_node(step)).filter(|_| step.kind != StepKind::Create) {
        Some(node) => Beside::of_node(node, known).total(),
        None => Beside::of_pool(&step.node_pool, known).total(),
    }
}

/// What the plan says that its nodes cost.
pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let mut after = Beside::default();
    let gone: BTreeSet<&str> = steps(plan, StepKind::Remove).map(removed_node).collect();
    for (_, node) in known.nodes.iter().filter(|(name, node)| !node.going && !gone.contains(name.as_str())) {
        after.count(Beside::of_node(node, known));
    }
    for step in steps(plan, StepKind::Create) {
        after.count(Beside::of_pool(&step.node_pool, known));
    }
    let Some(stated) = plan.summary.costs_per_hour else {
        if known.inputs.policy.packing == Packing::Cheapest && after.total() > ROUNDING_DOLLARS {
            let text = format!("no costsPerHour, but nodes cost {} beside their instances", after.total());
            findings.add(ViolationCode::WrongSummary, ViolationPlace::Field("summary"), text);
        }
        return;
    };
    if stated.instances != plan.summary.price_per_hour_after {
        let text = format!("costsPerHour.instances is {}, not pricePerHourAfter", stated.instances);
        findings.add(ViolationCode::WrongSummary, ViolationPlace::Field("summary"), text);
    }
    for (name, stated, counted) in [
        ("volumes", stated.volumes, after.volumes),
        ("addresses", stated.addresses, after.addresses),
        ("monitoring", stated.monitoring, after.monitoring),
        ("perNode", stated.per_node, after.per_node),
    ] {
        if (stated.dollars() - counted).abs() > ROUNDING_DOLLARS {
            let text = format!("costsPerHour.{name} is {counted}, not {stated}");
            findings.add(ViolationCode::WrongSummary, ViolationPlace::Field("summary"), text);
        }
    }
}
