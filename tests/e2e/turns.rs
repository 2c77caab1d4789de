//! Pods that consolidation moves are where the plan said, although kube-scheduler puts them there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use cutlist::adapters::git::ScriptedRepository;
use cutlist::api::keys;
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, Process};
use crate::played;
use crate::program::{self, Program};

const PATIENCE: Duration = Duration::from_secs(120);

/// Deployments, each of which fills a node.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// By node.
type Counts = BTreeMap<String, usize>;

/// Eight nodes with three pods each, of which one goes from each: then two nodes can be done without, and the four pods of theirs fit on
/// six. kube-scheduler alone draws lots among nodes that are equally full, and would hit on those of the plan one time in fifteen.
pub fn pods_come_to_be_where_the_plan_says(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (mut cutlist, _repository) = eight_nodes_of_three_pods(plane, &cluster);
    let begin = Instant::now();
    one_pod_goes_from_each(&cluster);
    let (mut planned, mut most_discouraged) = (BTreeMap::new(), 0);
    cluster.wait("six nodes are left, and all pods run", PATIENCE, |cluster| {
        let claims = cluster.list("/apis/karpenter.sh/v1/nodeclaims");
        let destinations =
            claims.iter().filter_map(|claim| claim["metadata"]["annotations"][keys::DESTINATIONS].as_str());
        let destinations = destinations.flat_map(|text| text.split(',')).filter_map(|entry| entry.split_once('='));
        planned.extend(destinations.map(|(pod, node)| (pod.to_owned(), node.to_owned())));
        most_discouraged = most_discouraged.max(discouraged(cluster));
        let pods = pods_by_node(cluster);
        let is_over = claims.len() == 6 && pods.values().sum::<usize>() == 16;
        if is_over { Ok(()) } else { Err(format!("{} nodes, {pods:?}", claims.len())) }
    });
    let mut moved = Counts::new();
    planned.values().for_each(|node| *moved.entry(node.clone()).or_default() += 1);
    let as_planned: usize =
        moved.iter().map(|(node, count)| pods_by_node(&cluster)[node].saturating_sub(2).min(*count)).sum();
    plane.say(format!(
        "{:5.1} s  {as_planned} of {} pods on the node that was planned; {most_discouraged} nodes waited for their turn at most",
        begin.elapsed().as_secs_f64(),
        planned.len()
    ));
    assert_eq!((planned.len(), as_planned), (4, 4));
    assert!(most_discouraged > 0, "nobody took turns");
    assert_eq!(discouraged(&cluster), 0);
    cutlist.must_run();
}

/// Eight nodes with three pods each, and the program that made them. The repository lives as long as it is kept.
pub fn eight_nodes_of_three_pods(plane: &ControlPlane, cluster: &Cluster) -> (Process, ScriptedRepository) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/load");
    let mut files = played::files(&folder);
    let definitions = String::from_utf8(files["definitions.yaml"].clone()).unwrap();
    let of_one_size = definitions
        .replace("operator: Lt, values: [\"17\"]", "operator: In, values: [\"4\"]")
        .replace("consolidateAfter: 0s", "consolidateAfter: 5s");
    assert!(of_one_size.contains("[\"4\"]") && of_one_size.contains("consolidateAfter: 5s"));
    files.insert("definitions.yaml".to_owned(), of_one_size.into_bytes());
    let repository = ScriptedRepository::create(&files, "Begin", Timestamp::now()).unwrap();
    let program = Program::prepare(plane, cluster, repository.path().to_owned());
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/pool-label/objects/web.yaml");
    let web = std::fs::read_to_string(web).unwrap();
    let cutlist = program.start(plane);
    for (number, name) in NAMES.iter().enumerate() {
        cluster.apply_all(
            &web.replace("name: web", &format!("name: {name}")).replace("app: web", &format!("app: {name}")),
        );
        program::scale(cluster, &format!("shop/{name}"), 3);
        cluster.wait("three more pods run", PATIENCE, |cluster| {
            let running = program::running(&program::objects(cluster));
            if running == 3 * (number + 1) { Ok(()) } else { Err(format!("{running} pods run")) }
        });
    }
    (cutlist, repository)
}

pub fn one_pod_goes_from_each(cluster: &Cluster) {
    NAMES.iter().for_each(|name| program::scale(cluster, &format!("shop/{name}"), 2));
}

/// Nodes that others are preferred to.
fn discouraged(cluster: &Cluster) -> usize {
    let is_discouraged = |node: &&Value| {
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints.into_iter().any(|taint| taint["key"] == keys::HELD_FOR_MOVE_TAINT)
    };
    cluster.list("/api/v1/nodes").iter().filter(is_discouraged).count()
}

pub fn pods_by_node(cluster: &Cluster) -> Counts {
    let mut pods = Counts::new();
    for pod in cluster.list("/api/v1/namespaces/shop/pods") {
        let is_running = pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null();
        if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|_| is_running) {
            *pods.entry(node.to_owned()).or_default() += 1;
        }
    }
    pods
}
