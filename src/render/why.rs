//! Why one pod is where the plan puts it, or why it gets no place: for a terminal, and for machines.

use crate::core::model::HourlyPrice;
use crate::core::plan::why::{Answer, ExistingNodes, Fate, WhyNode, WhyPod};
use crate::core::plan::{Alternative, PendingReason};

use super::plan::units::{count, use_of};
use super::plan::workloads::by_workload;
use super::terminal::{COLUMNS, Style, Tone, clean, left, width, wrap};

/// Types beside the chosen one, pools, and reasons of nodes that are shown; the JSON form has all.
const MAX_CONSIDERED: usize = 4;
const MAX_POOLS: usize = 12;
const MAX_NODE_REASONS: usize = 8;

/// The answer as pretty JSON. The error is that of a value that JSON can not express; there is none in an answer.
pub fn json(why: &WhyPod) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(why)?;
    text.push('\n');
    Ok(text)
}

/// The answer for people.
pub fn text(why: &WhyPod, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    let usage = use_of(&why.requests, &why.requests);
    let asks = usage.split("  ").filter_map(|part| Some(part.split_once(" of ")?.0)).collect::<Vec<_>>().join(", ");
    let asks =
        if asks.is_empty() { String::new() } else { format!(" (requests {asks} GiB)").replace(" GiB)", unit(&asks)) };
    page.title(&format!("{} {}{asks}", clean(&why.pod), verdict(&why.answer)));
    match &why.answer {
        Answer::Pending { alike, reasons, existing_nodes, smallest_change, .. } => {
            page.pending(*alike, reasons, existing_nodes, smallest_change.as_deref());
        }
        Answer::PlacedOnNewNode { node, because, pods, share_per_hour, considered } => {
            page.node(node);
            page.row("for", &format!("{}: {}", count(pods.len(), "pod"), workloads(pods)));
            page.row("because", because);
            page.row(
                "costs",
                &format!("{share_per_hour} of the node's price, by its larger share of cores and memory"),
            );
            page.considered(node, considered);
        }
        Answer::PlacedOnExistingNode { node } => {
            page.node(node);
            page.row("costs", "nothing more: the node is there, and has room");
        }
        Answer::Running { node, fate, moves_to } => {
            page.node(node);
            page.row("plan", &fate_text(fate));
            if let Some(target) = moves_to {
                page.row("moves to", target);
            }
        }
        Answer::NotPlanned { because } => page.row("because", because),
    }
    page.text
}

/// Memory is the last that is named, and comes without its unit where there is one.
fn unit(asks: &str) -> &'static str {
    if asks.contains("memory") { " GiB)" } else { ")" }
}

fn verdict(answer: &Answer) -> String {
    match answer {
        Answer::Pending { .. } => "stays pending".to_owned(),
        Answer::PlacedOnNewNode { .. } => "gets a place on a new node".to_owned(),
        Answer::PlacedOnExistingNode { .. } => "gets a place on a node that exists".to_owned(),
        Answer::Running { .. } => "runs".to_owned(),
        Answer::NotPlanned { .. } => "is not planned for".to_owned(),
    }
}

fn workloads(pods: &[String]) -> String {
    by_workload(pods.iter().map(String::as_str)).join(", ")
}

fn fate_text(fate: &Fate) -> String {
    match fate {
        Fate::Removed { reason } => format!("the node is removed: {}", reason.text),
        Fate::NeedsConfirmation { reason } => format!("the node waits for a confirmation: {}", reason.text),
        Fate::HeldBack { reason } => format!("the node stays ({:?}): {}", reason.code, reason.text),
        Fate::NotManaged => "the node stays: no NodeClaim stands behind it".to_owned(),
        Fate::Stays => "the node stays".to_owned(),
    }
}

/// Lines that were written so far.
struct Page {
    style: Style,
    text: String,
}

/// Columns of the word at the beginning of a line.
const LABEL: usize = 12;

impl Page {
    fn title(&mut self, title: &str) {
        for part in wrap(title, COLUMNS) {
            let line = self.style.paint(Tone::Strong, &part);
            self.text.push_str(&format!("{line}\n"));
        }
    }

    fn row(&mut self, label: &str, sentence: &str) {
        self.toned(label, sentence, Tone::Plain);
    }

    fn toned(&mut self, label: &str, sentence: &str, tone: Tone) {
        let hanging = 2 + LABEL.max(width(label) + 2);
        for (index, part) in wrap(&clean(sentence), COLUMNS.saturating_sub(hanging).max(20)).iter().enumerate() {
            let label = if index == 0 { left(label, hanging - 2) } else { " ".repeat(hanging - 2) };
            let line = format!("  {}{}", self.style.paint(Tone::Dim, &label), self.style.paint(tone, part));
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    fn node(&mut self, node: &WhyNode) {
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

    fn considered(&mut self, node: &WhyNode, considered: &[Alternative]) {
        if considered.is_empty() {
            self.row("instead", "no other type holds these pods");
            return;
        }
        let chosen = node.price_per_hour.unwrap_or_default();
        let shown = considered.iter().take(MAX_CONSIDERED).map(|other| match other.price_per_hour - chosen {
            HourlyPrice::ZERO => format!("{} (same price)", other.instance_type),
            more => format!("{} {} (+{more})", other.instance_type, other.price_per_hour),
        });
        let mut list = shown.collect::<Vec<_>>().join(", ");
        let rest = considered.len().saturating_sub(MAX_CONSIDERED);
        if rest > 0 {
            list.push_str(&format!(", and {}", count(rest, "more type")));
        }
        self.row("instead", &list);
    }

    fn pending(&mut self, alike: usize, reasons: &[PendingReason], existing: &[ExistingNodes], change: Option<&str>) {
        if alike > 1 {
            self.row("alike", &format!("{} wait for the same", count(alike, "pod")));
        }
        for reason in reasons.iter().take(MAX_POOLS) {
            let label = if reason.node_pool.is_empty() { "pod".to_owned() } else { clean(&reason.node_pool) };
            self.row(&label, &reason.text);
        }
        if let Some(rest) = reasons.get(MAX_POOLS..).filter(|rest| !rest.is_empty()) {
            self.row("", &format!("and {}", count(rest.len(), "more pool")));
        }
        let mut nodes: Vec<String> = existing
            .iter()
            .take(MAX_NODE_REASONS)
            .map(|it| format!("{}: {}", count(it.nodes, "node"), it.text))
            .collect();
        if let Some(rest) = existing.get(MAX_NODE_REASONS..).filter(|rest| !rest.is_empty()) {
            nodes.push(format!("{} for other reasons", count(rest.iter().map(|it| it.nodes).sum(), "node")));
        }
        for (index, line) in nodes.iter().enumerate() {
            self.row(if index == 0 { "that exist" } else { "" }, line);
        }
        match change {
            Some(change) => self.toned("would help", &format!("{change} (tried)"), Tone::Created),
            None if reasons.iter().any(|reason| !reason.node_pool.is_empty()) => {
                self.row("would help", "no few changes that were tried");
            }
            None => {}
        }
    }
}
