//! The linter's verdict on the objects of `tests/lint/verdicts` against that of a real API server, which is recorded beside them; and
//! whether the objects try every rule of the custom resource definitions both ways.

mod constraints;
pub mod objects;
mod written;

use std::collections::BTreeSet;

use cutlist::api::source::SourceFile;
use cutlist::definitions::{self, GivenVariables, LintOptions, Severity, rules};
use objects::{Cause, Object, Verdict};
use written::Written;

/// Fewer would not cover the rules.
const OBJECTS_MIN: usize = 300;
const WRONG_TYPE: &str = "CL0203";
const NO_NAME: &str = "CL0106";

/// A finding of the schema or its CEL rules: its place as the server would write it, and the words.
#[derive(Debug)]
struct Found {
    field: String,
    code: String,
    message: String,
}

fn is_of_the_schema(code: &str) -> bool {
    let is_cel = |rule: &&rules::Rule| matches!(rule.check, rules::Check::Cel(..));
    code.starts_with("CL02") || rules::all().iter().filter(|rule| rule.code == code).any(is_cel)
}

/// What the linter has against the object.
fn found(object: &Object) -> Vec<Found> {
    let written = Written::of(&object.value);
    let file = |text: &str| [SourceFile::new("object.yaml", text.as_bytes())];
    let given = GivenVariables::default();
    let definitions = match &object.before {
        None => definitions::lint(&file(&written.text), &given),
        Some(before) => {
            let before = file(&Written::of(before).text);
            let (_, before) = definitions::lint_before(&before, &given, LintOptions::default());
            definitions::lint_with(
                &file(&written.text),
                &given,
                LintOptions { before: Some(&before), ..LintOptions::default() },
            )
        }
    };
    let errors = definitions.diagnostics.into_iter().filter(|it| it.severity == Severity::Error);
    errors
        .map(|it| {
            let at = written.path(it.span.line);
            let lacking = it.message.split_once(" lacks `").and_then(|(_, rest)| rest.strip_suffix('`'));
            let field = match lacking {
                Some(member) if at.is_empty() => member.to_owned(),
                Some(member) => format!("{at}.{member}"),
                None => at.to_owned(),
            };
            Found { field, code: it.code, message: it.message }
        })
        .collect()
}

/// Whether `inner` is the field `outer`, or in it.
fn is_within(outer: &str, inner: &str) -> bool {
    outer.is_empty() || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether the linter says what the server does: of the same field, or more exactly of a part of it.
fn says(found: &Found, cause: &Cause) -> bool {
    let holder = cause.field.rsplit_once('.').map_or("", |(holder, _)| holder);
    is_within(&cause.field, &found.field)
        // What is no mapping or list has no fields either.
        || (cause.message == "unknown field" && found.code == WRONG_TYPE && is_within(&found.field, &cause.field))
        // What is missing stands nowhere.
        || (cause.message.starts_with("Required value") && found.code == NO_NAME && found.field == holder)
}

/// Where the two differ, in words.
fn difference(object: &Object, verdict: &Verdict) -> Option<String> {
    let found = found(object);
    let said = || {
        let lines: Vec<String> = found.iter().map(|it| format!("{} {} {}", it.code, it.field, it.message)).collect();
        if lines.is_empty() { "nothing".to_owned() } else { lines.join("; ") }
    };
    if verdict.causes.is_empty() {
        return found
            .iter()
            .any(|it| is_of_the_schema(&it.code))
            .then(|| format!("the server accepts it, and lint says {}", said()));
    }
    // The server stops where it can not read on, and where the schema has spoken it does not ask the rules.
    let is_partial = verdict
        .causes
        .iter()
        .any(|cause| matches!(cause.field.as_str(), "" | "<nil>") || cause.message == "unknown field");
    for cause in verdict.causes.iter().filter(|cause| cause.field != "<nil>") {
        if !found.iter().any(|it| says(it, cause)) {
            return Some(format!("the server says {}: {}, and lint says {}", cause.field, cause.message, said()));
        }
    }
    let is_said = |it: &&Found| verdict.causes.iter().any(|cause| says(it, cause));
    let more = found.iter().find(|it| is_of_the_schema(&it.code) && !is_said(it) && !is_partial);
    more.map(|it| {
        format!("lint says {} at {}: {}; the server does not: {:?}", it.code, it.field, it.message, verdict.causes)
    })
}

#[test]
fn lint_has_the_verdict_of_the_api_server() {
    let (mut compared, mut differences) = (0, Vec::new());
    for subject in objects::subjects() {
        let recorded = objects::recorded(&subject.name);
        let names: BTreeSet<&str> = subject.objects.iter().map(|object| object.name.as_str()).collect();
        let known: BTreeSet<&str> = recorded.keys().map(String::as_str).collect();
        assert_eq!(
            names, known,
            "{}: UPDATE=1 make e2e CASES=verdicts asks the server about every object",
            subject.name
        );
        for object in &subject.objects {
            compared += 1;
            let difference = difference(object, &recorded[&object.name]);
            differences.extend(difference.map(|it| format!("{}: {}\n  {it}", subject.name, object.name)));
        }
    }
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
    assert!(compared >= OBJECTS_MIN, "only {compared} objects");
}

/// With Karpenter's own definitions the server says something else of a few objects. What it then refuses, lint finds by other rules.
#[test]
fn what_karpenters_own_definitions_refuse_lint_refuses() {
    let subjects = objects::subjects();
    let different = objects::karpenters();
    assert!(!different.is_empty());
    for (is_refused, subject, name) in different {
        let object =
            subjects.iter().find(|it| it.name == subject).and_then(|it| it.objects.iter().find(|it| it.name == name));
        let object = object.unwrap_or_else(|| panic!("karpenter.txt names what is not there: {subject}: {name}"));
        let ours = &objects::recorded(&subject)[&name];
        assert_eq!(ours.causes.is_empty(), is_refused, "{subject}: {name}");
        assert!(!is_refused || !found(object).is_empty(), "{subject}: {name}: lint says nothing");
    }
}

#[test]
fn every_constraint_of_the_definitions_is_tried_both_ways() {
    let untried = constraints::untried(&objects::subjects());
    assert!(untried.is_empty(), "{} untried\n{}", untried.len(), untried.join("\n"));
}
