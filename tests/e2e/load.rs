//! Many pods out and in, with time, memory and requests printed, beside what the reference took on such a control plane
//! (Karpenter 1.14 with its kwok provider, 2 cores, one run).

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, Process};
use crate::interruptions;
use crate::program::{self, Calls, Program};

const PATIENCE: Duration = Duration::from_secs(300);
const PODS: u32 = 1000;

const MANY: u32 = 5000;
const FEW: u32 = 1500;
const LONG_PATIENCE: Duration = Duration::from_secs(1800);
/// Longer than a plan waits for the next one.
const REST: Duration = Duration::from_secs(40);
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
/// As Linux counts CPU time for everybody.
const TICKS_PER_SECOND: u64 = 100;
const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";

pub fn a_thousand_pods(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = interruptions::prepare(plane, &cluster);
    let mut cutlist = program.start(plane);
    let begin = Instant::now();
    program::scale(&cluster, "shop/web", PODS);
    cluster.wait("all pods run", PATIENCE, |cluster| {
        let running = program::running(&program::objects(cluster));
        if running == usize::try_from(PODS).unwrap() { Ok(()) } else { Err(format!("{running} pods run")) }
    });
    let nodes = cluster.list("/api/v1/nodes").len();
    plane.say(format!(
        "{:5.1} s  {PODS} pods run on {nodes} nodes (the reference: 32.5 s)",
        begin.elapsed().as_secs_f64()
    ));
    let (as_planned, planned) = program::fidelity(&cluster);
    plane.say(format!(
        "{as_planned} of {planned} pods on the node that was planned; {}",
        Calls::so_far(plane).summary()
    ));
    let begin = Instant::now();
    program::scale(&cluster, "shop/web", 0);
    cluster.wait("no pod and no node is left", PATIENCE, |cluster| {
        let left = program::objects(cluster).len();
        if left == 0 { Ok(()) } else { Err(format!("{left} objects are left")) }
    });
    plane.say(format!("{:5.1} s  pods and nodes are gone (the reference: 104 s)", begin.elapsed().as_secs_f64()));
    cutlist.must_run();
    plane.say(format!("{} MiB at most; {}", peak_memory(&cutlist), Calls::so_far(plane).summary()));
}

/// Five thousand pods out, the same again on nodes that are there already and with nobody but the control plane at work, then in to
/// fifteen hundred. Takes ten minutes with a program that was built for use:
/// `CUTLIST=target/release/cutlist make e2e CASES=five_thousand_pods`.
pub fn five_thousand_pods(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = Program::prepare_with(plane, &cluster, "tests/e2e/load");
    cluster.apply_all(program::WEB);
    let mut cutlist = program.start(plane);
    cluster.wait("the pool is there", PATIENCE, |cluster| {
        let pools = cluster.list(POOLS);
        if pools.len() == 1 { Ok(()) } else { Err(cutlist.last_lines()) }
    });
    let (begin, began) = (Instant::now(), Timestamp::now());
    program::scale(&cluster, "shop/web", MANY);
    wait_for_ready(&cluster, MANY);
    let running = begin.elapsed().as_secs_f64();
    let claims = cluster.list(CLAIMS);
    let last = |objects: &[Value]| {
        let created = objects.iter().map(|object| object["metadata"]["creationTimestamp"].as_str().unwrap());
        let latest: Timestamp = created.max().unwrap().parse().unwrap();
        latest.duration_since(began).as_secs()
    };
    let last_pod = last(&cluster.list("/api/v1/namespaces/shop/pods"));
    let price = price_per_hour(&program);
    plane.say(format!(
        "{running:5.1} s  {MANY} pods run on {} nodes, ${price:.2}/h; last pod after {last_pod} s, last claim after {} s (the \
         reference: 197 s on 335 nodes, last claim after 162 s)",
        claims.len(),
        last(&claims),
    ));
    let calls = Calls::so_far(plane);
    let (as_planned, planned) = program::fidelity(&cluster);
    plane.say(format!("{as_planned} of {planned} pods on the node that was planned"));
    plane.say(format!("{}; {}", effort(&cutlist), calls.summary()));
    cutlist.must_run();
    cutlist.kill();
    for (floor, what) in [
        (seconds_on_nodes_that_are_there(&cluster), "on these nodes"),
        (
            seconds_on_nodes_that_open_late(&cluster),
            "on these nodes, open only when kube-scheduler had refused every pod",
        ),
    ] {
        plane.say(format!("{floor:5.1} s  for the same without Cutlist, {what}: {:.2} times that", running / floor));
    }
    let mut cutlist = program.start_as("cutlist-again", plane, &[]);
    cluster.wait("Cutlist looks again", PATIENCE, |_| {
        let log = cutlist.log();
        if log.contains("posted plan") { Ok(()) } else { Err(cutlist.last_lines()) }
    });
    let begin = Instant::now();
    program::scale(&cluster, "shop/web", FEW);
    let (nodes, settled) = wait_for_rest(&cluster, claims.len());
    plane.say(format!(
        "{:5.1} s  {FEW} pods on {nodes} of {} nodes, {:.1} % of the price (the reference: 505 s, 335 to 102 nodes, 30.0 %)",
        settled.duration_since(begin).as_secs_f64(),
        claims.len(),
        100.0 * price_per_hour(&program) / price
    ));
    wait_for_ready(&cluster, FEW);
    plane.say(format!("{}; {}", effort(&cutlist), Calls::so_far(plane).summary()));
    cutlist.must_run();
}

