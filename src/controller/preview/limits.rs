//! Limits that a change lowers to what nodes have taken of them: no node goes, and none comes any more, which no step shows.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::node_pool::IntOrString;
use crate::core::model::Resources;
use crate::core::model::resources::NODES;
use crate::core::plan::{Plan, StepKind};
use crate::core::provision::amounts::amount;
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::nodes::{Machine, machines};
use crate::definitions::Definitions;

/// A sentence for each pool, and for the cluster, whose nodes take all of a limit now and after the plan, and did not by that of the base.
/// Both sides as they are settled beside the cluster. O(nodes x limited pools).
pub(super) fn reached(base: &Definitions, merged: &Definitions, snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    let machines = machines(snapshot);
    let going = plan.steps.iter().filter(|step| step.kind == StepKind::Remove);
    let going: BTreeSet<&str> = going.map(|step| step.node_claim.as_str()).collect();
    let mut sentences = Vec::new();
    for pool in merged.node_pools.iter().map(|pool| &pool.value).filter(|pool| !pool.spec.limits.is_empty()) {
        let Some(name) = pool.metadata.name.as_deref() else { continue };
        let of_base = base.node_pools.iter().find(|it| it.value.metadata.name.as_deref() == Some(name));
        let of_base = of_base.map(|pool| &pool.value.spec.limits);
        if of_base == Some(&pool.spec.limits) {
            continue;
        }
        let of_pool = |machine: &&Machine<'_>| machine.node_pool() == Some(name);
        let taken = Taken::by(machines.iter().filter(of_pool), &going);
        let new = taken.newly_reached(of_base, &pool.spec.limits);
        sentences.extend(new.map(|amounts| format!("NodePool {name} launches nothing more: {amounts} are in use")));
    }
    let (before, after) = (&base.settings.limits, &merged.settings.limits);
    let taken = Taken::by(machines.iter().filter(|machine| machine.node_pool().is_some()), &going);
    let new = taken.newly_reached(Some(before), after);
    sentences.extend(new.map(|amounts| format!("nothing more is launched: {amounts} are in use, by cutlist.yaml")));
    sentences
}

/// What nodes take of limits, as the planner counts it.
struct Taken {
    now: Resources,
    after_the_plan: Resources,
}

impl Taken {
    fn by<'m>(machines: impl Iterator<Item = &'m Machine<'m>>, going: &BTreeSet<&str>) -> Self {
        let mut taken = Self { now: Resources::new(), after_the_plan: Resources::new() };
        for machine in machines.filter(|machine| machine.is_managed()) {
            let mut capacity = machine.capacity();
            capacity.set(NODES, 1);
            taken.now.add(&capacity);
            if machine.claim_name().is_none_or(|claim| !going.contains(claim)) {
                taken.after_the_plan.add(&capacity);
            }
        }
        taken
    }

    /// `20 of 8 cpu and 3 of 3 nodes`. A limit that can not be read is found by lint.
    fn newly_reached(
        &self,
        before: Option<&BTreeMap<String, IntOrString>>,
        after: &BTreeMap<String, IntOrString>,
    ) -> Option<String> {
        let before = before.map(Resources::of).transpose().ok()?.unwrap_or_default();
        let after = Resources::of(after).ok()?;
        let is_reached = |resource: &str, limit: i64| self.now.get(resource) >= limit;
        let new = after.iter().filter(|(resource, limit)| {
            is_reached(resource, *limit)
                && self.after_the_plan.get(resource) >= *limit
                && !(before.contains(resource) && is_reached(resource, before.get(resource)))
        });
        let named = new.map(|(resource, limit)| {
            let (used, limit) = (amount(resource, self.now.get(resource)), amount(resource, limit));
            format!("{used} of {limit} {resource}")
        });
        let named: Vec<String> = named.collect();
        (!named.is_empty()).then(|| named.join(" and "))
    }
}
