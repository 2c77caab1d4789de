//! Kubernetes objects as `kubectl get -o json` prints them, cut to what scheduling can see.

#![cfg(test)]

use cutlist::api::keys;
use serde_json::{Value, json};

/// Every pending pod was created at this moment, and every plan is made for a later one: the order of the queue then
/// depends on sizes and names alone.
pub const CREATED: &str = "2026-11-20T08:00:00Z";
pub const NOW: &str = "2026-11-20T09:00:00Z";

pub const NAMESPACE: &str = "default";
const NODE_CLASS: &str = "default";

/// What distinguishes a pod; the rest is the same for all.
#[derive(Clone, Debug)]
pub struct Pod {
    pub name: String,
    pub labels: Value,
    pub millicores: usize,
    pub mebibytes: usize,
    /// Merged into the pod's `spec`.
    pub spec: Value,
    /// The ReplicaSet that made it.
    pub owner: Option<String>,
}

impl Pod {
    pub fn pending(&self) -> Value {
        let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
        self.object(None, json!({ "phase": "Pending", "conditions": [condition] }))
    }

    pub fn bound(&self, node: &str) -> Value {
        let condition = json!({ "type": "PodScheduled", "status": "True" });
        self.object(Some(node), json!({ "phase": "Running", "conditions": [condition] }))
    }

    fn object(&self, node: Option<&str>, status: Value) -> Value {
        let mut metadata = json!({
            "name": self.name, "namespace": NAMESPACE, "uid": uid("pod", &self.name), "creationTimestamp": CREATED,
            "labels": self.labels,
        });
        if let Some(owner) = &self.owner {
            metadata["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": uid("replicaset", owner),
                "controller": true, "blockOwnerDeletion": true,
            }]);
        }
        let requests = json!({ "cpu": format!("{}m", self.millicores), "memory": format!("{}Mi", self.mebibytes) });
        let mut spec = json!({
            "containers": [{ "name": "main", "image": "example.com/main:1", "resources": { "requests": requests } }],
            "schedulerName": "default-scheduler",
        });
        if let Some(node) = node {
            spec["nodeName"] = json!(node);
        }
        for (key, value) in self.spec.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status })
    }
}

/// Readable, and as unique as the name is.
fn uid(kind: &str, name: &str) -> String {
    format!("{kind}-{name}")
}

pub fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({ "key": key, "operator": operator, "values": values })
}

/// A pool whose nodes nobody disrupts: the benchmark is about provisioning.
pub fn node_pool(name: &str, requirements: &[Value]) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name, "uid": uid("pool", name) },
        "spec": {
            "limits": { "cpu": "10000000", "memory": "10000000Gi" },
            "template": { "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": NODE_CLASS },
                "requirements": requirements,
                "expireAfter": "Never",
            } },
            "disruption": {
                "consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": [{ "nodes": "0" }],
            },
        },
    })
}

pub fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": NODE_CLASS },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@v20240807" }],
            "role": "KarpenterNodeRole",
            "securityGroupSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "bench" } }],
            "subnetSelectorTerms": [{ "tags": { "karpenter.sh/discovery": "bench" } }],
        },
    })
}

pub fn settings(preference_policy: &str) -> Value {
    json!({
        "apiVersion": "cutlist.dev/v1alpha1", "kind": "Settings",
        "spec": { "clusterName": "bench", "scheduling": { "preferencePolicy": preference_policy } },
    })
}

pub fn daemon_set(name: &str, millicores: usize, mebibytes: usize) -> Value {
    let requests = json!({ "cpu": format!("{millicores}m"), "memory": format!("{mebibytes}Mi") });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": name, "namespace": "kube-system", "uid": uid("daemonset", name) },
        "spec": {
            "selector": { "matchLabels": { "k8s-app": name } },
            "template": {
                "metadata": { "labels": { "k8s-app": name } },
                "spec": {
                    "containers": [{ "name": name, "image": "example.com/daemon:1", "resources": { "requests": requests } }],
                    "tolerations": [{ "operator": "Exists" }],
                },
            },
        },
    })
}

/// A node of the pool in a zone, on demand, initialized, with the NodeClaim that it came from.
pub fn node_and_claim(name: &str, pool: &str, zone: &str, instance_type: &Value, allocatable: &Value) -> [Value; 2] {
    let mut labels = json!({
        keys::NODE_POOL: pool, keys::EC2_NODE_CLASS: NODE_CLASS, keys::HOSTNAME: name, keys::REGISTERED: "true",
        keys::INITIALIZED: "true",
    });
    for (key, values) in instance_type["requirements"].as_object().unwrap() {
        labels[key] = values[0].clone();
    }
    labels[keys::ZONE] = json!(zone);
    labels[keys::CAPACITY_TYPE] = json!(keys::ON_DEMAND);
    let provider_id = format!("aws:///{zone}/i-{name}");
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": CREATED });
    let metadata =
        |kind: &str| json!({ "name": name, "uid": uid(kind, name), "creationTimestamp": CREATED, "labels": labels });
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": metadata("node"), "spec": { "providerID": provider_id },
        "status": {
            "capacity": instance_type["capacity"], "allocatable": allocatable, "conditions": [condition("Ready")],
        },
    });
    let stages = ["Launched", "Registered", "Initialized"].map(condition);
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata("claim"),
        "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": NODE_CLASS },
            "requirements": [], "expireAfter": "Never",
        },
        "status": {
            "nodeName": name, "providerID": provider_id, "capacity": instance_type["capacity"],
            "allocatable": allocatable, "conditions": stages,
        },
    });
    [node, claim]
}
