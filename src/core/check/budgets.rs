//! How many nodes may be disrupted at once: the budgets of each NodePool, and those over the whole cluster.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use crate::model::HourlyPrice;
use crate::plan::{BudgetKind, Plan, ReasonCode, Step, StepKind};
use cutlist_api::disruption_budget::{DisruptionBudget, DisruptionBudgetSpec, TimeWindow};
use cutlist_api::duration::NillableDuration;
use cutlist_api::keys;
use cutlist_api::node_pool::{Budget, DisruptionReason, NodePool};

use super::known::{Existing, Known};
use super::removals::is_disrupted;
use super::schedule;
use super::steps::{removed_node, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// One budget of either kind.
struct Limit<'a> {
    kind: BudgetKind,
    name: &'a str,
    nodes: &'a str,
    reasons: Option<&'a [DisruptionReason]>,
    pools: BTreeSet<&'a str>,
    /// An error stands for a schedule that can not be read: it allows nothing.
    open: Result<bool, String>,
    /// Its windows forbid everything now.
    denied: bool,
    /// Dollars per hour.
    money: Option<f64>,
}

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    for limit in limits(known) {
        let counted: Vec<&Existing<'_>> = known
            .nodes
            .values()
            .filter(|existing| {
                // One whose instance ends is gone as far as budgets go. Source: the reference, on budgets.
                let ends = existing.claim.is_some_and(|claim| claim.is_true("InstanceTerminating"));
                !ends && existing.initialized && existing.pool.as_deref().is_some_and(|pool| limit.pools.contains(pool))
            })
            .collect();
        let most = if limit.open.is_err() || limit.denied { 0 } else { most(limit.nodes, counted.len()).unwrap_or(0) };
        let disrupted = counted.iter().filter(|existing| is_disrupted(existing)).count();
        let allowed = most.saturating_sub(disrupted);
        let used = steps(plan, StepKind::Remove)
            .filter(|step| limit.pools.contains(step.node_pool.as_str()) && limit.applies_to(step.reason.code))
            .count();
        let forced = limit.forced(plan, known).count();
        let active = limit.open != Ok(false) && limit.reasons.is_none_or(|reasons| !reasons.is_empty());
        if active && used > 0 && used + forced > allowed {
            let text = format!(
                "{used} nodes are disrupted beside {forced} that ask no budget, {allowed} allowed ({} of {})",
                limit.nodes,
                counted.len()
            );
            findings.add(ViolationCode::BudgetExceeded, limit.place(), text);
        }
        stated(plan, &limit, (counted.len(), allowed, (used, forced), active), findings);
        if active {
            money(plan, &limit, &counted, known, findings);
        }
    }
}

/// Nodes that are disrupted already, and those of the plan, cost no more together than the budget says.
fn money(plan: &Plan, limit: &Limit<'_>, counted: &[&Existing<'_>], known: &Known<'_>, findings: &mut Findings) {
    let price = |existing: &&&Existing<'_>| known.price_of(existing).map(HourlyPrice::dollars);
    let going: f64 = counted.iter().filter(|existing| is_disrupted(existing)).filter_map(|it| price(&it)).sum();
    let removed = steps(plan, StepKind::Remove)
        .filter(|step| limit.pools.contains(step.node_pool.as_str()) && limit.applies_to(step.reason.code));
    let chosen: f64 = removed.map(|step| step.price_per_hour.dollars()).sum();
    let forced: f64 = limit.forced(plan, known).map(|step| step.price_per_hour.dollars()).sum();
    let taken = chosen + forced;
    let state = plan.budgets.iter().find(|it| it.kind == limit.kind && it.name == limit.name && it.active);
    let stated = state.and_then(|state| state.money);
    // More than this no price can say.
    match (limit.money.map(|most| most.min(8.9e9)), stated) {
        (None, None) => {}
        (Some(most), Some(stated)) => {
            // Less than a millionth of a dollar is rounding.
            if chosen > 1e-6 && going + taken > most + 1e-6 {
                let text = format!("nodes for {taken} dollars per hour beside {going} under way, {most} allowed");
                findings.add(ViolationCode::BudgetExceeded, limit.place(), text);
            }
            let left = (most - going).max(0.0);
            if (stated.allowed_per_hour.dollars() - left).abs() > 1e-6
                || (stated.used_per_hour.dollars() - taken).abs() > 1e-6
            {
                let text = format!("{left} dollars per hour are allowed and {taken} used; the plan says {stated:?}");
                findings.add(ViolationCode::WrongBudget, limit.place(), text);
            }
        }
        (most, stated) => {
            let text = format!("its moneyPerHour is {most:?}; the plan says {stated:?}");
            findings.add(ViolationCode::WrongBudget, limit.place(), text);
        }
    }
}

/// The plan's own account of this budget.
fn stated(plan: &Plan, limit: &Limit<'_>, right: (usize, usize, (usize, usize), bool), findings: &mut Findings) {
    let reasons: Vec<String> = limit.reasons.unwrap_or_default().iter().map(|reason| format!("{reason:?}")).collect();
    let same = |state: &&crate::plan::BudgetState| {
        state.kind == limit.kind && state.name == limit.name && state.nodes == limit.nodes && state.reasons == reasons
    };
    let states: Vec<_> = plan.budgets.iter().filter(same).collect();
    let (counted, allowed, (used, forced), active) = right;
    // A closed budget restricts nothing, so it matters neither what it would allow nor what was taken from it.
    let agrees = |state: &&crate::plan::BudgetState| {
        let in_force = state.allowed == allowed && state.used == used && state.forced == forced;
        state.nodes_counted == counted && state.active == active && (!active || in_force)
    };
    if !states.iter().any(agrees) {
        let text = format!(
            "{counted} counted, {allowed} allowed, {used} used, {forced} forced, active {active}; the plan says {states:?}"
        );
        findings.add(ViolationCode::WrongBudget, limit.place(), text);
    }
}

