//! `cutlist review` on a scripted forge and a real remote: plans what is proposed, and obeys those who may write.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use cutlist::adapters::forge::sealed;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::forges::{FORGES, Forge, GITHUB};
use super::laid_out::{everything_below, laid_out};
use super::previews::{Ran, ended};
use super::server::{OURS, Server};

pub struct Desk {
    pub server: Server,
    pub forge: Forge,
    pub folder: TempDir,
    pub head: String,
}

/// A repository whose branch `change` is pull request 7.
pub fn stage(forge: Forge, case: &str) -> Desk {
    let server = Server::start(forge.router);
    let folder = laid_out(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preview").join(case));
    let repository = git2::Repository::open(folder.path().join("repository")).unwrap();
    let head = repository.revparse_single("change").unwrap().id();
    repository.reference(forge.head, head, true, "opened").unwrap();
    std::fs::write(folder.path().join("token"), OURS).unwrap();
    let desk = Desk { server, forge, folder, head: head.to_string() };
    desk.opens();
    desk
}

impl Desk {
    /// The forge's list has the pull request, and it was touched.
    pub fn opens(&self) {
        let mut world = self.server.world();
        let moment = world.last_id + 1;
        let of_actions = json!({
            "number": 7, "state": "open", "user": { "login": "author" }, "updated_at": format!("t{moment}"),
            "head": { "sha": self.head, "ref": "change", "repo": { "id": 2, "full_name": "author/fork" }, "repo_id": 2 },
            "base": { "ref": "main", "sha": "x", "repo": { "id": 1 }, "repo_id": 1 },
            "merged_at": null, "merge_commit_sha": null,
        });
        let of_gitlab = json!({
            "iid": 7, "state": "opened", "author": { "username": "author" }, "updated_at": format!("t{moment}"),
            "sha": self.head, "source_branch": "change", "target_branch": "main", "source_project_id": 2, "target_project_id": 1,
        });
        world.pull_requests = vec![if self.forge.name == "gitlab" { of_gitlab } else { of_actions }];
    }

    /// The pull request was merged, and is listed as that.
    pub fn merges(&self) -> String {
        let repository = git2::Repository::open(self.remote()).unwrap();
        let commit = |name: &str| repository.revparse_single(name).unwrap().peel_to_commit().unwrap();
        let (main, change) = (commit("main"), commit("change"));
        let tree = repository.merge_commits(&main, &change, None).unwrap().write_tree_to(&repository).unwrap();
        let (tree, author) = (repository.find_tree(tree).unwrap(), main.author());
        let merge = repository
            .commit(Some("refs/heads/main"), &author, &author, "Merge it", &tree, &[&main, &change])
            .unwrap()
            .to_string();
        let mut world = self.server.world();
        let is_gitlab = self.forge.name == "gitlab";
        let pull_request = world.pull_requests.first_mut().unwrap();
        pull_request["state"] = json!(if is_gitlab { "merged" } else { "closed" });
        pull_request["merged_at"] = json!(jiff::Timestamp::now());
        pull_request["merge_commit_sha"] = json!(merge);
        world.last_id += 1;
        merge
    }

    /// A plan of a revision was posted in the cluster.
    pub fn posts_plan(&self, revision: &str, minute: u32, status: Value) {
        let snapshot = self.folder.path().join("clusters/blue.yaml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command
            .arg("plan")
            .arg(self.remote())
            .args(["--revision", revision, "-o", "json", "--snapshot"])
            .arg(&snapshot);
        let planned = command.stderr(Stdio::null()).output().unwrap();
        let plan: Value = serde_json::from_slice(&planned.stdout).unwrap();
        let object = json!({
            "apiVersion": "cutlist.dev/v1alpha1", "kind": "NodePlan", "metadata": { "name": format!("plan-{minute}") },
            "spec": {
                "planId": plan["id"], "revision": { "id": revision, "reference": "main" },
                "generatedFor": format!("2026-11-20T09:{minute:02}:00Z"),
                "nodesCreated": plan["summary"]["nodesCreated"], "nodesRemoved": plan["summary"]["nodesRemoved"],
                "priceChange": "+$0.1000/h", "plan": plan,
            },
            "status": status,
        });
        let text = std::fs::read_to_string(&snapshot).unwrap();
        std::fs::write(&snapshot, format!("{text}\n---\n{object}\n")).unwrap();
    }

    pub fn says(&self, author: &str, text: &str) {
        self.server.world().comment_by(author, text);
        self.opens();
    }

    pub fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.current_dir(self.folder.path()).arg("review").arg(self.remote());
        command.args(["--cluster", "blue=clusters/blue.yaml", "--forge", self.forge.name, "--url", &self.server.url]);
        command.args(["--repository", "acme/nodes", "--token-file", "token", "--without-simulation"]).args(more);
        // One that is killed leaves its clone where it is removed with the rest.
        command.env_clear().env("TMPDIR", self.folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn remote(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    #[track_caller]
    pub fn look(&self, more: &[&str]) -> Ran {
        let ran = ended(self.command(&[&["--once"], more].concat()).spawn().unwrap());
        assert_eq!(ran.code, 0, "{}: {}", self.forge.name, ran.stderr);
        ran
    }

    pub fn bodies(&self) -> Vec<String> {
        self.server.world().comments_by(self.forge.bot).iter().map(|it| it.body.clone()).collect()
    }

    pub fn status(&self, context: &str) -> Option<(String, String)> {
        let world = self.server.world();
        let found = world.statuses.iter().rev().find(|it| it.commit == self.head && it.context == context)?;
        Some((found.state.clone(), found.description.clone()))
    }
}

#[test]
fn what_is_proposed_is_planned_and_posted_once() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let before = everything_below(&desk.remote());
        desk.look(&[]);
        assert!(before == everything_below(&desk.remote()), "something was written to the repository");
        let bodies = desk.bodies();
        assert_eq!(bodies.len(), 1, "{}: {bodies:?}", forge.name);
        assert!(
            bodies[0].contains("### Nodes of <code>blue</code>") && bodies[0].contains("<details>"),
            "{}",
            bodies[0]
        );
        let (state, description) = desk.status("cutlist/blue").unwrap();
        assert!(state == "success" && description.contains(" · plan "), "{description}");
        // Another process, which knows nothing of the first.
        let writes = desk.server.world().writes().len();
        desk.look(&[]);
        assert_eq!(desk.server.world().writes().len(), writes, "{}", forge.name);
    }
}

#[test]
fn where_nothing_of_ours_changed_only_the_status_is_set() {
    let desk = stage(GITHUB, "nothing-of-ours");
    desk.look(&[]);
    assert!(desk.bodies().is_empty());
    assert_eq!(desk.status("cutlist/blue").unwrap().0, "success");
}

#[test]
fn a_conflict_is_told() {
    let desk = stage(GITHUB, "merge-conflict");
    desk.look(&[]);
    assert_eq!(desk.status("cutlist/blue").unwrap().0, "failure");
    assert_eq!(desk.bodies().len(), 1);
}

#[test]
fn a_plan_is_approved_by_those_who_may_write() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let asks: &[&str] = &["--require-approval", "--require-two-people"];
        desk.look(asks);
        let (state, description) = desk.status("cutlist/blue/approval").unwrap();
        let digest = description.strip_prefix("waits for: /cutlist approve ").unwrap().to_owned();
        assert_eq!(state, "pending");

        let command = format!("/cutlist approve {digest}");
        desk.says("reader", &command);
        desk.says("author", &command);
        desk.says("writer", "/cutlist approve");
        desk.says("writer", "/cutlist approve 000000000000");
        desk.says("writer", &format!("> {command}"));
        let next = desk.server.world().last_id + 1;
        desk.server.world().edited.insert(next);
        desk.says("writer", &command);
        desk.look(asks);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap().0, "pending");
        let answers: Vec<String> = desk.bodies().into_iter().filter(|it| it.contains("cutlist:answer")).collect();
        assert_eq!(answers.len(), 4, "{}: {answers:?}", forge.name);
        assert!(answers[0].contains("only those who may write"), "{answers:?}");
        assert!(answers[1].contains("somebody else than the author"), "{answers:?}");
        assert!(answers[2].contains(&digest), "{answers:?}");
        assert!(answers[3].contains("no plan of this commit is 000000000000"), "{answers:?}");

        desk.says("writer", &command);
        desk.look(asks);
        let (state, description) = desk.status("cutlist/blue/approval").unwrap();
        assert_eq!((state.as_str(), description), ("success", format!("approved by writer: plan {digest}")));
        // A later process finds it on the commit, and answers nothing twice.
        let writes = desk.server.world().writes().len();
        desk.look(asks);
        assert_eq!(desk.server.world().writes().len(), writes, "{}", forge.name);
    }
}

