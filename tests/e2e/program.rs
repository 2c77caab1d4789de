//! `cutlist run` on the control plane, with the embedded cloud and no more rights than `deploy/` gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use cutlist::adapters::git::ScriptedRepository;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster, documents};
use crate::control_plane::{ControlPlane, Process};
use crate::played;

/// Who it is in the cluster, and in the audit log.
pub const USER: &str = "system:serviceaccount:cutlist:cutlist";

/// A Deployment without pods.
pub const WEB: &str = include_str!("../scenarios/pool-label/objects/web.yaml");

pub const ENFORCE: &str = "deploy/kustomize/enforce";
pub const OBSERVE: &str = "deploy/kustomize/base";

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
    /// The arguments that say where definitions come from.
    definitions: Vec<OsString>,
    cloud_state: PathBuf,
    mode: &'static str,
}

impl Program {
    /// Definitions and roles as `deploy/` has them; follows the repository and carries plans out.
    pub fn prepare(plane: &ControlPlane, cluster: &Cluster, repository: PathBuf) -> Self {
        Self::from_folder(plane, cluster, ENFORCE, vec![repository.into()])
    }

    /// The same with a repository of its own, which has the files of this folder of the project, and lives as long as it is kept.
    pub fn prepare_with(plane: &ControlPlane, cluster: &Cluster, folder: &str) -> (ScriptedRepository, Self) {
        let files = played::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        let repository = ScriptedRepository::create(&files, "Begin", Timestamp::now()).unwrap();
        let program = Self::prepare(plane, cluster, repository.path().to_owned());
        (repository, program)
    }

    /// The same with no more rights than `observe` has; nothing is carried out.
    pub fn prepare_observer(plane: &ControlPlane, cluster: &Cluster, repository: PathBuf) -> Self {
        Self::from_folder(plane, cluster, OBSERVE, vec![repository.into()])
    }

    /// The same with what a folder makes of `deploy/`, and the arguments that say where definitions come from.
    pub fn from_folder(plane: &ControlPlane, cluster: &Cluster, folder: &str, definitions: Vec<OsString>) -> Self {
        let rendered = plane.tool("kubectl", &["kustomize", folder]).unwrap();
        let enforces = rendered.contains("--mode=enforce");
        // Its own pods run outside the cluster here.
        let runs_inside = ["Deployment", "Service", "PodDisruptionBudget"];
        for object in documents(&rendered) {
            if !runs_inside.contains(&object["kind"].as_str().unwrap()) {
                cluster.apply(&object, Apply::ForReal).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
            }
        }
        if enforces {
            cluster.apply_all(CLOUD_ROLE);
        }
        let (kubeconfig, cloud_state) = (plane.kubeconfig_of("cutlist", "cutlist"), plane.folder().join("cloud.json"));
        Self { kubeconfig, definitions, cloud_state, mode: if enforces { "enforce" } else { "observe" } }
    }

    /// The same, where it asks another server than the API server itself.
    pub fn through(self, plane: &ControlPlane, server: &str) -> Self {
        Self { kubeconfig: plane.kubeconfig_through(server, "cutlist", "cutlist"), ..self }
    }

    pub fn start(&self, plane: &ControlPlane) -> Process {
        self.start_as("cutlist", plane, &[])
    }

    /// Under a name of its own, with further arguments.
    pub fn start_as(&self, name: &str, plane: &ControlPlane, further: &[&str]) -> Process {
        let mut command = self.command("run");
        command.args(["--mode", self.mode, "--interval", "1s", "--verbose"]).args(further);
        // The lease of one that was killed is over sooner.
        if self.mode == "enforce" && !further.contains(&"--leader-elect") {
            command.args(["--no-leader-elect", "--lease-namespace", "cutlist"]);
        }
        if self.mode == "enforce" {
            command.args(["--cloud", "embedded", "--boot-seconds", "1", "--cloud-state"]).arg(&self.cloud_state);
        }
        plane.run(name, command)
    }

    /// `cutlist SUBCOMMAND REPOSITORY` with its kubeconfig.
    pub fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(program());
        command.arg(subcommand).args(&self.definitions).arg("--kubeconfig").arg(&self.kubeconfig);
        command
    }

    /// Names of the nodes whose instances run and cost money, as the cloud has them.
    pub fn instances(&self) -> Vec<String> {
        let all = self.saved();
        let runs = all.iter().filter(|instance| instance["ending"] == false);
        runs.map(|instance| instance["nodeName"].as_str().unwrap().to_owned()).collect()
    }

    /// How many instances the cloud was made to launch, those that ended included as long as it remembers them.
    pub fn launches(&self) -> usize {
        self.saved().len()
    }

    /// For which claims, by their UIDs: a launch for one gives the same instance however often it is asked for.
    pub fn claims(&self) -> BTreeSet<String> {
        self.saved().iter().map(|instance| instance["claimUid"].as_str().unwrap().to_owned()).collect()
    }

    fn saved(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.cloud_state).unwrap_or_else(|_| "[]".to_owned());
        serde_json::from_str(&text).unwrap()
    }
}

/// What is tried: the program of this build, or the one that `CUTLIST` names, such as a release build for measuring.
pub fn program() -> PathBuf {
    std::env::var_os("CUTLIST").map_or_else(|| env!("CARGO_BIN_EXE_cutlist").into(), PathBuf::from)
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

    /// Those that came after `before`.
    pub fn since(mut self, before: &Self) -> Self {
        for (call, count) in &before.0 {
            self.0.entry(call.clone()).and_modify(|all| *all -= count);
        }
        self.0.retain(|_, count| *count > 0);
        self
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.0.values().sum()
    }

    pub fn writes(&self) -> usize {
        let is_write = |verb: &str| !["get", "list", "watch"].contains(&verb);
        self.0.iter().filter(|((verb, _), _)| is_write(verb)).map(|(_, count)| count).sum()
    }

    /// Writes of other resources than these.
    pub fn writes_beside(&self, resources: &[&str]) -> Vec<String> {
        let writes = self.0.keys().filter(|(verb, _)| !["get", "list", "watch"].contains(&verb.as_str()));
        let others = writes.filter(|(_, resource)| !resources.contains(&resource.as_str()));
        others.map(|(verb, resource)| format!("{verb} {resource}")).collect()
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

/// Names of the objects of a kind that Cutlist asked the API server to delete, from its audit log.
pub fn deleted(plane: &ControlPlane, resource: &str) -> BTreeSet<String> {
    let log = std::fs::read_to_string(plane.audit_log()).unwrap();
    let requests = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let deletions = requests.filter(|request| {
        let reference = &request["objectRef"];
        request["user"]["username"] == USER && request["verb"] == "delete" && reference["resource"] == resource
    });
    deletions.map(|request| request["objectRef"]["name"].as_str().unwrap().to_owned()).collect()
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
