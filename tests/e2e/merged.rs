//! From a pull request to nodes: previewed, approved where people review, merged, approved in the cluster for that, carried out, told.

use std::time::Duration;

use cutlist::adapters::git::ScriptedRepository;
use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster, documents};
use crate::control_plane::{ControlPlane, Process};
use crate::forges::GITHUB;
use crate::interruptions::settles;
use crate::program::{self, Program};
use crate::rights::{DEPLOYMENT, patched_pool, scenario, web};
use crate::server::{OURS, Server};

const PATIENCE: Duration = Duration::from_secs(90);
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const PLANS: &str = "/apis/cutlist.dev/v1alpha1/nodeplans";
/// Of the chart, as what carries plans out is of the Kustomize base.
const REVIEW: &[&str] = &[
    "template",
    "cutlist",
    "deploy/chart",
    "--namespace",
    "cutlist",
    "--kube-version",
    "1.35",
    "--show-only",
    "templates/review.yaml",
    "--set",
    "repository.url=https://git.example.com/nodes.git",
    "--set",
    "review.enabled=true,review.repository=acme/nodes,review.tokenSecret=forge",
    "--set",
    "review.requireApproval=true,review.requireTwoPeople=true,review.approveMerged=true",
];

pub fn what_was_approved_on_a_pull_request_is_carried_out_after_its_merge(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (repository, _) = scenario();
    let program = Program::prepare(plane, &cluster, repository.path().to_owned());
    cluster.apply_all(&web());
    let mut cutlist = program.start_as("cutlist", plane, &["--approval", "disrupt=manual,twoPeople=true"]);
    program::scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "before the change", 4);
    let names = || -> Vec<String> {
        cluster.list(CLAIMS).iter().map(|claim| claim["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let before = names();

    let (base, head) = propose(&repository);
    let forge = Server::start(GITHUB.router);
    forge.world().pull_requests = vec![pull_request(&base, &head)];
    let mut review = start_review(plane, &cluster, &repository, &forge);

    let approval = |state: &str| {
        let wanted = |what: &str| format!("the status of the approval is {state}: {what}");
        cluster.wait(&wanted("cutlist/demo/approval"), PATIENCE, |_| {
            let world = forge.world();
            let newest = world.statuses.iter().rev().find(|it| it.context == "cutlist/demo/approval");
            match newest {
                Some(status) if status.state == state => Ok(status.description.clone()),
                other => Err(format!("{other:?}\n{}", review.last_lines())),
            }
        })
    };
    let asked = approval("pending");
    let digest = asked.strip_prefix("waits for: /cutlist approve ").expect("it says how").to_owned();
    forge.world().comment_by("writer", &format!("/cutlist approve {digest}"));
    forge.world().pull_requests[0]["updated_at"] = json!("t1");
    assert_eq!(approval("success"), format!("approved by writer: plan {digest}"));
    assert_eq!(names(), before, "nothing is done before the merge");

    merge(&forge, &repository, &head);
    // As with every roll-out one node goes first. What comes after it is another plan, which nobody has approved.
    cluster.wait("the node that was shown is replaced", PATIENCE, |_| {
        let now = names();
        let is_replaced =
            now.len() == before.len() && now.iter().filter(|name| before.contains(name)).count() + 1 == now.len();
        if is_replaced { Ok(()) } else { Err(format!("{now:?}\n{}\n{}", cutlist.last_lines(), review.last_lines())) }
    });
    let plans = cluster.list(PLANS);
    let approved = plans.iter().find(|plan| !plan["metadata"]["annotations"]["cutlist.dev/approved-on"].is_null());
    let annotations = &approved.unwrap_or_else(|| panic!("{}", review.last_lines()))["metadata"]["annotations"];
    assert_eq!(annotations["cutlist.dev/approved-by"], "system:serviceaccount:cutlist:cutlist-review");
    assert_eq!(annotations["cutlist.dev/approved-on"], "pull request 7 by writer");
    let done = cluster.wait("the plan is done", PATIENCE, |cluster| {
        let all = cluster.list(PLANS);
        let plan =
            all.into_iter().find(|plan| plan["metadata"]["name"] == approved.unwrap()["metadata"]["name"]).unwrap();
        if plan["status"]["phase"] == "Applied" { Ok(plan) } else { Err(format!("{:#}", plan["status"])) }
    });
    assert!(
        done["status"]["message"].is_null(),
        "what waited is not said of what is done: {}",
        done["status"]["message"]
    );
    cluster.wait("the comment says what came of it", PATIENCE, |_| {
        let world = forge.world();
        let body = world.comments_by(GITHUB.bot).first().map(|it| it.body.clone()).unwrap_or_default();
        let parts = [
            "The first plan is the one shown below.",
            "**done**; 1 of 1 nodes as planned",
            "what writer approved on this pull request was another plan",
        ];
        if parts.iter().all(|part| body.contains(part)) { Ok(()) } else { Err(body) }
    });
    settles(&cluster, &program, "after the change", 4);
    cutlist.must_run();
    review.must_run();
}

/// `cutlist review` with the rights that the chart gives it, and no others.
fn start_review(plane: &ControlPlane, cluster: &Cluster, repository: &ScriptedRepository, forge: &Server) -> Process {
    for object in documents(&plane.tool("helm", REVIEW).unwrap()) {
        if object["kind"] != "Deployment" {
            cluster.apply(&object, Apply::ForReal).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
        }
    }
    let token = plane.folder().join("forge-token");
    std::fs::write(&token, OURS).unwrap();
    let mut command = std::process::Command::new(program::program());
    command.arg("review").arg(repository.path()).args(["--kubeconfig"]);
    command.arg(plane.kubeconfig_of("cutlist", "cutlist-review")).args(["--forge", "github", "--url", &forge.url]);
    command.args(["--repository", "acme/nodes", "--interval", "5s", "--token-file"]).arg(&token);
    command.args(["--without-simulation", "--require-approval", "--require-two-people", "--approve-merged"]);
    plane.run("review", command)
}

/// The pull request is merged on the forge, and its commit is the newest of `main`.
fn merge(forge: &Server, repository: &ScriptedRepository, head: &str) {
    let mut world = forge.world();
    world.last_id += 1;
    let merged = &mut world.pull_requests[0];
    merged["state"] = json!("closed");
    merged["merged_at"] = json!(jiff::Timestamp::now());
    merged["merge_commit_sha"] = json!(head);
    git2::Repository::open(repository.path())
        .unwrap()
        .reference("refs/heads/main", git2::Oid::from_str(head).unwrap(), true, "merged")
        .unwrap();
}

/// A commit that changes the pool, after that of `main`, and not yet there. Gives both.
fn propose(repository: &ScriptedRepository) -> (String, String) {
    let git = git2::Repository::open(repository.path()).unwrap();
    let main = git.find_reference("refs/heads/main").unwrap().peel_to_commit().unwrap();
    let blob = git.blob(&patched_pool()).unwrap();
    let mut tree = git.treebuilder(Some(&main.tree().unwrap())).unwrap();
    tree.insert("nodepool.yaml", blob, 0o100_644).unwrap();
    let tree = git.find_tree(tree.write().unwrap()).unwrap();
    let author = git2::Signature::now("Author", "author@example.com").unwrap();
    let head = git.commit(Some(GITHUB.head), &author, &author, "Label nodes", &tree, &[&main]).unwrap();
    (main.id().to_string(), head.to_string())
}

fn pull_request(base: &str, head: &str) -> Value {
    json!({
        "number": 7, "state": "open", "user": { "login": "author" }, "updated_at": "t0",
        "head": { "sha": head, "ref": "change", "repo": { "id": 1, "full_name": "acme/nodes" } },
        "base": { "ref": "main", "sha": base, "repo": { "id": 1 } },
        "merged_at": null, "merge_commit_sha": null,
    })
}
