//! The recipes for previews in CI, each run on the repository in `examples/` that documents it, with the program that was built. What
//! they hand to `cutlist post` is written down in its place.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::{documents, read};

/// `cutlist` on the path: what is to be posted is written down, all else is done, and counted.
const CUTLIST: &str = r#"#!/bin/sh
if [ "$1" = post ]; then
  printf '%s\n' "$@" > "$POSTED"
  for token in "$@"; do [ ! -f "$token" ] || [ "$token" = "$2" ] || cat "$token" > "$POSTED.token"; done
else
  echo "$1" >> "$POSTED.runs"
  exec "$CUTLIST" "$@"
fi
"#;

/// The same behind the options of `docker run`.
const DOCKER: &str = r#"#!/bin/sh
while [ "$1" != "the-image" ]; do shift; done
shift
exec cutlist "$@"
"#;

/// A clone of the example with a branch that raises a limit, as a CI system finds it.
struct Job {
    folder: tempfile::TempDir,
    head: String,
}

impl Job {
    fn of(example: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let job = Self { head: String::new(), folder };
        let clone = job.clone_path();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        copy(&examples.join(example), &clone);
        copy(&examples.join("ci-shell/snapshots"), &clone.join("snapshots"));
        job.git(&["init", "--quiet", "--initial-branch=main"]);
        job.commit("Begin");
        job.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        job.git(&["switch", "--quiet", "--create", "change"]);
        let pools = clone.join("definitions/nodepools.yaml");
        let text = std::fs::read_to_string(&pools).unwrap().replace("values: [\"m5\"]", "values: [\"m6i\"]");
        std::fs::write(&pools, text).unwrap();
        job.commit("Change");
        let head = job.git(&["rev-parse", "HEAD"]).trim().to_owned();
        for (name, script) in [("cutlist", CUTLIST), ("docker", DOCKER)] {
            let path = job.folder.path().join(name);
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { head, ..job }
    }

    fn clone_path(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        let ran = Command::new("git").args(who).args(arguments).current_dir(self.clone_path()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    fn commit(&self, title: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message", title]);
    }

    fn run(&self, shell: &[&str], script: &str, environment: &[(&str, &str)]) -> Output {
        let search = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let ran = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", script])
            .current_dir(self.clone_path())
            .env("PATH", search)
            .env("CUTLIST", env!("CARGO_BIN_EXE_cutlist"))
            .env("POSTED", self.folder.path().join("posted"))
            .env("RUNNER_TEMP", self.folder.path())
            .env("GITHUB_WORKSPACE", self.clone_path())
            .env("GITHUB_STEP_SUMMARY", self.folder.path().join("summary"))
            .env("GITHUB_OUTPUT", self.folder.path().join("output"))
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}{}",
            String::from_utf8_lossy(&ran.stdout),
            String::from_utf8_lossy(&ran.stderr)
        );
        ran
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join(name)).ok()
    }

    /// A cluster of thousands of nodes is planned for seconds, and each form of it is written at once.
    #[track_caller]
    fn planned(&self, times: usize) {
        assert_eq!(self.file("posted.runs").unwrap().lines().filter(|line| *line == "preview").count(), times);
    }

    /// What `cutlist post` was given.
    fn posted(&self) -> Option<Vec<String>> {
        Some(self.file("posted")?.lines().map(str::to_owned).collect())
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { std::fs::copy(&path, &target).map(|_| ()).unwrap() }
    }
}

/// The value behind an option.
fn option<'a>(arguments: &'a [String], name: &str) -> &'a str {
    let at = arguments.iter().position(|it| it == name).unwrap_or_else(|| panic!("{name} in {arguments:?}"));
    &arguments[at + 1]
}

fn is_preview(text: &str) {
    let document: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(
        (&document["kind"], &document["targets"][0]["verdict"]),
        (&"Preview".into(), &"changes".into()),
        "{document}"
    );
    assert_eq!(document["targets"][0]["causes"][0]["path"], "definitions/nodepools.yaml", "{document}");
}