/// The answers to commands, oldest first.
pub fn answers(desk: &Desk) -> Vec<String> {
    desk.bodies().into_iter().filter(|it| it.contains("cutlist:answer")).collect()
}

/// Requests about who is in a team.
fn about_teams(desk: &Desk) -> usize {
    let world = desk.server.world();
    world.requests.iter().filter(|it| it.path.contains("/teams/") || it.path.contains("/groups/")).count()
}

#[test]
fn a_plan_is_approved_by_a_team_that_the_operator_names() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let asks: &[&str] = &["--require-approval", "--approvers", "acme/platform"];
        desk.server.world().team.insert("reader".to_owned());
        desk.look(asks);
        assert_eq!(about_teams(&desk), 0, "{}: nobody asked for anything", forge.name);
        let waits = desk.status("cutlist/blue/approval").unwrap().1;
        let digest = waits.strip_prefix("waits for: /cutlist approve ").unwrap().to_owned();
        for author in ["outsider", "outsider", "outsider"] {
            desk.says(author, &format!("/cutlist approve {digest}"));
        }
        desk.look(asks);
        let said = answers(&desk);
        assert_eq!(said.len(), 3);
        assert!(
            said.iter()
                .all(|it| it.contains("only those who may write to this repository, and members of acme/platform,")),
            "{}: {said:?}",
            forge.name
        );
        assert!(about_teams(&desk) <= 2, "{}: asked once for three comments", forge.name);

        desk.says("reader", &format!("/cutlist approve {digest}"));
        desk.look(asks);
        let status = desk.status("cutlist/blue/approval").unwrap();
        assert_eq!(status, ("success".to_owned(), format!("approved by reader: plan {digest}")), "{}", forge.name);
        if forge.name == "github" {
            assert_eq!(super::described::complaints_of(&desk.server), Vec::<String>::new());
        }
    }
}

