//! Why a pod waits or goes where it goes, why a node is there or went: for a terminal, and for machines.

mod node;
mod pod;

use serde::Serialize;

use crate::core::model::HourlyPrice;
use crate::core::plan::{Alternative, with_place};
use crate::core::why::{Fate, NodeDetails};

use super::plan::units::{count, use_of};
use super::plan::workloads::by_workload;
use super::terminal::{COLUMNS, Style, Tone, clean, left, width, wrap};

pub use node::text as node;
pub use pod::text as pod;

/// Types beside the chosen one that are shown; the JSON form has all.
const CONSIDERED_MAX: usize = 4;

/// The answer as pretty JSON. The error would be that of a value that JSON can not express, and an answer has none.
pub fn json(answer: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(answer)?;
    text.push('\n');
    Ok(text)
}

fn workloads(pods: &[String]) -> String {
    by_workload(pods.iter().map(String::as_str)).join(", ")
}

fn fate_text(fate: &Fate) -> String {
    match fate {
        Fate::Removed { reason } => format!("the node is removed: {}", reason.text),
        Fate::NeedsConfirmation { reason } => format!("the node waits for a confirmation: {}", reason.text),
        Fate::Adopted { node_pool, reason } => {
            format!("the node stays, and NodePool {node_pool} takes it over: {}", reason.text)
        }
        Fate::HeldBack { reason, definition } => {
            format!("the node stays ({:?}): {}", reason.code, with_place(&reason.text, definition.as_ref()))
        }
        Fate::NotManaged => "the node stays: no NodeClaim stands behind it".to_owned(),
        Fate::Stays => "the node stays".to_owned(),
    }
}

/// Lines that were written so far.
pub(super) struct Page {
    pub(super) style: Style,
    pub(super) text: String,
}

/// Columns for the word at the beginning of a line.
const LABEL: usize = 12;

impl Page {
    pub(super) fn title(&mut self, title: &str) {
        for part in wrap(title, COLUMNS) {
            let line = self.style.paint(Tone::Strong, &part);
            self.text.push_str(&format!("{line}\n"));
        }
    }

    pub(super) fn row(&mut self, label: &str, sentence: &str) {
        self.toned(label, sentence, Tone::Plain);
    }

    pub(super) fn toned(&mut self, label: &str, sentence: &str, tone: Tone) {
        let hanging = 2 + LABEL.max(width(label) + 2);
        for (index, part) in wrap(&clean(sentence), COLUMNS.saturating_sub(hanging).max(20)).iter().enumerate() {
            let label = if index == 0 { left(label, hanging - 2) } else { " ".repeat(hanging - 2) };
            let line = format!("  {}{}", self.style.paint(Tone::Dim, &label), self.style.paint(tone, part));
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    pub(super) fn node(&mut self, node: &NodeDetails) {
        let price = node.price_per_hour.map_or_else(|| "price unknown".to_owned(), |price| price.to_string());
        let pool = if node.node_pool.is_empty() { String::new() } else { format!("NodePool {}", node.node_pool) };
        let parts = [&node.name, &node.instance_type, &node.capacity_type, &node.zone, &price, &pool];
        let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        self.row("node", &parts.join(", "));
        let usage = use_of(&node.requested, &node.allocatable);
        if !usage.is_empty() {
            self.row("uses", &usage.replace("  ", ", "));
        }
    }

    pub(super) fn considered(&mut self, node: &NodeDetails, considered: &[Alternative]) {
        if considered.is_empty() {
            // What other pools have is another answer: the plan chose among them before it chose the type.
            let of = if node.node_pool.is_empty() { String::new() } else { format!(" of NodePool {}", node.node_pool) };
            self.row("instead", &format!("no other type{of} holds these pods"));
            return;
        }
        let chosen = node.price_per_hour.unwrap_or_default();
        let shown = considered.iter().take(CONSIDERED_MAX).map(|other| match other.price_per_hour - chosen {
            HourlyPrice::ZERO => format!("{} (same price)", other.instance_type),
            more => format!("{} {} (+{more})", other.instance_type, other.price_per_hour),
        });
        let mut list = shown.collect::<Vec<_>>().join(", ");
        let rest = considered.len().saturating_sub(CONSIDERED_MAX);
        if rest > 0 {
            list.push_str(&format!(", and {}", count(rest, "more type")));
        }
        self.row("instead", &list);
    }
}
