//! Clusters that are made up: nodes of pools, each with the same pods.

use serde_json::{Value, json};

/// Nodes that are alike.
pub struct Nodes {
    pub pool: &'static str,
    pub instance_type: &'static str,
    pub memory: &'static str,
    pub count: usize,
    /// Of each of its pods.
    pub pod_millicores: u32,
    pub pods: usize,
}

const LAUNCHED: &str = "2026-11-19T09:00:00Z";

/// The nodes as a snapshot, with `others` beside them.
pub fn snapshot(nodes: &[Nodes], others: Vec<Value>) -> String {
    let mut items = others;
    for group in nodes {
        for number in 0..group.count {
            items.extend(node(group, number));
        }
    }
    json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string()
}

fn node(group: &Nodes, number: usize) -> Vec<Value> {
    let Nodes { pool, instance_type, memory, .. } = group;
    let name = format!("{pool}-{number}");
    let host = format!("{name}.ec2.internal");
    let provider = format!("aws:///us-east-1a/i-{name}");
    let (family, size) = instance_type.split_once('.').unwrap();
    let labels = json!({
        "karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.k8s.aws/instance-family": family,
        "karpenter.k8s.aws/instance-size": size, "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/initialized": "true", "karpenter.sh/registered": "true", "karpenter.sh/nodepool": pool,
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": host,
        "node.kubernetes.io/instance-type": instance_type, "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": "us-east-1a",
    });
    let resources = json!({ "cpu": "1930m", "memory": memory, "pods": "29" });
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": LAUNCHED });
    let conditions: Vec<Value> =
        ["Launched", "Registered", "Initialized", "Consolidatable", "Ready"].map(condition).into();
    let mut items = vec![
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": host, "uid": format!("n-{name}"), "creationTimestamp": LAUNCHED, "labels": labels },
            "spec": { "providerID": provider },
            "status": {
                "capacity": resources, "allocatable": resources,
                "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": LAUNCHED,
                                 "lastHeartbeatTime": "2026-11-20T08:59:50Z" }],
            },
        }),
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": name, "uid": format!("c-{name}"), "creationTimestamp": LAUNCHED, "labels": labels, "annotations": hashes() },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "expireAfter": "Never", "requirements": [],
            },
            "status": {
                "nodeName": host, "providerID": provider, "imageID": "ami-old", "capacity": resources,
                "allocatable": resources, "conditions": conditions,
            },
        }),
    ];
    items.extend((0..group.pods).map(|pod| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("web-{name}-{pod}"), "namespace": "shop", "uid": format!("p-{name}-{pod}"),
                "creationTimestamp": LAUNCHED, "labels": { "app": "web" },
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true }],
            },
            "spec": {
                "nodeName": host,
                "containers": [{ "name": "web", "image": "pause",
                                 "resources": { "requests": { "cpu": format!("{}m", group.pod_millicores), "memory": "64Mi" } } }],
            },
            "status": { "phase": "Running", "conditions": [
                { "type": "PodScheduled", "status": "True", "lastTransitionTime": LAUNCHED },
                { "type": "Ready", "status": "True", "lastTransitionTime": LAUNCHED },
            ] },
        })
    }));
    items
}

/// What Karpenter wrote of the template, on claims and on their pool.
pub fn hashes() -> Value {
    json!({ "karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v2" })
}

/// A pool of some instance families.
pub fn pool(name: &str, families: &[&str], policy: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
        "spec": {
            "template": { "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "expireAfter": "Never",
                "requirements": [
                    { "key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": families },
                    { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] },
                ],
            } },
            "disruption": { "consolidationPolicy": policy, "consolidateAfter": "0s", "budgets": [{ "nodes": "100%" }] },
        },
    })
}

pub fn class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
        "spec": {
            "role": "nodes", "amiFamily": "AL2023", "amiSelectorTerms": [{ "alias": "al2023@v20240807" }],
            "subnetSelectorTerms": [{ "id": "subnet-a" }], "securityGroupSelectorTerms": [{ "id": "sg-1" }],
        },
    })
}