const BASH: [&str; 5] = ["bash", "--noprofile", "--norc", "-eo", "pipefail"];

#[test]
fn the_github_actions_preview_and_post() {
    let job = Job::of("ci-github");
    let script = |action: &str, step: usize| {
        let action = documents(&read(&format!("github-action/{action}/action.yml"))).remove(0);
        action["runs"]["steps"][step]["run"].as_str().unwrap().to_owned()
    };
    let ran = job.run(
        &BASH,
        &script("preview", 0),
        &[
            ("INPUT_PATH", "definitions"),
            ("INPUT_CLUSTERS", "blue=snapshots/blue.yaml\n"),
            ("INPUT_DEFINITIONS", ""),
            ("INPUT_ENVIRONMENT", ""),
            ("INPUT_BASE", "origin/main"),
            ("INPUT_HEAD", &job.head),
            ("INPUT_IMAGE", "the-image"),
        ],
    );
    // No line of what is printed is a command but those that say so.
    let stdout = String::from_utf8(ran.stdout).unwrap();
    assert!(stdout.starts_with("::stop-commands::") && stdout.lines().count() == 2, "{stdout}");
    let output = job.file("output").unwrap();
    let output = |name: &str| output.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
    is_preview(&std::fs::read_to_string(output("preview=")).unwrap());
    assert_eq!(job.file("summary").unwrap(), std::fs::read_to_string(output("markdown=")).unwrap());
    assert_eq!(output("code="), "0");
    job.planned(1);
    let preview = output("preview=");
    let ran = job.run(
        &BASH,
        &script("post", 0),
        &[
            ("INPUT_PREVIEW", &preview),
            ("INPUT_TOKEN", "ghs_secret"),
            ("INPUT_PULL_REQUEST", "12"),
            ("INPUT_URL", "https://api.github.com"),
            ("INPUT_REPOSITORY", "shop/clusters"),
            ("INPUT_IMAGE", "the-image"),
        ],
    );
    let posted = job.posted().unwrap();
    assert_eq!(
        (posted[1].as_str(), option(&posted, "--forge"), option(&posted, "--pull-request")),
        (preview.as_str(), "github", "12")
    );
    assert!(!posted.concat().contains("ghs_secret") && !String::from_utf8(ran.stdout).unwrap().contains("ghs_secret"));
    assert_eq!(job.file("posted.token").unwrap(), "ghs_secret");
    assert!(!Path::new(option(&posted, "--token-file")).exists(), "the token goes with the step");
}

/// What the workflows of the example hand to actions is what these take, and what they need.
#[test]
fn the_github_workflows_use_actions_as_they_are() {
    for workflow in ["cutlist.yml", "cutlist-post.yml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ci-github/.github/workflows").join(workflow);
        let document = documents(&std::fs::read_to_string(path).unwrap()).remove(0);
        let mut seen = 0;
        for step in document["jobs"].as_object().unwrap().values().flat_map(|job| job["steps"].as_array().unwrap()) {
            let Some(uses) = step["uses"].as_str().and_then(|uses| uses.strip_prefix("cutlist/cutlist/deploy/")) else {
                continue;
            };
            seen += 1;
            let action = documents(&read(&format!("{}/action.yml", uses.split('@').next().unwrap()))).remove(0);
            let inputs = action["inputs"].as_object().unwrap();
            let given = step["with"].as_object().unwrap();
            assert!(given.keys().all(|name| inputs.contains_key(name)), "{workflow}: {given:?}");
            let needed = inputs.iter().filter(|(_, input)| input["required"] == true);
            assert!(needed.clone().all(|(name, _)| given.contains_key(name)), "{workflow}: {given:?}");
        }
        assert!(seen > 1, "{workflow}");
        let rights: BTreeMap<String, String> = document["jobs"]
            .as_object()
            .unwrap()
            .values()
            .flat_map(|job| job["permissions"].as_object().unwrap().clone())
            .map(|(name, right)| (name, right.as_str().unwrap().to_owned()))
            .collect();
        let writes = rights.values().any(|right| right == "write");
        assert_eq!(writes, workflow == "cutlist-post.yml", "{rights:?}");
        // Whoever has rights takes no file that the other wrote.
        assert!(!writes || !document.to_string().contains("download-artifact"));
    }
}

