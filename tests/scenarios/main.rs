//! The scenarios in the embedded world, in virtual time.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files and runs the program")]

#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "../program/mod.rs"]
mod program;
mod state;
mod table;

use std::fmt::Write;
use std::path::Path;

use cutlist::api::scenario::ScenarioDocument;
use serde_json::Value;

use table::SCENARIOS;

#[test]
fn quickstart() {
    play("quickstart");
}

#[test]
fn budget_opens() {
    play("budget-opens");
}

#[test]
fn expiry() {
    play("expiry");
}

#[test]
fn pool_deleted() {
    play("pool-deleted");
}

#[test]
fn pool_label() {
    play("pool-label");
}

#[test]
fn pool_renamed() {
    play("pool-renamed");
}

#[test]
fn topology_spread() {
    play("topology-spread");
}

/// Every folder is in the table and has a test above, so that no scenario is forgotten.
#[test]
fn every_folder_is_played() {
    for folder in program::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")) {
        let name = program::name(&folder);
        assert!(SCENARIOS.iter().any(|scenario| scenario.expected.ends_with(name)), "table.rs has no {name}");
        assert!(include_str!("main.rs").contains(&format!("play(\"{name}\")")), "no test plays {name}");
    }
}

fn play(name: &str) {
    let scenario = SCENARIOS.iter().find(|one| one.expected.ends_with(name)).unwrap();
    let folder = scenario.folder();
    let text = std::fs::read_to_string(folder.join("scenario.yaml")).unwrap();
    let document: ScenarioDocument = serde_yaml::from_str(&text).unwrap();
    let mut found = String::new();
    for (index, step) in document.spec.steps.iter().enumerate() {
        let (position, title) = (index + 1, step.title.as_ref().unwrap());
        writeln!(found, "{position}. {title}").unwrap();
        found.push_str(&state::describe(&after(&folder, position)));
    }
    let difference = program::differs(&scenario.expected(), &found);
    assert!(difference.is_none(), "{}", difference.unwrap());
}

/// The objects of the embedded cluster after a step.
fn after(folder: &Path, step: usize) -> Vec<Value> {
    let arguments = ["snapshot", "--embedded", ".", "--after-step", &step.to_string()];
    let ran = program::cutlist(folder, arguments);
    assert_eq!(ran.code, 0, "{}: {}", folder.display(), ran.stderr);
    let Value::Array(items) = serde_json::from_str::<Value>(&ran.stdout).unwrap()["items"].take() else {
        panic!("no list: {}", ran.stdout)
    };
    items
}
