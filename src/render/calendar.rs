//! What disruption budgets allow over the days to come: for a terminal, and for machines.

use crate::core::model::HourlyPrice;
use crate::core::plan::calendar::{Allowed, Calendar, Day, Hours, REASONS, Schedule};

use super::plan::count;
use super::terminal::{Style, Tone, clean, left};

const HOURS_COLUMNS: usize = 17;
const REASON_COLUMNS: usize = 15;
const MONEY_COLUMNS: usize = 13;

/// The calendar as pretty JSON. The error is that of a value that JSON can not express; there is none in a calendar.
pub fn json(calendar: &Calendar) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(calendar)?;
    text.push('\n');
    Ok(text)
}

/// One table for each pool and each cluster-wide budget; days that are alike are shown once.
pub fn text(calendar: &Calendar, style: Style) -> String {
    let mut text = format!("Nodes that may be disrupted at one time, by the clock of {}\n", clean(&calendar.time_zone));
    for (kind, schedules) in [("NodePool", &calendar.node_pools), ("DisruptionBudget", &calendar.disruption_budgets)] {
        for schedule in schedules {
            let title = format!("{kind} {} ({} now)", clean(&schedule.name), count(schedule.nodes, "node"));
            text.push_str(&format!("\n{}\n", style.paint(Tone::Strong, &title)));
            text.push_str(&table(schedule, style));
        }
    }
    text
}

fn table(schedule: &Schedule, style: Style) -> String {
    let reasons: String = REASONS.iter().map(|reason| left(&format!("{reason:?}"), REASON_COLUMNS)).collect();
    let any_money = schedule.days.iter().flat_map(|day| &day.hours).any(|hours| money(hours).is_some());
    let money_head = if any_money { left("together", MONEY_COLUMNS) } else { String::new() };
    let head = format!("  {}{reasons}{money_head}allowed by", left("", HOURS_COLUMNS));
    let mut text = format!("{}\n", style.paint(Tone::Dim, &head));
    for days in schedule.days.chunk_by(|one, two| one.hours == two.hours) {
        text.push_str(&format!("  {}\n", title(days)));
        for hours in days.first().map(|day| day.hours.as_slice()).unwrap_or_default() {
            text.push_str(&row(hours, any_money));
        }
    }
    text
}

/// `2026-11-20 to 2026-12-03`
fn title(days: &[Day]) -> String {
    let weekday = |day: &Day| match day.date.parse::<jiff::civil::Date>() {
        Ok(date) => format!("{} {}", date.strftime("%a"), day.date),
        Err(_) => day.date.clone(),
    };
    match (days.first(), days.last()) {
        (Some(first), Some(last)) if days.len() > 1 => format!("{} to {}", weekday(first), weekday(last)),
        (Some(first), _) => weekday(first),
        (None, _) => String::new(),
    }
}

/// What the nodes may cost together that are disrupted at one time, for any reason.
fn money(hours: &Hours) -> Option<HourlyPrice> {
    hours.allowed.iter().filter_map(|allowed| allowed.money_per_hour).min()
}

fn row(hours: &Hours, with_money: bool) -> String {
    let cell = |allowed: &Allowed| allowed.nodes.map_or_else(|| "all".to_owned(), |nodes| nodes.to_string());
    let cells: String = hours.allowed.iter().map(|allowed| left(&cell(allowed), REASON_COLUMNS)).collect();
    let mut by: Vec<String> = hours.allowed.iter().filter_map(|allowed| allowed.by.clone()).collect();
    by.dedup();
    let when = left(&format!("{} - {}", hours.from, hours.to), HOURS_COLUMNS);
    let money = money(hours).map_or_else(String::new, |money| money.to_string());
    let money = if with_money { left(&money, MONEY_COLUMNS) } else { String::new() };
    let line = format!("    {}{cells}{money}{}", left(when.trim_end(), HOURS_COLUMNS - 2), clean(&by.join(", ")));
    format!("{}\n", line.trim_end())
}
