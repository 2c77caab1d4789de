//! What a cluster looks like, in words that are the same in every world: nodes by what they are and not by their names, and
//! which workloads they run.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

/// Nodes and pods of a list of Kubernetes objects, one line for all nodes that are alike.
pub fn describe(objects: &[Value]) -> String {
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let mut on_nodes: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    let mut waiting: BTreeMap<String, usize> = BTreeMap::new();
    for pod in of_kind("Pod") {
        let workloads = match pod["spec"]["nodeName"].as_str() {
            Some(node) => on_nodes.entry(node).or_default(),
            None => &mut waiting,
        };
        *workloads.entry(workload(pod)).or_default() += 1;
    }
    let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
    for node in of_kind("Node") {
        let name = node["metadata"]["name"].as_str().unwrap();
        let pods = on_nodes.get(name).map(counted).unwrap_or_default();
        *nodes.entry(format!("{}{}: {pods}", identity(node), going(node))).or_default() += 1;
    }
    let mut text = String::new();
    for (node, count) in nodes {
        writeln!(text, "  {count} x {node}").unwrap();
    }
    if !waiting.is_empty() {
        writeln!(text, "  pending: {}", counted(&waiting)).unwrap();
    }
    let (claims, nodes) = (of_kind("NodeClaim").count(), of_kind("Node").count());
    if claims != nodes {
        writeln!(text, "  {claims} NodeClaims for {nodes} nodes").unwrap();
    }
    text
}

fn identity(node: &Value) -> String {
    let labels = &node["metadata"]["labels"];
    let keys = [
        "karpenter.sh/nodepool",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "karpenter.sh/capacity-type",
        // Of the scenarios.
        "generation",
    ];
    let values: Vec<&str> = keys.iter().filter_map(|key| labels[*key].as_str()).collect();
    values.join(" ")
}

fn going(node: &Value) -> &'static str {
    if node["metadata"]["deletionTimestamp"].is_string() { " (on its way out)" } else { "" }
}

/// `namespace/name` of what the pod belongs to: of a Deployment's pod the Deployment.
fn workload(pod: &Value) -> String {
    let owner = &pod["metadata"]["ownerReferences"][0];
    let mut name = owner["name"].as_str().or(pod["metadata"]["name"].as_str()).unwrap();
    if owner["kind"] == "ReplicaSet" {
        name = name.rsplit_once('-').map_or(name, |(deployment, _)| deployment);
    }
    format!("{}/{name}", pod["metadata"]["namespace"].as_str().unwrap())
}

fn counted(workloads: &BTreeMap<String, usize>) -> String {
    let texts: Vec<String> = workloads.iter().map(|(name, count)| format!("{name} x{count}")).collect();
    texts.join(", ")
}
