//! Each folder of `tests/plan` is a case: `definitions/`, the cluster (`cluster.yaml`, or what the arguments name), further
//! `arguments` if need be, and what `cutlist plan` says (`expected.txt`, and `expected.json` where it is there).
//! With `base/` the definitions are two commits of a repository: `base/` on main, `definitions/` on the branch that is
//! checked out. `UPDATE=1 cargo test --test plan` rewrites what is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the cases are files, and the program is run on them")]

mod ami;
#[path = "../program/at_once.rs"]
mod at_once;
#[path = "../program/once.rs"]
mod once;
#[path = "../program/mod.rs"]
mod program;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use at_once::complaints;
use once::OnceForEach;
use program::{NOW, Ran, cutlist, name};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan")
}

fn cases() -> Vec<PathBuf> {
    let mut cases = program::folders(&root());
    cases.retain(|folder| folder.join("definitions").is_dir());
    assert!(cases.len() > 10, "the cases are missing");
    cases
}

/// The case copied to where no repository is, with its definitions committed if it has a base.
fn laid_out(case: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    program::copy(case, folder.path());
    let base = folder.path().join("base");
    if base.is_dir() {
        let definitions = folder.path().join("definitions");
        std::fs::remove_dir_all(&definitions).unwrap();
        program::copy(&base, &definitions);
        let repository = git2::Repository::init(&definitions).unwrap();
        repository.set_head("refs/heads/main").unwrap();
        commit(&repository, "Begin with these pools", 1_763_000_000);
        let head = repository.head().unwrap().peel_to_commit().unwrap();
        repository.branch("change", &head, false).unwrap();
        repository.set_head("refs/heads/change").unwrap();
        program::copy(&case.join("definitions"), &definitions);
        commit(&repository, "Change the pools", 1_763_600_000);
    }
    folder
}

/// Commits everything, with dates and people that give the same hashes everywhere.
fn commit(repository: &git2::Repository, message: &str, seconds: i64) {
    let mut index = repository.index().unwrap();
    index.add_all(["."], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::new("Ada", "ada@example.com", &git2::Time::new(seconds, 0)).unwrap();
    let parent = repository.head().ok().map(|head| head.peel_to_commit().unwrap());
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    repository.commit(Some("HEAD"), &who, &who, message, &tree, &parents).unwrap();
}

/// Whoever names the wrong folder, or whose pipe broke, must not take an empty plan for one that found nothing to do.
#[test]
fn no_definitions_are_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::create_dir(folder.path().join("values")).unwrap();
    write("values/values.yaml", "replicas: 3\n");
    write("bad.yaml", "a: [\n");
    let cluster = root().join("another-cluster/cluster.yaml");
    let on_cluster = |path| ["plan", path, "--now", NOW, "--snapshot", cluster.to_str().unwrap()];
    for (path, read) in [("empty", "there is no file to read"), ("values", "1 file read")] {
        let ran = cutlist(folder.path(), on_cluster(path));
        let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ran.code == 0 && text.contains("no definitions were found"), "{}", ran.transcript());
        assert!(text.contains(read) && !text.contains("another cluster"), "{}", ran.transcript());
    }
    let ran = cutlist(folder.path(), on_cluster("bad.yaml"));
    assert!(ran.code == 1 && ran.stderr.contains("bad.yaml holds no definition"), "{}", ran.transcript());
}

fn plan(folder: &Path, further: &[&str]) -> Ran {
    let typed = std::fs::read_to_string(folder.join("arguments")).unwrap_or_default();
    let mut arguments = vec!["plan", "definitions"];
    if folder.join("cluster.yaml").is_file() {
        arguments.extend(["--snapshot", "cluster.yaml"]);
    }
    arguments.extend(["--now", NOW, "--seed", "0"]);
    arguments.extend(typed.split_whitespace());
    arguments.extend(further);
    cutlist(folder, arguments)
}

