//! What a simulation came to: for a terminal, and for machines.

use std::collections::BTreeMap;

use crate::core::model::HourlyPrice;
use crate::core::plan::leaving::Leaving;
use crate::core::plan::simulation::Simulation;
use crate::core::plan::{HeldBack, ReasonCode, Risk, RiskCode};

use super::chart::{axis_columns, chart, duration, strip};
use super::plan::risks_by_code;
use super::plan::units::{count, distance, money, thousands};
use super::terminal::{Style, labelled};

const LABEL_COLUMNS: usize = 11;
/// Reasons for which nodes are held back, and groups of pods that wait, that are shown; the JSON form has all.
const REASONS_MAX: usize = 8;

/// The simulation as pretty JSON. The error would be that of a value that JSON can not express, and a simulation has
/// none.
pub fn json(simulation: &Simulation) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(simulation)?;
    text.push('\n');
    Ok(text)
}

/// Charts and counts, at most `COLUMNS_MAX` columns wide.
pub fn text(simulation: &Simulation, style: Style) -> String {
    let summary = &simulation.summary;
    let mut page = Page { style, text: charts(simulation, style) };
    let change = summary.price_per_hour_end - summary.price_per_hour_start;
    let mut price = format!("{} -> {}, {}", summary.price_per_hour_start, summary.price_per_hour_end, money(change));
    if let Some(share) = share(change, summary.price_per_hour_start) {
        price.push_str(&format!(", {share}"));
    }
    page.line("price", &price);
    // Plans are compared by all that nodes cost, where that is known.
    let distance = match &summary.costs_per_hour_end {
        Some(costs) => distance(costs.total(), costs.lower_bound),
        None => distance(summary.price_per_hour_end, summary.lower_bound_price_per_hour_end),
    };
    if let Some(distance) = distance {
        page.line("", &distance);
    }
    page.line(
        "nodes",
        &format!(
            "{} -> {}, {} created, {} removed, at most {}",
            summary.nodes_start, summary.nodes_end, summary.nodes_created, summary.nodes_removed, summary.nodes_at_most
        ),
    );
    page.line(
        "pods",
        &format!(
            "{} moved, {} bound and {} pending at the end",
            thousands(&summary.pods_moved.to_string()),
            thousands(&summary.pods_bound_end.to_string()),
            thousands(&summary.pods_pending_end.to_string())
        ),
    );
    let plans = format!("{}, {}", count(summary.plans, "plan"), count(summary.moves, "move"));
    let time = duration(summary.virtual_seconds);
    page.line("took", &format!("{time} of virtual time from {}, {plans}", simulation.began_at));
    if !simulation.settled {
        page.line("unsettled", "something still moves, or would with time");
    }
    page.risks(&simulation.risks);
    page.leaving(&simulation.leaving);
    page.held_back(&simulation.held_back);
    page.pending(simulation);
    for note in &simulation.notes {
        page.line("note", &note.sentence());
    }
    page.text
}

fn charts(simulation: &Simulation, style: Style) -> String {
    let seconds = simulation.summary.virtual_seconds;
    let prices: Vec<(u64, HourlyPrice)> =
        simulation.series.iter().map(|point| (point.second, point.price_per_hour)).collect();
    let mut text = chart(&prices, seconds, style);
    if text.is_empty() {
        return text;
    }
    let axis = axis_columns(&prices).max("moved".len());
    let amounts = |amount: fn(&crate::core::plan::simulation::Point) -> usize| -> Vec<(u64, usize)> {
        simulation.series.iter().map(|point| (point.second, amount(point))).collect()
    };
    text.push_str(&strip("nodes", &amounts(|point| point.nodes), seconds, axis, style));
    text.push_str(&strip("moved", &amounts(|point| point.pods_moved), seconds, axis, style));
    text.push('\n');
    text
}

struct Page {
    style: Style,
    text: String,
}

impl Page {
    fn line(&mut self, label: &str, text: &str) {
        self.text.push_str(&labelled(self.style, label, LABEL_COLUMNS, text));
    }

