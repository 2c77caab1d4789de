//! The whole way with the program itself: a commit becomes a plan, a plan becomes instances, they become nodes by their user data, and pods run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cases::{IMAGES, Scene, scene};
use super::cluster::Cluster;
use super::control_plane::{ControlPlane, Process};
use super::machines::Machines;
use super::moto::{Moto, REGION};

pub const PATIENCE: Duration = Duration::from_secs(180);

pub const OPERATOR: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: { name: operator, namespace: default }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: operator }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin }
subjects: [{ kind: ServiceAccount, name: operator, namespace: default }]
";

const PODS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: default }
spec:
  replicas: 5
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers: [{ name: web, image: web, resources: { requests: { cpu: '1', memory: 1Gi } } }]
";

pub fn a_commit_becomes_pods_that_run(moto: &Moto, programs: &Path) {
    let scene = scene(moto, "100000000010");
    scene.proxy.parameter(&format!("{IMAGES}/x86_64/standard/recommended/image_id"), "ami-0a0a0a0a0a0a0a0a0");
    let plane = ControlPlane::start(programs);
    let cluster = plane.cluster();
    cluster.apply_all(OPERATOR);
    let repository = repository(plane.folder(), &scene.cluster);
    let cutlist = cutlist(&plane, &scene, &repository);
    cluster.apply_all(PODS);
    let mut machines = Machines::default();
    let mut until = |what: &str, is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "{what}: {}\n{:?}", cutlist.last_lines(), scene.proxy.counts());
            machines.look(&scene.raw, &cluster);
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    until("pods run", &|| running(&cluster, "default") == 5);
    let instances = scene.raw.running();
    let nodes = cluster.list("/api/v1/nodes");
    assert_eq!(nodes.len(), instances.len(), "each instance is a node, and the other way round");
    let claims = cluster.list("/apis/karpenter.sh/v1/nodeclaims");
    assert_eq!(claims.len(), instances.len());
    let class = cluster.get("/apis/karpenter.k8s.aws/v1/ec2nodeclasses/default").unwrap();
    let images = class["status"]["amis"].as_array().unwrap();
    assert!(images.iter().any(|image| image["id"] == "ami-0a0a0a0a0a0a0a0a0"), "{:#}", class["status"]);
    let ready = class["status"]["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "Ready");
    assert_eq!(ready.unwrap()["status"], "True", "{:#}", class["status"]);
    assert!(!cluster.list("/apis/cutlist.dev/v1alpha1/nodeplans").is_empty(), "the plan was posted");
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    cluster.patch(path, &json!({ "spec": { "replicas": 0 } })).unwrap();
    until("instances end when nobody needs them", &|| {
        scene.raw.running().is_empty()
            && cluster.list("/api/v1/nodes").is_empty()
            && cluster.list("/apis/karpenter.sh/v1/nodeclaims").is_empty()
    });
    assert_eq!(machines.booted(), instances.len(), "none was launched in vain");
}

/// The program, acting.
pub fn cutlist(plane: &ControlPlane, scene: &Scene<'_>, repository: &Path) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
    command
        .arg("run")
        .arg(repository)
        .arg("--kubeconfig")
        .arg(plane.kubeconfig_of("default", "operator"))
        .args(["--cloud", "aws", "--cluster-name", &scene.cluster, "--install-crds", "--interval", "1s", "--verbose"])
        .args(["--no-leader-elect", "--lease-namespace", "default"])
        .env("AWS_ENDPOINT_URL", &scene.proxy.address);
    plane.run("cutlist", command)
}

pub fn running(cluster: &Cluster, namespace: &str) -> usize {
    let pods = cluster.list(&format!("/api/v1/namespaces/{namespace}/pods"));
    pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count()
}

/// With one pool and one class.
pub fn repository(folder: &Path, cluster: &str) -> PathBuf {
    let by_tag = json!([{ "tags": { "karpenter.sh/discovery": cluster } }]);
    let class = json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
        "spec": { "role": "nodes", "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": by_tag, "securityGroupSelectorTerms": by_tag } });
    let pool = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
        "spec": { "disruption": { "consolidateAfter": "2s" }, "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] },
                { "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] },
                { "key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"] }] } } } });
    let settings = json!({ "apiVersion": "cutlist.dev/v1alpha1", "kind": "Settings", "spec": { "region": REGION } });
    let text = |object: &Value| serde_yaml::to_string(object).unwrap();
    let files = [("class.yaml", text(&class)), ("pool.yaml", text(&pool)), ("cutlist.yaml", text(&settings))];
    commit(folder, &files)
}

/// A repository with these files.
pub fn commit(folder: &Path, files: &[(&str, String)]) -> PathBuf {
    let repository = folder.join("repository");
    std::fs::create_dir_all(&repository).unwrap();
    for (name, text) in files {
        std::fs::write(repository.join(name), text).unwrap();
    }
    for arguments in [
        vec!["init", "--quiet", "--initial-branch", "main"],
        vec!["add", "."],
        vec![
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.com",
            "commit",
            "--quiet",
            "--message",
            "Nodes for all",
        ],
    ] {
        let done = Command::new("git").arg("-C").arg(&repository).args(arguments).status().unwrap();
        assert!(done.success());
    }
    repository
}