/// What `cutlist plan` says of a case. Each is planned once for all tests that look at it.
fn planned(case: &Path) -> Arc<Ran> {
    static PLANNED: OnceForEach<Arc<Ran>> = OnceForEach::new();
    PLANNED.get(case, || Arc::new(plan(laid_out(case).path(), &[])))
}

/// What is written to be shown to others has all that planning looks at.
#[test]
fn a_written_snapshot_gives_the_same_plan() {
    let mut cases = cases();
    cases.retain(|case| case.join("cluster.yaml").is_file());
    let complaints = complaints(&cases, |case| {
        let folder = laid_out(case);
        let written = cutlist(folder.path(), ["snapshot", "--from", "cluster.yaml"]);
        let before = planned(case);
        // Of two objects with one name only one is written.
        if written.code != 0 || before.stdout.contains("occurs twice") {
            return [None, None];
        }
        std::fs::write(folder.path().join("cluster.yaml"), &written.stdout).unwrap();
        let after = plan(folder.path(), &[]);
        let differs = (before.stdout != after.stdout).then(|| format!("{}: {}", name(case), after.transcript()));
        [differs, None]
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn cases_give_what_is_expected() {
    let complaints = complaints(&cases(), |case| {
        let complaint = program::differs(&case.join("expected.txt"), &planned(case).transcript());
        if !case.join("expected.json").is_file() {
            return [complaint, None];
        }
        let json = plan(laid_out(case).path(), &["-o", "json"]);
        [complaint, program::differs(&case.join("expected.json"), &json.stdout)]
    });
    assert!(complaints.is_empty(), "{}\nUPDATE=1 rewrites the files", complaints.join("\n"));
}

/// Nothing in a plan depends on where the case lies, or on an earlier run: the identity of the plan in both outputs, made
/// from two copies, is a hash over all of it. What they are is held by the test before.
#[test]
fn the_same_input_gives_the_same_plan() {
    let mut cases = cases();
    cases.retain(|case| case.join("expected.json").is_file());
    for case in cases {
        let read = |file: &str| std::fs::read_to_string(case.join(file)).unwrap();
        let (text, json) = (read("expected.txt"), read("expected.json"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let id = text.strip_prefix("Plan ").and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(json["id"].as_str().unwrap().starts_with(id), "{}", name(&case));
    }
}

/// A plan can be piped in from `kubectl get -o json | gzip`.
#[test]
fn a_snapshot_may_come_from_standard_input() {
    let case = cases().into_iter().find(|case| name(case) == "empty-node-removed").unwrap();
    let folder = laid_out(&case);
    let snapshot = std::fs::File::open(folder.path().join("cluster.yaml")).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(["plan", "definitions", "--snapshot", "-", "--now", NOW, "--seed", "0"])
        .current_dir(folder.path())
        .env_clear()
        .stdin(snapshot)
        .output()
        .unwrap();
    let expected = plan(folder.path(), &[]).stdout;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

/// Values of the environment reach the definitions where the operator names them, and nobody who reads a plan.
#[test]
fn no_plan_shows_a_value_of_the_environment() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan/values-of-the-environment");
    let named = ["--variable-from-environment", "GIT_TOKEN"];
    let plan = |further: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cutlist"))
            .args(["plan", "definitions", "--now", NOW])
            .args(further)
            .current_dir(&case)
            .env_clear()
            .envs([("GIT_TOKEN", "ghp-SECRET"), ("CUTLIST_VAR_AWS_SECRET_ACCESS_KEY", "wJalr-SECRET")])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !text.contains("SECRET\""), "{text}");
        assert!(!text.contains("ghp-SECRET") && !text.contains("wJalr"), "{text}");
        text
    };
    // Not named: left as written.
    assert!(plan(&["-o", "json"]).contains("${GIT_TOKEN}"));
    for output in ["text", "markdown"] {
        plan(&[&named[..], &["-o", output]].concat());
    }
    let json = plan(&[&named[..], &["-o", "json"]].concat());
    assert!(json.contains("\"leak\": \"${GIT_TOKEN}\""), "{json}");
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(serde_json::from_value::<cutlist::core::plan::Plan>(parsed).is_ok());
}
