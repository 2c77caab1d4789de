//! Each folder of `tests/simulate` is a case: `definitions/`, `cluster.yaml` (a snapshot), further `arguments` if need be, and what
//! `cutlist simulate` says (`expected.txt`, and `expected.json` where it is there).
//! `UPDATE=1 cargo test --test simulate` rewrites what is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the cases are files, and the program is run on them")]

#[path = "../program/at_once.rs"]
mod at_once;
#[path = "../program/once.rs"]
mod once;
#[path = "../program/mod.rs"]
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use at_once::complaints;
use once::OnceForEach;
use program::{NOW, Ran, cutlist, name};
use serde::Deserialize;
use serde_json::Value;

fn cases() -> Vec<PathBuf> {
    let cases = program::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulate"));
    assert!(cases.len() > 10, "the cases are missing");
    cases
}

/// Cases that run to their end, and begin with nothing but a plan: kube-scheduler evicts nobody of itself.
fn clusters() -> Vec<PathBuf> {
    let mut cases = cases();
    cases.retain(|case| case.join("cluster.yaml").is_file() && !has_error(case) && !is_preempting(case));
    assert!(cases.len() > 5, "the clusters are missing");
    cases
}

fn is_preempting(case: &Path) -> bool {
    std::fs::read_to_string(case.join("cluster.yaml")).unwrap_or_default().contains("nominatedNodeName:")
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
    static PLAYED: OnceForEach<String> = OnceForEach::new();
    PLAYED.get(case, || run(case, "simulate", &["-o", "json"]).stdout)
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
        let Some(first) = simulated(&case)["plans"].get(0).filter(|_| is_at_rest(&plan)).cloned() else { continue };
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

/// Cases of `tests/plan` in which plan and simulation rightly differ, and why.
const DIFFER: [(&str, &str); 8] = [
    (
        "expired-takes-no-pending-pods",
        "kube-scheduler binds the pending pod to the node that expires before anybody plans",
    ),
    ("nodes-of-one-instance", "kube-scheduler binds to a node of which it does not know that it has a double"),
    ("nomination-whose-room-is-taken", "kube-scheduler binds the nominated pod that fits before anybody plans"),
    ("not-initialized-for-other-reasons", "a claim that never registered is given up before the first plan"),
    ("pod-disruption-budget-covers-everything", "the world counts anew what a budget allows"),
    ("preemption", "kube-scheduler evicts for the nominated pod before anybody plans"),
    ("refused-node-by-a-plugin", "the world has no plugin of kube-scheduler that refuses the pods"),
    ("what-keeps-a-node", "the world runs the DaemonSet on every node, of whose pods the budget then lets one go"),
];

/// Why a node is held back whatever happens around it.
const LASTING: [&str; 5] =
    ["LocalVolume", "ConsolidationDisabled", "UnknownNodePool", "UnknownInstanceType", "NotSupported"];

/// Clusters of `tests/plan` that need nothing but themselves.
fn planned_clusters() -> Vec<PathBuf> {
    let mut cases = program::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan"));
    let is_whole = |case: &PathBuf| case.join("definitions").is_dir() && case.join("cluster.yaml").is_file();
    cases.retain(|case| is_whole(case) && !case.join("arguments").is_file() && !case.join("base").is_dir());
    cases.retain(|case| !has_error(case) && DIFFER.iter().all(|(differs, _)| *differs != name(case)));
    assert!(cases.len() > 80, "the cases are missing");
    cases
}

fn texts<'v>(list: &'v Value, field: &'v str) -> impl Iterator<Item = &'v str> {
    list.as_array().into_iter().flatten().filter_map(move |it| it[field].as_str())
}

fn pods_of(list: &Value) -> impl Iterator<Item = &str> {
    let lists = list.as_array().into_iter().flatten();
    lists.flat_map(|it| it["pods"].as_array().into_iter().flatten()).filter_map(Value::as_str)
}

fn workload(pod: &str) -> &str {
    pod.rsplit_once('-').map_or(pod, |(workload, _)| workload)
}

fn by_workload(pending: &Value) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    pods_of(pending).for_each(|pod| *counts.entry(workload(pod)).or_default() += 1);
    counts
}

/// Else what is on its way out goes, and what kube-scheduler has room for is bound, before the first plan is made.
fn is_at_rest(plan: &Value) -> bool {
    plan["summary"]["nodesLeaving"].is_null() && plan["placements"].as_array().unwrap().is_empty()
}