#[test]
fn where_only_a_team_approves_those_who_may_write_ask_all_the_same() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let asks: &[&str] = &["--require-approval", "--approvers", "acme/platform", "--approvers-only"];
        desk.server.world().team.insert("reader".to_owned());
        desk.look(asks);
        let waits = desk.status("cutlist/blue/approval").unwrap().1;
        let digest = waits.strip_prefix("waits for: /cutlist approve ").unwrap().to_owned();
        desk.says("writer", "/cutlist plan");
        desk.says("writer", &format!("/cutlist approve {digest}"));
        desk.look(asks);
        let said = answers(&desk);
        assert!(said[0].contains("Planned again"), "{said:?}");
        assert!(said[1].contains("only members of acme/platform can ask for that"), "{said:?}");
        desk.says("reader", &format!("/cutlist approve {digest}"));
        desk.look(asks);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap().0, "success", "{}", forge.name);
    }
}

#[test]
fn a_team_that_is_not_shown_to_the_account_is_said_to_be_that() {
    for (forge, needs) in FORGES.into_iter().zip(["Members: read", "read:organization", "a member of the group"]) {
        let desk = stage(forge, "a-change");
        let asks: &[&str] = &["--require-approval", "--approvers", "acme/platform"];
        {
            let mut world = desk.server.world();
            world.team.insert("reader".to_owned());
            world.hides_team = true;
        }
        desk.look(asks);
        desk.says("reader", "/cutlist approve 0000000");
        desk.look(asks);
        let said = answers(&desk);
        assert!(said.len() == 1 && said[0].contains("Who is in acme/platform is not told to this account"), "{said:?}");
        assert!(said[0].contains(needs), "{}: {said:?}", forge.name);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap().0, "pending");
        // Whoever may write needs no team.
        desk.says("writer", "/cutlist plan");
        desk.look(asks);
        assert!(answers(&desk)[1].contains("Planned again"));
    }
    let desk = stage(GITHUB, "a-change");
    let ran = ended(desk.command(&["--once", "--require-approval", "--approvers", "platform"]).spawn().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("write ORGANIZATION/TEAM"), "{}", ran.stderr);
}