    /// By code, with the sentence of the first of each. What is lost for good comes first.
    fn risks(&mut self, risks: &[Risk]) {
        let mut groups: Vec<(RiskCode, Vec<&Risk>)> = risks_by_code(risks).into_iter().collect();
        groups.sort_by_key(|(code, risks)| (*code != RiskCode::DataLost, std::cmp::Reverse(risks.len()), *code));
        let more = groups.len().saturating_sub(REASONS_MAX);
        for (position, (code, risks)) in groups.iter().take(REASONS_MAX).enumerate() {
            let Some(first) = risks.first() else { continue };
            let label = if position == 0 { "risks" } else { "" };
            let such_as = if risks.len() == 1 { "" } else { "such as " };
            let number = thousands(&risks.len().to_string());
            self.line(label, &format!("{number} {code:?}: {such_as}{}: {}", first.subject, first.text));
        }
        if more > 0 {
            self.line("", &format!("and {more} more kinds"));
        }
    }

    /// Each node that is on its way out, with the first thing that keeps it.
    fn leaving(&mut self, leaving: &[Leaving]) {
        for (position, node) in leaving.iter().take(REASONS_MAX).enumerate() {
            let label = if position == 0 { "leaving" } else { "" };
            let since = node.since.as_ref().map_or_else(
                || "waits for its replacements, or for an earlier wave".to_owned(),
                |since| format!("since {since}"),
            );
            let because = node.waits_for.first().map_or_else(String::new, |first| format!(": {}", first.text));
            let more = node.waits_for.len().saturating_sub(1) + node.further_obstacles;
            let more = if more > 0 { format!(" (and {} more)", thousands(&more.to_string())) } else { String::new() };
            self.line(label, &format!("{} {since}{because}{more}", node.node));
        }
        let more = leaving.len().saturating_sub(REASONS_MAX);
        if more > 0 {
            self.line("", &format!("and {}", count(more, "more node")));
        }
    }

    /// Nodes that are held back, by reason, with the sentence of the first of them. The reason of most nodes comes
    /// first.
    fn held_back(&mut self, held_back: &[HeldBack]) {
        let mut by_code: BTreeMap<ReasonCode, Vec<&HeldBack>> = BTreeMap::new();
        for held in held_back {
            by_code.entry(held.code).or_default().push(held);
        }
        let mut groups: Vec<(ReasonCode, Vec<&HeldBack>)> = by_code.into_iter().collect();
        groups.sort_by_key(|(code, nodes)| (std::cmp::Reverse(nodes.len()), *code));
        let more = groups.len().saturating_sub(REASONS_MAX);
        for (position, (code, nodes)) in groups.iter().take(REASONS_MAX).enumerate() {
            let Some(first) = nodes.first() else { continue };
            let label = if position == 0 { "stays" } else { "" };
            let such_as = if nodes.len() == 1 { "" } else { "such as " };
            self.line(
                label,
                &format!("{} {code:?}: {such_as}{}: {}", count(nodes.len(), "node"), first.node, first.text),
            );
        }
        if more > 0 {
            self.line("", &format!("and {more} more reasons"));
        }
    }

    fn pending(&mut self, simulation: &Simulation) {
        for (position, pending) in simulation.pending.iter().take(REASONS_MAX).enumerate() {
            let label = if position == 0 { "pending" } else { "" };
            let Some(first) = pending.pods.first() else { continue };
            let reason = pending.reasons.first().map_or("", |reason| reason.text.as_str());
            self.line(label, &format!("{} such as {first}: {reason}", count(pending.pods.len(), "pod")));
        }
    }
}

/// `-43.1 %`
fn share(change: HourlyPrice, of: HourlyPrice) -> Option<String> {
    let of = i128::from(of.nanodollars());
    if of <= 0 {
        return None;
    }
    let per_mille = (i128::from(change.nanodollars()) * 1000).div_euclid(of);
    let sign = if per_mille < 0 { '-' } else { '+' };
    let per_mille = per_mille.abs();
    Some(format!("{sign}{}.{} %", per_mille / 10, per_mille % 10))
}
