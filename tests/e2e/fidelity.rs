//! How many pods come to be on the node that the first plan named, by kind of constraint: a mix of pods that all come at once, on a real
//! control plane, and the same pods without their constraints. `make bench-fidelity` writes the table.
//!
//! The mix is the one that the reference publishes for its scheduler's benchmark: a fifth each of plain pods, pods spread over zones and
//! over hosts, pods together in a zone and pods apart on hosts, whose selectors count the pods of one another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::machine;
use crate::program::{self, Program};
use crate::random::Random;

const COMMAND: &str = "make bench-fidelity";
const PATIENCE: Duration = Duration::from_secs(900);
const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const PLANS: &str = "/apis/cutlist.dev/v1alpha1/nodeplans";
const PODS: &str = "/api/v1/namespaces/mix/pods";
const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const KIND: &str = "example.com/constraint";
const LETTERS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
/// As many pods create themselves at a time.
const WRITERS: usize = 8;
/// Sizes and seeds, unless `FIDELITY="PODS:SEED ..."` names others.
const MIXES: &str = "300:61 300:62 1000:63";

pub fn pods_as_the_first_plan_named(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = Program::prepare_with(plane, &cluster, "tests/e2e/fidelity");
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "mix" } });
    cluster.create("/api/v1/namespaces", &namespace).unwrap();
    let mut cutlist = program.start(plane);
    cluster.wait("the pool is there", PATIENCE, |cluster| {
        if cluster.list(POOLS).len() == 1 { Ok(()) } else { Err(cutlist.last_lines()) }
    });
    let named = std::env::var("FIDELITY").unwrap_or_else(|_| MIXES.to_owned());
    let mut rows = String::new();
    for word in named.split_whitespace() {
        let (count, seed) = word.split_once(':').expect("FIDELITY=\"PODS:SEED ...\"");
        let (count, seed) = (count.parse().unwrap(), seed.parse().unwrap());
        let bare: Vec<Value> = mix(count, seed).into_iter().map(without_constraints).collect();
        let (plain, _) = run(plane, &cluster, &bare);
        let (mixed, left) = run(plane, &cluster, &mix(count, seed));
        let ratio = mixed.seconds / plain.seconds;
        for (kind, (as_named, all)) in &mixed.by_kind {
            plane.say(format!("  {as_named:5} of {all:5}  {kind}"));
        }
        plane.say(format!("{word}: mixed {}, alike without constraints {}, left {left:?}", mixed.line(), plain.line()));
        let share = |(as_named, all): (usize, usize)| format!("{:.1} %", 100.0 * as_named as f64 / all as f64);
        let kinds = KINDS.map(|kind| share(mixed.by_kind.get(kind).copied().unwrap_or((0, 0))));
        let (kinds, all) = (kinds.join(" | "), share(mixed.all()));
        let (nodes, plans, for_nobody) = (mixed.nodes, mixed.plans, mixed.for_nobody);
        writeln!(
            rows,
            "| {count} | {seed} | {all} | {kinds} | {nodes} | {for_nobody} | {plans} | {:.1} | {ratio:.2} |",
            mixed.seconds
        )
        .unwrap();
    }
    cutlist.must_run();
    if let Some(readme) = std::env::var_os("README").map(PathBuf::from) {
        let header = "| pods | seed | as the first plan named | plain | zone spread | host spread | zone affinity | host anti-affinity \
                      | nodes | for nobody | plans | s | times the same without constraints |\n\
                      |--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
        machine::replace_block(&readme, COMMAND, &format!("{}{header}{rows}", machine::preamble(COMMAND)));
    }
}

/// What came of pods that came at once.
struct Outcome {
    seconds: f64,
    /// Pods on the node that the first plan named, of all, by kind of constraint.
    by_kind: BTreeMap<String, (usize, usize)>,
    nodes: usize,
    /// Nodes that no pod of these ever ran on.
    for_nobody: usize,
    /// Plans that created nodes.
    plans: usize,
}

