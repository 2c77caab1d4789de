//! The plan on a terminal: what happens to the nodes, what does not and why, what it costs. At most [`COLUMNS`] wide.

mod facts;
mod nodes;
mod report;

use crate::core::plan::{Plan, Step};
use crate::core::preview::{DIGEST_DIGITS, caused_steps, steps_anyway, steps_taken_away};
use crate::render::terminal::{COLUMNS, Style, Tone, clean, clip, left, width, wrap};

use super::{PLAN_DIGITS, revision, short};

pub(super) use report::{counts, longest_drain};

pub(in crate::render) use report::budget;

/// The plan for people. Coloured text holds ANSI codes, which the caller takes out again for what is no terminal.
pub fn text(plan: &Plan, style: Style) -> String {
    let mut fields = vec![("Plan", short(&plan.id, PLAN_DIGITS)), ("revision", revision(&plan.revision))];
    if let Some(against) = &plan.against {
        fields.push(("against", revision(&against.revision)));
    }
    fields.push(("cluster", plan.cluster.clone()));
    below(fields, plan, style)
}

/// The plan of a preview, which says before it which cluster and which revisions it is about. `digest`: what people approve it by.
pub(in crate::render) fn within_preview(plan: &Plan, digest: &str, style: Style) -> String {
    below(vec![("Plan", short(digest, DIGEST_DIGITS))], plan, style)
}

fn below(fields: Vec<(&'static str, String)>, plan: &Plan, style: Style) -> String {
    let mut page = Page { style, text: String::new() };
    header(fields, plan, &mut page);
    page.blank();
    facts::by_class(plan, &mut page);
    steps(plan, &mut page);
    report::placements(plan, &mut page);
    report::pending(plan, &mut page);
    report::held_back(plan, &mut page);
    report::risks(plan, &mut page);
    report::notes(plan, &mut page);
    report::summary(plan, &mut page);
    page.text
}

/// `Plan 7c1f2e  revision 3f2a91c (main)  cluster demo  prices 2026-11-20`
fn header(mut fields: Vec<(&'static str, String)>, plan: &Plan, page: &mut Page) {
    fields.push(("prices", plan.catalog_date.clone()));
    if plan.packing != "cheapest" {
        fields.push(("packing", plan.packing.clone()));
    }
    let mut columns = 0;
    let mut line = String::new();
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        let value = clip(&clean(&value), COLUMNS - width(name) - 1);
        let field_columns = width(name) + 1 + width(&value);
        if columns > 0 && columns + 2 + field_columns > COLUMNS {
            page.line(&line);
            (line, columns) = (String::new(), 0);
        }
        if columns > 0 {
            line.push_str("  ");
            columns += 2;
        }
        columns += field_columns;
        let painted = page.style.paint(if name == "Plan" { Tone::Strong } else { Tone::Plain }, &value);
        line.push_str(&format!("{} {painted}", page.style.paint(Tone::Dim, name)));
    }
    page.line(&line);
}

fn steps(plan: &Plan, page: &mut Page) {
    if plan.against.is_none() {
        if plan.steps.is_empty() {
            page.line("  nothing to do");
            page.blank();
        }
        nodes::section(&plan.steps.iter().collect::<Vec<_>>(), page);
        return;
    }
    let (caused, anyway) = (caused_steps(plan).collect(), steps_anyway(plan));
    let gone: Vec<&Step> = steps_taken_away(plan).iter().collect();
    let sections = [("because of this change", caused), ("would happen anyway", anyway), ("no longer planned", gone)];
    let mut empty = true;
    for (title, steps) in sections {
        if steps.is_empty() {
            continue;
        }
        empty = false;
        page.title(title);
        page.blank();
        nodes::section(&steps, page);
    }
    if empty {
        page.line("  nothing to do");
        page.blank();
    }
}

/// Lines that were written so far.
struct Page {
    style: Style,
    text: String,
}

/// Columns of the word that says what a detail line is about.
const LABEL: usize = 9;

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn blank(&mut self) {
        self.text.push('\n');
    }

    fn title(&mut self, title: &str) {
        let title = self.style.paint(Tone::Strong, title);
        self.line(&title);
    }

    /// A dim label and a sentence, wrapped under itself.
    fn detail(&mut self, indent: usize, label: &str, sentence: &str, tone: Tone) {
        let gap = if label.ends_with(':') { 1 } else { 2 };
        let label_columns = LABEL.max(width(label) + gap);
        let hanging = indent + label_columns;
        for (index, part) in wrap(&clean(sentence), COLUMNS - hanging).iter().enumerate() {
            let label = if index == 0 { left(label, label_columns) } else { " ".repeat(label_columns) };
            let line = format!(
                "{}{}{}",
                " ".repeat(indent),
                self.style.paint(Tone::Dim, &label),
                self.style.paint(tone, part)
            );
            self.line(&line);
        }
    }
}
