//! Where each form of the report goes.

use std::collections::BTreeSet;

use crate::cli::arguments::{LintForm, LintOutput};
use crate::cli::exit::Failure;
use crate::cli::output::{self, Form};
use crate::render::diagnostics::{self as render, LintReport};

/// Standard output, as a file, takes one form: the second would be written over the first.
pub fn check(outputs: &[LintOutput]) -> Result<(), Failure> {
    if outputs.iter().filter(|output| output.file.is_none()).count() > 1 {
        let error = anyhow::anyhow!("two forms can not both go to standard output");
        return Err(Failure::usage(error).with_hint("give all but one a file: `-o sarif=cutlist.sarif -o text`"));
    }
    let mut files = BTreeSet::new();
    if let Some(file) = outputs.iter().filter_map(|output| output.file.as_ref()).find(|file| !files.insert(*file)) {
        let error = anyhow::anyhow!("two forms can not both go to {}", file.display());
        return Err(Failure::usage(error).with_hint("give each a file of its own"));
    }
    Ok(())
}

/// Writes every form that was asked for; with `is_taken` none to standard output, where something else stands.
pub fn show<'s>(
    outputs: &[LintOutput],
    report: &LintReport,
    source: impl Fn(&str) -> Option<&'s str>,
    is_taken: bool,
) -> Result<(), Failure> {
    for LintOutput { form, file } in outputs {
        let (text, kind) = match form {
            LintForm::Text => (render::text(report, &source, file.is_none()), Form::Page),
            LintForm::Json => (render::json(report), Form::Data),
            LintForm::Jsonl => (render::json_lines(report), Form::Lines),
            LintForm::Sarif => (render::sarif(report, &source), Form::Data),
            LintForm::Junit => (render::junit(report), Form::Page),
            LintForm::Github => {
                (render::github(report, &source), Form::Commands(&["::error ", "::warning ", "::notice "]))
            }
            LintForm::Gitlab => (render::gitlab(report), Form::Data),
            LintForm::Azuredevops => {
                (render::azure(report), Form::Commands(&["##vso[task.logissue ", "##vso[task.complete "]))
            }
            LintForm::Tap => (render::tap(report), Form::Page),
            LintForm::Markdown => (render::markdown(report), Form::Document),
            LintForm::Checkstyle => (render::checkstyle(report), Form::Page),
        };
        match file {
            Some(file) => output::file(file, &text, kind).map_err(Failure::failed)?,
            None if is_taken => {}
            None => output::print(&text, kind)?,
        }
    }
    Ok(())
}
