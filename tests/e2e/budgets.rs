//! A PodDisruptionBudget that allows nothing for minutes holds a drain up, and no more than that: few calls are made meanwhile, and the
//! pods go when it allows them to.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::program::Calls;
use crate::turns;

const PATIENCE: Duration = Duration::from_secs(240);
/// For how long the budget allows nothing.
const BLOCKED: Duration = Duration::from_secs(120);
/// All requests, leases and watches included.
const CALLS_A_MINUTE: usize = 30;
const BUDGETS: &str = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets";

/// Four pods are to move, one at a time; the budget changes its mind as soon as the first node is on its way out.
pub fn a_budget_that_blocks_makes_no_storm_of_calls(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (mut cutlist, _repository) = turns::eight_nodes_of_three_pods(plane, &cluster);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "all" },
        "spec": { "maxUnavailable": 1, "selector": {} },
    });
    cluster.create(BUDGETS, &budget).unwrap();
    turns::one_pod_goes_from_each(&cluster);
    cluster.wait("a node is to go", PATIENCE, |cluster| {
        let going = leaving(cluster).len();
        if going > 0 { Ok(()) } else { Err("no pod is on a node that goes".to_owned()) }
    });
    let allow = |pods: usize| {
        cluster.patch(&format!("{BUDGETS}/all"), &json!({ "spec": { "maxUnavailable": pods } })).unwrap();
    };
    allow(0);
    std::thread::sleep(Duration::from_secs(20));
    let (waiting, before) = (leaving(&cluster), Calls::so_far(plane));
    assert!(!waiting.is_empty(), "all pods went before the budget could say no");
    std::thread::sleep(BLOCKED);
    let calls = Calls::so_far(plane).since(&before);
    plane.say(format!("{} pods {} s behind a budget: {}", waiting.len(), BLOCKED.as_secs(), calls.summary()));
    let most = CALLS_A_MINUTE * usize::try_from(BLOCKED.as_secs() / 60).unwrap();
    assert!(calls.all() <= most, "{} calls while a budget blocks: {}", calls.all(), calls.summary());
    assert_eq!(leaving(&cluster), waiting, "no pod may go");
    allow(1);
    cluster.wait("six nodes are left, and all pods run", PATIENCE, |cluster| {
        let claims = cluster.list("/apis/karpenter.sh/v1/nodeclaims").len();
        let running = turns::pods_by_node(cluster).values().sum::<usize>();
        if (claims, running) == (6, 16) { Ok(()) } else { Err(format!("{claims} nodes, {running} pods")) }
    });
    cutlist.must_run();
}

/// Names of pods that run on nodes on their way out.
fn leaving(cluster: &Cluster) -> BTreeSet<String> {
    let claims = cluster.list("/apis/karpenter.sh/v1/nodeclaims");
    let going = claims.iter().filter(|claim| !claim["metadata"]["deletionTimestamp"].is_null());
    let nodes: Vec<&Value> = going.map(|claim| &claim["status"]["nodeName"]).collect();
    let pods = cluster.list("/api/v1/namespaces/shop/pods");
    let leaving = pods.iter().filter(|pod| nodes.contains(&&pod["spec"]["nodeName"]));
    leaving.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}
