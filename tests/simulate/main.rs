//! Each folder of `tests/simulate` is a case: `definitions/`, `cluster.yaml` (a snapshot), further `arguments` if need be, and what
//! `cutlist simulate` says (`expected.txt`, and `expected.json` where it is there).
//! `UPDATE=1 cargo test --test simulate` rewrites what is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the cases are files, and the program is run on them")]

#[path = "../program/at_once.rs"]
mod at_once;
#[path = "../program/mod.rs"]
mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use at_once::complaints;
use program::{NOW, Ran, cutlist, name};
use serde_json::Value;

fn cases() -> Vec<PathBuf> {
    let cases = program::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulate"));
    assert!(cases.len() > 10, "the cases are missing");
    cases
}

/// Cases that run to their end.
fn clusters() -> Vec<PathBuf> {
    let mut cases = cases();
    cases.retain(|case| case.join("cluster.yaml").is_file() && !has_error(case));
    assert!(cases.len() > 5, "the clusters are missing");
    cases
}

fn has_error(case: &Path) -> bool {
    let expected = std::fs::read_to_string(case.join("expected.txt")).unwrap_or_default();
    !expected.ends_with("exit 0\n")
}

/// The program on a copy of the case where no repository is.
fn run(case: &Path, command: &str, further: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    program::copy(case, folder.path());
    // Pools and class are the same for most.
    if !folder.path().join("definitions").is_dir() {
        program::copy(
            &case.parent().unwrap().join("moves-pods-together/definitions"),
            &folder.path().join("definitions"),
        );
    }
    let typed = std::fs::read_to_string(case.join("arguments")).unwrap_or_default();
    let mut arguments = vec![command, "definitions"];
    if case.join("cluster.yaml").is_file() {
        arguments.extend(["--snapshot", "cluster.yaml"]);
    }
    if command == "simulate" {
        arguments.extend(typed.split_whitespace());
    }
    if !arguments.contains(&"--now") {
        arguments.extend(["--now", NOW]);
    }
    arguments.extend(further);
    cutlist(folder.path(), arguments)
}

/// What `cutlist simulate -o json` says of a case. Each is played once for all tests that look at it.
fn as_json(case: &Path) -> String {
    static PLAYED: Mutex<BTreeMap<PathBuf, Arc<OnceLock<String>>>> = Mutex::new(BTreeMap::new());
    let played = Arc::clone(PLAYED.lock().unwrap().entry(case.to_owned()).or_default());
    played.get_or_init(|| run(case, "simulate", &["-o", "json"]).stdout).clone()
}

fn simulated(case: &Path) -> Value {
    serde_json::from_str(&as_json(case)).unwrap()
}

#[test]
fn cases_give_what_is_expected() {
    let complaints = complaints(&cases(), |case| {
        let complaint = program::differs(&case.join("expected.txt"), &run(case, "simulate", &[]).transcript());
        let json = case.join("expected.json");
        [complaint, json.is_file().then(|| program::differs(&json, &as_json(case))).flatten()]
    });
    assert!(complaints.is_empty(), "{}\nUPDATE=1 rewrites the files", complaints.join("\n"));
}

/// What a review saw in a plan is what the simulation begins with.
#[test]
fn it_begins_with_the_plan_of_cutlist_plan() {
    let steps =
        |summary: &Value| summary["nodesRemoved"].as_u64().unwrap() + summary["nodesReplaced"].as_u64().unwrap();
    let mut compared = 0;
    for case in clusters().into_iter().filter(|case| !case.join("arguments").is_file()) {
        let plan: Value = serde_json::from_str(&run(&case, "plan", &["-o", "json"]).stdout).unwrap();
        let Some(first) = simulated(&case)["plans"].get(0).cloned() else { continue };
        let summary = &first["summary"];
        for field in
            ["nodesBefore", "nodesAfter", "nodesCreated", "podsDisrupted", "pricePerHourBefore", "pricePerHourAfter"]
        {
            assert_eq!(plan["summary"][field], summary[field], "{}: {field}", name(&case));
        }
        assert_eq!(steps(&plan["summary"]), steps(summary), "{}", name(&case));
        compared += 1;
    }
    assert!(compared > 3, "compared {compared}");
}

/// Once settled, another run from the same cluster gives the same, and every count fits the series.
#[test]
fn counts_fit_the_series_and_the_same_input_gives_the_same_bytes() {
    for (position, case) in clusters().into_iter().enumerate() {
        let text = as_json(&case);
        if position < 3 {
            assert_eq!(text, run(&case, "simulate", &["-o", "json"]).stdout, "{}", name(&case));
        }
        let simulation: Value = serde_json::from_str(&text).unwrap();
        let (summary, series) = (&simulation["summary"], simulation["series"].as_array().unwrap());
        let (first, last) = (series.first().unwrap(), series.last().unwrap());
        for (of_summary, point, of_point) in [
            ("pricePerHourStart", first, "pricePerHour"),
            ("pricePerHourEnd", last, "pricePerHour"),
            ("nodesStart", first, "nodes"),
            ("nodesEnd", last, "nodes"),
            ("podsMoved", last, "podsMoved"),
            ("virtualSeconds", last, "second"),
        ] {
            assert_eq!(summary[of_summary], point[of_point], "{}: {of_summary}", name(&case));
        }
        assert_eq!(summary["plans"], simulation["plans"].as_array().unwrap().len(), "{}", name(&case));
        let count = |field: &str| summary[field].as_u64().unwrap();
        // Only pods without an owner are lost, and only who asks for another size gets it.
        // Nor are pods of DaemonSets that wait counted where they begin.
        let others = ["pods-without-owners", "a-pod-of-a-daemon-set-waits"];
        if !case.join("arguments").is_file() && !others.contains(&name(&case)) {
            let at_end = count("podsBoundEnd") + count("podsPendingEnd");
            assert_eq!(count("podsBoundStart"), at_end, "{}", name(&case));
        }
        let seconds: Vec<u64> = series.iter().map(|point| point["second"].as_u64().unwrap()).collect();
        assert!(seconds.is_sorted(), "{}", name(&case));
    }
}
