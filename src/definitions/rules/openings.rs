//! CL0415: windows that leave nodes so little time to go that no replacement of one is there before they close again.

use std::collections::BTreeSet;
use std::iter::Peekable;

use super::Rule;
use super::ages::{GRACE_PERIOD, REGISTRATION_SECONDS, seconds};
use super::budgets::{FIRST_SECOND, LAST_SECOND, REASONS, Spans, Window, is_of_none, speaks_of, united, windows};
use crate::core::model::time::duration_text;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub static SHORT: Rule = Rule::document(
    "CL0415",
    "window-below-drain",
    Note,
    "Where budgets let nodes go at some hours alone, one can be replaced and drained in them.",
    &[Kind::NodePool, Kind::DisruptionBudget],
    short,
);

pub static RULES: &[&Rule] = &[&SHORT];

/// How long Karpenter waits for a replacement to join before it gives the replacement up. A node is drained only when
/// its replacement is there.
const ENOUGH_SECONDS: i64 = REGISTRATION_SECONDS.cast_signed();

/// At most this many openings of windows are looked at. Of schedules that strike more often nothing is said.
const STRIKES_MAX: usize = 9_000;

fn short(document: &Document) -> Vec<Finding> {
    let is_over_pools = document.str("/kind") == Some(Kind::DisruptionBudget.name());
    let found = if is_over_pools { over_pools(document) } else { of_pool(document) };
    found.into_iter().collect()
}

/// The finding about the budgets of 0 nodes that are for one reason, or all.
fn of_pool(document: &Document) -> Option<Finding> {
    let closed: Vec<String> = document
        .items("/spec/disruption/budgets")
        .filter(|(_, budget)| is_of_none(budget))
        .map(|(pointer, _)| pointer)
        .collect();
    let mut seen = BTreeSet::new();
    REASONS.into_iter().find_map(|reason| {
        let speaks = |pointer: &&String| document.value.pointer(pointer).is_some_and(|it| speaks_of(it, reason));
        let of_reason: Vec<&String> = closed.iter().filter(speaks).collect();
        let last = of_reason.last()?;
        if !seen.insert(of_reason.clone()) {
            return None;
        }
        let windows: Option<Vec<Window>> = of_reason.iter().map(|pointer| Window::at(document, pointer)).collect();
        let longest = longest_gap(&windows?)?;
        let is_of_all = of_reason.iter().all(|pointer| document.value.pointer(&format!("{pointer}/reasons")).is_none());
        let whom = if is_of_all { String::new() } else { format!(" for {reason}") };
        finding(document, longest, &whom, &format!("{last}/duration"))
    })
}

fn finding(document: &Document, longest: i64, whom: &str, place: &str) -> Option<Finding> {
    let grace = seconds(document, GRACE_PERIOD);
    let ends_in_time = grace.is_some_and(|grace| i64::try_from(grace).is_ok_and(|grace| grace <= longest));
    if longest == 0 || longest >= ENOUGH_SECONDS || ends_in_time {
        return None;
    }
    let drain = document.str(GRACE_PERIOD).map(|grace| format!(", and a drain may take {grace}")).unwrap_or_default();
    let message = format!(
        "nodes may begin to go for {} at a time{whom}: a replacement alone has 15m to join{drain}; what has begun goes on when the window has closed, and little follows it",
        duration_text(longest)
    );
    let finding = Finding::at(&SHORT, document, place, FindingPlace::Value, message);
    Some(finding.hint("leave an hour or more; what is to end when a window closes must begin well before"))
}

/// The longest time that windows leave, in seconds; `None` where it is enough, or not known.
fn longest_gap(windows: &[Window]) -> Option<i64> {
    let mut openings = Vec::new();
    for window in windows {
        let duration = window.duration_seconds()?;
        let mut spans = window.strikes().map(move |from| (from, from.saturating_add(duration))).peekable();
        // A window that never opens counts as always open, and another rule says so.
        spans.peek()?;
        openings.push(spans);
    }
    let (mut longest, mut closed_to) = (0, next(&mut openings)?.1);
    for _ in 0..STRIKES_MAX {
        let Some((from, to)) = next(&mut openings) else { return Some(longest) };
        longest = longest.max(from - closed_to);
        if longest >= ENOUGH_SECONDS {
            return None;
        }
        closed_to = closed_to.max(to);
    }
    // Schedules come round in a year. A gap that has not shown by then does not show.
    (closed_to >= FIRST_SECOND).then_some(longest)
}

/// The span that begins first.
fn next(openings: &mut [Peekable<impl Iterator<Item = (i64, i64)>>]) -> Option<(i64, i64)> {
    let first = openings.iter_mut().filter_map(|spans| Some((*spans.peek()?, spans)));
    first.min_by_key(|(span, _)| *span)?.1.next()
}

/// The finding about the windows of a budget over pools.
fn over_pools(document: &Document) -> Option<Finding> {
    let (allow, deny) = (windows(document, "allowWindows"), windows(document, "denyWindows"));
    let last = if deny.is_empty() { allow.last()? } else { deny.last()? };
    let is_long = |pointer: &String| {
        let seconds = Window::at(document, pointer).and_then(|window| window.duration_seconds());
        seconds.is_some_and(|seconds| seconds >= ENOUGH_SECONDS)
    };
    if deny.is_empty() && allow.iter().any(is_long) {
        return None;
    }
    let open = |pointers: &[String]| -> Option<Vec<Spans>> {
        pointers.iter().map(|pointer| Window::at(document, pointer)?.open()).collect()
    };
    let allowed = if allow.is_empty() { vec![(FIRST_SECOND, LAST_SECOND)] } else { united(open(&allow)?) };
    let closed = united(vec![gaps(&allowed), united(open(&deny)?)]);
    let longest = gaps(&closed).into_iter().map(|(from, to)| to - from).max().unwrap_or_default();
    finding(document, longest, "", &format!("{last}/duration"))
}

/// What the spans leave of the two years.
fn gaps(spans: &Spans) -> Spans {
    let ends = std::iter::once(FIRST_SECOND).chain(spans.iter().map(|(_, to)| *to));
    let begins = spans.iter().map(|(from, _)| *from).chain(std::iter::once(LAST_SECOND));
    ends.zip(begins).filter(|(from, to)| from < to).collect()
}