#[test]
fn the_gitlab_component_previews_and_posts() {
    let component = &documents(&read("gitlab-ci/preview.yml"))[1]["cutlist-preview"];
    let script: Vec<&str> = component["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let script = script.join("\n");
    for token in ["", "glpat-secret"] {
        let job = Job::of("ci-gitlab");
        let ran = job.run(
            &["sh", "-e"],
            &script,
            &[
                ("CUTLIST_PATH", "definitions"),
                ("CUTLIST_CLUSTERS", "blue=snapshots/blue.yaml"),
                ("CUTLIST_ENVIRONMENT", ""),
                ("CUTLIST_TOKEN", token),
                ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main"),
                ("CI_MERGE_REQUEST_IID", "7"),
                ("CI_COMMIT_SHA", "0000000000000000000000000000000000000000"),
                ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", &job.head),
                ("CI_SERVER_URL", "https://gitlab.example.com"),
                // The pipeline of a fork runs there, and the merge request is not.
                ("CI_PROJECT_PATH", "author/clusters"),
                ("CI_MERGE_REQUEST_PROJECT_PATH", "shop/clusters"),
            ],
        );
        is_preview(&job.file("clone/cutlist-preview.json").unwrap());
        assert!(String::from_utf8(ran.stdout).unwrap().contains("1 node replaced"));
        assert!(job.file("clone/cutlist-preview.md").unwrap().contains("1 node replaced"));
        job.planned(1);
        let posted = job.posted();
        assert_eq!(posted.is_some(), !token.is_empty(), "without a token nothing is posted, and the job does not fail");
        if let Some(posted) = posted {
            assert_eq!((option(&posted, "--forge"), option(&posted, "--pull-request")), ("gitlab", "7"));
            assert_eq!(option(&posted, "--repository"), "shop/clusters");
            assert!(!posted.concat().contains(token) && job.file("posted.token").unwrap() == token);
        }
    }
}

#[test]
fn the_shell_recipe_previews_and_posts() {
    let script = read("ci/preview.sh");
    let job = Job::of("ci-shell");
    let token = job.folder.path().join("token");
    std::fs::write(&token, "secret").unwrap();
    let environment = [
        ("DEFINITIONS", "definitions"),
        ("BASE", "origin/main"),
        ("CLUSTERS", "blue=snapshots/blue.yaml"),
        ("FORGE_URL", "https://git.example.com"),
        ("REPOSITORY", "shop/clusters"),
        ("PULL_REQUEST", "3"),
        ("TOKEN_FILE", token.to_str().unwrap()),
    ];
    let ran = job.run(&["sh"], &script, &environment);
    is_preview(&job.file("clone/cutlist-preview.json").unwrap());
    assert!(String::from_utf8(ran.stdout).unwrap().contains("1 node replaced"));
    assert!(job.posted().is_none());
    job.planned(1);
    job.run(&["sh"], &script, &[&environment[..], &[("FORGE", "gitea")]].concat());
    let posted = job.posted().unwrap();
    assert_eq!((option(&posted, "--forge"), option(&posted, "--repository")), ("gitea", "shop/clusters"));
    assert_eq!(option(&posted, "--url"), "https://git.example.com");
    // Two forges have an address that the program knows.
    job.run(&["sh"], &script, &[&environment[..], &[("FORGE", "github"), ("FORGE_URL", "")]].concat());
    assert!(!job.posted().unwrap().contains(&"--url".to_owned()));
}