impl Limit<'_> {
    fn place(&self) -> ViolationPlace {
        match self.kind {
            BudgetKind::NodePool => ViolationPlace::pool(self.name),
            BudgetKind::DisruptionBudget => ViolationPlace::DisruptionBudget(self.name.to_owned()),
        }
    }

    /// Removals that nobody chose ask no budget, and count all the same, unless their node counted before: as not ready, or not at all
    /// since it never initialized.
    fn forced<'s>(&'s self, plan: &'s Plan, known: &'s Known<'_>) -> impl Iterator<Item = &'s Step> {
        steps(plan, StepKind::Remove).filter(|step| {
            let nobody_chose = step.reason.code.budget().is_none();
            let existing = known.nodes.get(removed_node(step));
            let is_new = existing.is_some_and(|existing| existing.initialized && !is_disrupted(existing));
            nobody_chose && is_new && self.pools.contains(step.node_pool.as_str())
        })
    }

    /// Removals that nobody chose, such as expiry, ask no budget.
    fn applies_to(&self, code: ReasonCode) -> bool {
        code.budget().is_some_and(|reason| self.reasons.is_none_or(|reasons| reasons.contains(&reason)))
    }
}

/// The pools that are defined, and those that are only in the cluster because their nodes have to go first.
fn pools<'a>(known: &Known<'a>) -> impl Iterator<Item = &'a NodePool> {
    let (inputs, defined) = (known.inputs, known.pools.clone());
    let removed = inputs.snapshot.node_pools.iter().filter(move |pool| {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let labels = pool.metadata.labels.clone().unwrap_or_default();
        let is_ours = labels.get(keys::MANAGED_BY).is_some_and(|manager| manager == keys::FIELD_MANAGER);
        !defined.contains_key(name) && (is_ours || inputs.policy.owned_pools.contains(name))
    });
    let is_planned_for = |pool: &&NodePool| !pool.spec.template.spec.node_class_ref.is_of_others();
    inputs.node_pools.iter().chain(removed).filter(is_planned_for)
}

fn limits<'a>(known: &Known<'a>) -> Vec<Limit<'a>> {
    let of_pools = pools(known)
        .flat_map(|pool| pool.spec.disruption.budgets.iter().map(move |budget| of_pool(pool, budget, known)));
    let of_cluster = known.inputs.disruption_budgets.iter().map(|budget| over_pools(budget, known));
    of_pools.chain(of_cluster).collect()
}

fn of_pool<'a>(pool: &'a NodePool, budget: &'a Budget, known: &Known<'a>) -> Limit<'a> {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let duration_seconds = budget.duration.as_ref().and_then(NillableDuration::seconds);
    Limit {
        kind: BudgetKind::NodePool,
        name,
        nodes: &budget.nodes,
        reasons: budget.reasons.as_deref(),
        pools: [name].into(),
        open: is_open(budget.schedule.as_deref(), duration_seconds, None, known),
        denied: false,
        money: None,
    }
}

fn over_pools<'a>(budget: &'a DisruptionBudget, known: &Known<'a>) -> Limit<'a> {
    let spec = &budget.spec;
    let duration_seconds = spec.duration.as_ref().and_then(NillableDuration::seconds);
    let selected = |pool: &&'a NodePool| {
        let Some(selector) = &spec.node_pool_selector else { return true };
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let labels = pool.metadata.labels.clone().unwrap_or_default();
        (selector.names.is_empty() || selector.names.iter().any(|it| it == name))
            && selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    };
    let pools = pools(known).filter(selected);
    Limit {
        kind: BudgetKind::DisruptionBudget,
        name: budget.metadata.name.as_deref().unwrap_or_default(),
        nodes: &spec.nodes,
        reasons: spec.reasons.as_deref(),
        pools: pools.filter_map(|pool| pool.metadata.name.as_deref()).collect(),
        open: is_open(spec.schedule.as_deref(), duration_seconds, spec.time_zone.as_deref(), known),
        denied: is_denied(spec, known),
        money: spec.money_per_hour,
    }
}

/// In a deny window, or outside of all allow windows. A window that can not be read denies.
fn is_denied(spec: &DisruptionBudgetSpec, known: &Known<'_>) -> bool {
    let open = |window: &TimeWindow| {
        let zone = TimeZone::get(spec.time_zone.as_deref().unwrap_or("UTC")).map_err(|error| error.to_string())?;
        schedule::struck(&window.schedule, window.duration.seconds().unwrap_or(0), &zone, known.inputs.now)
    };
    let denies = spec.deny_windows.iter().any(|window| open(window) != Ok(false));
    let allows = spec.allow_windows.is_empty() || spec.allow_windows.iter().any(|window| open(window) == Ok(true));
    denies || !allows
}

/// Without a schedule a budget is always in force.
fn is_open(
    schedule: Option<&str>,
    duration_seconds: Option<u64>,
    zone: Option<&str>,
    known: &Known<'_>,
) -> Result<bool, String> {
    let Some(schedule) = schedule else { return Ok(true) };
    let zone = zone.map_or(Ok(TimeZone::UTC), TimeZone::get).map_err(|error| error.to_string())?;
    schedule::is_open(schedule, duration_seconds.unwrap_or(0), &zone, known.inputs.now)
}

/// A count, or a percentage rounded up.
fn most(nodes: &str, counted: usize) -> Option<usize> {
    match nodes.strip_suffix('%') {
        Some(percent) => Some(percent.parse::<usize>().ok()?.saturating_mul(counted).div_ceil(100)),
        None => nodes.parse().ok(),
    }
}
