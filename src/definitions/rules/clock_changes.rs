//! CL0413: schedules whose time of day a clock leaps over, or shows twice. Schedules of Karpenter's budgets are in UTC,
//! and no clock change meets them.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::Rule;
use super::budgets::{FIRST_SECOND, LAST_SECOND, is_formed, with_schedule};
use crate::core::disrupt::schedules::{self, Schedule};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub static CLOCK_CHANGE: Rule = Rule::document(
    "CL0413",
    "clock-change",
    Note,
    "A schedule names a time of day that each day has once by the clock of its time zone.",
    &[Kind::DisruptionBudget],
    clock_change,
);

pub static RULES: &[&Rule] = &[&CLOCK_CHANGE];

fn clock_change(document: &Document) -> Vec<Finding> {
    let zone = document.str("/spec/timeZone").and_then(|name| TimeZone::get(name).ok());
    let Some(zone) = zone else { return Vec::new() };
    let finding = |pointer: String| {
        let at = format!("{pointer}/schedule");
        let text = document.str(&at).filter(|text| is_formed(text) && names_hours(text))?;
        let message = what_happens(text, &schedules::read(text).ok()?, &zone)?;
        let finding = Finding::at(&CLOCK_CHANGE, document, &at, FindingPlace::Value, message);
        Some(finding.hint("choose another hour, or write the schedule in UTC and leave timeZone out"))
    };
    with_schedule(document).into_iter().filter_map(finding).collect()
}

/// A schedule that strikes in every hour, or every few hours, means no hour of the day.
fn names_hours(text: &str) -> bool {
    schedules::standard(text).split_whitespace().nth(1).is_some_and(|hours| !hours.starts_with(['*', '?']))
}

/// The first of the changes in two years that the schedule falls into.
fn what_happens(text: &str, schedule: &Schedule, zone: &TimeZone) -> Option<String> {
    let from = Timestamp::from_second(FIRST_SECOND).ok()?;
    let transitions = zone.following(from).map(|transition| transition.timestamp());
    let mut changes = transitions.take_while(|change| change.as_second() < LAST_SECOND);
    changes.find_map(|change| of_change(text, schedule, zone, change))
}

fn of_change(text: &str, schedule: &Schedule, zone: &TimeZone, change: Timestamp) -> Option<String> {
    let second = SignedDuration::from_secs(1);
    let (was, is) = (zone.to_offset(change.checked_sub(second).ok()?), zone.to_offset(change));
    let length = SignedDuration::from_secs(i64::from(is.seconds()) - i64::from(was.seconds()));
    let is_leap = length.is_positive();
    // The times, by the clock before the change, that are not there or come again.
    let (from, to) = match is_leap {
        true => (change, change.checked_add(length).ok()?),
        false => (change.checked_add(length).ok()?, change),
    };
    let old_clock = TimeZone::fixed(was);
    let falls = schedule.next(&from.to_zoned(old_clock.clone()), true).filter(|strike| strike.timestamp() < to);
    falls.filter(|_| !length.is_zero())?;
    let clock = |zone: &TimeZone| change.to_zoned(zone.clone()).strftime("%H:%M").to_string();
    let (before, after) = (clock(&old_clock), clock(zone));
    let day = change.to_zoned(zone.clone()).strftime("%Y-%m-%d").to_string();
    let name = zone.iana_name().unwrap_or_default();
    if !is_leap {
        let until = change.checked_sub(length).ok()?;
        let again = schedule.next(&change.to_zoned(zone.clone()), true).filter(|strike| strike.timestamp() < until);
        return again.is_none().then(|| {
            format!("`{text}` names a time that {name} has twice on {day}, from {after} to {before}: it strikes the first time alone")
        });
    }
    let strike = schedule.next(&change.checked_sub(second).ok()?.to_zoned(zone.clone()), false)?;
    let then = match strike.date() == change.to_zoned(zone.clone()).date() {
        true => format!("strikes at {}", strike.strftime("%H:%M")),
        false => "does not strike".to_owned(),
    };
    Some(format!("`{text}` names a time that {name} does not have on {day}, from {before} to {after}: it {then} then"))
}
