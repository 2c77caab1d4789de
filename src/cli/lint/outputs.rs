//! Where each form of the report goes.

use super::places;
use crate::cli::arguments::{FormOutput, LintForm};
use crate::cli::exit::Failure;
use crate::cli::output::{self, Form};
use crate::render::diagnostics::{self as render, LintReport};

/// Writes every form that was asked for; with `is_taken` none to standard output, where something else stands.
pub fn show<'s>(
    outputs: &[FormOutput<LintForm>],
    report: &LintReport,
    source: impl Fn(&str) -> Option<&'s str>,
    is_taken: bool,
) -> Result<(), Failure> {
    let (of_forges, typed) = places::of_forges(report);
    let source_of_forges = |path: &str| source(typed.get(path).map_or(path, String::as_str));
    for FormOutput { form, file } in outputs {
        let (text, kind) = match form {
            LintForm::Text => (render::text(report, &source, file.is_none()), Form::Page),
            LintForm::Json => (render::json(report), Form::Data),
            LintForm::Jsonl => (render::json_lines(report), Form::Lines),
            LintForm::Sarif => (render::sarif(&of_forges, source_of_forges), Form::Data),
            LintForm::Junit => (render::junit(report), Form::Page),
            LintForm::Github => {
                (render::github(&of_forges, source_of_forges), Form::Commands(&["::error ", "::warning ", "::notice "]))
            }
            LintForm::Gitlab => (render::gitlab(&of_forges), Form::Data),
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
