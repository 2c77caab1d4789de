//! `cutlist explain`

use super::arguments::ExplainArguments;
use super::exit::{Failure, Outcome};
use super::output;
use crate::definitions::rules::{self, Rule, explained};
use crate::render::explain as render;

pub fn run(arguments: &ExplainArguments) -> Result<Outcome, Failure> {
    let Some(word) = &arguments.rule else {
        let rows: Vec<_> = rules::all().iter().map(|rule| explained::describe(rule)).collect();
        output::text(&render::list(&rows))?;
        return Ok(Outcome::Clean);
    };
    let rule = rules::find(word).or_else(|| rules::find(&word.to_uppercase()));
    let Some(rule) = rule else {
        let failure = Failure::usage(anyhow::anyhow!("there is no rule `{word}`"));
        let like: Vec<String> = rules::like(word).into_iter().map(|near| format!("`{near}`")).collect();
        return Err(failure.with_hint(match like.as_slice() {
            [] => "`cutlist explain` lists them".to_owned(),
            [near] => format!("did you mean {near}?"),
            several => format!("did you mean one of {}?", several.join(", ")),
        }));
    };
    output::text(&page(rule))?;
    Ok(Outcome::Clean)
}

fn page(rule: &'static Rule) -> String {
    render::page(&explained::describe(rule))
}
