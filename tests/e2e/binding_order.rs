//! Plans of random worlds, bound by the real kube-scheduler in an order drawn at random: every pod that a plan placed runs.
//!
//! All pods wait for a gate at first, each told the node that its plan has for it. When all nodes are there, the gates open one after
//! the other. The worlds share one cluster: each has a namespace and a pool of its own, whose label its pods ask for.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::program;
use crate::random::Random;

/// The seed of each world.
const WORLDS: std::ops::Range<u64> = 1..9;
const PATIENCE: Duration = Duration::from_secs(120);
const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Of pods that are still to wait.
const GATE: &str = "example.com/all-nodes-are-there";

pub fn plans_hold_in_random_order(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let mut told = BTreeMap::new();
    let mut nodes = Vec::new();
    for seed in WORLDS {
        let pods = pods(seed);
        let plan = plan(plane.folder(), seed, &pods);
        create_pods(&cluster, seed, &pods, &plan, &mut told);
        nodes.extend(plan["steps"].as_array().unwrap().iter().map(|step| node(seed, step)));
    }
    nodes.iter().for_each(|node| drop(cluster.create("/api/v1/nodes", node).unwrap()));
    cluster.wait("all nodes are ready", PATIENCE, |cluster| {
        let is_ready = |node: &Value| node["spec"]["taints"].is_null();
        let ready = cluster.list("/api/v1/nodes").iter().filter(|node| is_ready(node)).count();
        if ready == nodes.len() { Ok(()) } else { Err(format!("{ready} of {}", nodes.len())) }
    });
    let mut order: Vec<&String> = told.keys().collect();
    let mut random = Random(WORLDS.end);
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    for pod in order {
        cluster.patch(&path(pod), &json!({ "spec": { "schedulingGates": null } })).unwrap();
    }
    let bound = cluster.wait("every pod that a plan placed is bound", PATIENCE, |cluster| {
        let bound = bound(cluster);
        let left: Vec<&String> = told.keys().filter(|pod| !bound.contains_key(*pod)).collect();
        if left.is_empty() { Ok(bound) } else { Err(format!("{} of {} are not: {left:?}", left.len(), told.len())) }
    });
    let as_told = told.iter().filter(|(pod, node)| bound.get(*pod) == Some(node)).count();
    plane.say(format!("{as_told} of {} pods of {} plans on the node that was planned", told.len(), WORLDS.count()));
}

fn path(pod: &str) -> String {
    let (namespace, name) = pod.split_once('/').unwrap();
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

/// By pod its node.
fn bound(cluster: &Cluster) -> BTreeMap<String, String> {
    let pods = cluster.list("/api/v1/pods");
    let bound = pods.iter().filter_map(|pod| {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (namespace, name) = (text(&pod["metadata"]["namespace"])?, text(&pod["metadata"]["name"])?);
        Some((format!("{namespace}/{name}"), text(&pod["spec"]["nodeName"])?))
    });
    bound.collect()
}

/// Workloads of up to eight pods with constraints of every kind, some of which count the pods of others.
fn pods(seed: u64) -> Vec<Value> {
    let mut random = Random(seed);
    let workloads = 6 + random.below(8);
    (0..workloads).flat_map(|workload| workload_pods(seed, workload, &mut random)).collect()
}

fn workload_pods(seed: u64, workload: usize, random: &mut Random) -> Vec<Value> {
    let letters = ["a", "b", "c"];
    let (app, letter) = (format!("app-{workload}"), random.one_of(&letters));
    let labels = json!({ "app": app, "letter": letter });
    let own = json!({ "matchLabels": { "app": app } });
    let others = json!({ "matchLabels": { "letter": random.one_of(&letters) } });
    let spread = |key: &str, skew: usize, selector: &Value| {
        json!({ "topologySpreadConstraints": [{
            "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
        }] })
    };
    let term = |kind: &str, key: &str| {
        json!({ "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": key, "labelSelector": own },
        ] } } })
    };
    let skew = 1 + random.below(2);
    let mut spec = match random.below(8) {
        0 => spread(ZONE, skew, &own),
        1 => spread(HOSTNAME, skew, &own),
        2 => spread(ZONE, skew, &others),
        3 => spread(HOSTNAME, skew, &others),
        4 => term("podAffinity", ZONE),
        5 => term("podAntiAffinity", HOSTNAME),
        _ => json!({}),
    };
    let requests = json!({
        "cpu": random.one_of(&["100m", "250m", "500m", "1", "1500m"]),
        "memory": random.one_of(&["100Mi", "512Mi", "1Gi", "4Gi"]),
    });
    spec["nodeSelector"] = json!({ "world": format!("w{seed}") });
    spec["containers"] =
        json!([{ "name": "main", "image": "registry.example/app", "resources": { "requests": requests } }]);
    let pod = |replica: usize| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "namespace": format!("w{seed}"), "name": format!("{app}-{replica}"), "labels": labels },
            "spec": spec,
        })
    };
    (0..=random.below(8)).map(pod).collect()
}

/// What the program says, as JSON.
fn plan(folder: &Path, seed: u64, pods: &[Value]) -> Value {
    let definitions = folder.join(format!("world-{seed}"));
    std::fs::create_dir_all(&definitions).unwrap();
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }], "role": "nodes",
            "subnetSelectorTerms": [{ "tags": { "a": "b" } }], "securityGroupSelectorTerms": [{ "tags": { "a": "b" } }],
        },
    });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": format!("w{seed}") },
        "spec": { "template": {
            "metadata": { "labels": { "world": format!("w{seed}") } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }],
            },
        } },
    });
    let snapshot = definitions.with_extension("json");
    std::fs::write(definitions.join("class.yaml"), class.to_string()).unwrap();
    std::fs::write(definitions.join("pool.yaml"), pool.to_string()).unwrap();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": pods });
    std::fs::write(&snapshot, list.to_string()).unwrap();
    let output = Command::new(program::program())
        .arg("plan")
        .arg(&definitions)
        .args(["--output", "json", "--snapshot"])
        .arg(&snapshot)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Those that the plan has a place for, each told it.
fn create_pods(cluster: &Cluster, seed: u64, pods: &[Value], plan: &Value, told: &mut BTreeMap<String, String>) {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": format!("w{seed}") } });
    cluster.create("/api/v1/namespaces", &namespace).unwrap();
    for step in plan["steps"].as_array().unwrap() {
        let name = step["nodeClaim"].as_str().unwrap();
        let keys = step["pods"].as_array().unwrap().iter();
        told.extend(keys.map(|key| (key.as_str().unwrap().to_owned(), name.to_owned())));
    }
    for pod in pods {
        let key = format!("w{seed}/{}", pod["metadata"]["name"].as_str().unwrap());
        let Some(node) = told.get(&key) else { continue };
        let mut pod = pod.clone();
        pod["spec"]["schedulingGates"] = json!([{ "name": GATE }]);
        cluster.create(&format!("/api/v1/namespaces/w{seed}/pods"), &pod).unwrap();
        let status = json!({ "status": { "nominatedNodeName": node } });
        cluster.patch(&format!("{}/status", path(&key)), &status).unwrap();
    }
}

/// The node of a step, which kwok keeps.
fn node(seed: u64, step: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": step["nodeClaim"], "labels": {
            "world": format!("w{seed}"), ZONE: step["zone"], HOSTNAME: step["nodeClaim"],
            "node.kubernetes.io/instance-type": step["instanceType"], "karpenter.sh/capacity-type": step["capacityType"],
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        } },
        "status": { "capacity": step["allocatable"], "allocatable": step["allocatable"] },
    })
}
