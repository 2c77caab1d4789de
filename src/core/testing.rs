//! Builders of small worlds for tests: `pod("web").cpu("1").label("app", "web").on("node-a")`.
//! Each gives the object itself; [`Merge::merge`] sets whatever has no method, in the words of the Kubernetes API.

use k8s_openapi::api::core::v1::Node;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;
// By its name, since the unit tests of the other crate include this file too.
use cutlist_core::snapshot::{Pod, Snapshot};

/// A NodePool `a` that asks for nothing, with these disruption budgets.
pub fn pool_with_budgets(budgets: Value) -> NodePool {
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "a" },
        "spec": {
            "template": { "spec": { "nodeClassRef": { "group": "g", "kind": "k", "name": "n" }, "requirements": [] } },
            "disruption": { "consolidateAfter": "0s", "budgets": budgets },
        },
    }))
    .unwrap()
}

/// Sets fields as a JSON merge patch does: null removes, lists are replaced.
pub trait Merge: Sized {
    fn merge(self, patch: Value) -> Self;
}

impl<T: Serialize + DeserializeOwned> Merge for T {
    fn merge(self, patch: Value) -> Self {
        let mut value = serde_json::to_value(&self).unwrap();
        merge_into(&mut value, patch);
        serde_json::from_value(value).unwrap()
    }
}

fn merge_into(value: &mut Value, patch: Value) {
    match patch {
        Value::Object(fields) => {
            if !value.is_object() {
                *value = json!({});
            }
            for (key, field) in fields {
                if field.is_null() {
                    value.as_object_mut().unwrap().remove(&key);
                } else {
                    merge_into(&mut value[key], field);
                }
            }
        }
        other => *value = other,
    }
}

/// A pod of namespace `default` that requests nothing.
pub fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}") },
        "spec": { "containers": [{ "name": "main" }] },
        "status": { "phase": "Pending" },
    }))
    .unwrap()
}

pub trait BuildPod {
    fn namespace(self, namespace: &str) -> Self;
    fn label(self, key: &str, value: &str) -> Self;
    fn annotation(self, key: &str, value: &str) -> Self;
    fn request(self, resource: &str, quantity: &str) -> Self;
    fn cpu(self, quantity: &str) -> Self;
    fn memory(self, quantity: &str) -> Self;
    /// Bound and running there.
    fn on(self, node: &str) -> Self;
    /// What kube-scheduler writes on a pod that fits nowhere.
    fn unschedulable(self) -> Self;
    /// Controlled by an object of this kind, such as `ReplicaSet`.
    fn owned_by(self, kind: &str, name: &str) -> Self;
    fn node_selector(self, key: &str, value: &str) -> Self;
    /// One expression of the only required node affinity term.
    fn node_affinity(self, key: &str, operator: &str, values: &[&str]) -> Self;
    fn tolerate(self, toleration: Value) -> Self;
    /// DoNotSchedule over `key` among pods with the label `app=APP`.
    fn spread(self, key: &str, max_skew: i32, app: &str) -> Self;
    fn affinity_to(self, app: &str, key: &str) -> Self;
    fn anti_affinity_to(self, app: &str, key: &str) -> Self;
    fn host_port(self, port: i32) -> Self;
    fn claim(self, name: &str) -> Self;
}

impl BuildPod for Pod {
    fn namespace(mut self, namespace: &str) -> Self {
        self.metadata.namespace = namespace.to_owned();
        self
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        self.metadata.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    fn annotation(mut self, key: &str, value: &str) -> Self {
        self.metadata.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    fn request(mut self, resource: &str, quantity: &str) -> Self {
        let quantity = serde_json::from_value(json!(quantity)).unwrap();
        self.spec.containers[0].resources.requests.insert(resource.to_owned(), quantity);
        self
    }

    fn cpu(self, quantity: &str) -> Self {
        self.request("cpu", quantity)
    }

    fn memory(self, quantity: &str) -> Self {
        self.request("memory", quantity)
    }

    fn on(mut self, node: &str) -> Self {
        self.spec.node_name = Some(node.to_owned());
        self.status.phase = Some("Running".to_owned());
        self.merge(json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }))
    }

