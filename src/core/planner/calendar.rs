//! What budgets allow over the days to come: for each NodePool, and for each cluster-wide DisruptionBudget alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::{RoundMode, Timestamp, TimestampRound, ToSpan, Unit, Zoned, civil::Date, tz::TimeZone};

use crate::disrupt::budgets::{Allowance, Ledger, PoolNodes, allowed_at};
use crate::disrupt::windows::{Period, Written};
use crate::plan::calendar::{Allowed, Calendar, Day, Hours, REASONS, Schedule};
use crate::snapshot::Snapshot;
use crate::snapshot::nodes::machines;
use cutlist_api::disruption_budget::DisruptionBudget;
use cutlist_api::node_pool::{DisruptionReason, NodePool};

/// The days from `from` on, the first one from that moment. O(pools x edges x budgets), an edge being where a window opens or
/// closes; each schedule is walked once.
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
    let end = dates.last().and_then(|date| date.tomorrow().ok()?.to_zoned(zone.clone()).ok());
    let end = end.map_or(from, |end| end.timestamp());
    let period = Period::new(written(pools, budgets), from, end);
    let bare: Vec<NodePool> = pools.iter().cloned().map(without_budgets).collect();
    let selected: Vec<Vec<String>> = budgets.iter().map(|budget| selected(&bare, budget, &counted, from)).collect();
    let schedule = |name: &str, nodes: usize, pool: &str, pools: &[NodePool], budgets: &[DisruptionBudget]| {
        let allowed =
            |moment| Ledger::when(pools, budgets, &counted, &|written| period.firing(written, moment)).allowances(pool);
        let edges = edges(pools, budgets, &period);
        Schedule { name: name.to_owned(), nodes, days: all_days(&dates, &begin, &edges, &allowed) }
    };
    let of_pools = pools.iter().enumerate().filter_map(|(position, pool)| {
        let name = pool.metadata.name.as_deref()?;
        let mut others = bare.clone();
        *others.get_mut(position)? = pool.clone();
        let for_it = budgets.iter().zip(&selected).filter(|(_, pools)| pools.iter().any(|it| it == name));
        let for_it: Vec<DisruptionBudget> = for_it.map(|(budget, _)| budget.clone()).collect();
        let nodes = counted.get(name).map_or(0, |nodes| nodes.counted);
        Some(schedule(name, nodes, name, &others, &for_it))
    });
    let of_budgets = budgets.iter().zip(&selected).filter_map(|(budget, selected)| {
        let first = selected.first().map(String::as_str).unwrap_or_default();
        let nodes = selected.iter().filter_map(|pool| counted.get(pool)).map(|nodes| nodes.counted).sum();
        Some(schedule(budget.metadata.name.as_deref()?, nodes, first, &bare, std::slice::from_ref(budget)))
    });
    Calendar {
        time_zone: zone.iana_name().unwrap_or("UTC").to_owned(),
        from: from.to_string(),
        to: end.to_string(),
        node_pools: of_pools.collect(),
        disruption_budgets: of_budgets.collect(),
    }
}

/// The whole minutes from which on a budget may allow something else than before, in a period and before it.
pub(super) fn edges(pools: &[NodePool], budgets: &[DisruptionBudget], period: &Period) -> BTreeSet<Timestamp> {
    whole_minutes(written(pools, budgets).flat_map(|written| period.edges(written)))
}

/// All schedules of budgets.
pub(super) fn written<'a>(pools: &'a [NodePool], budgets: &'a [DisruptionBudget]) -> impl Iterator<Item = Written<'a>> {
    pools.iter().flat_map(of_pool).chain(budgets.iter().flat_map(of_budget))
}

/// The schedules of a pool's budgets.
fn of_pool(pool: &NodePool) -> impl Iterator<Item = Written<'_>> {
    let budgets = pool.spec.disruption.budgets.iter();
    budgets.filter_map(|budget| Some((budget.schedule.as_deref()?, budget.duration.as_ref(), None)))
}

/// The schedules of a cluster-wide budget: its own, and those of its windows.
fn of_budget(budget: &DisruptionBudget) -> impl Iterator<Item = Written<'_>> {
    let spec = &budget.spec;
    let zone = spec.time_zone.as_deref();
    let own = spec.schedule.as_deref().map(|schedule| (schedule, spec.duration.as_ref(), zone));
    let windows = spec.allow_windows.iter().chain(&spec.deny_windows);
    own.into_iter().chain(windows.map(move |window| (window.schedule.as_str(), Some(&window.duration), zone)))
}

