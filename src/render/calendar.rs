//! What disruption budgets allow over the days to come: for a terminal, for reviews, and for machines.

use crate::core::model::HourlyPrice;
use crate::core::plan::calendar::{Allowed, Calendar, Day, Hours, REASONS, Schedule};

use super::plan::count;
use super::plan::markdown::CHARACTERS_MAX;
use super::plan::markdown::escape::prose;
use super::terminal::{Style, Tone, clean, left};

/// Columns for the hours of a row. Times that come twice, as when a clock is set back, need more.
const HOURS_COLUMNS: usize = 17;
const REASON_COLUMNS: usize = 15;
const MONEY_COLUMNS: usize = 13;

/// The calendar as pretty JSON. The error would be that of a value that JSON can not express, and a calendar has none.
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
            if of_none(schedule) {
                text.push_str(&format!("  {}\n", style.paint(Tone::Dim, OF_NONE)));
            }
        }
    }
    text
}

/// One table for each pool and each cluster-wide budget, as many as a comment on a pull request has room for.
pub fn markdown(calendar: &Calendar) -> String {
    let mut text =
        format!("### Nodes that may be disrupted at one time, by the clock of {}\n", prose(&calendar.time_zone));
    let pools = calendar.node_pools.iter().map(|schedule| ("NodePool", schedule));
    let budgets = calendar.disruption_budgets.iter().map(|schedule| ("DisruptionBudget", schedule));
    let mut left_out = 0;
    for (kind, schedule) in pools.chain(budgets) {
        let part = markdown_part(kind, schedule);
        // A text has at least as many bytes as characters. The last sentence needs room as well.
        if text.len() + part.len() + 200 > CHARACTERS_MAX {
            left_out += 1;
        } else {
            text.push_str(&part);
        }
    }
    if left_out > 0 {
        let tables = count(left_out, "table");
        text.push_str(&format!("\n{tables} left out: a comment takes no more; fewer `--days` need less\n"));
    }
    text
}

fn markdown_part(kind: &str, schedule: &Schedule) -> String {
    let now = count(schedule.nodes, "node");
    let table = markdown_table(schedule);
    let mut part = format!("\n**{kind} {}** ({now} now)\n\n{table}", prose(&schedule.name));
    if of_none(schedule) {
        part.push_str(&format!("\n{OF_NONE}\n"));
    }
    part
}

fn markdown_table(schedule: &Schedule) -> String {
    let any_money = any_money(schedule);
    let mut head = vec!["day".to_owned(), "hours".to_owned()];
    head.extend(REASONS.map(|reason| format!("{reason:?}")));
    head.extend(any_money.then(|| "together".to_owned()));
    head.push("allowed by".to_owned());
    let rule = vec!["---".to_owned(); head.len()];
    let mut rows = vec![head, rule];
    for days in groups(schedule) {
        for (position, hours) in days.first().map(|day| day.hours.as_slice()).unwrap_or_default().iter().enumerate() {
            let mut row = vec![if position == 0 { title(days) } else { String::new() }, when(hours)];
            row.extend(hours.allowed.iter().map(cell));
            row.extend(any_money.then(|| money(hours).map(|money| money.to_string()).unwrap_or_default()));
            row.push(prose(&by(hours)));
            rows.push(row);
        }
    }
    rows.iter().map(|row| format!("| {} |\n", row.join(" | "))).collect()
}

/// Why a cell shows a percentage instead of a count.
const OF_NONE: &str = "no node is there now to take a percentage of, so that it is shown as it is written";

fn of_none(schedule: &Schedule) -> bool {
    let hours = schedule.days.iter().flat_map(|day| &day.hours);
    hours.flat_map(|hours| &hours.allowed).any(|allowed| allowed.percentage.is_some())
}

/// The days of the schedule in runs: days of one run follow each other and are alike.
fn groups(schedule: &Schedule) -> impl Iterator<Item = &[Day]> {
    let looks = |hours: &Hours| (hours.from.clone(), hours.to.clone(), hours.allowed.clone());
    schedule.days.chunk_by(move |one, two| one.hours.iter().map(looks).eq(two.hours.iter().map(looks)))
}

fn table(schedule: &Schedule, style: Style) -> String {
    let reasons: String = REASONS.iter().map(|reason| left(&format!("{reason:?}"), REASON_COLUMNS)).collect();
    let any_money = any_money(schedule);
    let money_head = if any_money { left("together", MONEY_COLUMNS) } else { String::new() };
    let hours = schedule.days.iter().flat_map(|day| &day.hours);
    let columns = hours.map(|hours| when(hours).len() + 4).max().unwrap_or_default().max(HOURS_COLUMNS);
    let head = format!("  {}{reasons}{money_head}allowed by", left("", columns));
    let mut text = format!("{}\n", style.paint(Tone::Dim, &head));
    for days in groups(schedule) {
        text.push_str(&format!("  {}\n", title(days)));
        for hours in days.first().map(|day| day.hours.as_slice()).unwrap_or_default() {
            text.push_str(&row(hours, columns, any_money));
        }
    }
    text
}

fn any_money(schedule: &Schedule) -> bool {
    schedule.days.iter().flat_map(|day| &day.hours).any(|hours| money(hours).is_some())
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

/// What all nodes may cost together that are disrupted at one time, whatever the reason.
fn money(hours: &Hours) -> Option<HourlyPrice> {
    hours.allowed.iter().filter_map(|allowed| allowed.money_per_hour).min()
}

/// `09:00 - 17:00`
fn when(hours: &Hours) -> String {
    format!("{} - {}", clean(&hours.from), clean(&hours.to))
}

fn cell(allowed: &Allowed) -> String {
    match (allowed.percentage, allowed.nodes) {
        (Some(percentage), _) => format!("{percentage} %"),
        (None, Some(nodes)) => nodes.to_string(),
        (None, None) => "all".to_owned(),
    }
}

fn by(hours: &Hours) -> String {
    let mut by: Vec<String> = hours.allowed.iter().filter_map(|allowed| allowed.by.clone()).collect();
    by.dedup();
    by.join(", ")
}

fn row(hours: &Hours, columns: usize, with_money: bool) -> String {
    let cells: String = hours.allowed.iter().map(|allowed| left(&cell(allowed), REASON_COLUMNS)).collect();
    let money = money(hours).map_or_else(String::new, |money| money.to_string());
    let money = if with_money { left(&money, MONEY_COLUMNS) } else { String::new() };
    let line = format!("    {}{cells}{money}{}", left(&when(hours), columns - 2), clean(&by(hours)));
    format!("{}\n", line.trim_end())
}
