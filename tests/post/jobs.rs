//! What CI systems say of their jobs.

use std::process::{Command, Stdio};

use serde_json::json;

use super::previews::{Ran, commit, ended, preview};

/// A dry run in a job with these variables.
fn job(variables: &[(&str, &str)], more: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("preview.json"), preview(1, 1).to_string()).unwrap();
    std::fs::write(folder.path().join("pushed.json"), r#"{ "ref": "refs/heads/main" }"#).unwrap();
    let of_target = json!({ "number": 9, "pull_request": { "number": 9, "head": { "sha": commit(2) } } });
    std::fs::write(folder.path().join("target.json"), of_target.to_string()).unwrap();
    std::fs::write(folder.path().join("comment.json"), r#"{ "issue": { "number": 8, "pull_request": {} } }"#).unwrap();
    std::fs::write(folder.path().join("issue.json"), r#"{ "issue": { "number": 8 } }"#).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
    command.current_dir(folder.path()).args(["post", "preview.json", "--dry-run"]).args(more).env_clear();
    command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(command.spawn().unwrap())
}

const GITHUB: [(&str, &str); 4] = [
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_SERVER_URL", "https://github.com"),
    ("GITHUB_REPOSITORY", "acme/nodes"),
    ("GITHUB_REF", "refs/heads/main"),
];

#[test]
fn the_number_of_the_pull_request_is_found() {
    let with = |more: (&'static str, &'static str)| [&GITHUB[..], &[more]].concat();
    let on_github: &[&str] = &["--forge", "github", "--repository", "acme/nodes"];
    for (number, variables, arguments) in [
        (7, with(("GITHUB_REF", "refs/pull/7/merge")), &[][..]),
        (9, with(("GITHUB_EVENT_PATH", "target.json")), &[]),
        (8, with(("GITHUB_EVENT_PATH", "comment.json")), &[]),
        (7, vec![("CHANGE_ID", "7")], on_github),
        (7, vec![("BUILDKITE_PULL_REQUEST", "7")], on_github),
        (7, vec![("CIRCLE_PULL_REQUEST", "https://github.com/acme/nodes/pull/7")], on_github),
        (7, vec![("SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "7")], on_github),
        (7, vec![("CI_COMMIT_PULL_REQUEST", "7")], on_github),
        (7, vec![("DRONE_PULL_REQUEST", "7"), ("BUILDKITE_PULL_REQUEST", "false")], on_github),
        (5, vec![("CHANGE_ID", "7"), ("CUTLIST_PULL_REQUEST", "5")], on_github),
    ] {
        let ran = job(&variables, arguments);
        assert_eq!(ran.code, 0, "{variables:?}: {}", ran.stderr);
        assert!(
            ran.stdout.starts_with(&format!("pull request {number} of acme/nodes")),
            "{variables:?}: {}",
            ran.stdout
        );
    }
    for (variables, arguments) in [
        (with(("GITHUB_EVENT_PATH", "pushed.json")), &[][..]),
        (with(("GITHUB_EVENT_PATH", "issue.json")), &[]),
        (with(("GITHUB_EVENT_PATH", "preview.json")), &[]),
        (with(("GITHUB_EVENT_PATH", "nowhere.json")), &[]),
        (vec![("BUILDKITE_PULL_REQUEST", "false"), ("CIRCLE_PULL_REQUEST", "")], on_github),
    ] {
        let ran = job(&variables, arguments);
        assert!(
            ran.code == 2 && ran.stderr.contains("nothing says which pull request"),
            "{variables:?}: {}",
            ran.stderr
        );
    }
}

fn with<'v>(variables: &[(&'v str, &'v str)], more: (&'v str, &'v str)) -> Vec<(&'v str, &'v str)> {
    [variables, &[more]].concat()
}

/// A job checks out the merge that the forge made to try the change, and a preview of `HEAD` is one of that.
#[test]
fn a_preview_of_what_the_job_checked_out_is_refused() {
    let (made_for, pushed) = (commit(1), commit(2));
    let (made_for, pushed) = (made_for.as_str(), pushed.as_str());
    let on_github = [&GITHUB[..], &[("GITHUB_REF", "refs/pull/7/merge"), ("GITHUB_SHA", made_for)]].concat();
    let on_gitlab = [
        ("GITLAB_CI", "true"),
        ("CI_SERVER_URL", "https://gitlab.com"),
        ("CI_MERGE_REQUEST_PROJECT_PATH", "acme/nodes"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_COMMIT_SHA", made_for),
    ];
    let forge =
        [("CUTLIST_FORGE", "github"), ("CUTLIST_FORGE_REPOSITORY", "acme/nodes"), ("CUTLIST_PULL_REQUEST", "7")];
    let on_azure = [("SYSTEM_PULLREQUEST_SOURCECOMMITID", pushed), ("BUILD_SOURCEVERSION", made_for)];
    let on_travis = [("TRAVIS_PULL_REQUEST_SHA", pushed), ("TRAVIS_COMMIT", made_for)];
    for (variables, head) in [
        (on_github.clone(), "HEAD^2"),
        ([&forge[..], &on_azure].concat(), pushed),
        ([&forge[..], &on_travis].concat(), pushed),
        (with(&on_github, ("GITHUB_EVENT_PATH", "target.json")), pushed),
        (with(&on_gitlab, ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", pushed)), pushed),
    ] {
        let ran = job(&variables, &[]);
        assert_eq!(ran.code, 1, "{variables:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("with --head {head},")), "{variables:?}: {}", ran.stderr);
        // Nothing is posted, and the summary is as good as any.
        let without_token = job(&variables, &["--allow-no-token"]);
        assert_eq!(without_token.code, 0, "{variables:?}: {}", without_token.stderr);
    }
    // What was pushed is what the job has.
    for variables in [
        with(&on_gitlab, ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "")),
        [&GITHUB[..], &[("GITHUB_REF", "refs/pull/7/head"), ("GITHUB_SHA", made_for)]].concat(),
        [&GITHUB[..], &[("GITHUB_REF", "refs/pull/7/merge"), ("GITHUB_SHA", pushed)]].concat(),
    ] {
        let ran = job(&variables, &[]);
        assert_eq!(ran.code, 0, "{variables:?}: {}", ran.stderr);
    }
}

#[test]
fn a_variable_that_is_empty_says_nothing() {
    let empty = [
        "CUTLIST_PULL_REQUEST",
        "CUTLIST_FORGE",
        "CUTLIST_FORGE_URL",
        "CUTLIST_FORGE_REPOSITORY",
        "CUTLIST_FORGE_TOKEN_FILE",
        "CUTLIST_FORGE_APP_ID",
        "CUTLIST_FORGE_APP_KEY_FILE",
        "CUTLIST_FORGE_ALLOW_PLAIN_HTTP",
        "GITHUB_STEP_SUMMARY",
        "CLUSTER_NAME",
    ];
    let mut variables = GITHUB.to_vec();
    variables.extend(empty.map(|name| (name, "")));
    variables.push(("GITHUB_REF", "refs/pull/7/merge"));
    let ran = job(&variables, &[]);
    assert!(ran.code == 0 && ran.stdout.starts_with("pull request 7 of acme/nodes"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_forge_without_encryption_is_allowed_by_a_variable() {
    let plain = [("CUTLIST_FORGE_URL", "http://gitea:3000"), ("CUTLIST_PULL_REQUEST", "7")];
    let on_gitea = ["--forge", "gitea", "--repository", "acme/nodes"];
    let refused = job(&plain, &on_gitea);
    assert!(refused.code == 2 && refused.stderr.contains("--allow-plain-http"), "{}", refused.stderr);
    for (value, code) in [("true", 0), ("1", 0), ("false", 2), ("", 2)] {
        let ran = job(&[&plain[..], &[("CUTLIST_FORGE_ALLOW_PLAIN_HTTP", value)]].concat(), &on_gitea);
        assert_eq!(ran.code, code, "{value:?}: {}", ran.stderr);
    }
}

/// A required status is waited for on the commit of a merge queue as well, which is of no pull request.
#[test]
fn the_commit_of_a_merge_queue_has_a_status_and_no_comment() {
    let queued = ("GITHUB_REF", "refs/heads/gh-readonly-queue/main/pr-7-0123456789");
    let in_queue = [&GITHUB[..], &[queued, ("GITHUB_EVENT_NAME", "merge_group")]].concat();
    for (variables, arguments) in [(in_queue, &[][..]), (GITHUB.to_vec(), &["--commit-only"])] {
        let ran = job(&variables, arguments);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.starts_with("no pull request of acme/nodes"), "{}", ran.stdout);
        assert!(ran.stdout.contains("status cutlist/prod/eu") && ran.stdout.contains("no comment"), "{}", ran.stdout);
    }
}
