//! `cutlist run` on the control plane, with the embedded cloud and no more rights than `deploy/` gives it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster, documents};
use crate::control_plane::{ControlPlane, Process};

/// Who it is in the cluster, and in the audit log.
pub const USER: &str = "system:serviceaccount:cutlist:cutlist";

/// What the embedded cloud does in the place of instances that join: it writes Node objects.
const CLOUD_ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: embedded-cloud }
rules:
  - { apiGroups: [''], resources: [nodes, nodes/status], verbs: [create, delete, get, patch, update] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: embedded-cloud }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: embedded-cloud }
subjects: [{ kind: ServiceAccount, name: cutlist, namespace: cutlist }]
";

/// How to start it, again and again.
pub struct Program {
    kubeconfig: PathBuf,
    repository: PathBuf,
    cloud_state: PathBuf,
}

impl Program {
    /// Definitions and roles as `deploy/` has them; follows the repository.
    pub fn prepare(plane: &ControlPlane, cluster: &Cluster, repository: PathBuf) -> Self {
        let rendered = plane.tool("kubectl", &["kustomize", "deploy/kustomize/enforce"]).unwrap();
        // Its own pods run outside the cluster here.
        let runs_inside = ["Deployment", "Service", "PodDisruptionBudget"];
        for object in documents(&rendered) {
            if !runs_inside.contains(&object["kind"].as_str().unwrap()) {
                cluster.apply(&object, Apply::ForReal).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
            }
        }
        cluster.apply_all(CLOUD_ROLE);
        let kubeconfig = plane.kubeconfig_of("cutlist", "cutlist");
        Self { kubeconfig, repository, cloud_state: plane.folder().join("cloud.json") }
    }

    pub fn start(&self, plane: &ControlPlane) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.arg("run").arg(&self.repository).args(["--cloud", "embedded", "--boot-seconds", "1"]);
        command.args(["--interval", "1s", "--verbose", "--kubeconfig"]).arg(&self.kubeconfig);
        command.arg("--cloud-state").arg(&self.cloud_state);
        plane.run("cutlist", command)
    }

    /// Names of the nodes whose instances run and cost money, as the cloud has them.
    pub fn instances(&self) -> Vec<String> {
        let Ok(text) = std::fs::read_to_string(&self.cloud_state) else { return Vec::new() };
        let all: Vec<Value> = serde_json::from_str(&text).unwrap();
        let runs = all.iter().filter(|instance| instance["ending"] == false);
        runs.map(|instance| instance["nodeName"].as_str().unwrap().to_owned()).collect()
    }
}

/// Requests of Cutlist that the API server has answered, from its audit log.
pub struct Calls(BTreeMap<(String, String), usize>);

impl Calls {
    pub fn so_far(plane: &ControlPlane) -> Self {
        let mut calls = BTreeMap::new();
        for line in std::fs::read_to_string(plane.audit_log()).unwrap().lines() {
            // The last line may be half written.
            let Ok(request) = serde_json::from_str::<Value>(line) else { continue };
            if request["user"]["username"] == USER {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let reference = &request["objectRef"];
                let subresource = reference["subresource"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
                let resource = format!("{}{subresource}", text(&reference["resource"]));
                *calls.entry((text(&request["verb"]), resource)).or_default() += 1;
            }
        }
        Self(calls)
    }

    pub fn writes(&self) -> usize {
        let is_write = |verb: &str| !["get", "list", "watch"].contains(&verb);
        self.0.iter().filter(|((verb, _), _)| is_write(verb)).map(|(_, count)| count).sum()
    }

    /// One line: `12 writes (create nodeclaims 2, ...), 30 reads`.
    pub fn summary(&self) -> String {
        let mut text = format!("{} writes (", self.writes());
        let mut reads = 0;
        for ((verb, resource), count) in &self.0 {
            match verb.as_str() {
                "get" | "list" | "watch" => reads += count,
                _ => write!(text, "{verb} {resource} {count}, ").unwrap(),
            }
        }
        format!("{}), {reads} reads", text.trim_end_matches(", "))
    }
}

/// Nodes, claims and pods.
pub fn objects(cluster: &Cluster) -> Vec<Value> {
    let mut objects = Vec::new();
    for (kind, path) in
        [("Node", "/api/v1/nodes"), ("NodeClaim", "/apis/karpenter.sh/v1/nodeclaims"), ("Pod", "/api/v1/pods")]
    {
        objects.extend(cluster.list(path).into_iter().map(|mut object| {
            // Lists leave it out.
            object["kind"] = json!(kind);
            object
        }));
    }
    objects
}

/// Pods on the node that their plan named, of those planned; over all plans that are there.
pub fn fidelity(cluster: &Cluster) -> (u64, u64) {
    let plans = cluster.list("/apis/cutlist.dev/v1alpha1/nodeplans");
    let sum = |field: &str| plans.iter().filter_map(|plan| plan["status"]["fidelity"][field].as_u64()).sum();
    (sum("podsAsPlanned"), sum("podsPlanned"))
}

pub fn scale(cluster: &Cluster, deployment: &str, replicas: u32) {
    let (namespace, name) = deployment.split_once('/').unwrap();
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
    cluster.patch(&path, &json!({ "spec": { "replicas": replicas } })).unwrap();
}

/// The pods that run.
pub fn running(objects: &[Value]) -> usize {
    objects.iter().filter(|object| object["kind"] == "Pod" && object["status"]["phase"] == "Running").count()
}
