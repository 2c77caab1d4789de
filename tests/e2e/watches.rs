//! Watches that hang in silence, end again and again, fail, or say what nobody can read, one kind at a time: no node goes under pods that are
//! not seen, and when they are well again all goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use cutlist::adapters::git::ScriptedRepository;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::interruptions::settles;
use crate::played;
use crate::program::{self, Program};
use crate::proxy::{Fault, Proxy};

const DEPLOYMENT: &str = "shop/web";
const PATIENCE: Duration = Duration::from_secs(60);
/// For how long a watch is not well: less than what is noticed, so that nobody knows.
const UNWELL: Duration = Duration::from_secs(40);
/// Of one that is known not to be: longer than an empty node stays.
const KNOWN_UNWELL: Duration = Duration::from_secs(20);
/// After which an empty node goes.
const CONSOLIDATE_AFTER: &str = "consolidateAfter: 10s";

/// What is not to go is known by these.
const KINDS: [&str; 4] = ["pods", "nodes", "nodeclaims", "poddisruptionbudgets"];
/// Others that are watched: a minute for each way to fail would be an hour.
const ALSO_FAIL: [&str; 4] = ["nodepools", "persistentvolumes", "daemonsets", "csinodes"];
const ALSO_DENIED: [&str; 4] = ["ec2nodeclasses", "persistentvolumeclaims", "deployments", "namespaces"];
const ALSO_GARBAGE: [&str; 4] = ["nodeplans", "volumeattachments", "replicasets", "storageclasses"];

pub fn watches_that_hang(plane: &mut ControlPlane) {
    play(plane, Fault::Hangs, &[], UNWELL);
}

pub fn watches_that_end(plane: &mut ControlPlane) {
    play(plane, Fault::Ends, &[], UNWELL);
}

pub fn watches_that_fail(plane: &mut ControlPlane) {
    play(plane, Fault::Answers(StatusCode::INTERNAL_SERVER_ERROR), &ALSO_FAIL, KNOWN_UNWELL);
}

pub fn watches_that_are_denied(plane: &mut ControlPlane) {
    play(plane, Fault::Answers(StatusCode::FORBIDDEN), &ALSO_DENIED, KNOWN_UNWELL);
}

pub fn watches_of_what_nobody_can_read(plane: &mut ControlPlane) {
    play(plane, Fault::Garbage, &ALSO_GARBAGE, KNOWN_UNWELL);
}

fn play(plane: &ControlPlane, fault: Fault, also: &[&str], unwell: Duration) {
    let cluster = plane.cluster();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/pool-label");
    let mut files = played::files(&folder);
    let pool = String::from_utf8(files["nodepool.yaml"].clone()).unwrap();
    let patient = pool.replace("consolidateAfter: 0s", CONSOLIDATE_AFTER);
    assert_ne!(patient, pool);
    files.insert("nodepool.yaml".to_owned(), patient.into_bytes());
    let repository = ScriptedRepository::create(&files, "Begin", Timestamp::now()).unwrap();
    let proxy = Proxy::start(plane.server(), &plane.certificate());
    let program = Program::prepare(plane, &cluster, repository.path().to_owned()).through(plane, &proxy.server());
    cluster.apply_all(&std::fs::read_to_string(folder.join("objects/web.yaml")).unwrap());
    let mut cutlist = program.start(plane);
    for resource in KINDS.iter().chain(also) {
        let context = format!("{resource}: {fault:?}");
        program::scale(&cluster, DEPLOYMENT, 4);
        settles(&cluster, &program, &format!("{context}: before"), 4);
        // The node is empty for a while, and then it is not, and nobody sees that.
        program::scale(&cluster, DEPLOYMENT, 0);
        cluster.wait("the pods are gone", PATIENCE, |cluster| {
            let pods = pods(cluster).len();
            if pods == 0 { Ok(()) } else { Err(format!("{pods} pods")) }
        });
        std::thread::sleep(Duration::from_secs(1));
        proxy.fail(resource, fault);
        program::scale(&cluster, DEPLOYMENT, 4);
        let began = Instant::now();
        let mut most = 0;
        while began.elapsed() < unwell {
            most = most.max(running_where_instances_run(&cluster, &program, &context));
            std::thread::sleep(Duration::from_millis(500));
        }
        cutlist.must_run();
        proxy.heal();
        settles(&cluster, &program, &format!("{context}: well again"), 4);
        plane.say(format!("{context}: {most} pods ran meanwhile, none lost its node"));
        program::scale(&cluster, DEPLOYMENT, 0);
        settles(&cluster, &program, &format!("{context}: nothing is left"), 0);
    }
    assert_eq!(program.launches(), program.claims().len(), "nothing was launched twice");
    cutlist.must_run();
}

fn pods(cluster: &Cluster) -> Vec<Value> {
    cluster.list("/api/v1/namespaces/shop/pods")
}

/// How many run. Each of them has its node, and the instance of that.
fn running_where_instances_run(cluster: &Cluster, program: &Program, context: &str) -> usize {
    let runs = |pod: &&Value| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null();
    let pods = pods(cluster);
    let instances = program.instances();
    let running: Vec<&Value> = pods.iter().filter(runs).collect();
    for pod in &running {
        let node = pod["spec"]["nodeName"].as_str().unwrap().to_owned();
        assert!(instances.contains(&node), "{context}: the instance of {node} ended under {}", pod["metadata"]["name"]);
    }
    running.len()
}
