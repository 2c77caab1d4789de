//! The labs that people learn Karpenter with, on EC2's API and a real control plane, with the definitions of `examples/quickstart`: a NodePool
//! and an EC2NodeClass whose subnets lack their tags at first; then pods that are scaled out and in, with the lines that the labs grep.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::cluster::Cluster;
use super::control_plane::{ControlPlane, Process};
use super::machines::Machines;
use super::moto::{Moto, REGION};
use super::whole::{OPERATOR, PATIENCE, commit, cutlist, running};

const NAMESPACE: &str = "karpenter-test";
const CLASS: &str = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/default";
const TAG: &str = "karpenter.sh/discovery";

/// Labels that the lab lists on its node.
const LABELS: [&str; 24] = [
    "eks-team",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.k8s.aws/instance-category",
    "karpenter.k8s.aws/instance-cpu",
    "karpenter.k8s.aws/instance-cpu-manufacturer",
    "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
    "karpenter.k8s.aws/instance-ebs-bandwidth",
    "karpenter.k8s.aws/instance-encryption-in-transit-supported",
    "karpenter.k8s.aws/instance-family",
    "karpenter.k8s.aws/instance-generation",
    "karpenter.k8s.aws/instance-hypervisor",
    "karpenter.k8s.aws/instance-memory",
    "karpenter.k8s.aws/instance-network-bandwidth",
    "karpenter.k8s.aws/instance-size",
    "karpenter.sh/capacity-type",
    "karpenter.sh/initialized",
    "karpenter.sh/nodepool",
    "karpenter.sh/registered",
    "kubernetes.io/hostname",
    "node.kubernetes.io/instance-type",
    "topology.k8s.aws/zone-id",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "kubernetes.io/arch",
];

pub fn the_first_labs_show_what_they_promise(moto: &Moto, programs: &Path) {
    let scene = super::cases::scene(moto, "100000000011");
    let role = format!("karpenterNodeRole-{}", scene.cluster);
    let trust = r#"{"Version":"2012-10-17","Statement":[]}"#;
    scene.raw.form("iam", "CreateRole", &[("RoleName", &role), ("AssumeRolePolicyDocument", trust)]).ok();
    let subnets = scene.raw.ec2("DescribeSubnets", &[]).ok().all("subnetId");
    for subnet in &subnets {
        scene.raw.ec2("DeleteTags", &[("ResourceId.1", subnet), ("Tag.1.Key", TAG)]).ok();
    }
    let plane = ControlPlane::start(programs);
    let cluster = plane.cluster();
    cluster.apply_all(OPERATOR);
    let run = cutlist(&plane, &scene, &repository(plane.folder(), &scene.cluster));
    let mut machines = Machines::default();
    let mut until = |what: &str, is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "{what}: {}\n{:?}", run.last_lines(), scene.proxy.counts());
            machines.look(&scene.raw, &cluster);
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    };

    // L1: both objects are there, and a class that finds no subnet says so.
    let subnets_ready = || condition(&cluster, "SubnetsReady");
    until("the class says that it finds no subnet", &|| subnets_ready().is_some_and(|it| it["status"] == "False"));
    let said = subnets_ready().unwrap();
    assert_eq!(said["reason"], "SubnetsNotFound");
    let message = said["message"].as_str().unwrap();
    assert!(message.contains(TAG) && message.contains(&scene.cluster), "the tag that is missing: {message}");
    assert!(cluster.get("/apis/karpenter.sh/v1/nodepools/default").is_ok());
    apply(&cluster, "daemons.yaml");
    apply(&cluster, "inflate.yaml");
    scale(&cluster, 5);
    until("pods wait", &|| pods(&cluster) == 5);
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert!(scene.raw.running().is_empty(), "nothing is launched without a subnet");
    for subnet in &subnets {
        let tag = [("ResourceId.1", subnet.as_str()), ("Tag.1.Key", TAG), ("Tag.1.Value", &scene.cluster)];
        scene.raw.ec2("CreateTags", &tag).ok();
    }

    // L2: out.
    until("pods run", &|| running(&cluster, NAMESPACE) == 5);
    let nodes = cluster.list("/api/v1/nodes?labelSelector=eks-team%3Dmy-team");
    assert_eq!(nodes.len(), 1, "one node for all five pods");
    until("the node is initialized", &|| !lines(&run, "initialized nodeclaim").is_empty());
    let node = cluster.list("/api/v1/nodes?labelSelector=eks-team%3Dmy-team").remove(0);
    let labels = node["metadata"]["labels"].as_object().unwrap();
    let missing: Vec<&&str> = LABELS.iter().filter(|label| !labels.contains_key(**label)).collect();
    assert!(missing.is_empty(), "{missing:?}\n{labels:#?}");
    assert_eq!((&labels["karpenter.k8s.aws/instance-cpu"], &labels["eks-team"]), (&json!("8"), &json!("my-team")));
    let name = launched_as_the_lab_says(&run);
    // Else the node drifts at the next look at all instances, which is two minutes away.
    let groups = scene.raw.ec2("DescribeInstances", &[]).ok().all("groupId");
    let selected = &cluster.get(CLASS).unwrap()["status"]["securityGroups"][0]["id"];
    assert!(groups.iter().any(|group| selected == group), "{selected}: {groups:?}");

    // And in.
    let instance_type = labels["node.kubernetes.io/instance-type"].as_str().unwrap().to_owned();
    scale(&cluster, 0);
    until("the node goes", &|| {
        scene.raw.running().is_empty() && cluster.list("/apis/karpenter.sh/v1/nodeclaims").is_empty()
    });
    until("it is said", &|| !lines(&run, "deleted nodeclaim").is_empty());
    ended_as_the_lab_says(
        &run,
        &name,
        &format!("{}/{instance_type}/on-demand", node["metadata"]["name"].as_str().unwrap()),
    );
}

