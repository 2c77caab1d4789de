//! What EC2 says of what a plan launches and replaces, by class.

use crate::core::plan::{CloudFact, Plan, with_place};
use crate::render::plan::alike::by_class as grouped;
use crate::render::terminal::{COLUMNS, Tone, clean, left, width, wrap};

use super::Page;

/// Columns of a subject that its sentence stands beside. A longer one stands on a line of its own.
const SUBJECT_MAX: usize = 34;

/// Under the name of the class a line for each fact: its mark, what it is about, and the sentence wrapped under itself.
pub(super) fn by_class(plan: &Plan, page: &mut Page) {
    for (class, facts) in grouped(&plan.cloud_facts) {
        page.title(&if class.is_empty() { "EC2".to_owned() } else { format!("EC2NodeClass {}", clean(class)) });
        let columns = facts.iter().map(|fact| width(&clean(&fact.subject))).filter(|it| *it <= SUBJECT_MAX).max();
        facts.into_iter().for_each(|fact| line(fact, columns.unwrap_or_default(), page));
        page.blank();
    }
}

fn line(fact: &CloudFact, columns: usize, page: &mut Page) {
    let tone = match fact.code.mark() {
        '~' => Tone::Replaced,
        '!' => Tone::Removed,
        _ => Tone::Plain,
    };
    let subject = clean(&fact.subject);
    let head = format!("  {} {}", page.style.paint(tone, &fact.code.mark().to_string()), left(&subject, columns));
    let indent = 4 + columns + 2;
    let beside = width(&subject) <= columns;
    if !beside {
        page.line(&head);
    }
    let text = with_place(&fact.text, fact.definition.as_ref());
    for (index, part) in wrap(&clean(&text), COLUMNS - indent).iter().enumerate() {
        let before = if index == 0 && beside { format!("{head}  ") } else { " ".repeat(indent) };
        page.line(&format!("{before}{part}"));
    }
}
