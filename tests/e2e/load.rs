//! Many pods out and in, with time, memory and requests printed, beside what the reference took on such a control plane
//! (Karpenter 1.14 with its kwok provider, 2 cores, one run).

use std::path::Path;
use std::time::{Duration, Instant};

use cutlist::adapters::git::ScriptedRepository;
use jiff::Timestamp;

use crate::control_plane::{ControlPlane, Process};
use crate::played;
use crate::program::{self, Calls, Program};

const PATIENCE: Duration = Duration::from_secs(300);
const PODS: u32 = 1000;

pub fn a_thousand_pods(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/pool-label");
    let repository = ScriptedRepository::create(&played::files(&folder), "Begin", Timestamp::now()).unwrap();
    let program = Program::prepare(plane, &cluster, repository.path().to_owned());
    cluster.apply_all(&std::fs::read_to_string(folder.join("objects/web.yaml")).unwrap());
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

/// What the process held at most, in MiB, where the system says so.
fn peak_memory(process: &Process) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map_or("unknown".to_owned(), |kibibytes| (kibibytes / 1024).to_string())
}
