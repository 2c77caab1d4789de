//! `cutlist lint`

mod baselines;
mod changed;
mod fixing;
mod outputs;
pub(super) mod places;
pub(super) mod sets;

use std::collections::BTreeMap;

use super::arguments::{FailOnArgument, LintArguments};
use super::exit::{Failure, Outcome};
use super::output;
use super::{inputs, settings};
use crate::api::lint_settings::FailOn;
use crate::definitions::{self, Before, Definitions, Severity, fingerprint};
use crate::render::diagnostics::{self as render, LintReport};
use baselines::Baselines;
use changed::Base;
use places::Places;
use sets::Set;

pub fn run(arguments: &LintArguments) -> Result<Outcome, Failure> {
    output::refuse_one_place(&arguments.output, "-o sarif=cutlist.sarif -o text")?;
    if (arguments.fix || arguments.diff) && arguments.paths.iter().any(|path| inputs::is_stdin(path)) {
        let error = anyhow::anyhow!("what comes from standard input is in no file that could be fixed");
        return Err(Failure::usage(error).with_hint("name the files"));
    }
    let mut sets = sets::sets(&arguments.paths, None)?;
    if let Some(baseline) = &arguments.baseline {
        // It may lie among the definitions, and is none.
        sets.iter_mut().for_each(|set| set.leave_out(&baseline.to_string_lossy()));
    }
    let (since, against) = (arguments.changed_since.as_deref(), arguments.against.as_deref());
    let earlier = since.map(|reference| Earlier::read(arguments, reference)).transpose()?;
    let base = earlier.as_ref().map(|earlier| Base::of(earlier, arguments));
    let named = against.filter(|against| Some(*against) != since);
    let named = named.map(|reference| Earlier::read(arguments, reference)).transpose()?;
    if let Some(earlier) = named.as_ref().or(earlier.as_ref()) {
        sets.iter_mut().zip(&earlier.sets).for_each(|(set, earlier)| set.know_files_of(earlier));
    }
    let before = named.or(earlier).map(|earlier| earlier.before).unwrap_or_default();
    let baselines = Baselines::read(arguments)?;
    let judge = |sets: &[Set]| {
        let mut report = found(sets, arguments, &before);
        if let Some(base) = &base {
            base.narrow(&mut report, sets);
        }
        baselines.apply(&mut report);
        report.rules = rules_of(&report);
        report
    };
    let mut report = judge(&sets);
    if arguments.write_baseline {
        return baselines.write(&report);
    }
    if arguments.fix || arguments.diff {
        let mut fixed = sets.clone();
        let (after, changes) = fixing::fix(&mut fixed, report.clone(), &judge);
        if arguments.diff {
            fixing::show(&changes)?;
            // Standard output has the patch and nothing else.
            output::say(&format!("with this patch: {}", render::summary(&after)));
        }
        if arguments.fix {
            fixing::write(&changes)?;
            (sets, report) = (fixed, after);
        }
    }
    let texts = sets::texts(&sets);
    let source = |path: &str| texts.get(path).copied();
    outputs::show(&arguments.output, &report, source, arguments.diff)?;
    Ok(if report.is_failed() { Outcome::Findings } else { Outcome::Clean })
}

/// The files of a commit, what was found in them, and what each set of them defined.
struct Earlier {
    sets: Vec<Set>,
    definitions: Vec<Definitions>,
    before: Vec<Before>,
}

impl Earlier {
    fn read(arguments: &LintArguments, reference: &str) -> Result<Self, Failure> {
        let sets = sets::sets(&arguments.paths, Some(reference))?;
        let read = |set: &Set| settings::lint_definitions_before(set.called(), arguments);
        let (definitions, before) = sets.iter().map(read).unzip();
        Ok(Self { sets, definitions, before })
    }
}

/// Everything that is found in the sets, with fingerprints. `before` has what each of them defined; where it has other ones, they were
/// divided otherwise, and all of it counts for each.
fn found(sets: &[Set], arguments: &LintArguments, before: &[Before]) -> LintReport {
    let is_same_division = before.len() == sets.len();
    let all = (!is_same_division).then(|| before.iter().cloned().reduce(Before::and).unwrap_or_default());
    let lint = |(index, set): (usize, &Set)| {
        let before = all.as_ref().unwrap_or_else(|| &before[index]);
        settings::lint_definitions(set.called(), arguments, before)
    };
    let definitions: Vec<Definitions> = sets.iter().enumerate().map(lint).collect();
    report(sets, &definitions, arguments)
}

fn report(sets: &[Set], definitions: &[Definitions], arguments: &LintArguments) -> LintReport {
    let mut report = LintReport::new();
    let mut least = None;
    for (set, definitions) in sets.iter().zip(definitions) {
        // Of several repositories the strictest decides.
        let own = severity(definitions.settings.lint.fail_on.unwrap_or(FailOn::Warning));
        least = least.max(own);
        report.add(definitions, |path| set.typed(path));
    }
    if !sets.is_empty() {
        report.fail_on = least;
    }
    if let Some(typed) = arguments.fail_on {
        report.fail_on = severity(match typed {
            FailOnArgument::Error => FailOn::Error,
            FailOnArgument::Warning => FailOn::Warning,
            FailOnArgument::Note => FailOn::Note,
            FailOnArgument::Never => FailOn::Never,
        });
    }
    report.sort();
    let texts = sets::texts(sets);
    let all = report.diagnostics.iter_mut().chain(report.suppressed.iter_mut().map(|it| &mut it.diagnostic));
    let mut places = Places::default();
    fingerprint::assign(all, |path| texts.get(path).copied(), |path| places.relative(path));
    report
}

/// The least severity that fails.
fn severity(fail_on: FailOn) -> Option<Severity> {
    match fail_on {
        FailOn::Error => Some(Severity::Error),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Note => Some(Severity::Note),
        FailOn::Never => None,
    }
}

/// The rules of which there are findings, by code.
fn rules_of(report: &LintReport) -> Vec<definitions::RuleDescription> {
    let all = report.diagnostics.iter().chain(report.suppressed.iter().map(|it| &it.diagnostic));
    let codes: BTreeMap<&str, ()> = all.map(|diagnostic| (diagnostic.code.as_str(), ())).collect();
    codes.into_keys().filter_map(definitions::rule_description).collect()
}
