//! Budget windows, by looking at every minute: slow, and hard to get wrong.
//! Source: the cron dialect of `github.com/robfig/cron`, standard five fields.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};

/// Longer windows than this are taken for this long: a schedule comes round within it.
const WINDOW_MINUTES_MAX: u64 = 366 * 24 * 60;

/// Whether `now` lies in a window: the schedule struck at most `duration_seconds` ago, or never does, which for the reference is
/// always. An error where the schedule can not be read.
pub(super) fn is_open(schedule: &str, duration_seconds: u64, zone: &TimeZone, now: Timestamp) -> Result<bool, String> {
    if Schedule::parse(schedule)?.never_strikes() {
        return Ok(true);
    }
    struck(schedule, duration_seconds, zone, now)
}

/// Whether the schedule struck at most `duration_seconds` ago.
pub(super) fn struck(schedule: &str, duration_seconds: u64, zone: &TimeZone, now: Timestamp) -> Result<bool, String> {
    let schedule = Schedule::parse(schedule)?;
    let this_minute = now - SignedDuration::from_secs(now.as_second().rem_euclid(60));
    for minutes_ago in 0..=(duration_seconds / 60).min(WINDOW_MINUTES_MAX) {
        let ago = SignedDuration::from_mins(i64::try_from(minutes_ago).map_err(|error| error.to_string())?);
        let minute = this_minute - ago;
        let elapsed_seconds = u64::try_from(now.as_second() - minute.as_second()).unwrap_or(0);
        // The window begins with the strike and ends just before `duration` has passed.
        if elapsed_seconds < duration_seconds && schedule.strikes_at(&minute.to_zoned(zone.clone())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The values that each field allows.
struct Schedule {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    days: Vec<i8>,
    months: Vec<i8>,
    weekdays: Vec<i8>,
    any_day: bool,
    any_weekday: bool,
    is_time_of_day: bool,
}

impl Schedule {
    fn parse(text: &str) -> Result<Self, String> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(format!("{text:?} does not have five fields"));
        };
        const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        Ok(Self {
            minutes: field(minutes, 0, 59, &[])?,
            hours: field(hours, 0, 23, &[])?,
            days: field(days, 1, 31, &[])?,
            months: field(months, 1, 12, &MONTHS)?,
            weekdays: field(weekdays, 0, 6, &WEEKDAYS)?,
            any_day: days.starts_with(['*', '?']),
            any_weekday: weekdays.starts_with(['*', '?']),
            is_time_of_day: [minutes, hours].iter().all(|field| !field.contains(['*', '?', '/', ',', '-'])),
        })
    }

    /// Whether no month that it names has one of its days.
    fn never_strikes(&self) -> bool {
        let days_of = |month: i8| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        let least = self.days.iter().min().copied().unwrap_or(i8::MAX);
        let is_by_weekday = !self.any_day && !self.any_weekday;
        !is_by_weekday && self.months.iter().all(|month| days_of(*month) < least)
    }

    /// A time of day strikes once a day: of an hour that comes twice in the first, and where the clock leaps over it, when it has.
    /// What strikes every so many minutes or hours goes by the minutes that there are.
    fn strikes_at(&self, minute: &Zoned) -> bool {
        let civil = minute.datetime();
        if !self.is_time_of_day {
            return self.strikes(civil);
        }
        let came_before = civil.to_zoned(minute.time_zone().clone()).is_ok_and(|first| first < *minute);
        let before = (minute - SignedDuration::from_mins(1)).datetime();
        let mut leapt_over = civil.series(-Span::new().minutes(1)).skip(1).take_while(|skipped| *skipped > before);
        !came_before && (self.strikes(civil) || leapt_over.any(|skipped| self.strikes(skipped)))
    }

    /// Where both the day of the month and the day of the week are restricted, either will do.
    fn strikes(&self, minute: DateTime) -> bool {
        let day = self.days.contains(&minute.day());
        let weekday = self.weekdays.contains(&minute.weekday().to_sunday_zero_offset());
        let on_day = if self.any_day || self.any_weekday { day && weekday } else { day || weekday };
        on_day
            && self.minutes.contains(&minute.minute())
            && self.hours.contains(&minute.hour())
            && self.months.contains(&minute.month())
    }
}

/// `*`, `5`, `1-5`, `*/15`, `0-30/10`, `mon-fri`, and lists of these.
fn field(text: &str, least: i8, most: i8, names: &[&str]) -> Result<Vec<i8>, String> {
    let wrong = || format!("{text:?} is not a field of a schedule");
    let number = |text: &str| -> Result<i8, String> {
        let named = names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let number = match named {
            Some(index) => least.checked_add(i8::try_from(index).map_err(|_| wrong())?).ok_or_else(wrong)?,
            None => text.parse().map_err(|_| wrong())?,
        };
        if (least..=most).contains(&number) { Ok(number) } else { Err(wrong()) }
    };
    let mut values = Vec::new();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u8>().ok().filter(|step| *step > 0).ok_or_else(wrong)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None if matches!(range, "*" | "?") => (least, most),
            None if step.is_some() => (number(range)?, most),
            None => (number(range)?, number(range)?),
        };
        if first > last {
            return Err(wrong());
        }
        values.extend((first..=last).step_by(usize::from(step.unwrap_or(1))));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::disrupt::budgets::{PoolNodes, allowed_at};
    use crate::testing::pool_with_budgets;
    use cutlist_api::disruption_budget::DisruptionBudget;
    use cutlist_api::node_pool::DisruptionReason;

    fn open(schedule: &str, hours: u64, zone: &str, now: &str) -> bool {
        let zone = TimeZone::get(zone).unwrap();
        is_open(schedule, hours * 3600, &zone, now.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_window_begins_with_its_strike_and_ends_after_its_duration() {
        // 2026-11-20 is a Friday.
        assert!(open("0 9 * * mon-fri", 8, "UTC", "2026-11-20T09:00:00Z"));
        assert!(open("0 9 * * mon-fri", 8, "UTC", "2026-11-20T16:59:59Z"));
        assert!(!open("0 9 * * mon-fri", 8, "UTC", "2026-11-20T17:00:00Z"));
        assert!(!open("0 9 * * mon-fri", 8, "UTC", "2026-11-21T10:00:00Z"));
        assert!(open("0 9 * * *", 1, "Asia/Seoul", "2026-11-20T00:30:00Z"));
        assert!(!open("0 9 * * *", 1, "UTC", "2026-11-20T00:30:00Z"));
        assert!(open("@daily", 24, "UTC", "2026-11-20T23:59:00Z"));
        assert!(open("*/15 9-10 20 11 1", 1, "UTC", "2026-11-20T09:20:00Z"), "day of month or day of week");
    }

    #[test]
    fn a_schedule_that_never_strikes_is_always_in_force() {
        for never in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"] {
            assert!(open(never, 1, "UTC", "2026-11-20T12:00:00Z"), "{never}");
        }
        for rare in ["0 0 29 2 *", "0 0 31 2,3 *", "0 0 30 2 mon"] {
            assert!(!open(rare, 1, "UTC", "2026-11-20T12:00:00Z"), "{rare}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_an_error() {
        for text in ["", "* * * *", "60 * * * *", "* * 0 * *", "*/0 * * * *", "5-1 * * * *", "a * * * *"] {
            assert!(is_open(text, 60, &TimeZone::UTC, Timestamp::UNIX_EPOCH).is_err(), "{text}");
        }
    }

    /// Whether a window denies now, as the planner says it and as it is said here.
    fn denied(schedule: &str, duration: &str, zone: &str, now: Timestamp) -> (bool, bool) {
        let pool = pool_with_budgets(serde_json::json!([]));
        let budget: DisruptionBudget = serde_json::from_value(serde_json::json!({
            "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget", "metadata": { "name": "b" },
            "spec": { "denyWindows": [{ "schedule": schedule, "duration": duration }], "timeZone": zone },
        }))
        .unwrap();
        let seconds = budget.spec.deny_windows[0].duration.seconds().unwrap();
        let nodes = BTreeMap::from([("a".to_owned(), PoolNodes { counted: 5, ..PoolNodes::default() })]);
        let planned = allowed_at(&[pool], &[budget], &nodes, now)["a"][&DisruptionReason::Empty].nodes == Some(0);
        (planned, struck(schedule, seconds, &TimeZone::get(zone).unwrap(), now).unwrap())
    }

    /// Clocks go forward in New York on 2026-03-08, when half past two does not come, and back on 2026-11-01, when half past one
    /// comes twice; in Lord Howe it is half an hour.
    #[test]
    fn planner_and_checker_agree_through_the_changes_of_the_clocks() {
        for (zone, from) in [
            ("America/New_York", "2026-03-08T04:00:00Z"),
            ("America/New_York", "2026-11-01T03:00:00Z"),
            ("Australia/Lord_Howe", "2026-04-04T13:00:00Z"),
            ("Australia/Lord_Howe", "2026-10-03T13:00:00Z"),
        ] {
            for (schedule, duration) in
                [("30 2 * * *", "1h"), ("30 1 * * *", "30m"), ("0 2 * * *", "2h"), ("0 0 * * *", "4h")]
            {
                let from: Timestamp = from.parse().unwrap();
                for minutes in (0..420).step_by(5) {
                    let now = from + SignedDuration::from_mins(minutes);
                    let (planned, checked) = denied(schedule, duration, zone, now);
                    assert_eq!(planned, checked, "{schedule} for {duration} in {zone} at {now}");
                }
            }
        }
    }
}
