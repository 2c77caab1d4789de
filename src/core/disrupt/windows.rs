//! When the schedules of budgets strike, and how long their windows stay open.
//! Behaviour: reference, section 4.6.

use std::collections::BTreeMap;

use croner::Cron;
use jiff::{Span, Timestamp, tz::TimeZone};

use crate::api::duration::NillableDuration;

use super::schedules;

/// Whether a schedule struck within a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    Within,
    Later,
    Never,
    Unreadable,
}

/// A schedule with the duration of its windows and the zone of its clock, as a definition has them.
pub type Written<'a> = (&'a str, Option<&'a NillableDuration>, Option<&'a str>);

/// Whether the schedule struck within its duration before `now`.
pub fn strike((schedule, duration, time_zone): Written<'_>, now: Timestamp) -> Strike {
    let windows = Windows::read(schedule, duration, time_zone);
    let start = windows.as_ref().and_then(|windows| now.checked_sub(Span::new().seconds(windows.seconds)).ok());
    let (Some(windows), Some(start)) = (windows, start) else { return Strike::Unreadable };
    match windows.next_after(start) {
        Some(hit) if hit > now => Strike::Later,
        Some(_) => Strike::Within,
        None => Strike::Never,
    }
}

/// What was written, parsed.
struct Windows {
    cron: Cron,
    seconds: i64,
    zone: TimeZone,
}

impl Windows {
    fn read(schedule: &str, duration: Option<&NillableDuration>, time_zone: Option<&str>) -> Option<Self> {
        let zone = time_zone.map(TimeZone::get).transpose().ok()?.unwrap_or(TimeZone::UTC);
        let seconds = i64::try_from(duration?.seconds()?).ok()?;
        let cron = schedules::read(schedule).ok()?;
        Some(Self { cron, seconds, zone })
    }

    /// The first hit after a moment, by the wall clock of the zone.
    fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        self.cron.find_next_occurrence(&moment.to_zoned(self.zone.clone()), false).ok().map(|hit| hit.timestamp())
    }
}

/// The schedules of a period, each parsed once and each hit looked for once.
#[derive(Clone, Debug, Default)]
pub struct Period {
    known: BTreeMap<(String, Option<u64>, Option<String>), Opened>,
}

/// When the windows of a schedule are open.
#[derive(Clone, Debug)]
struct Opened {
    is_readable: bool,
    /// From (included) and to (excluded), in order, none touching the next.
    spans: Vec<(Timestamp, Timestamp)>,
    /// From when on nothing strikes any more.
    never_from: Option<Timestamp>,
}

impl Period {
    /// `from` and `to` are part of the period. O(hits in the period).
    pub fn new<'a>(written: impl Iterator<Item = Written<'a>>, from: Timestamp, to: Timestamp) -> Self {
        let mut period = Self::default();
        for written in written {
            period.known.entry(key(written)).or_insert_with(|| Opened::walk(written, from, to));
        }
        period
    }

    /// As [`strike`], for a moment of the period. What it was not told of can not be read.
    pub fn strike(&self, written: Written<'_>, moment: Timestamp) -> Strike {
        self.known.get(&key(written)).map_or(Strike::Unreadable, |opened| opened.at(moment))
    }

    /// Moments at which a window opens or closes, in no order; before the period as well.
    pub fn edges(&self, written: Written<'_>) -> impl Iterator<Item = Timestamp> {
        let opened = self.known.get(&key(written));
        opened
            .into_iter()
            .flat_map(|opened| opened.spans.iter().flat_map(|(open, close)| [*open, *close]).chain(opened.never_from))
    }
}

fn key((schedule, duration, time_zone): Written<'_>) -> (String, Option<u64>, Option<String>) {
    (schedule.to_owned(), duration.and_then(NillableDuration::seconds), time_zone.map(str::to_owned))
}

impl Opened {
    fn walk((schedule, duration, time_zone): Written<'_>, from: Timestamp, to: Timestamp) -> Self {
        let mut opened = Self { is_readable: false, spans: Vec::new(), never_from: None };
        let Some(windows) = Windows::read(schedule, duration, time_zone) else { return opened };
        let span = Span::new().seconds(windows.seconds);
        let Ok(mut last) = from.checked_sub(span) else { return opened };
        opened.is_readable = true;
        // Ends: each hit is later than the one before, and the period has an end.
        while last <= to {
            let Some(hit) = windows.next_after(last) else {
                opened.never_from = Some(last.checked_add(span).unwrap_or(Timestamp::MAX));
                break;
            };
            let close = hit.checked_add(span).unwrap_or(Timestamp::MAX);
            match opened.spans.last_mut().filter(|(_, until)| *until >= hit) {
                Some((_, until)) => *until = close,
                None => opened.spans.push((hit, close)),
            }
            last = hit;
        }
        opened
    }

    fn at(&self, moment: Timestamp) -> Strike {
        if !self.is_readable {
            return Strike::Unreadable;
        }
        if self.never_from.is_some_and(|since| moment >= since) {
            return Strike::Never;
        }
        let opened = self.spans.partition_point(|(open, _)| *open <= moment);
        let is_open = opened.checked_sub(1).and_then(|last| self.spans.get(last)).is_some_and(|(_, to)| moment < *to);
        if is_open { Strike::Within } else { Strike::Later }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULES: [&str; 7] =
        ["30 2 * * *", "*/20 1-3 * * *", "@hourly", "7 0 25-31 * SUN", "whenever", "59 23 * * *", "*/7 * * * *"];

    /// Whatever the clock does: what was walked says at each moment what a look at that moment says.
    #[test]
    fn a_period_says_what_each_moment_says() {
        for (zone, from) in [
            (Some("Europe/Berlin"), "2026-10-24T20:00:00Z"),
            (Some("Europe/Berlin"), "2026-03-28T20:00:00Z"),
            (Some("Australia/Lord_Howe"), "2026-04-04T10:00:00Z"),
            (Some("Nowhere/Atall"), "2026-04-04T10:00:00Z"),
            (None, "2026-12-31T20:00:00Z"),
        ] {
            let from: Timestamp = from.parse().unwrap();
            let at = |minutes: i64| from.checked_add(Span::new().minutes(minutes)).unwrap();
            for (schedule, duration) in SCHEDULES.iter().flat_map(|it| ["2m", "3h"].map(|time| (*it, time))) {
                let duration: NillableDuration = duration.parse().unwrap();
                let written = (schedule, Some(&duration), zone);
                let period = Period::new(std::iter::once(written), from, at(1_000));
                for minute in (200..700).step_by(7) {
                    let (moment, what) = (at(minute), format!("{written:?} at {}", at(minute)));
                    assert_eq!(period.strike(written, moment), strike(written, moment), "{what}");
                }
            }
        }
        let written = ("0 0 30 2 *", Some(&"1h".parse().unwrap()), None);
        let from: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
        let period = Period::new(std::iter::once(written), from, from);
        assert_eq!((period.strike(written, from), strike(written, from)), (Strike::Never, Strike::Never));
    }
}
