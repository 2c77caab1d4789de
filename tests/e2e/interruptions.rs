//! What ends in the middle: the controller is killed between two of its writes, the API server does not answer for a while.
//! Its replica takes over. Nothing may be leaked or doubled.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use cutlist::adapters::git::ScriptedRepository;
use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, Process};
use crate::program::{self, Calls, Program};
use crate::state::describe;

const PATIENCE: Duration = Duration::from_secs(120);
const DEPLOYMENT: &str = "shop/web";

/// Killed after the first write of a launch, after the second, and so on; then the same for a drain.
pub fn killed_between_any_two_writes(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let (mut kills, mut last) = (0, 0);
    for writes in [1, 2, 4, 7, 11] {
        for replicas in [4, 0] {
            let before = Calls::so_far(plane).writes();
            let mut cutlist = program.start(plane);
            program::scale(&cluster, DEPLOYMENT, replicas);
            if is_reached(plane, before + writes) {
                cutlist.kill();
                kills += 1;
                last = writes;
                cutlist = program.start(plane);
            }
            let what = format!("killed after {writes} writes, {replicas} pods");
            settles(&cluster, &program, &what, replicas);
            cutlist.must_run();
            cutlist.kill();
        }
    }
    assert!(kills >= 8, "only {kills} kills hit something");
    plane.say(format!("{kills} times killed, up to {last} writes after the start of a launch or a drain"));
    plane.say(Calls::so_far(plane).summary());
}

/// Whether it comes to so many writes; it does not where fewer are needed.
fn is_reached(plane: &ControlPlane, writes: usize) -> bool {
    let begin = Instant::now();
    // With other cases beside it a look may take seconds.
    while begin.elapsed() < Duration::from_secs(30) {
        if Calls::so_far(plane).writes() >= writes {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Its connections stay open, and nobody answers on them.
pub fn api_server_stops_answering(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let mut cutlist = program.start(plane);
    program::scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "before", 4);
    let before = describe(&program::objects(&cluster));
    plane.api_server().suspend();
    std::thread::sleep(Duration::from_secs(20));
    // For so long another one may have taken the lease.
    cutlist.must_end("the lease was not renewed");
    plane.api_server().resume();
    let mut cutlist = program.start_as("cutlist-again", plane, &[]);
    // Nodes that missed a heartbeat or two are no reason to do anything.
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(describe(&program::objects(&cluster)), before);
    program::scale(&cluster, DEPLOYMENT, 0);
    settles(&cluster, &program, "after 20 s without an API server, no pods", 0);
    cutlist.must_run();
}

/// The leader is killed while nodes are on their way; the other replica finishes what it began.
pub fn another_replica_takes_over(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let elected = ["--leader-elect", "--lease-namespace", "cutlist"];
    let mut first = program.start_as("cutlist-first", plane, &elected);
    wait_for_log(&cluster, &first, "leads");
    let mut second = program.start_as("cutlist-second", plane, &elected);
    wait_for_log(&cluster, &second, "waits to lead");
    let mut waited = Vec::new();
    for replicas in [4, 0] {
        let before = Calls::so_far(plane).writes();
        program::scale(&cluster, DEPLOYMENT, replicas);
        assert!(is_reached(plane, before + 3), "the leader does nothing");
        first.kill();
        let begin = Instant::now();
        let leads = |process: &Process| process.log().lines().any(|line| line.ends_with(" leads"));
        cluster.wait("the other replica leads", Duration::from_secs(20), |_| {
            if leads(&second) { Ok(()) } else { Err(second.last_lines()) }
        });
        waited.push(format!("{:.1} s", begin.elapsed().as_secs_f64()));
        settles(&cluster, &program, &format!("the leader was killed, {replicas} pods"), replicas);
        assert_eq!(program.launches(), program.claims().len(), "nothing was launched twice");
        // The one that was killed comes back, and waits for its turn.
        let name = if replicas == 4 { "cutlist-third" } else { "cutlist-fourth" };
        first = std::mem::replace(&mut second, program.start_as(name, plane, &elected));
        wait_for_log(&cluster, &second, "waits to lead");
    }
    first.must_run();
    second.must_run();
    plane.say(format!("another replica led after {}", waited.join(" and ")));
}

/// Two that do not stand for election: the second one sees the first, whatever its namespace, and ends; one that was killed is waited for.
pub fn who_does_not_wait_to_lead_is_seen(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let mut first = program.start_as("cutlist-first", plane, &[]);
    program::scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "the first acts", 4);
    let mut second = program.start_as("cutlist-second", plane, &[]);
    let status =
        cluster.wait("the second ends", Duration::from_secs(30), |_| second.ended().ok_or_else(|| second.last_lines()));
    assert_eq!(status.code(), Some(1), "{}", second.last_lines());
    assert!(second.log().contains("another Cutlist acts in this cluster: lease cutlist/"), "{}", second.last_lines());
    // Who stands for election waits for it, too.
    let elected = ["--leader-elect", "--lease-namespace", "cutlist"];
    let mut third = program.start_as("cutlist-third", plane, &elected);
    wait_for_log(&cluster, &third, "waits to lead");
    std::thread::sleep(Duration::from_secs(10));
    assert!(!third.log().lines().any(|line| line.ends_with(" leads")), "{}", third.last_lines());
    first.must_run();
    third.kill();
    first.kill();
    let begin = Instant::now();
    let mut fourth = program.start_as("cutlist-fourth", plane, &[]);
    program::scale(&cluster, DEPLOYMENT, 0);
    settles(&cluster, &program, "one that was killed is waited for", 0);
    plane.say(format!("acted {:.1} s after the one before was killed", begin.elapsed().as_secs_f64()));
    fourth.must_run();
}

/// A Git server that shows an older commit to a process that starts.
pub fn a_restart_is_not_led_back(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (repository, program) = prepare(plane, &cluster);
    let git = git2::Repository::open_bare(repository.path()).unwrap();
    let first = git.refname_to_id("refs/heads/main").unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/pool-label/patches/nodepool.yaml");
    let second = [("nodepool.yaml".to_owned(), Some(std::fs::read(folder).unwrap()))].into();
    let later = Timestamp::now() + jiff::SignedDuration::from_secs(60);
    let second = repository.commit(&second, "Second", later).unwrap();
    let mut cutlist = program.start(plane);
    program::scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "before", 4);
    cutlist.kill();
    git.reference("refs/heads/main", first, true, "back").unwrap();
    let nodes = || program.instances();
    let before = nodes();
    let mut cutlist = program.start(plane);
    wait_for_log(&cluster, &cutlist, "the revision is older than what was followed");
    std::thread::sleep(Duration::from_secs(10));
    let pool = |cluster: &Cluster| cluster.get("/apis/karpenter.sh/v1/nodepools/default").unwrap();
    let revision = pool(&cluster)["metadata"]["annotations"]["cutlist.dev/revision"].clone();
    assert_eq!((revision.as_str(), nodes()), (Some(second.as_str()), before), "{}", cutlist.last_lines());
    // It catches up.
    git.reference("refs/heads/main", git2::Oid::from_str(&second).unwrap(), true, "forward").unwrap();
    program::scale(&cluster, DEPLOYMENT, 0);
    settles(&cluster, &program, "nothing is left", 0);
    cutlist.must_run();
}