    fn unschedulable(self) -> Self {
        let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
        self.merge(json!({ "status": { "conditions": [condition] } }))
    }

    fn owned_by(self, kind: &str, name: &str) -> Self {
        let owner = json!({ "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true });
        let mut pod = self;
        pod.metadata.owner_references.push(serde_json::from_value(owner).unwrap());
        pod
    }

    fn node_selector(mut self, key: &str, value: &str) -> Self {
        self.spec.node_selector.insert(key.to_owned(), value.to_owned());
        self
    }

    fn node_affinity(self, key: &str, operator: &str, values: &[&str]) -> Self {
        let expression = json!({ "key": key, "operator": operator, "values": values });
        self.merge(
            json!({ "spec": { "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{ "matchExpressions": [expression] }]
        } } } } }),
        )
    }

    fn tolerate(mut self, toleration: Value) -> Self {
        self.spec.tolerations.push(serde_json::from_value(toleration).unwrap());
        self
    }

    fn spread(mut self, key: &str, max_skew: i32, app: &str) -> Self {
        let constraint = json!({
            "topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": app } },
        });
        self.spec.topology_spread_constraints.push(serde_json::from_value(constraint).unwrap());
        self
    }

    fn affinity_to(self, app: &str, key: &str) -> Self {
        let term = json!({ "topologyKey": key, "labelSelector": { "matchLabels": { "app": app } } });
        self.merge(json!({ "spec": { "affinity": { "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        } } } }))
    }

    fn anti_affinity_to(self, app: &str, key: &str) -> Self {
        let term = json!({ "topologyKey": key, "labelSelector": { "matchLabels": { "app": app } } });
        self.merge(json!({ "spec": { "affinity": { "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        } } } }))
    }

    fn host_port(mut self, port: i32) -> Self {
        let port = json!({ "containerPort": port, "hostPort": port });
        self.spec.containers[0].ports.push(serde_json::from_value(port).unwrap());
        self
    }

    fn claim(mut self, name: &str) -> Self {
        let volume = json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
        self.spec.volumes.push(serde_json::from_value(volume).unwrap());
        self
    }
}

/// A ready node in zone `a` with 4 cores, 16Gi and room for 10 pods.
pub fn node(name: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {},
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    }))
    .map(|node: Node| node.node_label(keys::HOSTNAME, name).zone("a").allocatable("4", "16Gi", "10"))
    .unwrap()
}

pub trait BuildNode {
    fn node_label(self, key: &str, value: &str) -> Self;
    fn zone(self, zone: &str) -> Self;
    fn allocatable(self, cpu: &str, memory: &str, pods: &str) -> Self;
    fn taint(self, key: &str, value: &str, effect: &str) -> Self;
    fn cordoned(self) -> Self;
}

impl BuildNode for Node {
    fn node_label(mut self, key: &str, value: &str) -> Self {
        self.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        self
    }

    fn zone(self, zone: &str) -> Self {
        self.node_label(keys::ZONE, zone)
    }

    fn allocatable(self, cpu: &str, memory: &str, pods: &str) -> Self {
        let amounts = json!({ "cpu": cpu, "memory": memory, "pods": pods });
        self.merge(json!({ "status": { "allocatable": amounts, "capacity": amounts } }))
    }

    fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        let taint = json!({ "key": key, "value": value, "effect": effect });
        let taints = &mut self.spec.get_or_insert_default().taints;
        taints.get_or_insert_default().push(serde_json::from_value(taint).unwrap());
        self
    }

    fn cordoned(self) -> Self {
        self.merge(json!({ "spec": { "unschedulable": true } }))
    }
}

/// Any object, from the JSON that `kubectl` prints.
pub fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A cluster of these nodes and pods.
pub fn snapshot(nodes: impl IntoIterator<Item = Node>, pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    Snapshot { nodes: nodes.into_iter().collect(), pods: pods.into_iter().collect(), ..Snapshot::default() }
}