impl Outcome {
    fn all(&self) -> (usize, usize) {
        self.by_kind.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    fn line(&self) -> String {
        let (as_named, all) = self.all();
        let Self { seconds, nodes, for_nobody, plans, .. } = self;
        format!("{as_named} of {all} as named, {nodes} nodes, {for_nobody} for nobody, {plans} plans, {seconds:.1} s")
    }
}

/// Lets the pods come, waits until all run, and takes them and their nodes away; with those that never ran.
fn run(plane: &mut ControlPlane, cluster: &Cluster, pods: &[Value]) -> (Outcome, BTreeSet<String>) {
    let since = Timestamp::now();
    let begin = Instant::now();
    create_all(plane, pods);
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    let (mut plans, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    let mut used = BTreeSet::new();
    let mut unchanged = (0, Instant::now());
    let left = cluster.wait("all pods run", PATIENCE, |cluster| {
        std::thread::sleep(Duration::from_millis(500));
        note_plans(cluster, since, &mut named, &mut plans);
        let there = cluster.list(PODS);
        let running = there.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
        used.extend(there.iter().filter_map(|pod| pod["spec"]["nodeName"].as_str().map(str::to_owned)));
        nodes.extend(
            cluster.list(CLAIMS).iter().filter_map(|claim| claim["status"]["nodeName"].as_str().map(str::to_owned)),
        );
        if running != unchanged.0 {
            unchanged = (running, Instant::now());
        }
        let is_stuck = unchanged.1.elapsed() > Duration::from_secs(90);
        let left = there.iter().filter(|pod| pod["status"]["phase"] != "Running").map(name);
        if running == pods.len() || is_stuck { Ok(left.collect()) } else { Err(format!("{running} pods run")) }
    });
    let seconds = unchanged.1.duration_since(begin).as_secs_f64();
    let outcome = Outcome {
        seconds,
        by_kind: by_kind(plane, cluster, &named),
        for_nobody: nodes.difference(&used).count(),
        nodes: nodes.len(),
        plans: plans.len(),
    };
    cluster.delete(PODS).unwrap();
    cluster.wait("no pod and no node is left", PATIENCE, |cluster| {
        let left = program::objects(cluster).len();
        if left == 0 { Ok(()) } else { Err(format!("{left} objects are left")) }
    });
    (outcome, left)
}

fn name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap().to_owned()
}

fn create_all(plane: &ControlPlane, pods: &[Value]) {
    let share = pods.len().div_ceil(WRITERS);
    std::thread::scope(|scope| {
        for pods in pods.chunks(share) {
            let cluster = plane.cluster();
            scope.spawn(move || pods.iter().for_each(|pod| drop(cluster.create(PODS, pod).unwrap())));
        }
    });
}

/// The node that the first of the plans has for each pod, and the plans that create nodes.
fn note_plans(cluster: &Cluster, since: Timestamp, named: &mut BTreeMap<String, String>, plans: &mut BTreeSet<String>) {
    let posted_at =
        |plan: &Value| plan["spec"]["generatedFor"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let mut posted = cluster.list(PLANS);
    posted.retain(|plan| posted_at(plan).is_some_and(|at| at >= since));
    posted.sort_by_key(posted_at);
    for plan in &posted {
        let id = plan["spec"]["planId"].as_str().unwrap();
        let mut note = |pod: &Value, node: &Value| {
            let (_, pod) = pod.as_str().unwrap().split_once('/').unwrap();
            named.entry(pod.to_owned()).or_insert_with(|| node.as_str().unwrap().to_owned());
        };
        for step in plan["spec"]["plan"]["steps"].as_array().into_iter().flatten() {
            if step["kind"] == "create" {
                plans.insert(id.to_owned());
                step["pods"].as_array().into_iter().flatten().for_each(|pod| note(pod, &step["nodeClaim"]));
            }
        }
        for placement in plan["spec"]["plan"]["placements"].as_array().into_iter().flatten() {
            note(&placement["pod"], &placement["node"]);
        }
    }
}

/// By kind of constraint, how many pods are on the node that was named, of all; says of each other one where it went, and when.
fn by_kind(
    plane: &mut ControlPlane,
    cluster: &Cluster,
    named: &BTreeMap<String, String>,
) -> BTreeMap<String, (usize, usize)> {
    let claims = cluster.list(CLAIMS);
    let nodes: BTreeMap<String, &str> =
        claims.iter().filter_map(|claim| Some((name(claim), claim["status"]["nodeName"].as_str()?))).collect();
    let mut by_kind: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for pod in cluster.list(PODS) {
        let planned = named.get(&name(&pod)).map(|place| nodes.get(place).copied().unwrap_or(place));
        let actual = pod["spec"]["nodeName"].as_str();
        let is_there = planned.is_some() && planned == actual;
        let kind = pod["metadata"]["labels"][KIND].as_str().unwrap();
        let counted = by_kind.entry(kind.to_owned()).or_default();
        counted.0 += usize::from(is_there);
        counted.1 += 1;
        if !is_there {
            let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
            let bound = conditions.find(|it| it["type"] == "PodScheduled").map(|it| &it["lastTransitionTime"]);
            plane.say(format!("    {} {kind} {planned:?} -> {actual:?}, {bound:?}", name(&pod)));
        }
    }
    by_kind
}

/// In the order of the table's columns.
const KINDS: [&str; 5] = ["plain", "zone-spread", "host-spread", "zone-affinity", "host-anti-affinity"];

fn mix(count: usize, seed: u64) -> Vec<Value> {
    let mut random = Random(seed);
    (0..count).map(|number| pod(number, KINDS[number * KINDS.len() / count], &mut random)).collect()
}

fn pod(number: usize, kind: &str, random: &mut Random) -> Value {
    let letter = random.one_of(&LETTERS);
    let mut labels = json!({ "my-label": letter });
    let mut spec = json!({});
    let others = json!({ "matchLabels": { "my-label": random.one_of(&LETTERS) } });
    let spread = |key: &str| {
        json!({ "topologySpreadConstraints": [
            { "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": others },
        ] })
    };
    let term = |which: &str, key: &str, own: &Value| {
        json!({ "affinity": { which: { "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": key, "labelSelector": { "matchLabels": own } },
        ] } } })
    };
    match kind {
        "zone-spread" => spec = spread(ZONE),
        "host-spread" => spec = spread(HOSTNAME),
        "zone-affinity" => {
            labels = json!({ "my-affinity": letter });
            spec = term("podAffinity", ZONE, &labels);
        }
        "host-anti-affinity" => {
            labels = json!({ "app": "nginx" });
            spec = term("podAntiAffinity", HOSTNAME, &labels);
        }
        _ => {}
    }
    labels[KIND] = json!(kind);
    let requests = json!({
        "cpu": random.one_of(&["100m", "250m", "500m", "1", "1500m"]),
        "memory": random.one_of(&["100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"]),
    });
    spec["terminationGracePeriodSeconds"] = json!(0);
    spec["containers"] =
        json!([{ "name": "main", "image": "registry.example/app", "resources": { "requests": requests } }]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "mix", "name": format!("mixed-{number:05}"), "labels": labels },
        "spec": spec,
    })
}

fn without_constraints(mut pod: Value) -> Value {
    let spec = pod["spec"].as_object_mut().unwrap();
    spec.remove("topologySpreadConstraints");
    spec.remove("affinity");
    pod
}