/// A cluster whose snapshot takes as long to read as is wanted.
#[test]
fn a_commit_says_that_its_plan_takes_a_while() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let snapshot = desk.folder.path().join("clusters/blue.yaml");
        let content = std::fs::read(&snapshot).unwrap();
        std::fs::remove_file(&snapshot).unwrap();
        assert!(Command::new("mkfifo").arg(&snapshot).status().unwrap().success());
        desk.server.world().pull_requests.clear();
        let child = desk.command(&["--interval", "5s"]).spawn().unwrap();
        let has_looked = || desk.server.world().requests.iter().filter(|it| it.path.ends_with("s")).count() >= 2;
        until("a look", has_looked);
        desk.opens();
        until("pending", || desk.status("cutlist/blue").is_some());
        assert_eq!(desk.status("cutlist/blue").unwrap(), ("pending".to_owned(), "is being planned".to_owned()));
        std::fs::write(&snapshot, &content).unwrap();
        until("posted", || desk.status("cutlist/blue").unwrap().0 == "success" && desk.bodies().len() == 1);
        until("checked", || forge.name != "github" || desk.server.world().checks.len() == 1);
        stopped(child);
        assert!(desk.status("cutlist/blue").unwrap().1.contains(" · plan "));
        let world = desk.server.world();
        let all = &world.requests;
        let is_write = |it: &super::server::Request| it.method != "GET";
        let (first, last) = (all.iter().position(is_write).unwrap(), all.iter().rposition(is_write).unwrap());
        // Lists of what is open are asked for whatever there is to plan.
        let shown = |it: &super::server::Request| format!("{} {}", it.method, it.path);
        let mut of_preview: Vec<String> = all[first..=last].iter().map(shown).collect();
        of_preview.retain(|it| !it.ends_with("/pulls") && !it.ends_with("/merge_requests"));
        assert!(of_preview.len() <= 6, "{}: {of_preview:?}", forge.name);
        drop(world);

        // What a commit has stays until there is something else.
        std::fs::remove_file(&snapshot).unwrap();
        assert!(Command::new("mkfifo").arg(&snapshot).status().unwrap().success());
        let writes = desk.server.world().writes().len();
        let child = desk.command(&["--once"]).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(desk.status("cutlist/blue").unwrap().0, "success", "{}", forge.name);
        std::fs::write(&snapshot, &content).unwrap();
        ended(child);
        assert_eq!(desk.server.world().writes().len(), writes, "{}", forge.name);
    }
}

#[test]
fn what_came_of_a_merge_is_told_where_it_was_previewed() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        desk.look(&[]);
        let before = desk.bodies();
        let merge = desk.merges();
        desk.look(&[]);
        assert_eq!(desk.bodies(), before, "{}: nothing is known yet", forge.name);

        desk.posts_plan(&merge, 1, json!({ "phase": "WaitsForApproval", "message": "moves 1 and 2 wait" }));
        desk.look(&[]);
        let bodies = desk.bodies();
        assert_eq!(bodies.len(), 1, "{}: {bodies:?}", forge.name);
        let told = &bodies[0];
        assert!(
            told.contains(&format!(
                "Merged as <code>{}</code>. The first plan is the one shown below.",
                digits(&merge)
            )),
            "{told}"
        );
        assert!(
            told.contains("**waits for an approval**: <code>cutlist approve ") && told.contains("2026-11-20 09:01 UTC"),
            "{told}"
        );
        // Only the seal in the last line is another one.
        let shown = |body: &str| body.rsplit_once("<!-- cutlist:seal:").unwrap().0.to_owned();
        assert!(shown(told).ends_with(shown(&before[0]).splitn(3, '\n').nth(2).unwrap()), "{told}");
        // A later process has nothing to add.
        let writes = desk.server.world().writes().len();
        desk.look(&[]);
        assert_eq!(desk.server.world().writes().len(), writes, "{}", forge.name);

        desk.posts_plan(&merge, 2, json!({ "phase": "Applied" }));
        desk.look(&[]);
        let bodies = desk.bodies();
        assert!(bodies.len() == 1 && bodies[0].contains("**done**"), "{bodies:?}");
    }
}

