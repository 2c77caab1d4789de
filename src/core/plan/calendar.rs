//! What budgets allow over the days to come: for each NodePool, and for each cluster-wide DisruptionBudget alone.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, ToSpan, Zoned, civil::Date, tz::TimeZone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::disruption_budget::DisruptionBudget;
use crate::api::node_pool::{DisruptionReason, NodePool};
use crate::core::disrupt::budgets::{Allowance, PoolNodes, allowed_at};
use crate::core::model::HourlyPrice;
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::nodes::machines;

/// How close the calendar looks; an edge is then found to the minute. A window that lies between two looks is not seen.
const STEP: SignedDuration = SignedDuration::from_mins(5);
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Reasons in the order in which they are shown.
pub const REASONS: [DisruptionReason; 3] =
    [DisruptionReason::Underutilized, DisruptionReason::Empty, DisruptionReason::Drifted];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calendar {
    /// IANA name: whose days and hours these are.
    pub time_zone: String,
    /// RFC 3339.
    pub from: String,
    pub to: String,
    /// By all budgets together.
    pub node_pools: Vec<Schedule>,
    /// By each cluster-wide budget alone.
    pub disruption_budgets: Vec<Schedule>,
}

/// What may be disrupted of one pool, or by one budget, with the nodes that are there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub name: String,
    pub nodes: usize,
    pub days: Vec<Day>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Day {
    /// `2026-11-20`
    pub date: String,
    /// Without gaps.
    pub hours: Vec<Hours>,
}

/// A part of a day, by the clock on the wall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hours {
    /// `09:00`
    pub from: String,
    /// `24:00` at the end of a day.
    pub to: String,
    /// In the order Underutilized, Empty, Drifted.
    pub allowed: Vec<Allowed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Allowed {
    pub reason: DisruptionReason,
    /// Nodes at one time; absent: no budget restricts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// The NodePool or DisruptionBudget whose budget allows the fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What these nodes may cost together; absent: no budget says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_per_hour: Option<HourlyPrice>,
}

/// The days from `from` on, the first one from that moment. O(days x pools x budgets), with a cron expression looked up for
/// each budget every five minutes.
pub fn calendar(
    pools: &[NodePool],
    budgets: &[DisruptionBudget],
    snapshot: &Snapshot,
    from: Timestamp,
    days: u16,
    zone: &TimeZone,
) -> Calendar {
    let counted = counted(snapshot);
    let begin = from.to_zoned(zone.clone());
    let dates: Vec<Date> = (0..days).filter_map(|day| begin.date().checked_add(i32::from(day).days()).ok()).collect();
    let of_pools = pools.iter().filter_map(|pool| {
        let name = pool.metadata.name.clone()?;
        let allowed = |moment| allowed_at(pools, budgets, &counted, moment).remove(&name).unwrap_or_default();
        let nodes = counted.get(&name).map_or(0, |nodes| nodes.counted);
        Some(Schedule { nodes, days: all_days(&dates, &begin, &allowed), name })
    });
    let bare: Vec<NodePool> = pools.iter().cloned().map(without_budgets).collect();
    let of_budgets = budgets.iter().filter_map(|budget| {
        let name = budget.metadata.name.clone()?;
        let selected = selected(&bare, budget, &counted, from);
        let first = selected.first().cloned().unwrap_or_default();
        let allowed = |moment| {
            allowed_at(&bare, std::slice::from_ref(budget), &counted, moment).remove(&first).unwrap_or_default()
        };
        let nodes = selected.iter().filter_map(|pool| counted.get(pool)).map(|nodes| nodes.counted).sum();
        Some(Schedule { name, nodes, days: all_days(&dates, &begin, &allowed) })
    });
    let end = dates.last().and_then(|date| date.tomorrow().ok()?.to_zoned(zone.clone()).ok());
    Calendar {
        time_zone: zone.iana_name().unwrap_or("UTC").to_owned(),
        from: from.to_string(),
        to: end.map_or_else(|| from.to_string(), |end| end.timestamp().to_string()),
        node_pools: of_pools.collect(),
        disruption_budgets: of_budgets.collect(),
    }
}

/// Nodes that budgets count, by pool. What is on its way out now will be gone in the hours to come.
pub(super) fn counted(snapshot: &Snapshot) -> BTreeMap<String, PoolNodes> {
    let mut counted: BTreeMap<String, PoolNodes> = BTreeMap::new();
    let all = machines(snapshot);
    for machine in all.iter().filter(|it| it.is_managed() && it.is_initialized() && !it.is_being_removed()) {
        if let Some(pool) = machine.node_pool() {
            counted.entry(pool.to_owned()).or_default().counted += 1;
        }
    }
    counted
}

fn without_budgets(mut pool: NodePool) -> NodePool {
    pool.spec.disruption.budgets.clear();
    pool
}

