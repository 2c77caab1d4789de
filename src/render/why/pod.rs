//! Why one pod is where the plan puts it, or why it gets no place: for a terminal, and for machines.

use crate::core::plan::{PendingReason, with_place};
use crate::core::why::pod::{ExistingNodes, PodAnswer, WhyPod};
use crate::render::plan::units::{amounts_of, count};
use crate::render::terminal::{Style, Tone, clean};

use super::{Page, fate_text, workloads};

/// Pools, and reasons of existing nodes, that are shown. The JSON form has all.
const POOLS_MAX: usize = 12;
const NODE_REASONS_MAX: usize = 8;

/// The answer for people.
pub fn text(why: &WhyPod, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    let amounts = amounts_of(&why.requests);
    let requests = if amounts.is_empty() { String::new() } else { format!(" (requests {})", amounts.join(", ")) };
    page.title(&format!("{} {}{requests}", clean(&why.pod), verdict(&why.answer)));
    match &why.answer {
        PodAnswer::Pending { alike, reasons, existing_nodes, smallest_change, .. } => {
            page.pending(*alike, reasons, existing_nodes, smallest_change.as_deref());
        }
        PodAnswer::PlacedOnNewNode { node, because, pods, share_per_hour, considered } => {
            page.node(node);
            page.row("for", &format!("{}: {}", count(pods.len(), "pod"), workloads(pods)));
            page.row("because", because);
            page.row(
                "costs",
                &format!("{share_per_hour} of the node's price, by its larger share of cores and memory"),
            );
            page.considered(node, considered);
        }
        PodAnswer::PlacedOnExistingNode { node, waits_for } => {
            page.node(node);
            if let Some(text) = waits_for {
                page.row("waits", &format!("the node has not initialized yet: {text}"));
            }
            page.row("costs", "nothing more: the node is there, and has room");
        }
        PodAnswer::Running { node, fate, moves_to } => {
            page.node(node);
            page.row("plan", &fate_text(fate));
            if let Some(target) = moves_to {
                page.row("moves to", target);
            }
        }
        PodAnswer::NotPlanned { because } => page.row("because", because),
    }
    page.text
}

fn verdict(answer: &PodAnswer) -> String {
    match answer {
        PodAnswer::Pending { .. } => "stays pending".to_owned(),
        PodAnswer::PlacedOnNewNode { .. } => "gets a place on a new node".to_owned(),
        PodAnswer::PlacedOnExistingNode { .. } => "gets a place on a node that exists".to_owned(),
        PodAnswer::Running { .. } => "runs".to_owned(),
        PodAnswer::NotPlanned { .. } => "is not planned for".to_owned(),
    }
}

impl Page {
    fn pending(&mut self, alike: usize, reasons: &[PendingReason], existing: &[ExistingNodes], change: Option<&str>) {
        if alike > 1 {
            self.row("alike", &format!("{} wait for the same", count(alike, "pod")));
        }
        for reason in reasons.iter().take(POOLS_MAX) {
            let label = if reason.node_pool.is_empty() { "pod".to_owned() } else { clean(&reason.node_pool) };
            self.row(&label, &with_place(&reason.text, reason.definition.as_ref()));
        }
        if let Some(rest) = reasons.get(POOLS_MAX..).filter(|rest| !rest.is_empty()) {
            self.row("", &format!("and {}", count(rest.len(), "more pool")));
        }
        let mut nodes: Vec<String> = existing
            .iter()
            .take(NODE_REASONS_MAX)
            .map(|it| format!("{}: {}", count(it.nodes, "node"), it.text))
            .collect();
        if let Some(rest) = existing.get(NODE_REASONS_MAX..).filter(|rest| !rest.is_empty()) {
            nodes.push(format!("{} for other reasons", count(rest.iter().map(|it| it.nodes).sum(), "node")));
        }
        for (index, line) in nodes.iter().enumerate() {
            self.row(if index == 0 { "that exist" } else { "" }, line);
        }
        match change {
            // A change is tried for one pod, and each of several may need as much again.
            Some(change) => {
                let tried = if alike > 1 { format!("tried for one of the {alike}") } else { "tried".to_owned() };
                self.toned("would help", &format!("{change} ({tried})"), Tone::Created);
            }
            None if reasons.iter().any(|reason| !reason.node_pool.is_empty()) => {
                self.row("would help", "none of the few changes that were tried");
            }
            None => {}
        }
    }
}
