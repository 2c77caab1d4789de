//! Each folder of `examples` with a `cluster.yaml` lints clean, and its plan is the golden file beside this program.
//! A new example needs no line here: `UPDATE=1 cargo test --test examples` writes its plan; read it as its reader would.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the examples are files, and the program is run on them")]

#[path = "../program/mod.rs"]
mod program;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use program::{NOW, Ran, cutlist, name};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> Vec<PathBuf> {
    let mut examples = program::folders(&root().join("examples"));
    examples.retain(|folder| folder.join("cluster.yaml").is_file());
    assert!(examples.len() > 10, "the examples are missing");
    examples
}

/// A copy of all examples that is no repository, as after a download.
fn downloaded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    program::copy(&root().join("examples"), &folder.path().join("examples"));
    folder
}

fn plan(folder: &Path, example: &str, further: &[&str]) -> Ran {
    let path = format!("examples/{example}");
    let snapshot = format!("{path}/cluster.yaml");
    let arguments = ["plan", &path, "--snapshot", &snapshot, "--now", NOW, "--seed", "0"];
    cutlist(folder, arguments.into_iter().chain(further.iter().copied()))
}

fn golden(example: &str) -> PathBuf {
    root().join("tests/examples").join(format!("{example}.txt"))
}

#[test]
fn plans_are_what_is_expected() {
    let folder = downloaded();
    let mut complaints = Vec::new();
    for example in examples() {
        let example = name(&example);
        let ran = plan(folder.path(), example, &[]);
        complaints.extend(program::differs(&golden(example), &ran.transcript()));
    }
    assert!(complaints.is_empty(), "{}\nUPDATE=1 rewrites the files", complaints.join("\n"));
}

#[test]
fn definitions_are_clean() {
    let folder = downloaded();
    for example in examples() {
        let path = format!("examples/{}", name(&example));
        let ran = cutlist(folder.path(), ["lint", path.as_str()]);
        assert!(ran.code == 0 && ran.stdout.trim_end().ends_with(": clean"), "{path}: {}", ran.transcript());
    }
}

/// Every pod that waits is in the plan just once: on a new node, on one that is there, or among the pending ones.
#[test]
fn every_pod_is_accounted_for() {
    let folder = downloaded();
    for example in examples() {
        let ran = plan(folder.path(), name(&example), &["-o", "json"]);
        let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let strings = |value: &serde_json::Value| -> Vec<String> {
            value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let created = plan["steps"].as_array().unwrap().iter().filter(|step| step["kind"] == "create");
        let mut found: Vec<String> = created.flat_map(|step| strings(&step["pods"])).collect();
        found.extend(plan["pending"].as_array().unwrap().iter().flat_map(|group| strings(&group["pods"])));
        let placements = plan["placements"].as_array().unwrap();
        found.extend(placements.iter().map(|placement| placement["pod"].as_str().unwrap().to_owned()));
        let waiting = pending_pods(&example.join("cluster.yaml"));
        assert!(!waiting.is_empty(), "{}: no pod waits", example.display());
        found.sort();
        assert_eq!(found, waiting.into_iter().collect::<Vec<_>>(), "{}", example.display());
    }
}

/// Read without our own reader of snapshots.
fn pending_pods(cluster: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(cluster).unwrap();
    let objects = serde_yaml::Deserializer::from_str(&text)
        .map(|document| <serde_yaml::Value as serde::Deserialize>::deserialize(document).unwrap());
    let field = |value: &serde_yaml::Value, path: [&str; 2]| value[path[0]][path[1]].as_str().map(str::to_owned);
    objects
        .filter(|object| object["kind"] == "Pod" && field(object, ["spec", "nodeName"]).is_none())
        .map(|pod| {
            format!(
                "{}/{}",
                field(&pod, ["metadata", "namespace"]).unwrap(),
                field(&pod, ["metadata", "name"]).unwrap()
            )
        })
        .collect()
}

/// What a README quotes of a plan, in blocks marked `text`, is in the plan.
#[test]
fn readmes_quote_the_plan() {
    for example in examples() {
        let readme = std::fs::read_to_string(example.join("README.md")).unwrap();
        let plan = std::fs::read_to_string(golden(name(&example))).unwrap();
        let command = format!("cutlist plan examples/{0} --snapshot examples/{0}/cluster.yaml", name(&example));
        assert!(readme.contains(&command), "{}: the README does not name `{command}`", example.display());
        let quotes: Vec<&str> =
            readme.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(!quotes.is_empty(), "{}: the README quotes nothing", example.display());
        for quote in quotes {
            assert!(plan.contains(quote), "{}: not in the plan:\n{quote}\nthe plan:\n{plan}", example.display());
        }
    }
}

/// A golden file without its example would never be compared again.
#[test]
fn every_plan_has_its_example() {
    let examples: BTreeSet<String> = examples().iter().map(|folder| name(folder).to_owned()).collect();
    for entry in std::fs::read_dir(root().join("tests/examples")).unwrap() {
        let path = entry.unwrap().path();
        if let Some(plan) = name(&path).strip_suffix(".txt") {
            assert!(examples.contains(plan), "{}: no such example", path.display());
        }
    }
}
