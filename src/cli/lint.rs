//! `cutlist lint`

mod baselines;
mod changed;
mod fixing;
mod outputs;
mod sets;

use std::collections::BTreeMap;

use super::arguments::{FailOnArgument, LintArguments};
use super::exit::{Failure, Outcome};
use super::{inputs, settings};
use crate::api::lint_settings::FailOn;
use crate::definitions::{self, Before, Severity, fingerprint};
use crate::render::diagnostics::LintReport;
use baselines::Baselines;
use changed::Base;
use sets::Set;

/// Exit code for arguments that name nothing that can be read.
const USAGE: u8 = 2;

pub fn run(arguments: &LintArguments) -> Result<Outcome, Failure> {
    outputs::check(&arguments.output)?;
    if (arguments.fix || arguments.diff) && arguments.paths.iter().any(|path| inputs::is_stdin(path)) {
        let error = anyhow::anyhow!("what comes from standard input is in no file that could be fixed");
        return Err(Failure::usage(USAGE, error).with_hint("name the files"));
    }
    let mut sets = sets::sets(&arguments.paths, None)?;
    if let Some(baseline) = &arguments.baseline {
        // It may lie among the definitions, and is none.
        sets.iter_mut().for_each(|set| set.leave_out(&baseline.to_string_lossy()));
    }
    let before = before(arguments)?;
    let base = arguments.changed_since.as_deref().map(|reference| Base::read(arguments, reference)).transpose()?;
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
    let mut has_diff = false;
    if arguments.fix || arguments.diff {
        let mut fixed = sets.clone();
        let (after, changes) = fixing::fix(&mut fixed, report.clone(), &judge);
        has_diff = arguments.diff && fixing::show(&changes);
        if arguments.fix {
            fixing::write(&changes)?;
            (sets, report) = (fixed, after);
        }
    }
    let texts = sets::texts(&sets);
    let source = |path: &str| texts.get(path).copied();
    outputs::show(&arguments.output, &report, source, has_diff || arguments.diff)?;
    Ok(if report.is_failed() { Outcome::Findings } else { Outcome::Clean })
}

/// What each set defined at the commit that it is held against.
fn before(arguments: &LintArguments) -> Result<Vec<Before>, Failure> {
    let Some(reference) = arguments.against.as_deref().or(arguments.changed_since.as_deref()) else {
        return Ok(Vec::new());
    };
    let sets = sets::sets(&arguments.paths, Some(reference))?;
    Ok(sets.iter().map(|set| settings::definitions_before(&set.files, &arguments.definitions)).collect())
}

/// Everything that is found in the sets, with fingerprints. `before` has one for each set; where it has other ones, they were divided
/// otherwise, and all of it counts for each.
fn found(sets: &[Set], arguments: &LintArguments, before: &[Before]) -> LintReport {
    let mut report = LintReport::new();
    let mut least = None;
    let all = || before.iter().cloned().reduce(Before::and).unwrap_or_default();
    for (index, set) in sets.iter().enumerate() {
        let before = before.get(index).filter(|_| before.len() == sets.len()).cloned().unwrap_or_else(all);
        let definitions = settings::lint_definitions(&set.files, arguments, &before);
        // Of several repositories the strictest decides.
        let own = severity(definitions.settings.lint.fail_on.unwrap_or(FailOn::Warning));
        least = least.max(own);
        report.add(&definitions, |path| set.typed(path));
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
    fingerprint::assign(all, |path| texts.get(path).copied());
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
