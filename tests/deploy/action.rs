//! The script of the action, run as GitHub's runner runs it, with a `docker` that starts the program that was built.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{documents, read};

/// Skips the options of `docker run` up to the image, as they are in the action, and runs the program with the rest.
const DOCKER: &str = r#"#!/bin/sh
while [ "$1" != "the-image" ]; do shift; done
shift
exec "$CUTLIST" "$@"
"#;

#[test]
fn the_action_lints_and_plans() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), "tests/plan/limit-of-memory/definitions", "tests/plan/limit-of-memory/cluster.yaml");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let output = std::fs::read_to_string(folder.path().join("output")).unwrap();
    let plan = std::fs::read_to_string(output.trim().strip_prefix("plan=").unwrap()).unwrap();
    assert!(plan.contains("limits.memory 16Gi reached"), "{plan}");
    let stdout = String::from_utf8(ran.stdout).unwrap();
    let token = stdout.lines().next().unwrap().strip_prefix("::stop-commands::").unwrap();
    assert!(token.len() == 32 && token.chars().all(|it| it.is_ascii_hexdigit()), "{token}");
    assert_eq!(stdout.lines().last(), Some(format!("::{token}::").as_str()));
    assert_eq!(std::fs::read_to_string(folder.path().join("summary")).unwrap(), plan);
}

#[test]
fn the_action_fails_where_lint_does() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), "tests/plan/definitions-with-errors/definitions", "");
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stdout));
    assert!(!folder.path().join("output").exists(), "nothing is planned after that");
    let stdout = String::from_utf8(ran.stdout).unwrap();
    let commands: Vec<&str> = stdout.lines().filter(|line| line.starts_with("::")).collect();
    let token = commands[0].strip_prefix("::stop-commands::").unwrap();
    assert_eq!(commands[1..], [format!("::{token}::")], "commands are taken again");
}

fn run(folder: &Path, path: &str, snapshot: &str) -> Output {
    let action = documents(&read("github-action/action.yml")).remove(0);
    let docker = folder.join("docker");
    std::fs::write(&docker, DOCKER).unwrap();
    std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", action["runs"]["steps"][0]["run"].as_str().unwrap()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("PATH", search)
        .env("CUTLIST", env!("CARGO_BIN_EXE_cutlist"))
        .envs([("INPUT_PATH", path), ("INPUT_SNAPSHOT", snapshot), ("INPUT_AGAINST", ""), ("INPUT_IMAGE", "the-image")])
        .env("GITHUB_WORKSPACE", env!("CARGO_MANIFEST_DIR"))
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_STEP_SUMMARY", folder.join("summary"))
        .env("GITHUB_OUTPUT", folder.join("output"))
        .output()
        .unwrap()
}
