//! Each folder of `examples` with a `cluster.yaml` lints clean, and what the commands of its README print is the golden file
//! beside this program. A new example needs no line here: `UPDATE=1 cargo test --test examples` writes its output; read it as
//! its reader would.

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

/// What the README tells its reader to type, in blocks marked `sh`, without `cutlist`.
fn commands(example: &Path) -> Vec<Vec<String>> {
    let readme = std::fs::read_to_string(example.join("README.md")).unwrap();
    let mut commands = Vec::new();
    for block in readme.split("```sh\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let typed = line.split('#').next().unwrap();
            let mut words = typed.split_whitespace().map(str::to_owned);
            assert_eq!(words.next().as_deref(), Some("cutlist"), "{}: `{line}`", example.display());
            commands.push(words.collect());
        }
    }
    assert!(!commands.is_empty(), "{}: the README names no command", example.display());
    commands
}

/// As it is typed. The snapshots are of one day: whoever types the command later must see what the README shows.
fn play(folder: &Path, command: &[String], further: &[&str]) -> Ran {
    assert!(command.iter().any(|word| word == "--now"), "add `--now {NOW}`: cutlist {}", command.join(" "));
    cutlist(folder, command.iter().map(String::as_str).chain(further.iter().copied()))
}

/// The definitions are in a folder of their own where others, or NodeClaims, are beside them.
fn definitions(example: &Path) -> Vec<String> {
    let mut folders = program::folders(example);
    if folders.is_empty() {
        folders.push(example.to_owned());
    }
    folders.iter().map(|folder| folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()).collect()
}

fn golden(example: &str) -> PathBuf {
    root().join("tests/examples").join(format!("{example}.txt"))
}

/// And the README quotes them as they are.
#[test]
fn plans_are_what_is_expected() {
    let folder = downloaded();
    let mut complaints = Vec::new();
    for example in examples() {
        let commands = commands(&example);
        let mut text = String::new();
        for command in &commands {
            if commands.len() > 1 {
                text.push_str(&format!("$ cutlist {}\n", command.join(" ")));
            }
            text.push_str(&play(folder.path(), command, &[]).transcript());
        }
        complaints.extend(program::differs(&golden(name(&example)), &text));
        complaints.extend(not_printed(&example, &text));
    }
    assert!(complaints.is_empty(), "{}\nUPDATE=1 rewrites the files", complaints.join("\n"));
}

#[test]
fn definitions_are_clean() {
    let folder = downloaded();
    for path in examples().iter().flat_map(|example| definitions(example)) {
        let ran = cutlist(folder.path(), ["lint", path.as_str()]);
        let said = ran.stdout.trim_end();
        // One shows what is suppressed, and why.
        let is_clean = said.ends_with(": clean") || said.ends_with(": clean, 1 suppressed");
        assert!(ran.code == 0 && is_clean, "{path}: {}", ran.transcript());
    }
}

/// Every pod that waits, or leaves its node, is in the plan just once: on a new node, on one that is there, or pending.
#[test]
fn every_pod_is_accounted_for() {
    let folder = downloaded();
    let plans = examples().into_iter().flat_map(|example| commands(&example));
    let plans = plans.filter(|command| command[0] == "plan" && !command.contains(&"--calendar".to_owned()));
    for command in plans {
        let ran = play(folder.path(), &command, &["-o", "json"]);
        let plan: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let strings = |value: &serde_json::Value| -> Vec<String> {
            value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let pods_of_steps = |kind: &str| -> Vec<String> {
            let steps = plan["steps"].as_array().unwrap().iter().filter(|step| step["kind"] == kind);
            steps.flat_map(|step| strings(&step["pods"])).collect()
        };
        let mut found = pods_of_steps("create");
        found.extend(plan["pending"].as_array().unwrap().iter().flat_map(|group| strings(&group["pods"])));
        let placements = plan["placements"].as_array().unwrap();
        found.extend(placements.iter().map(|placement| placement["pod"].as_str().unwrap().to_owned()));
        let mut expected = pods_of_steps("remove");
        for pair in command.windows(2).filter(|pair| pair[0] == "--snapshot") {
            expected.extend(pending_pods(&folder.path().join(&pair[1])));
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}", command.join(" "));
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

/// What the README quotes, in blocks marked `text`, that its commands do not print.
fn not_printed(example: &Path, printed: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(example.join("README.md")).unwrap();
    let quotes: Vec<&str> = readme.split("```text\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!quotes.is_empty(), "{}: the README quotes nothing", example.display());
    let wrong = quotes.into_iter().filter(|quote| !printed.contains(quote));
    wrong.map(|quote| format!("{}: the README quotes what is not printed:\n{quote}", example.display())).collect()
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