#[test]
fn a_merge_of_which_there_is_no_plan_came_with_the_one_after_it() {
    let desk = stage(GITHUB, "a-change");
    let child = desk.command(&["--interval", "5s"]).spawn().unwrap();
    until("posted", || desk.bodies().len() == 1);
    let merge = desk.merges();
    let repository = git2::Repository::open(desk.remote()).unwrap();
    let parent = repository.find_commit(git2::Oid::from_str(&merge).unwrap()).unwrap();
    let (tree, author) = (parent.tree().unwrap(), parent.author());
    let next = repository.commit(Some("refs/heads/main"), &author, &author, "Another", &tree, &[&parent]).unwrap();
    desk.posts_plan(&next.to_string(), 1, json!({ "phase": "Applying" }));
    until("told", || desk.bodies()[0].contains("After the merge"));
    stopped(child);
    let body = desk.bodies().remove(0);
    assert!(
        body.contains(&format!("planned with what came after it as <code>{}</code>", digits(&next.to_string()))),
        "{body}"
    );
    assert!(body.contains("under way"), "{body}");
}

#[test]
fn nothing_is_approved_in_a_snapshot() {
    let desk = stage(GITHUB, "a-change");
    let ran = ended(desk.command(&["--once", "--require-approval", "--approve-merged"]).spawn().unwrap());
    assert!(ran.code == 2 && ran.stderr.contains("--cluster names a snapshot"), "{}", ran.stderr);
}

