//! When the schedules of budgets strike, and how long their windows stay open.
//! Behaviour: reference, section 4.6.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use cutlist_api::duration::NillableDuration;

use super::schedules::{self, Schedule};

/// Longer windows are taken for this long: a schedule has come round by then, and opened another.
const WINDOW_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);
/// No schedule fires more often.
const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Whether a schedule fired within a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firing {
    Within,
    Later,
    Never,
    Unreadable,
}

/// A schedule with the duration of its windows and the zone of its clock, as a definition has them.
pub type Written<'a> = (&'a str, Option<&'a NillableDuration>, Option<&'a str>);

/// Whether the schedule fired within its duration before `now`.
pub fn firing((schedule, duration, time_zone): Written<'_>, now: Timestamp) -> Firing {
    let windows = Windows::read(schedule, duration, time_zone);
    let start = windows.as_ref().and_then(|windows| now.checked_sub(windows.length).ok());
    let (Some(windows), Some(start)) = (windows, start) else { return Firing::Unreadable };
    match windows.next_after(start) {
        Some(hit) if hit > now => Firing::Later,
        Some(_) => Firing::Within,
        None => Firing::Never,
    }
}

/// What was written, parsed.
struct Windows {
    schedule: Schedule,
    length: SignedDuration,
    zone: TimeZone,
}

impl Windows {
    fn read(schedule: &str, duration: Option<&NillableDuration>, time_zone: Option<&str>) -> Option<Self> {
        let zone = time_zone.map(TimeZone::get).transpose().ok()?.unwrap_or(TimeZone::UTC);
        let seconds = i64::try_from(duration?.seconds()?).unwrap_or(i64::MAX);
        let length = SignedDuration::from_secs(seconds).min(WINDOW_MAX);
        let schedule = schedules::read(schedule).ok()?;
        Some(Self { schedule, length, zone })
    }

    /// The first hit after a moment, by the wall clock of the zone.
    fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        self.schedule.next(&moment.to_zoned(self.zone.clone()), false).map(|hit| hit.timestamp())
    }

    /// Of the hits from `hit` until then one of the later ones: of windows that touch only the last matters, and those between may be a
    /// minute apart in a year. O(log of the time between) lookups.
    fn later_until(&self, hit: Timestamp, until: Timestamp) -> Timestamp {
        let mut ahead = until.duration_since(hit) / 2;
        while ahead >= MINUTE {
            let later = hit.checked_add(ahead).ok().and_then(|probe| self.next_after(probe));
            if let Some(later) = later.filter(|later| *later <= until) {
                return later;
            }
            ahead /= 2;
        }
        hit
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
    /// From when on nothing fires any more.
    never_from: Option<Timestamp>,
}

impl Period {
    /// `from` and `to` are part of the period. O(windows in the period that do not touch, times the logarithm of their length).
    pub fn new<'a>(written: impl Iterator<Item = Written<'a>>, from: Timestamp, to: Timestamp) -> Self {
        let mut period = Self::default();
        for written in written {
            period.known.entry(key(written)).or_insert_with(|| Opened::walk(written, from, to));
        }
        period
    }

    /// As [`firing`], for a moment of the period. What it was not told of can not be read.
    pub fn firing(&self, written: Written<'_>, moment: Timestamp) -> Firing {
        self.known.get(&key(written)).map_or(Firing::Unreadable, |opened| opened.at(moment))
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
        let span = windows.length;
        let Ok(mut last) = from.checked_sub(span) else { return opened };
        opened.is_readable = true;
        // Ends: each hit is later than the one before, and the period has an end.
        while last <= to {
            let Some(mut hit) = windows.next_after(last) else {
                opened.never_from = Some(last.checked_add(span).unwrap_or(Timestamp::MAX));
                break;
            };
            let touched = opened.spans.last_mut().filter(|(_, until)| *until >= hit);
            if let Some((_, until)) = &touched {
                hit = windows.later_until(hit, *until);
            }
            let close = hit.checked_add(span).unwrap_or(Timestamp::MAX);
            match touched {
                Some((_, until)) => *until = close,
                None => opened.spans.push((hit, close)),
            }
            if close > to {
                // Open until the period is over.
                break;
            }
            last = hit;
        }
        opened
    }

    fn at(&self, moment: Timestamp) -> Firing {
        if !self.is_readable {
            return Firing::Unreadable;
        }
        if self.never_from.is_some_and(|since| moment >= since) {
            return Firing::Never;
        }
        let opened = self.spans.partition_point(|(open, _)| *open <= moment);
        let is_open = opened.checked_sub(1).and_then(|last| self.spans.get(last)).is_some_and(|(_, to)| moment < *to);
        if is_open { Firing::Within } else { Firing::Later }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Span;

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
            for (schedule, duration) in SCHEDULES.iter().flat_map(|it| ["2m", "3h", "20h"].map(|time| (*it, time))) {
                let duration: NillableDuration = duration.parse().unwrap();
                let written = (schedule, Some(&duration), zone);
                let period = Period::new(std::iter::once(written), from, at(1_000));
                for minute in (200..700).step_by(7) {
                    let (moment, what) = (at(minute), format!("{written:?} at {}", at(minute)));
                    assert_eq!(period.firing(written, moment), firing(written, moment), "{what}");
                }
            }
        }
        // A pattern takes any number of digits, and the longest of them is as good as a year.
        let from: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
        for duration in ["9999999999h", "5124095576030431h", "18446744073709551615s", "2562047h", "8784h"] {
            let duration: NillableDuration = duration.parse().unwrap();
            for schedule in ["* * * * *", "@daily", "* 0-11 * 1-6 *"] {
                let written = (schedule, Some(&duration), None);
                let period =
                    Period::new(std::iter::once(written), from, from.checked_add(Span::new().hours(720)).unwrap());
                assert_eq!((period.firing(written, from), firing(written, from)), (Firing::Within, Firing::Within));
                assert!(period.edges(written).count() <= 4, "{written:?}");
            }
        }
        let written = ("0 0 30 2 *", Some(&"1h".parse().unwrap()), None);
        let period = Period::new(std::iter::once(written), from, from);
        assert_eq!((period.firing(written, from), firing(written, from)), (Firing::Never, Firing::Never));
    }
}