/// The lines of a node that comes, in their order; gives the name of its NodeClaim.
fn launched_as_the_lab_says(run: &Process) -> String {
    in_order(
        run,
        &[
            "found provisionable pod(s)",
            "computed new nodeclaim(s) to fit pod(s)",
            "created nodeclaim",
            "launched nodeclaim",
            "registered nodeclaim",
            "initialized nodeclaim",
        ],
    );
    let computed = lines(run, "computed new nodeclaim(s) to fit pod(s)").remove(0);
    assert_eq!((&computed["nodeclaims"], &computed["pods"]), (&json!(1), &json!(5)), "{computed}");
    let created = lines(run, "created nodeclaim").remove(0);
    assert_eq!(
        (&created["requests"]["cpu"], &created["requests"]["pods"]),
        (&json!("5150m"), &json!("7")),
        "{created}"
    );
    let launched = lines(run, "launched nodeclaim").remove(0);
    for field in ["provider-id", "instance-type", "zone", "capacity-type", "allocatable"] {
        assert!(!launched[field].is_null(), "{field}: {launched}");
    }
    assert_eq!((&launched["capacity-type"], &launched["allocatable"]["cpu"]), (&json!("on-demand"), &json!("7910m")));
    assert_eq!(launched["allocatable"]["pods"], "58");
    let name = launched["NodeClaim"]["name"].as_str().unwrap().to_owned();
    for message in ["created nodeclaim", "registered nodeclaim", "initialized nodeclaim"] {
        assert_eq!(lines(run, message)[0]["NodeClaim"]["name"], name, "{message}");
    }
    name
}

fn ended_as_the_lab_says(run: &Process, name: &str, node: &str) {
    in_order(run, &["disrupting node(s)", "tainted node", "deleted node", "deleted nodeclaim"]);
    let disrupting = lines(run, "disrupting node(s)").remove(0);
    assert_eq!((&disrupting["reason"], &disrupting["decision"]), (&json!("empty"), &json!("delete")), "{disrupting}");
    assert!(disrupting["command-id"].is_string(), "{disrupting}");
    let sentence = format!("disrupting nodeclaim(s) via delete, terminating 1 nodes (0 pods) {node}");
    assert!(run.log().lines().any(|line| line.contains(&sentence)), "as somebody greps it: {sentence}\n{disrupting}");
    assert_eq!(lines(run, "deleted nodeclaim")[0]["NodeClaim"]["name"], name);
}

/// JSON lines of the log with this message.
fn lines(run: &Process, message: &str) -> Vec<Value> {
    let log = run.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["message"] == message && line["logger"] == "controller").collect()
}

fn in_order(run: &Process, messages: &[&str]) {
    let log = run.log();
    let mut rest = log.as_str();
    for message in messages {
        let Some((_, after)) = rest.split_once(&format!("\"message\":\"{message}\"")) else {
            panic!("`{message}` does not follow in\n{log}");
        };
        rest = after;
    }
}

fn condition(cluster: &Cluster, type_: &str) -> Option<Value> {
    let class = cluster.get(CLASS).ok()?;
    class["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == type_).cloned()
}

fn pods(cluster: &Cluster) -> usize {
    cluster.list(&format!("/api/v1/namespaces/{NAMESPACE}/pods")).len()
}

fn scale(cluster: &Cluster, replicas: u32) {
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/inflate");
    cluster.patch(&path, &json!({ "spec": { "replicas": replicas } })).unwrap();
}

fn example(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart").join(file);
    std::fs::read_to_string(path).unwrap()
}

fn apply(cluster: &Cluster, file: &str) {
    cluster.apply_all(&example(&format!("objects/{file}")));
}

/// The example's pool and class, for this cluster.
fn repository(folder: &Path, cluster: &str) -> std::path::PathBuf {
    let settings = json!({ "apiVersion": "cutlist.dev/v1alpha1", "kind": "Settings",
        "spec": { "region": REGION, "clusterName": cluster, "variables": { "CLUSTER_NAME": cluster } } });
    let files = [
        ("nodepool.yaml", example("nodepool.yaml")),
        ("ec2nodeclass.yaml", example("ec2nodeclass.yaml")),
        ("cutlist.yaml", serde_yaml::to_string(&settings).unwrap()),
    ];
    commit(folder, &files)
}