fn seconds_on_nodes_that_are_there(cluster: &Cluster) -> f64 {
    remove_all_pods(cluster);
    let begin = Instant::now();
    program::scale(cluster, "shop/web", MANY);
    wait_for_ready(cluster, MANY);
    begin.elapsed().as_secs_f64()
}

/// No provisioner that is told of pods by their refusal can do with less: each pod is tried twice, and written to once more.
fn seconds_on_nodes_that_open_late(cluster: &Cluster) -> f64 {
    remove_all_pods(cluster);
    let nodes = cluster.list("/api/v1/nodes");
    let set_closed = |is_closed: bool| {
        for node in &nodes {
            let path = format!("/api/v1/nodes/{}", node["metadata"]["name"].as_str().unwrap());
            cluster.patch(&path, &json!({ "spec": { "unschedulable": is_closed } })).unwrap();
        }
    };
    set_closed(true);
    let begin = Instant::now();
    program::scale(cluster, "shop/web", MANY);
    cluster.wait("every pod is refused", LONG_PATIENCE, |cluster| {
        std::thread::sleep(Duration::from_secs(2));
        let pods = cluster.list("/api/v1/namespaces/shop/pods");
        let refused = pods.iter().filter(|pod| !pod["status"]["conditions"].is_null()).count();
        if refused == usize::try_from(MANY).unwrap() { Ok(()) } else { Err(format!("{refused} pods are refused")) }
    });
    set_closed(false);
    wait_for_ready(cluster, MANY);
    begin.elapsed().as_secs_f64()
}

fn remove_all_pods(cluster: &Cluster) {
    program::scale(cluster, "shop/web", 0);
    cluster.wait("no pod is left", LONG_PATIENCE, |cluster| {
        std::thread::sleep(Duration::from_secs(1));
        let left = cluster.list("/api/v1/namespaces/shop/pods").len();
        if left == 0 { Ok(()) } else { Err(format!("{left} pods are left")) }
    });
}

/// Of the nodes that are there in dollars, as a plan for them says.
fn price_per_hour(program: &Program) -> f64 {
    let output = program.command("plan").args(["-o", "json"]).output().unwrap();
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    plan["summary"]["pricePerHourBefore"].as_f64().unwrap()
}

fn wait_for_ready(cluster: &Cluster, replicas: u32) {
    cluster.wait(&format!("{replicas} pods run"), LONG_PATIENCE, |cluster| {
        // Five thousand pods are not listed at every look.
        std::thread::sleep(Duration::from_millis(400));
        let status = cluster.get("/apis/apps/v1/namespaces/shop/deployments/web").unwrap()["status"].take();
        let is_ready = status["readyReplicas"] == replicas && status["replicas"] == replicas;
        if is_ready { Ok(()) } else { Err(status.to_string()) }
    });
}

/// Until there are fewer nodes than `most` and none has come or gone for a while; how many there are, and since when.
fn wait_for_rest(cluster: &Cluster, most: usize) -> (usize, Instant) {
    let (mut before, mut since) = (String::new(), Instant::now());
    cluster.wait("nodes come and go no more", LONG_PATIENCE, |cluster| {
        std::thread::sleep(Duration::from_secs(1));
        let claims = cluster.list(CLAIMS);
        let names: Vec<&str> = claims.iter().map(|claim| claim["metadata"]["name"].as_str().unwrap()).collect();
        if names.join(" ") != before {
            (before, since) = (names.join(" "), Instant::now());
        }
        let is_over = claims.len() < most && since.elapsed() > REST;
        if is_over { Ok((claims.len(), since)) } else { Err(format!("{} nodes", claims.len())) }
    })
}

/// CPU time and memory of a process, where the system says so.
fn effort(process: &Process) -> String {
    // Fields 14 and 15 of all; the name, which is the second, may hold spaces.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    let seconds = ticks / TICKS_PER_SECOND;
    format!("{seconds} s of CPU and {} MiB at most", peak_memory(process))
}

/// What the process held at most, in MiB, where the system says so.
fn peak_memory(process: &Process) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map_or("unknown".to_owned(), |kibibytes| (kibibytes / 1024).to_string())
}
