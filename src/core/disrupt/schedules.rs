//! Schedules of budgets in the dialect that Karpenter reads: robfig/cron's standard parser. croner, which finds when they strike,
//! reads another one, so it is given what was read, number by number.
//!
//! Source: `github.com/robfig/cron/v3`, `getField` and `getRange` of `parser.go`, `dayMatches` of `spec.go`.

use std::collections::BTreeSet;

use croner::Cron;
use jiff::Zoned;

/// A schedule that was read.
pub struct Schedule {
    cron: Cron,
    /// Whether one of its months has one of its days. croner looks for those of the others until its last year, a tenth of a second long.
    ever_strikes: bool,
}

impl Schedule {
    /// When it strikes next, by the wall clock of the moment's zone.
    pub fn next(&self, from: &Zoned, inclusive: bool) -> Option<Zoned> {
        self.ever_strikes.then(|| self.cron.find_next_occurrence(from, inclusive).ok()).flatten()
    }
}

/// Why a schedule can not be read, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    pub problem: String,
    pub hint: Option<String>,
}

impl Misread {
    /// What is none of the numbers that there are.
    fn beyond(problem: String) -> Self {
        Self { problem, hint: bounds() }
    }
}

struct Field {
    name: &'static str,
    first: u32,
    last: u32,
    /// In the order of the numbers.
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Field; 5] = [
    Field { name: "minute", first: 0, last: 59, names: &[] },
    Field { name: "hour", first: 0, last: 23, names: &[] },
    Field { name: "day of month", first: 1, last: 31, names: &[] },
    Field { name: "month", first: 1, last: 12, names: &MONTHS },
    Field { name: "day of week", first: 0, last: 6, names: &DAYS },
];

/// Names such as `@daily` as five fields.
pub fn standard(schedule: &str) -> String {
    let fields = match schedule.trim() {
        "@annually" | "@yearly" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        fields => fields,
    };
    fields.to_owned()
}

/// Five fields, or one of the names that [`standard`] knows. O(length + 60).
pub fn read(schedule: &str) -> Result<Schedule, Misread> {
    let schedule = standard(schedule);
    let written: Vec<&str> = schedule.split_whitespace().collect();
    if written.len() != FIELDS.len() {
        let problem = format!("{} fields, where there are {}", written.len(), FIELDS.len());
        return Err(Misread { problem, hint: bounds() });
    }
    let fields: Result<Vec<String>, Misread> =
        FIELDS.iter().zip(written).map(|(field, text)| field.in_numbers(text)).collect();
    let fields = fields?;
    let cron = fields.join(" ").parse().map_err(|error: croner::errors::CronError| Misread {
        problem: error.to_string().to_lowercase(),
        hint: bounds(),
    })?;
    Ok(Schedule { cron, ever_strikes: ever_strikes(&fields) })
}

/// Whether the months of a schedule have its days: `0 0 30 2 *` waits for a day that never comes. On weekdays, all months have those.
fn ever_strikes(fields: &[String]) -> bool {
    let [_, _, days, months, weekdays] = fields else { return true };
    let numbers = |text: &str, all: std::ops::RangeInclusive<u32>| -> Vec<u32> {
        if text == "*" { all.collect() } else { text.split(',').filter_map(|number| number.parse().ok()).collect() }
    };
    let longest = |month: &u32| match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let first = numbers(days, 1..=31).into_iter().min().unwrap_or(1);
    weekdays != "*" || numbers(months, 1..=12).iter().map(longest).any(|last| first <= last)
}

fn bounds() -> Option<String> {
    Some("minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-6".to_owned())
}