#[test]
fn a_question_is_answered_as_it_would_be_after_the_merge() {
    let desk = stage(GITHUB, "a-change");
    desk.look(&[]);
    for (author, text) in [
        ("reader", "/cutlist why pod api"),
        ("writer", "/cutlist why pod shop/api"),
        ("writer", "/cutlist why node ip-10-0-1-10.ec2.internal"),
        ("writer", "/cutlist why pod shop/apj-5ndtddlp8h-w7mn8"),
        ("writer", "/cutlist why"),
    ] {
        desk.says(author, text);
    }
    desk.look(&[]);
    let answers: Vec<String> = desk.bodies().into_iter().filter(|it| it.contains("cutlist:answer")).collect();
    let shown = answers.iter().map(|it| it.replace(digits(&desk.head), "HEAD000")).collect::<Vec<_>>().join("----\n");
    // Their numbers depend on how often a status was set before.
    let numbers = shown.split(" to=").map(|it| it.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    let shown = numbers.collect::<Vec<_>>().join(" to=");
    insta::assert_snapshot!(shown);
}

/// The base tells that the pool was ours, which nothing in the cluster does.
#[test]
fn an_answer_takes_a_pool_for_removed_as_the_preview_does() {
    let desk = stage(GITHUB, "pool-renamed");
    // Its claim, which stands first, is as good as new whenever this runs.
    let snapshot = desk.folder.path().join("clusters/with-pools.yaml");
    let text = std::fs::read_to_string(&snapshot).unwrap();
    std::fs::write(&snapshot, text.replacen("expireAfter: 720h", "expireAfter: Never", 1)).unwrap();
    let clusters = ["--cluster", "green=clusters/with-pools.yaml"];
    desk.look(&clusters);
    desk.says("writer", "/cutlist why node ip-10-0-1-10.ec2.internal");
    desk.look(&clusters);
    let answer = desk.bodies().into_iter().find(|it| it.contains("cutlist:answer")).unwrap();
    let words = answer.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the node stays, and NodePool general takes it over"), "{answer}");
}

/// What people read of a commit.
fn digits(commit: &str) -> &str {
    commit.get(..7).unwrap()
}

pub fn stopped(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn an_idle_round_is_one_request() {
    let desk = stage(GITHUB, "a-change");
    let child = desk.command(&["--interval", "5s"]).spawn().unwrap();
    let lists = || desk.server.world().requests.iter().filter(|it| it.path.ends_with("/pulls")).count();
    until("posted", || {
        desk.bodies().len() == 1 && desk.server.world().requests.iter().any(|it| it.path.contains("comments"))
    });
    // What was new is looked at once more, when its second is over.
    until("some rounds", || lists() >= 4);
    let begin = desk.server.world().requests.len();
    let so_far = lists();
    until("three more rounds", || lists() >= so_far + 3);
    stopped(child);
    let world = desk.server.world();
    let idle: Vec<&str> = world.requests[begin..].iter().map(|it| it.path.as_str()).collect();
    assert!(idle.iter().all(|path| path.ends_with("/pulls")), "{idle:?}");
    assert!(world.requests.last().unwrap().headers.contains_key("if-none-match"), "a tag makes it free");
}

fn deliver(address: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "POST /hooks HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nConnection: close\r\n{lines}\r\n",
        body.len()
    );
    // What is too long is refused before all of it was read.
    let _cut = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let mut answer = Vec::new();
    let _cut = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// As of two clusters with the same settings. What the other one wrote is read as its own: only that it changed tells.
#[test]
fn another_process_of_the_same_name_is_told_of_once() {
    let desk = stage(GITHUB, "a-change");
    let child = desk.command(&["--interval", "5s"]).spawn().unwrap();
    until("the first look", || desk.bodies().len() == 1);
    let written = desk.server.world().comments[0].body.clone();
    let other =
        written.lines().enumerate().map(|(number, line)| if number == 1 { "<!-- cutlist:data {} -->" } else { line });
    desk.server.world().comments[0].body = sealed(&other.collect::<Vec<_>>().join("\n"));
    for _ in 0..2 {
        let lists = || desk.server.world().requests.iter().filter(|it| it.path.ends_with("/comments")).count();
        let before = lists();
        desk.says("reviewer", "hm");
        until("another look", || lists() > before);
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let ran = ended(child);
    assert_eq!(ran.stderr.matches("another process posts as cutlist to pull request 7").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("--name"), "{}", ran.stderr);
}

/// As Kubernetes and systemd end a process.
#[test]
fn who_is_told_to_end_leaves_no_clone_behind() {
    let desk = stage(GITHUB, "a-change");
    let temporary = desk.folder.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let child = desk.command(&["--interval", "1h"]).env("TMPDIR", &temporary).spawn().unwrap();
    until("the first look", || desk.bodies().len() == 1);
    assert!(!everything_below(&temporary).is_empty());
    let told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let ran = ended(child);
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_webhook_shortens_the_wait_and_proves_whom_it_is_from() {
    const SECRET: &str = "a-secret-of-these-hooks";
    let desk = stage(GITHUB, "a-change");
    std::fs::write(desk.folder.path().join("secret"), SECRET).unwrap();
    std::fs::write(desk.folder.path().join("short"), "short").unwrap();
    for (file, said) in [("short", "at least 16 characters"), ("none", "could be sent by anybody")] {
        let ran = ended(desk.command(&["--listen-hooks", "127.0.0.1:0", "--hook-secret-file", file]).spawn().unwrap());
        assert!(ran.code == 1 && ran.stderr.contains(said), "{}", ran.stderr);
    }
    let mut child = desk
        .command(&["--interval", "1h", "--listen-hooks", "127.0.0.1:0", "--hook-secret-file", "secret"])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address =
        lines.find_map(|line| Some(line.split_once("http://")?.1.strip_suffix("/hooks")?.to_owned())).unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    until("the first look", || desk.bodies().len() == 1);
    let body = json!({ "action": "synchronize", "padding": "" }).to_string();
    let sign = |body: &str| {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body.as_bytes());
        let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256={digits}")
    };
    let good = sign(&body);
    let event = ("x-github-event", "pull_request");
    let send = |signature: &str, delivery: &str, body: &str| {
        deliver(&address, &[event, ("x-hub-signature-256", signature), ("x-github-delivery", delivery)], body)
    };
    // Those that were merged are asked for once, at the end of the first look.
    let is_open = |it: &&super::server::Request| it.query.get("state").map(String::as_str) == Some("open");
    let lists = || desk.server.world().requests.iter().filter(is_open).count();
    let before = lists();
    assert_eq!(deliver(&address, &[event, ("x-github-delivery", "a")], &body), 401, "no signature");
    for signature in ["", "sha256=", &sign("{}"), good.trim_start_matches('s'), &good.replace("sha256=", "sha1=")] {
        assert_eq!(send(signature, "a", &body), 401, "{signature}");
    }
    let huge = format!("{{\"x\":\"{}\"}}", "x".repeat(2 << 20));
    assert_eq!(send(&sign(&huge), "b", &huge), 413);
    let form = "payload=%7B%7D";
    assert_eq!(send(&sign(form), "f", form), 415, "whoever set it up sees that it comes to nothing");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(lists(), before, "nothing of that makes it look");
    assert_eq!(send(&good, "c", &body), 202);
    let begin = Instant::now();
    until("a look", || lists() == before + 1);
    assert!(begin.elapsed() < Duration::from_secs(3));
    assert_eq!(send(&good, "c", &body), 409, "the same delivery again");
    assert_eq!(send(&good, "d", &body), 409, "under another name, which is not signed");
    stopped(child);
}