/// Pools that a budget is for: those that it restricts when its window is always open.
fn selected(
    bare: &[NodePool],
    budget: &DisruptionBudget,
    counted: &BTreeMap<String, PoolNodes>,
    now: Timestamp,
) -> Vec<String> {
    let mut always = budget.clone();
    always.spec.schedule = None;
    always.spec.duration = None;
    always.spec.allow_windows.clear();
    always.spec.deny_windows.clear();
    let allowed = allowed_at(bare, &[always], counted, now);
    let restricted = allowed.into_iter().filter(|(_, reasons)| reasons.values().any(|it| it.by.is_some()));
    restricted.map(|(pool, _)| pool).collect()
}

type AllowedAt<'a> = dyn Fn(Timestamp) -> BTreeMap<DisruptionReason, Allowance> + 'a;

fn all_days(dates: &[Date], begin: &Zoned, allowed: &AllowedAt<'_>) -> Vec<Day> {
    let midnight = |date: Date| date.to_zoned(begin.time_zone().clone()).ok().map(|start| start.timestamp());
    let day = |date: &Date| {
        let start = midnight(*date)?.max(begin.timestamp());
        let end = midnight(date.tomorrow().ok()?)?;
        Some(Day { date: date.to_string(), hours: hours(start, end, begin.time_zone(), allowed) })
    };
    dates.iter().filter_map(day).collect()
}

fn hours(start: Timestamp, end: Timestamp, zone: &TimeZone, allowed: &AllowedAt<'_>) -> Vec<Hours> {
    let clock = |moment: Timestamp| moment.to_zoned(zone.clone()).strftime("%H:%M").to_string();
    let mut hours: Vec<Hours> = Vec::new();
    let (mut since, mut now) = (start, start);
    let mut state = allowed(start);
    while now < end {
        let next = later(now, STEP).min(end);
        let then = if next < end { Some(allowed(next)) } else { None };
        if then.as_ref() == Some(&state) {
            now = next;
            continue;
        }
        let edge = if then.is_some() { edge(now, next, &state, allowed) } else { end };
        let to = if edge == end { "24:00".to_owned() } else { clock(edge) };
        hours.push(Hours { from: clock(since), to, allowed: in_order(&state) });
        (since, now) = (edge, edge);
        state = allowed(edge);
    }
    hours
}

/// The first whole minute after `from` at which the state is another one.
fn edge(
    from: Timestamp,
    to: Timestamp,
    state: &BTreeMap<DisruptionReason, Allowance>,
    allowed: &AllowedAt<'_>,
) -> Timestamp {
    // Windows open and close at whole minutes.
    let whole = Timestamp::from_second(from.as_second() - from.as_second().rem_euclid(60)).unwrap_or(from);
    let mut moment = later(whole, MINUTE);
    while moment < to && allowed(moment) == *state {
        moment = later(moment, MINUTE);
    }
    moment.min(to)
}

fn later(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn in_order(state: &BTreeMap<DisruptionReason, Allowance>) -> Vec<Allowed> {
    let of = |reason: DisruptionReason| {
        let Allowance { nodes, by, money } = state.get(&reason).cloned().unwrap_or_default();
        Allowed { reason, nodes, by, money_per_hour: money.filter(|_| nodes != Some(0)) }
    };
    REASONS.map(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::pool_with_budgets;

    fn of_new_york(date: &str) -> Vec<(String, String, Option<usize>)> {
        let pool = pool_with_budgets(serde_json::json!([]));
        let budget: DisruptionBudget = serde_json::from_value(serde_json::json!({
            "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget", "metadata": { "name": "night" },
            "spec": { "nodes": "0", "schedule": "30 1 * * *", "duration": "2h", "timeZone": "America/New_York" },
        }))
        .unwrap();
        let zone = TimeZone::get("America/New_York").unwrap();
        let from = date.parse::<Date>().unwrap().to_zoned(zone.clone()).unwrap().timestamp();
        let calendar = calendar(&[pool], &[budget], &Snapshot::default(), from, 1, &zone);
        assert_eq!(calendar.node_pools[0].days, calendar.disruption_budgets[0].days);
        let hours = calendar.node_pools.into_iter().flat_map(|it| it.days).flat_map(|day| day.hours);
        hours.map(|hours| (hours.from, hours.to, hours.allowed[0].nodes)).collect()
    }

    fn parts(date: &str) -> String {
        let parts = of_new_york(date).into_iter().map(|(from, to, nodes)| {
            format!("{from}-{to} {}", nodes.map_or_else(|| "all".to_owned(), |nodes| nodes.to_string()))
        });
        parts.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn edges_are_found_to_the_minute_and_the_change_of_the_clocks_is_seen() {
        assert_eq!(parts("2026-11-20"), "00:00-01:30 all, 01:30-03:30 0, 03:30-24:00 all");
        // From half past one two hours pass, and the clock on the wall shows half past four: two o'clock is left out.
        assert_eq!(parts("2026-03-08"), "00:00-01:30 all, 01:30-04:30 0, 04:30-24:00 all");
    }
}
