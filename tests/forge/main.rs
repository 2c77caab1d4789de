//! `cutlist post` against a real Gitea, with people, a fork and a protected branch. `make e2e` runs it; `cargo test` does not.
//!
//! ```text
//! cargo test --test forge -- FOLDER
//! ```
//!
//! FOLDER is what `tests/forge/build` filled.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test starts processes, waits for them and reads their files")]

mod gitea;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use gitea::Gitea;

const REPOSITORY: &str = "/api/v1/repos/owner/nodes";

fn main() {
    let programs = std::env::args().nth(1).expect("the folder that tests/forge/build filled");
    let programs = std::fs::canonicalize(programs).unwrap();
    let begin = Instant::now();
    let stage = Stage::build(&programs);
    println!("gitea is ready after {:.1} s", begin.elapsed().as_secs_f64());
    for (name, story) in STORIES {
        let begin = Instant::now();
        story(&stage);
        println!("{name} ... ok, {:.1} s", begin.elapsed().as_secs_f64());
    }
}

type Story = fn(&Stage);

const STORIES: [(&str, Story); 7] = [
    ("one comment after twenty pushes, soon after each", twenty_pushes),
    ("a job of an older push leaves the comment of the newer", late_job),
    ("five at once leave one comment", five_at_once),
    ("a fork is posted to as well", fork),
    ("a reader can not set a status, and does not touch our comment", reader),
    ("a fork's change is planned, approved, and planned again soon after a webhook", reviewed),
    ("a required status lets a merge through, also where nothing of ours changed", protected_branch),
];

/// The owner of a repository, a bot that may write there, somebody who has a fork, and their tokens.
struct Stage {
    gitea: Gitea,
    folder: tempfile::TempDir,
    owner: String,
    bot: String,
    author: String,
}

impl Stage {
    fn build(programs: &Path) -> Self {
        let gitea = Gitea::start(programs);
        let [owner, bot, author] = ["owner", "cutlist-bot", "author"].map(|name| gitea.user(programs, name));
        let new = json!({ "name": "nodes", "auto_init": true, "default_branch": "main" });
        gitea.call("POST", "/api/v1/user/repos", &owner, &new);
        gitea.call(
            "PUT",
            &format!("{REPOSITORY}/collaborators/cutlist-bot"),
            &owner,
            &json!({ "permission": "write" }),
        );
        for (file, text) in definitions("base") {
            let body = json!({ "content": STANDARD.encode(text), "message": file, "branch": "main" });
            gitea.call("POST", &format!("{REPOSITORY}/contents/{file}"), &owner, &body);
        }
        gitea.call("POST", &format!("{REPOSITORY}/forks"), &author, &json!({}));
        let folder = tempfile::tempdir().unwrap();
        for (name, token) in [("bot", &bot), ("author", &author)] {
            std::fs::write(folder.path().join(name), token).unwrap();
        }
        Self { gitea, folder, owner, bot, author }
    }

    /// Commits a file to a branch, which begins at main where it is new; gives the commit.
    fn push(&self, repository: &str, token: &str, branch: &str, file: &str) -> String {
        let exists =
            self.gitea.ask("GET", &format!("/api/v1/repos/{repository}/branches/{branch}"), token, &Value::Null).0
                == 200;
        let mut body = json!({ "content": STANDARD.encode(file), "message": file, "branch": branch });
        if !exists {
            body["branch"] = "main".into();
            body["new_branch"] = branch.into();
        }
        let path = format!("/api/v1/repos/{repository}/contents/{file}");
        let made = self.gitea.call("POST", &path, token, &body);
        made["commit"]["sha"].as_str().unwrap().to_owned()
    }

    fn open(&self, token: &str, head: &str) -> u64 {
        let body = json!({ "title": head, "head": head, "base": "main" });
        self.gitea.call("POST", &format!("{REPOSITORY}/pulls"), token, &body)["number"].as_u64().unwrap()
    }