/// The database stops for half a second at a time, again and again: answers come late, and some not at all.
pub fn slow_etcd(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let mut cutlist = program.start(plane);
    settles(&cluster, &program, "before", 0);
    for replicas in [6, 0] {
        program::scale(&cluster, DEPLOYMENT, replicas);
        for _ in 0..20 {
            plane.etcd().suspend();
            std::thread::sleep(Duration::from_millis(500));
            plane.etcd().resume();
            std::thread::sleep(Duration::from_millis(150));
        }
        settles(&cluster, &program, &format!("{replicas} pods after ten seconds of a slow etcd"), replicas);
        cutlist.must_run();
    }
    assert_eq!(program.launches(), program.claims().len(), "nothing was launched twice");
}

/// Until the program has said it.
pub fn wait_for_log(cluster: &Cluster, process: &Process, text: &str) {
    cluster.wait(&format!("the log says {text:?}"), Duration::from_secs(60), |_| {
        if process.log().contains(text) { Ok(()) } else { Err(process.last_lines()) }
    });
}

pub fn prepare(plane: &ControlPlane, cluster: &Cluster) -> (ScriptedRepository, Program) {
    let prepared = Program::prepare_with(plane, cluster, "tests/scenarios/pool-label");
    cluster.apply_all(program::WEB);
    prepared
}

/// As many pods run, on nodes that have one claim and one instance each and run something; nothing else is there.
pub fn settles(cluster: &Cluster, program: &Program, what: &str, replicas: u32) {
    cluster.wait(what, PATIENCE, |cluster| {
        let objects = program::objects(cluster);
        let texts = |kind: &str, at: &str| -> Vec<String> {
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.filter_map(|object| object.pointer(at)?.as_str().map(str::to_owned)).collect()
        };
        let (nodes, claims) = (texts("Node", "/metadata/name"), texts("NodeClaim", "/status/nodeName"));
        let used: BTreeSet<String> = texts("Pod", "/spec/nodeName").into_iter().collect();
        let all_claims = objects.iter().filter(|object| object["kind"] == "NodeClaim").count();
        let same = |one: &[String], other: &[String]| {
            one.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>() && one.len() == other.len()
        };
        let is_settled = program::running(&objects) == usize::try_from(replicas).unwrap()
            && texts("Pod", "/metadata/name").len() == usize::try_from(replicas).unwrap()
            && same(&nodes, &claims)
            && same(&nodes, &program.instances())
            && all_claims == claims.len()
            && nodes.iter().all(|node| used.contains(node));
        if is_settled { Ok(()) } else { Err(format!("instances {:?}\n{}", program.instances(), describe(&objects))) }
    });
}
