//! From the artifact to nodes, and artifacts that are none.

use serde_json::{Value, json};

use super::{CLAIMS, Flux, PATIENCE, POOL, applied, names, plans_of, program, says, stays};
use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, Process};
use crate::interruptions::settles;
use crate::program::{ENFORCE, Program, USER, scale};
use crate::rights::{DEPLOYMENT, patched_pool, scenario, web};

/// A commit is fetched by Flux, planned with the artifact's revision, approved and carried out; the next one takes its place.
/// Cutlist is given no credential of Git, and asks for none.
pub fn flux_artifacts_become_plans(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let flux = Flux::start(plane, &cluster, scenario().0);
    let first = flux.head();
    flux.follow(&cluster);
    let program = program(plane, &cluster, ENFORCE);
    cluster.apply_all(&web());
    let asked = flux.git.requests();
    let mut cutlist = program.start_as("cutlist", plane, &["--approval", "disrupt=manual"]);
    scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "with the first commit", 4);
    applied(&cluster, &first);
    says(&cluster, &cutlist, 0, &[&format!("GitRepository/nodes.flux-system at main@sha1:{first}")]);
    let plans = plans_of(&cluster, &first);
    assert!(
        !plans.is_empty() && plans.iter().all(|plan| plan["spec"]["revision"]["reference"] == "main"),
        "{plans:#?}"
    );

    let second = flux.commit("nodepool.yaml", &labelled("second"));
    flux.fetch(&cluster, &second);
    let waiting = waits_for_approval(&cluster, &second);
    let third = flux.commit("nodepool.yaml", &labelled("third"));
    flux.fetch(&cluster, &third);
    let newer = waits_for_approval(&cluster, &third);
    cluster.wait("the older plan is superseded", PATIENCE, |cluster| {
        let phase = cluster.get(&format!("{}/{waiting}", super::PLANS)).unwrap()["status"]["phase"].take();
        if phase == "Superseded" { Ok(()) } else { Err(phase.to_string()) }
    });
    let before = names(&cluster.list(CLAIMS));
    plane.tool("kubectl", &["annotate", "nodeplan", &newer, "cutlist.dev/approved-by=admin"]).unwrap();
    cluster.wait("a node of the third commit", PATIENCE, |cluster| {
        let claims = cluster.list(CLAIMS);
        let is_new = |claim: &&Value| claim["metadata"]["labels"]["generation"] == "third";
        let has_one = claims.iter().any(|claim| is_new(&claim) && claim["status"]["nodeName"].is_string());
        if has_one { Ok(()) } else { Err(format!("{before:?} {:?}", names(&claims))) }
    });
    let labels: Vec<Value> =
        cluster.list(CLAIMS).iter().map(|claim| claim["metadata"]["labels"]["generation"].clone()).collect();
    assert!(!labels.contains(&json!("second")), "nobody approved that: {labels:?}");
    settles(&cluster, &program, "with the third commit", 4);

    // What the commit changes is not in the artifact: its digest is that of the one before.
    let fourth = flux.repository.commit(&Default::default(), "Nothing", jiff::Timestamp::now()).unwrap();
    flux.fetch(&cluster, &fourth);
    applied(&cluster, &fourth);
    assert_eq!(flux.git.authorized(), flux.git.requests(), "only with the password");
    let log = std::fs::read_to_string(plane.audit_log()).unwrap();
    let asks_for_secrets = |line: &&str| line.contains(USER) && line.contains(r#""resource":"secrets""#);
    assert_eq!(log.lines().find(asks_for_secrets), None);
    plane.say(format!("{} requests to the Git server, {asked} of them before Cutlist began", flux.git.requests()));
    cutlist.must_run();
}