/// In order, each once, and each at the first whole minute from which the state is the new one.
fn whole_minutes(edges: impl Iterator<Item = Timestamp>) -> BTreeSet<Timestamp> {
    let whole = |edge: Timestamp| edge.round(TimestampRound::new().smallest(Unit::Minute).mode(RoundMode::Ceil));
    edges.filter_map(|edge| whole(edge).ok()).collect()
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

fn all_days(dates: &[Date], begin: &Zoned, edges: &BTreeSet<Timestamp>, allowed: &AllowedAt<'_>) -> Vec<Day> {
    let midnight = |date: Date| date.to_zoned(begin.time_zone().clone()).ok().map(|start| start.timestamp());
    let day = |date: &Date| {
        let start = midnight(*date)?.max(begin.timestamp());
        let end = midnight(date.tomorrow().ok()?)?;
        Some(Day { date: date.to_string(), hours: hours(start, end, begin.time_zone(), edges, allowed) })
    };
    dates.iter().filter_map(day).collect()
}

fn hours(
    start: Timestamp,
    end: Timestamp,
    zone: &TimeZone,
    edges: &BTreeSet<Timestamp>,
    allowed: &AllowedAt<'_>,
) -> Vec<Hours> {
    let inside = edges.range((Bound::Excluded(start), Bound::Excluded(end)));
    let mut states: Vec<(Zoned, BTreeMap<DisruptionReason, Allowance>)> =
        std::iter::once(&start).chain(inside).map(|moment| (moment.to_zoned(zone.clone()), allowed(*moment))).collect();
    states.dedup_by(|later, earlier| later.1 == earlier.1);
    let end = end.to_zoned(zone.clone());
    let ends = states.iter().skip(1).map(|(moment, _)| (moment, clock(moment)));
    let ends = ends.chain(std::iter::once((&end, "24:00".to_owned())));
    let hours = states.iter().zip(ends).map(|((from, state), (until, to))| Hours {
        from: clock(from),
        to,
        starts_at: with_offset(from),
        ends_at: with_offset(until),
        allowed: in_order(state),
    });
    hours.collect()
}

/// The time of day; with the name of the offset where the clock shows it twice, in the autumn.
fn clock(moment: &Zoned) -> String {
    let is_twice = moment.time_zone().to_ambiguous_zoned(moment.datetime()).is_ambiguous();
    moment.strftime(if is_twice { "%H:%M %Z" } else { "%H:%M" }).to_string()
}

/// `2026-10-25T02:30:00+02:00`
fn with_offset(moment: &Zoned) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn in_order(state: &BTreeMap<DisruptionReason, Allowance>) -> Vec<Allowed> {
    let of = |reason: DisruptionReason| {
        let Allowance { nodes, by, money, percentage } = state.get(&reason).cloned().unwrap_or_default();
        let money_per_hour = money.filter(|_| nodes != Some(0) || percentage.is_some());
        Allowed { reason, nodes, percentage, by, money_per_hour }
    };
    REASONS.map(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pool_with_budgets;

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

    /// The budget of a minute, and one that fires between two o'clock and three on the day when the clock shows that twice.
    #[test]
    fn short_windows_are_seen_and_hours_that_come_twice_are_told_apart() {
        let said = |budget: serde_json::Value, date: &str| {
            let zone = TimeZone::get("Europe/Berlin").unwrap();
            let from = date.parse::<Date>().unwrap().to_zoned(zone.clone()).unwrap().timestamp();
            let pool = pool_with_budgets(serde_json::json!([budget]));
            let calendar = calendar(&[pool], &[], &Snapshot::default(), from, 1, &zone);
            calendar.node_pools[0].days[0].hours.clone()
        };
        let short = serde_json::json!({ "nodes": "0", "schedule": "2 10 * * *", "duration": "2m" });
        let parts = |hours: &[Hours]| {
            let parts = hours.iter().map(|it| format!("{}-{} {:?}", it.from, it.to, it.allowed[0].nodes));
            parts.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(parts(&said(short, "2026-11-20")), "00:00-11:02 None, 11:02-11:04 Some(0), 11:04-24:00 None");
        let hour = serde_json::json!({ "nodes": "0", "schedule": "30 0 * * *", "duration": "1h" });
        let hours = said(hour, "2026-10-25");
        assert_eq!(parts(&hours), "00:00-02:30 CEST None, 02:30 CEST-02:30 CET Some(0), 02:30 CET-24:00 None");
        assert_eq!(hours[1].starts_at, "2026-10-25T02:30:00+02:00");
        assert_eq!(hours[1].ends_at, "2026-10-25T02:30:00+01:00");
        assert_eq!(hours[2].ends_at, "2026-10-26T00:00:00+01:00");
    }

    #[test]
    fn without_a_node_the_percentage_is_said_unless_nothing_is_allowed_anyway() {
        let of = |budgets: serde_json::Value| {
            let pool = pool_with_budgets(budgets);
            let from = "2026-11-20T09:00:00Z".parse().unwrap();
            let calendar = calendar(&[pool], &[], &Snapshot::default(), from, 1, &TimeZone::UTC);
            let allowed = calendar.node_pools[0].days[0].hours[0].allowed[0].clone();
            (allowed.nodes, allowed.percentage)
        };
        assert_eq!(of(serde_json::json!([{ "nodes": "10%" }])), (Some(0), Some(10)));
        assert_eq!(
            of(serde_json::json!([{ "nodes": "50%" }, { "nodes": "20%" }, { "nodes": "3" }])),
            (Some(0), Some(20))
        );
        assert_eq!(of(serde_json::json!([{ "nodes": "50%" }, { "nodes": "0" }])), (Some(0), None));
        assert_eq!(of(serde_json::json!([{ "nodes": "0%" }])), (Some(0), None));
        let closed = serde_json::json!({ "nodes": "5%", "schedule": "0 1 * * *", "duration": "1h" });
        assert_eq!(of(serde_json::json!([closed])), (None, None));
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
