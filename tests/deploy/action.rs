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
    let [sarif, plan] = ["sarif=", "plan="].map(|name| {
        let path = output.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        std::fs::read_to_string(path).unwrap()
    });
    assert!(sarif.contains("\"version\": \"2.1.0\""), "{sarif}");
    assert!(plan.contains("limits.memory 16Gi reached"), "{plan}");
    let stdout = String::from_utf8(ran.stdout).unwrap();
    // Annotations come first; behind this nothing is a command.
    let token = stdout.lines().find_map(|line| line.strip_prefix("::stop-commands::")).unwrap();
    assert!(token.len() == 32 && token.chars().all(|it| it.is_ascii_hexdigit()), "{token}");
    assert_eq!(stdout.lines().last(), Some(format!("::{token}::").as_str()));
    let summary = std::fs::read_to_string(folder.path().join("summary")).unwrap();
    assert!(summary.starts_with("### cutlist lint") && summary.ends_with(&plan), "{summary}");
}

#[test]
fn the_action_fails_where_lint_does() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), "tests/plan/definitions-with-errors/definitions", "");
    assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stdout));
    let output = std::fs::read_to_string(folder.path().join("output")).unwrap();
    assert!(output.starts_with("sarif=") && output.lines().count() == 1, "nothing is planned after that: {output}");
    let stdout = String::from_utf8(ran.stdout).unwrap();
    assert!(stdout.lines().any(|line| line.starts_with("::error file=")), "{stdout}");
    let rest: Vec<&str> = stdout.lines().filter(|line| !line.is_empty() && !line.starts_with("::")).collect();
    assert_eq!(rest, ["2 files, 2 definitions: 1 error"], "annotations, and what they come to: {stdout}");
}

/// The step behind it runs where asked for, whatever was found, and is one that nobody can change under us.
#[test]
fn the_action_uploads_what_lint_wrote() {
    let action = documents(&read("github-action/action.yml")).remove(0);
    assert_eq!(action["inputs"]["upload-sarif"]["default"], "false", "it takes a permission that not everybody gives");
    let step = &action["runs"]["steps"][1];
    let condition = step["if"].as_str().unwrap();
    assert!(condition.contains("always()") && condition.contains("inputs.upload-sarif == 'true'"), "{condition}");
    let commit = step["uses"].as_str().and_then(|it| it.strip_prefix("github/codeql-action/upload-sarif@")).unwrap();
    assert!(commit.len() == 40 && commit.chars().all(|it| it.is_ascii_hexdigit()), "{commit}");
    assert_eq!(step["with"]["sarif_file"], "${{ steps.cutlist.outputs.sarif }}");
}

/// What the text of findings looks like, to whoever runs lint without the action.
#[test]
fn the_problem_matcher_finds_findings() {
    let matcher: serde_json::Value = serde_json::from_str(&read("github-action/problem-matcher.json")).unwrap();
    let text = include_str!("../lint/forms/expected.txt");
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for owner in matcher["problemMatcher"].as_array().unwrap() {
        let patterns: Vec<regex::Regex> = owner["pattern"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| regex::Regex::new(it["regexp"].as_str().unwrap()).unwrap())
            .collect();
        for pair in lines.windows(2) {
            if let Some((_, place)) = patterns[0].captures(pair[0]).zip(patterns[1].captures(pair[1])) {
                found.push(format!("{}:{}", &place[1], &place[2]));
            }
        }
    }
    let findings = lines.iter().filter(|line| line.trim_start().starts_with("--> ")).count();
    assert!(findings > 3 && found.len() == findings, "{found:?}");
    assert!(found.contains(&"input/pool.yaml:7".to_owned()), "{found:?}");
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
        .envs([
            ("INPUT_PATH", path),
            ("INPUT_SNAPSHOT", snapshot),
            ("INPUT_AGAINST", ""),
            ("INPUT_FAIL_ON", ""),
            ("INPUT_IMAGE", "the-image"),
        ])
        .env("GITHUB_WORKSPACE", env!("CARGO_MANIFEST_DIR"))
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_STEP_SUMMARY", folder.join("summary"))
        .env("GITHUB_OUTPUT", folder.join("output"))
        .output()
        .unwrap()
}