/// Between the announcement and the download somebody puts another archive in its place: it is said, and nothing changes.
pub fn flux_artifacts_that_are_forged(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let flux = Flux::start(plane, &cluster, scenario().0);
    let (program, mut cutlist) = with_four_pods(plane, &cluster, &flux);
    let first = flux.head();
    let second = flux.commit("nodepool.yaml", &labelled("second"));
    let since = cutlist.log().len();
    cutlist.suspend();
    flux.fetch(&cluster, &second);
    std::fs::copy(flux.archive_of(&first), flux.archive_of(&second)).unwrap();
    cutlist.resume();
    says(&cluster, &cutlist, since, &["has an artifact that can not be had", "has the digest sha256:", "should have"]);
    stays("a forged artifact", || state(&cluster));
    assert_eq!(state(&cluster).0, json!(first));
    // What source-controller keeps it checks whenever it is asked for news, and makes it anew; Cutlist tries again by itself.
    flux.reconcile(&cluster);
    applied(&cluster, &second);
    cluster.wait("nodes of the second commit", PATIENCE, |cluster| {
        let claims = cluster.list(CLAIMS);
        let are_new = claims.iter().all(|claim| claim["metadata"]["labels"]["generation"] == "second");
        if are_new { Ok(()) } else { Err(format!("{:?}", names(&claims))) }
    });
    settles(&cluster, &program, "with the second commit", 4);
    cutlist.must_run();
}

/// Announced, and then source-controller is not there.
pub fn flux_artifacts_that_nobody_serves(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let mut flux = Flux::start(plane, &cluster, scenario().0);
    let (program, mut cutlist) = with_four_pods(plane, &cluster, &flux);
    let second = flux.commit("cutlist.yaml", &settings());
    let since = cutlist.log().len();
    cutlist.suspend();
    flux.fetch(&cluster, &second);
    flux.source_controller.kill();
    cutlist.resume();
    says(&cluster, &cutlist, since, &["has an artifact that can not be had", "127.0.0.1 can not be asked"]);
    stays("without source-controller", || state(&cluster));
    // Pods are cared for meanwhile.
    scale(&cluster, DEPLOYMENT, 6);
    settles(&cluster, &program, "without source-controller", 6);
    flux.restart(plane);
    applied(&cluster, &second);

    // Who starts while there is none has no last revision: it says what to look at, waits, and goes on by itself.
    flux.source_controller.kill();
    cutlist.kill();
    let mut early = program.start_as("early", plane, &[]);
    says(&cluster, &early, 0, &["waits for definitions: ", "let Cutlist reach source-controller"]);
    early.must_run();
    flux.restart(plane);
    scale(&cluster, DEPLOYMENT, 2);
    settles(&cluster, &program, "after a restart", 2);
    assert!(early.log().contains("the definitions came"), "{}", early.last_lines());
    early.must_run();
}

fn with_four_pods(plane: &ControlPlane, cluster: &Cluster, flux: &Flux) -> (Program, Process) {
    flux.follow(cluster);
    let program = program(plane, cluster, ENFORCE);
    cluster.apply_all(&web());
    let cutlist = program.start(plane);
    scale(cluster, DEPLOYMENT, 4);
    settles(cluster, &program, "with the first commit", 4);
    (program, cutlist)
}

/// The revision that is in force, and the nodes.
fn state(cluster: &Cluster) -> (Value, Vec<String>) {
    let pool = cluster.get(POOL).unwrap();
    (pool["metadata"]["annotations"]["cutlist.dev/revision"].clone(), names(&cluster.list(CLAIMS)))
}

/// The scenario's, with a line that changes nothing.
fn settings() -> String {
    let (_, files) = scenario();
    format!("{}# again\n", str::from_utf8(&files["cutlist.yaml"]).unwrap())
}

/// The pool of the scenario with a label, for which its nodes are replaced.
pub fn labelled(generation: &str) -> String {
    String::from_utf8(patched_pool()).unwrap().replace("generation: second", &format!("generation: {generation}"))
}

fn waits_for_approval(cluster: &Cluster, revision: &str) -> String {
    cluster.wait(&format!("a plan of {revision} that waits"), PATIENCE, |cluster| {
        let plans = plans_of(cluster, revision);
        let waits = plans.iter().find(|plan| plan["status"]["phase"] == "WaitsForApproval");
        waits.map(|plan| plan["metadata"]["name"].as_str().unwrap().to_owned()).ok_or_else(|| format!("{plans:#?}"))
    })
}