/// What contradicts what a plan says of a cluster, in what came of it.
fn contradictions(plan: &Value, simulation: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let steps = plan["steps"].as_array().unwrap();
    let first = simulation["plans"].get(0);
    if let Some(first) = first.filter(|_| is_at_rest(plan)) {
        for field in ["nodesAfter", "nodesCreated", "podsDisrupted", "podsPlaced", "podsPending", "pricePerHourAfter"] {
            let (planned, simulated) = (&plan["summary"][field], &first["summary"][field]);
            if planned != simulated {
                found.push(format!("{field} is {planned}, and {simulated} in the first plan of the simulation"));
            }
        }
        if first["steps"] != steps.len() {
            found.push(format!("{} steps, and {} in the simulation", steps.len(), first["steps"]));
        }
    }
    if first.is_some() && is_at_rest(plan) {
        let told = |risks: &Value| -> BTreeSet<(String, String)> {
            let texts = |risk: &Value, field: &str| risk[field].as_str().unwrap().to_owned();
            risks.as_array().into_iter().flatten().map(|it| (texts(it, "code"), texts(it, "subject"))).collect()
        };
        let (planned, simulated) = (told(&plan["risks"]), told(&simulation["risks"]));
        found.extend(planned.difference(&simulated).map(|(code, subject)| format!("{code} of {subject} is not told")));
    }
    if first.is_none() && steps.iter().any(|step| step["kind"] != "hold") {
        found.push("nothing of the plan is done".to_owned());
    }
    if simulation["settled"] == true {
        let creations = steps.iter().filter(|step| step["kind"] == "create");
        let bought = creations.flat_map(|step| step["pods"].as_array().unwrap()).filter_map(Value::as_str);
        let placed: BTreeSet<&str> = bought.chain(texts(&plan["placements"], "pod")).collect();
        // Which of the replicas of one workload wait is for kube-scheduler to say.
        let (planned, at_end) = (by_workload(&plan["pending"]), by_workload(&simulation["pending"]));
        let more = |pod: &&str| at_end.get(workload(pod)) > planned.get(workload(pod));
        let pending = pods_of(&simulation["pending"]).filter(|pod| placed.contains(pod)).filter(more);
        found.extend(pending.map(|pod| format!("{pod} has a place, and is pending at the end")));
        let held: BTreeSet<&str> = texts(&simulation["heldBack"], "node").collect();
        let leaving: BTreeSet<&str> = texts(&simulation["leaving"], "node").collect();
        let lasting = plan["heldBack"].as_array().unwrap().iter();
        let lasting = lasting.filter(|it| it["code"].as_str().is_some_and(|code| LASTING.contains(&code)));
        let gone = lasting.filter_map(|it| it["node"].as_str());
        let gone = gone.filter(|node| !held.contains(node) && !leaving.contains(node));
        found.extend(gone.map(|node| format!("{node} is held back for good, and gone at the end")));
    }
    found
}

/// Whatever the cluster: the simulation does what the plan says, and does not end in what the plan rules out.
#[test]
fn plans_and_simulations_of_one_cluster_agree() {
    let complaints = complaints(&planned_clusters(), |case| {
        let json = |command: &str| serde_json::from_str::<Value>(&run(case, command, &["-o", "json"]).stdout);
        let (Ok(plan), Ok(simulation)) = (json("plan"), json("simulate")) else {
            return [Some(format!("{}: no JSON", name(case))), None];
        };
        let found = contradictions(&plan, &simulation);
        [(!found.is_empty()).then(|| format!("{}: {}", name(case), found.join("; "))), None]
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// How many pods of the cluster run or wait for a node when it begins, without those of DaemonSets. Some of those that wait may be bound before
/// the first point of the series.
fn pods_to_run(case: &Path) -> u64 {
    let text = std::fs::read_to_string(case.join("cluster.yaml")).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text).map(|document| Value::deserialize(document).unwrap());
    let objects = documents.flat_map(|document| match document["items"].as_array() {
        Some(items) => items.clone(),
        None => vec![document],
    });
    let is_of_daemon_set = |pod: &Value| {
        let owners = pod["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.iter().any(|owner| owner["kind"] == "DaemonSet"))
    };
    let has_ended = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let runs = |object: &Value| object["kind"] == "Pod" && !is_of_daemon_set(object) && !has_ended(object);
    objects.filter(runs).count() as u64
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
        // At the end a pod of a DaemonSet that waits is counted, too.
        let others = ["pods-without-owners", "a-pod-of-a-daemon-set-waits"];
        if !case.join("arguments").is_file() && !others.contains(&name(&case)) {
            let at_end = count("podsBoundEnd") + count("podsPendingEnd");
            assert_eq!(pods_to_run(&case), at_end, "{}", name(&case));
        }
        let seconds: Vec<u64> = series.iter().map(|point| point["second"].as_u64().unwrap()).collect();
        assert!(seconds.is_sorted(), "{}", name(&case));
    }
}
