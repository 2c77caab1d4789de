//! Sources that have nothing new, for every reason that users have or meet: not there, not ready, not signed, suspended, deleted.

use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Flux, PATIENCE, PLANS, SOURCE, plans_of, program, says, stays};
use crate::cluster::{Apply, Cluster};
use crate::control_plane::{ControlPlane, Process};
use crate::program::{Calls, OBSERVE, scale};
use crate::rights::{DEPLOYMENT, scenario, web};

/// Nothing of it changes what is in force, each is said with its reason, and what comes after it is used without a restart.
pub fn flux_sources_that_have_nothing_new(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let flux = Flux::start(plane, &cluster, scenario().0);
    let program = program(plane, &cluster, OBSERVE);
    cluster.apply_all(&web());
    scale(&cluster, DEPLOYMENT, 4);

    // At the start nothing is in force, and each is waited for.
    let mut cutlist = program.start(plane);
    let absent = "waits for definitions: GitRepository/nodes.flux-system is not there";
    says(&cluster, &cutlist, 0, &[absent, "check --source-ref"]);
    let mut elsewhere = flux.git_repository();
    elsewhere["spec"]["url"] = json!(flux.git.url("nothing.git"));
    cluster.apply(&elsewhere, Apply::ForReal).unwrap();
    cluster.wait("the source is not ready", PATIENCE, |cluster| {
        let status = cluster.get(SOURCE).unwrap()["status"].take();
        let is_known = status["conditions"].to_string().contains("GitOperationFailed");
        if is_known { Ok(()) } else { Err(format!("{status:#}")) }
    });
    says(&cluster, &cutlist, 0, &["has no artifact yet", "failed to checkout", "flux get sources"]);
    cutlist.must_run();

    flux.follow(&cluster);
    let first = flux.head();
    is_planned(&cluster, &first);

    // The forge does not answer.
    let since = cutlist.log().len();
    let password = |text: &str| {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git", "namespace": "flux-system" },
                             "stringData": { "username": "flux", "password": text } });
        cluster.apply(&secret, Apply::ForReal).unwrap();
    };
    password("another");
    flux.reconcile(&cluster);
    says(&cluster, &cutlist, since, &["is not ready, and its last artifact stays in use", "authentication"]);
    keeps(&cluster, &first);
    let since = cutlist.log().len();
    password(super::PASSWORD);
    flux.reconcile(&cluster);
    says(&cluster, &cutlist, since, &["repository can be read again"]);

    let second = signed(plane, &cluster, &flux, &cutlist, &first);
    let third = suspended(&cluster, &flux, &cutlist, &second);

    let since = cutlist.log().len();
    cluster.delete(SOURCE).unwrap();
    says(&cluster, &cutlist, since, &["GitRepository/nodes.flux-system is not there"]);
    keeps(&cluster, &third);
    let fourth = flux.commit("nodepool.yaml", &super::artifacts::labelled("fourth"));
    flux.follow(&cluster);
    is_planned(&cluster, &fourth);
    cutlist.must_run();
    let own = ["nodeplans", "nodeplans/status", "events", "leases"];
    let calls = Calls::so_far(plane);
    let others = calls.writes_beside(&own);
    assert!(others.is_empty(), "it observes: {others:?}");
    plane.say(calls.summary());
}

/// With `spec.verify` only what is signed by the right key comes; gives the commit that did.
fn signed(plane: &ControlPlane, cluster: &Cluster, flux: &Flux, cutlist: &Process, before: &str) -> String {
    let key = plane.folder().join("signing-key");
    let key = key.to_str().unwrap();
    run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "author", "-f", key]), "");
    let public = std::fs::read(format!("{key}.pub")).unwrap();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": "flux-system" },
                         "data": { "author.sshpub": STANDARD.encode(public) } });
    cluster.apply(&secret, Apply::ForReal).unwrap();
    let since = cutlist.log().len();
    let unsigned = flux.commit("nodepool.yaml", &super::artifacts::labelled("second"));
    let verify = json!({ "spec": { "verify": { "mode": "HEAD", "secretRef": { "name": "keys" } } } });
    cluster.patch(SOURCE, &verify).unwrap();
    flux.reconcile(cluster);
    says(cluster, cutlist, since, &["is not ready, and its last artifact stays in use", "signature"]);
    keeps(cluster, before);
    assert!(plans_of(cluster, &unsigned).is_empty());
    let signed = sign(flux.repository.path(), key);
    flux.fetch(cluster, &signed);
    is_planned(cluster, &signed);
    cluster.patch(SOURCE, &json!({ "spec": { "verify": null } })).unwrap();
    signed
}

/// A commit with the same files after that of `main`, signed.
fn sign(repository: &Path, key: &str) -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(repository).args(["-c", "gpg.format=ssh", "-c"]).arg(format!("user.signingkey={key}"));
        command.args(["-c", "user.name=Author", "-c", "user.email=author@example.com"]);
        run(command.args(arguments), "Sign\n")
    };
    let commit = git(&["commit-tree", "-S", "-p", "main", "main^{tree}"]);
    git(&["update-ref", "refs/heads/main", &commit]);
    commit
}

/// A source that is suspended is one on purpose: it is said, and is no error.
fn suspended(cluster: &Cluster, flux: &Flux, cutlist: &Process, before: &str) -> String {
    let since = cutlist.log().len();
    cluster.patch(SOURCE, &json!({ "spec": { "suspend": true } })).unwrap();
    says(cluster, cutlist, since, &["GitRepository/nodes.flux-system is suspended: what it fetched last stays in use"]);
    let commit = flux.commit("nodepool.yaml", &super::artifacts::labelled("third"));
    flux.ask(cluster);
    keeps(cluster, before);
    let log = cutlist.log();
    assert!(!log.split_at(since).1.contains("can not be read"), "{}", cutlist.last_lines());
    cluster.patch(SOURCE, &json!({ "spec": { "suspend": false } })).unwrap();
    flux.has_fetched(cluster, &commit);
    is_planned(cluster, &commit);
    assert!(cutlist.log().contains("is no longer suspended"), "{}", cutlist.last_lines());
    commit
}

fn is_planned(cluster: &Cluster, revision: &str) {
    cluster.wait(&format!("a plan of {revision}"), PATIENCE, |cluster| {
        if plans_of(cluster, revision).is_empty() { Err(revisions(cluster).join(", ")) } else { Ok(()) }
    });
}

/// No plan of anything else is posted.
fn keeps(cluster: &Cluster, revision: &str) {
    stays(revision, || revisions(cluster));
}

fn revisions(cluster: &Cluster) -> Vec<String> {
    let plans = cluster.list(PLANS);
    let mut all: Vec<String> = plans.iter().map(|plan| plan["spec"]["revision"]["id"].to_string()).collect();
    all.sort();
    all.dedup();
    all
}

fn run(command: &mut Command, input: &str) -> String {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
