//! CL0416: budgets of a pool that never count, because another one is as strict or stricter whenever they are in force.

use serde_json::Value;

use super::Rule;
use super::budgets::{REASONS, Window, is_of_none, speaks_of};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub static SHADOWED: Rule = Rule::document(
    "CL0416",
    "shadowed-budget",
    Note,
    "Each budget of a pool is the strictest one at some time, for some reason.",
    &[Kind::NodePool],
    shadowed,
);

pub static RULES: &[&Rule] = &[&SHADOWED];

fn shadowed(document: &Document) -> Vec<Finding> {
    let budgets: Vec<Budget<'_>> = document
        .items("/spec/disruption/budgets")
        .filter_map(|(pointer, value)| Budget::of(document, pointer, value))
        .collect();
    let mut findings = Vec::new();
    for (position, budget) in budgets.iter().enumerate() {
        let others = budgets.iter().enumerate().filter(|(other, _)| *other != position);
        // The later one of two that are alike is one too many.
        let is_before = |other: usize, it: &Budget<'_>| other < position || !budget.shadows(it);
        let Some((_, other)) = others.filter(|(_, it)| it.shadows(budget)).find(|(other, it)| is_before(*other, it))
        else {
            continue;
        };
        let message = format!(
            "the budget never counts: the one with `nodes: {}` is in force whenever it is, and lets no more nodes go",
            other.written
        );
        let at = format!("{}/nodes", budget.pointer);
        let finding = Finding::at(&SHADOWED, document, &at, FindingPlace::Value, message);
        let finding = finding.related(document, &format!("{}/nodes", other.pointer), "the other one");
        findings.push(finding.hint(
            "budgets only restrict, and the strictest counts: give the other one reasons or hours that leave this one out, or remove one of them",
        ));
    }
    findings
}

/// How many nodes a budget lets go.
#[derive(Clone, Copy)]
enum Amount {
    Nodes(u64),
    Percent(u64),
}

impl Amount {
    fn of(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(share) => share.parse().ok().map(Self::Percent),
            None => text.parse().ok().map(Self::Nodes),
        }
    }

    /// Whether it lets no more nodes go than the other one, however many there are.
    fn is_at_most(self, other: Self) -> bool {
        match (self, other) {
            (Self::Nodes(0) | Self::Percent(0), _) | (_, Self::Percent(100)) => true,
            (Self::Nodes(one), Self::Nodes(two)) | (Self::Percent(one), Self::Percent(two)) => one <= two,
            (Self::Nodes(_), Self::Percent(_)) | (Self::Percent(_), Self::Nodes(_)) => false,
        }
    }
}

struct Budget<'d> {
    pointer: String,
    value: &'d Value,
    written: &'d str,
    amount: Amount,
    /// Schedule and duration.
    written_window: [Option<&'d str>; 2],
    /// The window that the schedule and the duration make, where they can be read.
    window: Option<Window>,
}

impl<'d> Budget<'d> {
    fn of(document: &Document, pointer: String, value: &'d Value) -> Option<Self> {
        let text = |field: &str| value.get(field).and_then(Value::as_str);
        let written = text("nodes")?;
        let window = Window::at(document, &pointer);
        let written_window = ["schedule", "duration"].map(text);
        Some(Self { pointer, value, written, amount: Amount::of(written)?, written_window, window })
    }

    fn has_window(&self) -> bool {
        self.written_window.iter().any(Option::is_some)
    }

    fn shadows(&self, other: &Self) -> bool {
        // The budget freezes the pool for now, and other rules speak of that. The budgets that hold once it thaws are
        // right to be there.
        if is_of_none(self.value) && !self.has_window() || !self.amount.is_at_most(other.amount) {
            return false;
        }
        let mut reasons = REASONS.into_iter().filter(|reason| speaks_of(other.value, reason)).peekable();
        if reasons.peek().is_none() || !reasons.all(|reason| speaks_of(self.value, reason)) {
            return false;
        }
        if !self.has_window() || self.written_window == other.written_window {
            return true;
        }
        self.window.as_ref().zip(other.window.as_ref()).is_some_and(|(outer, inner)| is_within(inner, outer))
    }
}

/// At most this many openings of a window are looked at. Of schedules that strike more often nothing is said.
const STRIKES_MAX: usize = 9_000;

/// Whether one window is open only while the other is. The first openings show it for most windows that are not.
fn is_within(inner: &Window, outer: &Window) -> bool {
    let Some((inner_seconds, outer_seconds)) = inner.duration_seconds().zip(outer.duration_seconds()) else {
        return false;
    };
    let mut outer = outer.strikes().take(STRIKES_MAX).map(|from| (from, from.saturating_add(outer_seconds))).peekable();
    // Nobody has seen what the outer window did before.
    let Some((first, _)) = outer.peek().copied() else { return false };
    let inner = inner.strikes().skip_while(|from| *from < first).take(STRIKES_MAX);
    let mut inner = inner.map(|from| (from, from.saturating_add(inner_seconds))).peekable();
    inner.peek().is_some() && cover(outer, inner)
}

/// Whether each of the inner spans is within the outer ones, which may overlap. Both ascend.
fn cover(mut outer: impl Iterator<Item = (i64, i64)>, mut inner: impl Iterator<Item = (i64, i64)>) -> bool {
    let mut open: Option<(i64, i64)> = None;
    inner.all(|(from, to)| {
        loop {
            if open.is_some_and(|(first, last)| first <= from && to <= last) {
                return true;
            }
            let Some((next, end)) = outer.next() else { return false };
            let joined = open.filter(|(_, last)| next <= *last).map(|(first, last)| (first, last.max(end)));
            let (first, last) = joined.unwrap_or((next, end));
            if first > from {
                return false;
            }
            open = Some((first, last));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_covered_by_what_reaches_around_them() {
        let outer = [(0, 7), (5, 10), (20, 30)];
        for (inner, expected) in [
            (vec![(0, 10)], true),
            (vec![(2, 4), (5, 10), (20, 21)], true),
            (vec![(9, 11)], false),
            (vec![(10, 20)], false),
            (vec![(20, 31)], false),
            (vec![(40, 41)], false),
            (vec![], true),
        ] {
            assert_eq!(cover(outer.into_iter(), inner.clone().into_iter()), expected, "{inner:?}");
        }
    }

    #[test]
    fn shares_and_numbers_are_compared_where_that_holds_for_any_number_of_nodes() {
        for (one, other, expected) in [
            ("0", "5", true),
            ("0%", "5", true),
            ("5", "5", true),
            ("6", "5", false),
            ("10%", "50%", true),
            ("10%", "5", false),
            ("5", "10%", false),
            ("5", "100%", true),
            ("100%", "10%", false),
        ] {
            let amount = |text| Amount::of(text).unwrap();
            assert_eq!(amount(one).is_at_most(amount(other)), expected, "{one} {other}");
        }
    }
}