    fn begin(&self, number: u64, who: &str, preview: &Value) -> Child {
        // One for each process: several read at the same time.
        let path = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap().into_temp_path().keep().unwrap();
        std::fs::write(&path, preview.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.arg("post").arg(path).args([
            "--forge",
            "gitea",
            "--url",
            &self.gitea.url(),
            "--repository",
            "owner/nodes",
        ]);
        command.args(["--pull-request", &number.to_string()]).arg("--token-file").arg(self.folder.path().join(who));
        command.env_clear().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    #[track_caller]
    fn post(&self, number: u64, who: &str, preview: &Value) {
        let (code, stderr) = ended(self.begin(number, who, preview));
        assert_eq!(code, 0, "{stderr}");
    }

    fn comments(&self, number: u64) -> Vec<(String, String)> {
        let all = self.gitea.call("GET", &format!("{REPOSITORY}/issues/{number}/comments"), &self.owner, &Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.as_array().unwrap().iter().map(|it| (text(&it["user"]["login"]), text(&it["body"]))).collect()
    }

    /// State and description of our status of a commit.
    fn status(&self, commit: &str) -> Option<(String, String)> {
        let all = self.gitea.call("GET", &format!("{REPOSITORY}/commits/{commit}/status"), &self.owner, &Value::Null);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ours = all["statuses"].as_array()?.iter().find(|it| it["context"] == "cutlist/prod/eu")?;
        Some((text(&ours["status"]), text(&ours["description"])))
    }

    #[track_caller]
    fn assert_posted(&self, number: u64, commit: &str, created: u64) {
        let comments = self.comments(number);
        let ours: Vec<&(String, String)> = comments.iter().filter(|(author, _)| author == "cutlist-bot").collect();
        assert_eq!(ours.len(), 1, "{ours:?}");
        assert!(ours[0].1.contains(&format!("**{created} created**")), "{}", ours[0].1);
        let (state, description) = self.status(commit).expect("a status");
        assert_eq!(state, "success");
        assert!(description.starts_with(&format!("{created} created")), "{description}");
    }
}

/// The files of a case of `cutlist preview`.
fn definitions(side: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preview/a-change").join(side);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())).collect()
}

fn until(within: Duration, what: &str, is_so: impl Fn() -> bool) -> Duration {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < within, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
    begin.elapsed()
}

/// Of a context other than the one that the other stories post.
fn status_of(stage: &Stage, commit: &str, context: &str) -> Option<(String, String)> {
    let all = stage.gitea.call("GET", &format!("{REPOSITORY}/commits/{commit}/status"), &stage.owner, &Value::Null);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = all["statuses"].as_array()?.iter().find(|it| it["context"] == context)?;
    Some((text(&found["status"]), text(&found["description"])))
}

fn reviewed(stage: &Stage) {
    let mut head = String::new();
    for (file, text) in definitions("head") {
        let path = format!("/api/v1/repos/author/nodes/contents/{file}");
        let branch = if head.is_empty() { "main" } else { "pools" };
        let known = stage.gitea.call("GET", &format!("{path}?ref={branch}"), &stage.author, &Value::Null);
        let mut body =
            json!({ "content": STANDARD.encode(text), "message": file, "branch": branch, "sha": known["sha"] });
        if head.is_empty() {
            body["new_branch"] = "pools".into();
        }
        head = stage.gitea.call("PUT", &path, &stage.author, &body)["commit"]["sha"].as_str().unwrap().to_owned();
    }
    let number = stage.open(&stage.author, "author:pools");
    let clusters = stage.folder.path().join("blue.yaml");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preview/clusters/blue.yaml"), &clusters).unwrap();
    let review = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.arg("review").arg(format!("{}/owner/nodes.git", stage.gitea.url()));
        command.arg("--cluster").arg(format!("blue={}", clusters.display())).args(["--forge", "gitea", "--url"]);
        command.arg(stage.gitea.url()).args([
            "--repository",
            "owner/nodes",
            "--require-approval",
            "--require-two-people",
        ]);
        command.arg("--token-file").arg(stage.folder.path().join("bot")).args(more);
        command.env_clear().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let once = || {
        let (code, stderr) = ended(review(&["--once"]));
        assert_eq!(code, 0, "{stderr}");
    };
    once();
    let ours = || -> Vec<String> {
        stage.comments(number).into_iter().filter(|(author, _)| author == "cutlist-bot").map(|(_, body)| body).collect()
    };
    assert_eq!(ours().len(), 1, "{:?}", ours());
    assert!(ours()[0].contains("Nodes of <code>blue</code>"), "{}", ours()[0]);
    let (state, description) = status_of(stage, &head, "cutlist/blue/approval").unwrap();
    let digest = description.strip_prefix("waits for: /cutlist approve ").unwrap().to_owned();
    assert_eq!(state, "pending");
    let say = |token: &str| {
        let body = json!({ "body": format!("/cutlist approve {digest}") });
        stage.gitea.call("POST", &format!("{REPOSITORY}/issues/{number}/comments"), token, &body);
    };
    // Everybody who may write can set the status.
    let approved = ("success".to_owned(), format!("approved by owner: plan {digest}"));
    let forged = json!({ "context": "cutlist/blue/approval", "state": "success", "description": approved.1 });
    stage.gitea.call("POST", &format!("{REPOSITORY}/statuses/{head}"), &stage.owner, &forged);
    once();
    assert_eq!(status_of(stage, &head, "cutlist/blue/approval").unwrap().0, "pending");
    say(&stage.author);
    once();
    assert!(ours().last().unwrap().contains("make it an administrator"), "{:?}", ours());
    let admin = json!({ "permission": "admin" });
    stage.gitea.call("PUT", &format!("{REPOSITORY}/collaborators/cutlist-bot"), &stage.owner, &admin);
    say(&stage.author);
    once();
    assert_eq!(status_of(stage, &head, "cutlist/blue/approval").unwrap().0, "pending");
    assert!(ours().last().unwrap().contains("only those who may write"), "{:?}", ours());
    say(&stage.owner);
    once();
    assert_eq!(status_of(stage, &head, "cutlist/blue/approval").unwrap(), approved);
    once();
    assert_eq!(ours().len(), 4, "a comment and three answers: {:?}", ours());
    soon_after_a_webhook(stage, &review);
    let before = ours().len();
    merged_and_planned(stage, number, &clusters);
    once();
    let told = ours().into_iter().next().unwrap();
    assert!(told.contains("#### After the merge") && told.contains("**done**"), "{told}");
    assert!(told.contains("<details>"), "the preview stays: {told}");
    assert_eq!(ours().len(), before);
}

/// The owner merges it, and a plan of the merge is in the cluster.
fn merged_and_planned(stage: &Stage, number: u64, cluster: &Path) {
    let merge = format!("{REPOSITORY}/pulls/{number}/merge");
    let is_merged = || stage.gitea.ask("POST", &merge, &stage.owner, &json!({ "Do": "merge" })).0 == 200;
    until(Duration::from_secs(20), "it can be merged", is_merged);
    let pull_request = stage.gitea.call("GET", &format!("{REPOSITORY}/pulls/{number}"), &stage.owner, &Value::Null);
    let revision = pull_request["merge_commit_sha"].as_str().unwrap();
    let plan = json!({
        "apiVersion": "cutlist.dev/v1alpha1", "kind": "NodePlan", "metadata": { "name": "6e4f22aa" },
        "spec": {
            "planId": "6e4f22aa", "revision": { "id": revision, "reference": "main" }, "generatedFor": "2026-11-20T09:00:00Z",
            "nodesCreated": 1, "nodesRemoved": 1, "priceChange": "+$0.0000/h",
        },
        "status": { "phase": "Applied" },
    });
    let text = std::fs::read_to_string(cluster).unwrap();
    std::fs::write(cluster, format!("{text}\n---\n{plan}\n")).unwrap();
}

/// With an interval of an hour, only the webhook tells that there is a new head.
fn soon_after_a_webhook(stage: &Stage, review: &dyn Fn(&[&str]) -> Child) {
    use std::io::BufRead;
    let secret = stage.folder.path().join("secret");
    std::fs::write(&secret, "a-secret-of-these-hooks").unwrap();
    let secret = secret.to_str().unwrap();
    let mut child = review(&["--interval", "1h", "--listen-hooks", "127.0.0.1:0", "--hook-secret-file", secret]);
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.find_map(|line| Some(line.split_once("webhooks at ")?.1.to_owned())).unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    let hook = json!({ "type": "gitea", "active": true, "events": ["push", "pull_request", "pull_request_sync", "issue_comment"],
                       "config": { "url": address, "content_type": "json", "secret": "a-secret-of-these-hooks" } });
    stage.gitea.call("POST", &format!("{REPOSITORY}/hooks"), &stage.owner, &hook);
    std::thread::sleep(Duration::from_secs(5));
    let head = stage.push("author/nodes", &stage.author, "pools", "README.txt");
    let took = until(Duration::from_secs(20), "a status after a webhook", || {
        status_of(stage, &head, "cutlist/blue").is_some()
    });
    println!("  a status {:.1} s after the push", took.as_secs_f64());
    child.kill().unwrap();
    child.wait().unwrap();
}

fn ended(child: Child) -> (i32, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn preview(head: &str, created: u64) -> Value {
    json!({
        "kind": "Preview", "version": 1, "base": { "id": "0".repeat(40), "reference": "main" }, "head": { "id": head },
        "generatedFor": "2026-11-20T09:00:00Z",
        "targets": [{
            "cluster": "prod", "environment": "eu", "verdict": "changes", "headline": format!("{created} created"),
            "plan": { "id": "b".repeat(64), "digest": format!("{created:064x}") },
            "markdown": { "summary": format!("**{created} created**\n"), "sections": [
                { "title": "pool default", "markdown": "<details><summary>pool</summary>\n\n```diff\n+ node\n```\n</details>\n" },
            ] },
        }],
    })
}

fn twenty_pushes(stage: &Stage) {
    let mut head = stage.push("owner/nodes", &stage.owner, "more-nodes", "more-0");
    let number = stage.open(&stage.owner, "more-nodes");
    let mut slowest = Duration::ZERO;
    for push in 1..=20 {
        let begin = Instant::now();
        stage.post(number, "bot", &preview(&head, push));
        slowest = slowest.max(begin.elapsed());
        if push < 20 {
            // Posted right after: the API may not know the commit yet.
            head = stage.push("owner/nodes", &stage.owner, "more-nodes", &format!("more-{push}"));
        }
    }
    stage.assert_posted(number, &head, 20);
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
}

fn late_job(stage: &Stage) {
    let older = stage.push("owner/nodes", &stage.owner, "late-job", "late-0");
    let number = stage.open(&stage.owner, "late-job");
    let newer = stage.push("owner/nodes", &stage.owner, "late-job", "late-1");
    stage.post(number, "bot", &preview(&newer, 2));
    let (code, stderr) = ended(stage.begin(number, "bot", &preview(&older, 1)));
    assert!(code == 0 && stderr.contains("at another commit than the preview"), "{stderr}");
    stage.assert_posted(number, &newer, 2);
    assert!(stage.status(&older).unwrap().1.starts_with("1 created"), "the status is of its commit");
}

fn five_at_once(stage: &Stage) {
    let head = stage.push("owner/nodes", &stage.owner, "at-once", "at-once");
    let number = stage.open(&stage.owner, "at-once");
    let running: Vec<Child> = (0..5).map(|_| stage.begin(number, "bot", &preview(&head, 4))).collect();
    for child in running {
        let (code, stderr) = ended(child);
        assert_eq!(code, 0, "{stderr}");
    }
    stage.assert_posted(number, &head, 4);
}

fn fork(stage: &Stage) {
    let head = stage.push("author/nodes", &stage.author, "proposal", "proposal");
    let number = stage.open(&stage.author, "author:proposal");
    stage.post(number, "bot", &preview(&head, 2));
    stage.assert_posted(number, &head, 2);
}

fn reader(stage: &Stage) {
    let head = stage.push("author/nodes", &stage.author, "reader", "reader");
    let number = stage.open(&stage.author, "author:reader");
    stage.post(number, "bot", &preview(&head, 1));
    let (code, stderr) = ended(stage.begin(number, "author", &preview(&head, 9)));
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("can not set the status") && stderr.contains("403"), "{stderr}");
    assert!(!stderr.contains(&stage.author), "a token is shown");
    stage.assert_posted(number, &head, 1);
}

fn protected_branch(stage: &Stage) {
    let rule =
        json!({ "rule_name": "main", "enable_status_check": true, "status_check_contexts": ["cutlist/prod/eu"] });
    stage.gitea.call("POST", &format!("{REPOSITORY}/branch_protections"), &stage.owner, &rule);
    let head = stage.push("owner/nodes", &stage.owner, "untouched", "untouched");
    let number = stage.open(&stage.owner, "untouched");
    let merge = || {
        stage.gitea.ask("POST", &format!("{REPOSITORY}/pulls/{number}/merge"), &stage.owner, &json!({ "Do": "merge" }))
    };
    let wait = |wanted: &dyn Fn(&(u16, Value)) -> bool| {
        let begin = Instant::now();
        loop {
            let answer = merge();
            if wanted(&answer) {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{answer:?}");
            std::thread::sleep(Duration::from_millis(500));
        }
    };
    // It says so of what it still looks at as well.
    wait(&|(status, answer)| *status == 405 && !answer.to_string().contains("try again"));
    let mut untouched = preview(&head, 0);
    untouched["targets"][0]["verdict"] = "untouched".into();
    untouched["targets"][0]["headline"] = "no definition differs".into();
    stage.post(number, "bot", &untouched);
    assert_eq!(stage.comments(number), [], "nothing to say");
    wait(&|(status, _)| *status == 200);
    assert!(stage.bot.len() > 20);
}
