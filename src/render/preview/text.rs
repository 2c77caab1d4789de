//! A preview on a terminal: a line for each cluster, then what was planned for it. At most [`COLUMNS`] wide.

use crate::api::preview::{Preview, PreviewCause, PreviewTarget, PreviewVerdict};
use crate::core::plan::Plan;
use crate::render::plan::{self, REVISION_DIGITS, reference_beside, short};
use crate::render::terminal::{COLUMNS, Style, Tone, clean, labelled, left, width, wrap};

use super::page::verdict;
use super::sentences::{dated, of_signatures as sentences_of, of_snapshot, warning};

const LABEL_COLUMNS: usize = 11;
/// Columns of names. A longer name does not move the other headlines.
const NAME_COLUMNS_MAX: usize = 30;
const CAUSES_MAX: usize = 20;

/// The preview for people. `plans`: in the order of the targets, for those that have one.
pub fn text(preview: &Preview, plans: &[Option<Plan>], style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    let revision = |id: &str, reference: &str| match reference_beside(id, reference) {
        None => short(id, REVISION_DIGITS),
        Some(reference) => format!("{} ({})", short(id, REVISION_DIGITS), clean(reference)),
    };
    let (base, head) = (&preview.base, &preview.head);
    page.line(
        "Preview",
        &format!("{} merged into {}", revision(&head.id, &head.reference), revision(&base.id, &base.reference)),
    );
    page.signatures(preview);
    page.text.push('\n');
    if preview.targets.len() > 1 {
        page.table(preview);
    }
    for (index, target) in preview.targets.iter().enumerate() {
        page.target(target, plans.get(index).and_then(Option::as_ref));
    }
    page.text
}

struct Page {
    style: Style,
    text: String,
}

impl Page {
    fn line(&mut self, label: &str, text: &str) {
        self.text.push_str(&labelled(self.style, label, LABEL_COLUMNS, text));
    }

    fn signatures(&mut self, preview: &Preview) {
        let Some(signatures) = &preview.signatures else { return };
        if signatures.unsigned.is_empty() {
            self.line("Signatures", "all commits are signed by who must have");
        }
        for sentence in sentences_of(signatures) {
            self.line("Signatures", &clean(&sentence));
        }
    }

    fn table(&mut self, preview: &Preview) {
        let widest = preview.targets.iter().map(|target| width(&name(target))).max().unwrap_or(0).min(NAME_COLUMNS_MAX);
        for target in &preview.targets {
            let head = format!("  {}  {}  ", left(&name(target), widest), left(verdict(target), "untouched".len()));
            let indent = width(&head);
            for (row, line) in wrap(&clean(&dated(target)), COLUMNS.saturating_sub(indent).max(20)).iter().enumerate() {
                let head = if row == 0 { head.clone() } else { " ".repeat(indent) };
                self.text.push_str(format!("{head}{line}").trim_end());
                self.text.push('\n');
            }
        }
        self.text.push('\n');
    }

    fn target(&mut self, target: &PreviewTarget, plan: Option<&Plan>) {
        let title = format!("Cluster {}", name(target));
        let title = self.style.paint(Tone::Strong, &title);
        self.text.push_str(&format!("{title}\n"));
        if let Some(warning) = target.snapshot.as_ref().and_then(warning) {
            self.line("warning", &warning);
        }
        self.line(verdict(target), &target.headline);
        self.causes(target);
        for (index, sentence) in target.next_24_hours.iter().enumerate() {
            self.line(if index == 0 { "24 hours" } else { "" }, sentence);
        }
        for held in &target.held_back {
            let Some(since) = &held.since else { continue };
            // Only nodes that are held back anyway were so before the change.
            let nodes = plan::count(usize::try_from(held.anyway).unwrap_or(0), "node");
            self.line("stays", &format!("{nodes} {}, since {since}", held.code));
        }
        if let Some(snapshot) = &target.snapshot {
            self.line("from", &of_snapshot(snapshot));
        }
        self.text.push('\n');
        if let Some(plan) = plan.filter(|_| target.verdict != PreviewVerdict::Untouched) {
            let digest = target.plan.as_ref().map_or("", |plan| &plan.digest);
            self.text.push_str(&plan::within_preview(plan, digest, self.style));
            self.text.push('\n');
        }
    }
}

impl Page {
    fn causes(&mut self, target: &PreviewTarget) {
        let (placed, placeless): (Vec<&PreviewCause>, Vec<&PreviewCause>) =
            target.causes.iter().partition(|cause| !cause.path.is_empty());
        let shown = placed.iter().take(CAUSES_MAX);
        let mut lines: Vec<String> =
            shown.map(|cause| format!("{}:{}: {}", cause.path, cause.line, cause.text)).collect();
        let more = placed.len().saturating_sub(CAUSES_MAX);
        if more > 0 {
            lines.push(format!("and {}", plan::count(more, "more place")));
        }
        lines.extend(placeless.into_iter().map(|cause| cause.text.clone()));
        for (index, line) in lines.iter().enumerate() {
            self.line(if index == 0 { "because" } else { "" }, line);
        }
    }
}

fn name(target: &PreviewTarget) -> String {
    match target.environment.as_str() {
        "" => clean(&target.cluster),
        environment => clean(&format!("{} {environment}", target.cluster)),
    }
}