impl Field {
    /// `*` where one part is a star, which matters for days: if one of the two is a star both must match, else one of them.
    fn in_numbers(&self, text: &str) -> Result<String, Misread> {
        let mut numbers = BTreeSet::new();
        let mut has_star = false;
        for part in text.split(',').filter(|part| !part.is_empty()) {
            has_star |= self.add(part, &mut numbers)?;
        }
        if numbers.is_empty() {
            return Err(Misread::beyond(format!("`{text}` is no {}", self.name)));
        }
        if has_star {
            return Ok("*".to_owned());
        }
        Ok(numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
    }

    /// Adds the numbers of `*`, `5`, `1-5`, `*/10`, `5/10` or `1-5/2`. Whether it counts as a star.
    fn add(&self, part: &str, numbers: &mut BTreeSet<u32>) -> Result<bool, Misread> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.number(step, part)?)),
            None => (part, None),
        };
        let is_star = matches!(range, "*" | "?");
        let (from, to) = match range.split_once('-') {
            _ if is_star => (self.first, self.last),
            Some((from, to)) => (self.value(from, part)?, self.value(to, part)?),
            // `5/10`: every 10 from 5 on.
            None if step.is_some() => (self.value(range, part)?, self.last),
            None => (self.value(range, part)?, self.value(range, part)?),
        };
        if step == Some(0) {
            return Err(Misread { problem: format!("a step of 0 as {}", self.name), hint: None });
        }
        for number in [from, to] {
            self.check(number)?;
        }
        if from > to {
            return Err(self.ends_before_it_begins(part, from, to));
        }
        let step = step.unwrap_or(1);
        numbers.extend((from..=to).step_by(usize::try_from(step).unwrap_or(usize::MAX)));
        Ok(is_star && step == 1)
    }

    /// A number or a name.
    fn value(&self, text: &str, part: &str) -> Result<u32, Misread> {
        let lower = text.to_ascii_lowercase();
        match (self.first..).zip(self.names).find(|(_, name)| **name == lower) {
            Some((number, _)) => Ok(number),
            None => self.number(text, part),
        }
    }

    fn number(&self, text: &str, part: &str) -> Result<u32, Misread> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_number);
        number.ok_or_else(|| match part.contains(['L', 'W', '#', 'l', 'w']) {
            true => Misread { problem: format!("Karpenter does not know `{part}` as {}", self.name), hint: None },
            false => Misread::beyond(format!("`{part}` is no {}", self.name)),
        })
    }

    fn check(&self, number: u32) -> Result<(), Misread> {
        let Self { name, first, last, names } = self;
        if (*first..=*last).contains(&number) {
            return Ok(());
        }
        let hint = match names.first() {
            Some(&"sun") if number == 7 => Some("write 0 for Sunday".to_owned()),
            _ => bounds(),
        };
        Err(Misread { problem: format!("the {name} goes from {first} to {last}"), hint })
    }

    fn ends_before_it_begins(&self, part: &str, from: u32, to: u32) -> Misread {
        let hint = match to {
            // `sat-sun`
            0 if from == self.last => format!("write {from},{to}"),
            0 => format!("Sunday is 0 and begins the week: write {from}-{},{to}", self.last),
            _ => format!("write {from}-{},{}-{to}", self.last, self.first),
        };
        Misread { problem: format!("`{part}` as {} ends before it begins", self.name), hint: Some(hint) }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, tz::TimeZone};

    use super::*;

    /// The first strikes after Friday, 2026-11-20, as `day hour:minute`.
    fn strikes(schedule: &str) -> Vec<String> {
        let from: Timestamp = "2026-11-20T00:00:00Z".parse().unwrap();
        let Ok(cron) = read(schedule) else { panic!("{schedule}") };
        let next = |after: &Zoned| cron.next(after, false);
        let first = next(&from.to_zoned(TimeZone::UTC));
        let all = std::iter::successors(first, next).take(3);
        all.map(|hit| hit.strftime("%d %H:%M").to_string()).collect()
    }

    #[test]
    fn both_days_must_match_where_one_is_a_star_and_else_one_of_them() {
        assert_eq!(strikes("0 0 13 * *"), ["13 00:00", "13 00:00", "13 00:00"]);
        assert_eq!(strikes("0 0 13 * */1"), ["13 00:00", "13 00:00", "13 00:00"]);
        assert_eq!(strikes("0 0 */1 * mon"), ["23 00:00", "30 00:00", "07 00:00"]);
        assert_eq!(strikes("0 0 ? * mon"), ["23 00:00", "30 00:00", "07 00:00"]);
        assert_eq!(strikes("0 0 1-31 * mon"), ["21 00:00", "22 00:00", "23 00:00"]);
        assert_eq!(strikes("0 0 24 * MON"), ["23 00:00", "24 00:00", "30 00:00"]);
        assert_eq!(strikes("0 0 13 * *,5"), ["13 00:00", "13 00:00", "13 00:00"]);
    }

    #[test]
    fn days_that_no_month_has_never_come() {
        for never in ["0 0 30 2 *", "0 0 30,31 feb *", "5 4 31 2,4,6,9,11 ?"] {
            let schedule = read(never).ok().unwrap();
            assert!(!schedule.ever_strikes, "{never}");
            assert_eq!(strikes(never), Vec::<String>::new());
        }
        for some_day in ["0 0 29 2 *", "0 0 30 2 mon", "0 0 31 2-3 *", "0 0 31 * *", "0 0 */31 2 *"] {
            assert!(read(some_day).ok().unwrap().ever_strikes, "{some_day}");
            assert_eq!(strikes(some_day).len(), 3, "{some_day}");
        }
    }

    #[test]
    fn a_number_with_a_step_goes_on_to_the_end() {
        assert_eq!(strikes("5/15 3 * * *"), ["20 03:05", "20 03:20", "20 03:35"]);
        assert_eq!(strikes("0 9/12 * * *"), ["20 09:00", "20 21:00", "21 09:00"]);
        assert_eq!(strikes("0-30/15,,45 3 * * *"), ["20 03:00", "20 03:15", "20 03:30"]);
    }

    #[test]
    fn a_range_never_ends_in_sunday() {
        for (schedule, hint) in [
            ("0 0 * * sat-sun", "write 6,0"),
            ("0 0 * * fri-sun", "Sunday is 0 and begins the week: write 5-6,0"),
            ("0 22-6 * * *", "write 22-23,0-6"),
        ] {
            let Err(misread) = read(schedule) else { panic!("{schedule}") };
            assert_eq!(misread.hint.as_deref(), Some(hint), "{}", misread.problem);
        }
    }

    #[test]
    fn refuses_what_karpenter_refuses() {
        for text in [
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "0 0 L * *",
            "0 0 15W * *",
            "* * * * 5#2",
            "* * * * 5L",
            "*/0 * * * *",
            "a b c d e",
            "5-1 * * * *",
            "1-2-3 * * * *",
            "1/2/3 * * * *",
            "-1 * * * *",
            "* * * *",
            ", * * * *",
            "99999999999 * * * *",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn accepts_what_karpenter_accepts() {
        for text in [
            "0 9 * * mon-fri",
            "*/15 0-6 1,15 JAN-MAR 0-6",
            "0 0 ? * *",
            "@daily",
            "@midnight",
            "@annually",
            "5 4 * * SUN",
            "0 22 * * 1-5",
            "0-30/5 * * * *",
            " 0 0 * * * ",
            "@daily ",
            "0 0 * * sun-sat",
            "0/99 * * * *",
        ] {
            assert!(read(text).is_ok(), "{text}: {:?}", read(text).err());
        }
    }
}
