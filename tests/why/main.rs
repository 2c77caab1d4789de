//! Each folder of `tests/why` is a question about a case of `tests/plan`: `question` holds the name of the case and what is
//! typed behind `cutlist why`, `expected.txt` the answer (and `expected.json` where it is there). `records.json` is the quickstart
//! after its fifth step: a cluster whose plans were recorded. A question may bring `more.yaml`.
//! `UPDATE=1 cargo test --test why` rewrites what is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the questions are files, and the program is run on them")]

#[path = "../program/at_once.rs"]
mod at_once;
#[path = "../program/mod.rs"]
mod program;

use std::path::Path;

use at_once::complaints;
use program::{NOW, Ran, cutlist, name};

fn ask(question: &Path, further: &[&str]) -> Ran {
    let asked = std::fs::read_to_string(question.join("question")).unwrap();
    let (case, typed) = asked.trim().split_once(' ').unwrap();
    let folder = tempfile::tempdir().unwrap();
    program::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan").join(case), folder.path());
    std::fs::copy(question.with_file_name("records.json"), folder.path().join("records.json")).unwrap();
    if question.join("more.yaml").is_file() {
        std::fs::copy(question.join("more.yaml"), folder.path().join("more.yaml")).unwrap();
    }
    let mut arguments: Vec<&str> = std::iter::once("why").chain(typed.split(' ')).collect();
    arguments.extend(["definitions", "--snapshot", "cluster.yaml", "--now", NOW]);
    arguments.extend(further);
    cutlist(folder.path(), arguments)
}

#[test]
fn questions_are_answered_as_expected() {
    let questions = program::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/why"));
    assert!(questions.len() >= 8, "the questions are missing");
    let complaints = complaints(&questions, |question| {
        let answer = ask(question, &[]);
        assert!(answer.stdout.lines().all(|line| line.chars().count() <= 100), "{}", name(question));
        let complaint = program::differs(&question.join("expected.txt"), &answer.transcript());
        let json = question.join("expected.json");
        [complaint, json.is_file().then(|| program::differs(&json, &ask(question, &["-o", "json"]).stdout)).flatten()]
    });
    assert!(complaints.is_empty(), "{}\nUPDATE=1 rewrites the files", complaints.join("\n"));
}

#[test]
fn without_a_snapshot_the_hint_says_so() {
    let folder = tempfile::tempdir().unwrap();
    program::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/nothing-to-do"), folder.path());
    let ran = cutlist(folder.path(), ["why", "node", "ip-10-0-1-10.ec2.internal", "definitions", "--now", NOW]);
    assert!(ran.code == 1 && ran.stderr.contains("no snapshot was given"), "{}", ran.transcript());
}
