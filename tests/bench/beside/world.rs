//! Pools and workloads, and what changes about them from step to step.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster};
use crate::karpenter::Karpenter;
use crate::random::Random;

const PATIENCE: Duration = Duration::from_secs(120);
const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/shop/deployments";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const PODS: &str = "/api/v1/namespaces/shop/pods";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const FAMILY: &str = "karpenter.kwok.sh/instance-family";
const CPU: &str = "karpenter.kwok.sh/instance-cpu";
const MOST_DEPLOYMENTS: usize = 6;
/// As long as the nodes of the pool live that is there for a while.
pub const BRIEF: Duration = Duration::from_secs(180);

/// Kinds of changes, in the order of the table's rows.
pub const KINDS: [&str; 11] = [
    "scale out",
    "scale in",
    "deployment made",
    "deployment removed",
    "weights",
    "limits",
    "budgets",
    "policies",
    "requirements",
    "capacity types",
    "template",
];

struct Deployment {
    name: String,
    replicas: usize,
    spec: Value,
}

pub struct World {
    random: Random,
    pools: Vec<Value>,
    deployments: Vec<Deployment>,
    made: usize,
    /// Pools are changed in the definitions, and not yet in the cluster.
    is_ahead: bool,
    /// Pools that have nodes: others say nothing of most changes.
    used: Vec<String>,
    /// The folder with the definitions.
    definitions: PathBuf,
}

impl World {
    /// Three pools and three workloads.
    pub fn begin(cluster: &Cluster, karpenter: &Karpenter, definitions: &Path, seed: u64) -> Self {
        std::fs::create_dir_all(definitions).unwrap();
        let settings = "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nmetadata: { name: beside }\n\
                        spec: { clusterName: beside, region: us-east-1, packing: karpenter }\n";
        std::fs::write(definitions.join("cutlist.yaml"), settings).unwrap();
        cluster.apply_all(
            "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n---\n\
             apiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: agent, namespace: kube-system }\n\
             spec:\n  selector: { matchLabels: { app: agent } }\n  template:\n    metadata: { labels: { app: agent } }\n    spec:\n      \
             tolerations: [{ operator: Exists }]\n      containers:\n        - { name: main, image: registry.example/agent, \
             resources: { requests: { cpu: 50m, memory: 64Mi } } }\n",
        );
        let pools = vec![
            weighing(20, pool("general", &["c", "m"], &["amd64"], &["on-demand"])),
            pool("mixed", &["c", "m", "s"], &["amd64", "arm64"], &["on-demand", "spot"]),
            dedicated(pool("batch", &["c"], &["amd64"], &["spot"])),
        ];
        let mut world = Self {
            random: Random(seed),
            pools,
            deployments: Vec::new(),
            made: 0,
            is_ahead: false,
            used: Vec::new(),
            definitions: definitions.to_owned(),
        };
        world.tell(cluster, karpenter);
        for _ in 0..3 {
            world.make_deployment(cluster);
        }
        world
    }

    /// Changes something by chance; gives the kind of the change, and what it was.
    ///
    /// Changes of pools alone are in the definitions first: Karpenter uses no pool before it has looked at its change, which it would not
    /// have done when it goes on.
    pub fn change(&mut self, cluster: &Cluster, karpenter: &Karpenter) -> (&'static str, String) {
        self.used = cluster
            .list(CLAIMS)
            .iter()
            .filter_map(|it| Some(it["metadata"]["labels"]["karpenter.sh/nodepool"].as_str()?.to_owned()))
            .collect();
        // Scaling is the most frequent, as it is.
        let weights = [5, 4, 2, 1, 2, 2, 2, 2, 2, 2, 2];
        let mut number = self.random.below(weights.iter().sum());
        let mut kind = 0;
        while number >= weights[kind] {
            number -= weights[kind];
            kind += 1;
        }
        let kind = match KINDS[kind] {
            "deployment made" if self.deployments.len() >= MOST_DEPLOYMENTS => "deployment removed",
            "deployment removed" if self.deployments.len() < 3 => "deployment made",
            kind => kind,
        };
        let what = match kind {
            "scale out" => self.scale_out(cluster),
            "scale in" => self.scale_in(cluster),
            "deployment made" => self.make_deployment(cluster),
            "deployment removed" => self.remove_deployment(cluster),
            _ => self.change_pools(cluster, karpenter, kind),
        };
        let with_workloads = ["weights", "limits", "budgets"];
        self.is_ahead = KINDS[4..].contains(&kind) && !with_workloads.contains(&kind);
        self.write_definitions();
        (kind, what)
    }

    fn change_pools(&mut self, cluster: &Cluster, karpenter: &Karpenter, kind: &str) -> String {
        match kind {
            "weights" => {
                let weight = [None, Some(1), Some(10), Some(50), Some(100)][self.random.below(5)];
                let pool = self.set(&["general", "mixed"], "/spec", "weight", json!(weight));
                self.tell(cluster, karpenter);
                format!("{pool} weighs {weight:?}, {}", self.scale_out(cluster))
            }
            "limits" => {
                let cpu = [8, 16, 32, 64, 1000][self.random.below(5)];
                let pool =
                    self.set(&["general", "mixed", "batch"], "/spec", "limits", json!({ "cpu": cpu.to_string() }));
                self.tell(cluster, karpenter);
                format!("{pool} has at most {cpu} cpu, {}", self.scale_out(cluster))
            }
            "budgets" => {
                let budgets = match self.random.below(8) {
                    0 => json!([{ "nodes": "0" }]),
                    1 => json!([{ "nodes": "1" }]),
                    2 => json!([{ "nodes": "50%" }]),
                    3 => {
                        json!([{ "nodes": "100%", "reasons": ["Empty"] }, { "nodes": "1", "reasons": ["Drifted", "Underutilized"] }])
                    }
                    4 => json!([{ "nodes": "0", "reasons": ["Underutilized"] }]),
                    _ => json!([{ "nodes": "100%" }]),
                };
                let what = budgets.to_string();
                let pool = self.set(&["general", "mixed"], "/spec/disruption", "budgets", budgets);
                self.tell(cluster, karpenter);
                format!("{pool} allows {what}, {}", self.scale_in(cluster))
            }
            "policies" => {
                let policy = self
                    .random
                    .one_of(&["WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced"])
                    .to_owned();
                let after = self.random.one_of(&["0s", "0s", "5s", "Never"]).to_owned();
                let pool =
                    self.set(&["general", "mixed", "batch"], "/spec/disruption", "consolidationPolicy", json!(policy));
                self.set(&[&pool], "/spec/disruption", "consolidateAfter", json!(after));
                format!("{pool} consolidates {policy} after {after}")
            }
            "requirements" => self.change_requirements(),
            "capacity types" => {
                let types: &[&str] = [&["on-demand"][..], &["spot"], &["on-demand", "spot"]][self.random.below(3)];
                let pool = self.require(&["general", "mixed", "batch"], CAPACITY_TYPE, types);
                format!("{pool} buys {types:?}")
            }
            _ => {
                let generation = self.random.below(1000).to_string();
                let pool = self.set(
                    &["general", "mixed", "batch"],
                    "/spec/template/metadata/labels",
                    "example.com/generation",
                    json!(generation),
                );
                format!("nodes of {pool} are of generation {generation}")
            }
        }
    }

    /// Waits until kube-scheduler has tried every pod that workloads want; it goes on while Karpenter does not.
    pub fn settle(&self, cluster: &Cluster) {
        let wanted: usize = self.deployments.iter().map(|it| it.replicas).sum();
        cluster.wait("every pod is bound or refused", PATIENCE, |cluster| {
            let pods = cluster.list(PODS);
            let is_decided =
                |pod: &&Value| !pod["spec"]["nodeName"].is_null() || !pod["status"]["conditions"].is_null();
            let decided = pods.iter().filter(is_decided).count();
            let is_settled = pods.len() == wanted && decided == wanted;
            if is_settled { Ok(()) } else { Err(format!("{} pods of {wanted}, {decided} decided", pods.len())) }
        });
        // kwok writes what a kubelet would, for pods and nodes alike.
        std::thread::sleep(Duration::from_secs(2));
    }

    /// A pool of its own, with a workload that only it takes, whose nodes expire soon.
    pub fn make_brief(&mut self, cluster: &Cluster, karpenter: &Karpenter) -> String {
        let mut brief = dedicated(pool("brief", &["c", "m"], &["amd64"], &["on-demand"]));
        brief["spec"]["template"]["spec"]["expireAfter"] = json!(format!("{}s", BRIEF.as_secs()));
        self.pools.push(brief);
        self.tell(cluster, karpenter);
        let replicas = 1 + self.random.below(4);
        let mut spec = json!({});
        dedicate(&mut spec, "brief");
        spec["containers"] = containers("1500m", "2Gi");
        self.deployments.push(Deployment { name: "brief".to_owned(), replicas, spec });
        self.apply_deployment(cluster, self.deployments.len() - 1);
        format!("pool brief, whose nodes expire after {} s, and {replicas} pods for it", BRIEF.as_secs())
    }

    pub fn remove_brief(&mut self, cluster: &Cluster) {
        self.deployments.retain(|it| it.name != "brief");
        self.pools.retain(|it| it["metadata"]["name"] != "brief");
        cluster.delete(&format!("{DEPLOYMENTS}/brief")).unwrap();
        cluster.delete(&format!("{POOLS}/brief")).unwrap();
        self.apply_pools(cluster);
    }

    /// Brings the pools of the cluster up to the definitions.
    pub fn catch_up(&mut self, cluster: &Cluster) {
        if std::mem::take(&mut self.is_ahead) {
            self.apply_pools(cluster);
        }
    }

    /// Lets Karpenter know the pools before workloads change.
    fn tell(&self, cluster: &Cluster, karpenter: &Karpenter) {
        self.apply_pools(cluster);
        karpenter.go_on();
        std::thread::sleep(Duration::from_millis(1500));
        karpenter.pause();
    }

    fn scale_out(&mut self, cluster: &Cluster) -> String {
        let position = self.random.below(self.deployments.len());
        let more = 1 + self.random.below(5);
        self.deployments[position].replicas += more;
        self.apply_deployment(cluster, position);
        format!("{} grows by {more} to {}", self.deployments[position].name, self.deployments[position].replicas)
    }

    fn scale_in(&mut self, cluster: &Cluster) -> String {
        let largest = (0..self.deployments.len()).max_by_key(|it| self.deployments[*it].replicas).unwrap_or(0);
        let position = if self.random.below(2) == 0 { largest } else { self.random.below(self.deployments.len()) };
        let deployment = &mut self.deployments[position];
        let fewer = 1 + self.random.below(deployment.replicas.max(1));
        deployment.replicas = deployment.replicas.saturating_sub(fewer);
        self.apply_deployment(cluster, position);
        format!("{} shrinks to {}", self.deployments[position].name, self.deployments[position].replicas)
    }

    fn make_deployment(&mut self, cluster: &Cluster) -> String {
        self.made += 1;
        let name = format!("app-{}", self.made);
        let cpu = self.random.one_of(&["250m", "500m", "900m", "1500m", "3"]).to_owned();
        let memory = self.random.one_of(&["256Mi", "1Gi", "2Gi", "5Gi"]).to_owned();
        let replicas = 1 + self.random.below(6);
        let mut spec = json!({});
        let own = json!({ "matchLabels": { "app": name } });
        let what = match self.random.below(10) {
            0 => {
                let zone = self.random.one_of(&["test-zone-b", "test-zone-c"]).to_owned();
                spec["nodeSelector"] = json!({ ZONE: zone });
                zone
            }
            1 => {
                let capacity_type = self.random.one_of(&["spot", "on-demand"]).to_owned();
                spec["nodeSelector"] = json!({ CAPACITY_TYPE: capacity_type });
                capacity_type
            }
            2 => {
                spec["topologySpreadConstraints"] = json!([{ "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own }]);
                "spread over zones".to_owned()
            }
            3 => {
                let term = json!([{ "topologyKey": "kubernetes.io/hostname", "labelSelector": own }]);
                spec["affinity"] =
                    json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term } });
                "apart on hosts".to_owned()
            }
            4 => {
                dedicate(&mut spec, "batch");
                "for batch".to_owned()
            }
            _ => "plain".to_owned(),
        };
        spec["containers"] = containers(&cpu, &memory);
        self.deployments.push(Deployment { name: name.clone(), replicas, spec });
        self.apply_deployment(cluster, self.deployments.len() - 1);
        format!("{name}: {replicas} pods of {cpu} and {memory}, {what}")
    }

    fn remove_deployment(&mut self, cluster: &Cluster) -> String {
        let removed = self.deployments.remove(self.random.below(self.deployments.len()));
        cluster.delete(&format!("{DEPLOYMENTS}/{}", removed.name)).unwrap();
        removed.name
    }

    fn change_requirements(&mut self) -> String {
        let (key, values): (&str, &[&str]) = match self.random.below(7) {
            0 => (FAMILY, &["c"]),
            1 => (FAMILY, &["m", "s"]),
            2 => (FAMILY, &["c", "m", "s"]),
            3 => (CPU, &["1", "2", "4", "8"]),
            4 => (CPU, &["4", "8", "16"]),
            5 => (ZONE, &["test-zone-b", "test-zone-c"]),
            _ => (ZONE, &["test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"]),
        };
        let pool = self.require(&["general", "mixed"], key, values);
        format!("{pool} asks for {key} in {values:?}")
    }

    /// Sets a field of one of the pools; gives its name.
    fn set(&mut self, among: &[&str], parent: &str, field: &str, value: Value) -> String {
        let name = self.one_of_pools(among);
        let parent = self.pool(&name).pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            parent.remove(field);
        } else {
            parent.insert(field.to_owned(), value);
        }
        name
    }

    fn require(&mut self, among: &[&str], key: &str, values: &[&str]) -> String {
        let name = self.one_of_pools(among);
        let requirements = self.pool(&name)["spec"]["template"]["spec"]["requirements"].as_array_mut().unwrap();
        requirements.retain(|it| it["key"] != key);
        requirements.push(json!({ "key": key, "operator": "In", "values": values }));
        name
    }

    fn one_of_pools(&mut self, among: &[&str]) -> String {
        let used: Vec<&str> = among.iter().copied().filter(|name| self.used.iter().any(|it| it == name)).collect();
        let among = if used.is_empty() || self.random.below(5) == 0 { among } else { &used };
        self.random.one_of(among).to_owned()
    }

    fn pool(&mut self, name: &str) -> &mut Value {
        self.pools.iter_mut().find(|it| it["metadata"]["name"] == name).unwrap()
    }

    fn apply_pools(&self, cluster: &Cluster) {
        for pool in &self.pools {
            cluster.apply(pool, Apply::ForReal).unwrap();
        }
        self.write_definitions();
    }

    fn write_definitions(&self) {
        let texts = self.pools.iter().map(|pool| format!("---\n{}", serde_yaml::to_string(pool).unwrap()));
        std::fs::write(self.definitions.join("pools.yaml"), texts.collect::<String>()).unwrap();
    }

    fn apply_deployment(&self, cluster: &Cluster, position: usize) {
        let Deployment { name, replicas, spec } = &self.deployments[position];
        let mut spec = spec.clone();
        spec["terminationGracePeriodSeconds"] = json!(0);
        let labels = json!({ "app": name });
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": "shop", "name": name },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": spec },
            },
        });
        cluster.apply(&object, Apply::ForReal).unwrap();
    }
}

fn containers(cpu: &str, memory: &str) -> Value {
    let requests = json!({ "cpu": cpu, "memory": memory });
    json!([{ "name": "main", "image": "registry.example/app", "resources": { "requests": requests } }])
}

fn pool(name: &str, families: &[&str], architectures: &[&str], capacity_types: &[&str]) -> Value {
    let is_in = |key: &str, values: &[&str]| json!({ "key": key, "operator": "In", "values": values });
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": { "name": name },
        "spec": {
            "template": {
                "metadata": { "labels": { "example.com/pool": name } },
                "spec": {
                    "nodeClassRef": { "group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default" },
                    "requirements": [
                        is_in(FAMILY, families),
                        is_in(CPU, &["1", "2", "4", "8", "16"]),
                        is_in("kubernetes.io/arch", architectures),
                        is_in("kubernetes.io/os", &["linux"]),
                        is_in(CAPACITY_TYPE, capacity_types),
                    ],
                    "expireAfter": "Never",
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{ "nodes": "100%" }],
            },
        },
    })
}

fn weighing(weight: u32, mut pool: Value) -> Value {
    pool["spec"]["weight"] = json!(weight);
    pool
}

/// Only pods that are for it come onto nodes of the pool.
fn dedicated(mut pool: Value) -> Value {
    let name = pool["metadata"]["name"].clone();
    pool["spec"]["template"]["spec"]["taints"] =
        json!([{ "key": "example.com/for", "value": name, "effect": "NoSchedule" }]);
    pool
}

fn dedicate(spec: &mut Value, pool: &str) {
    spec["nodeSelector"] = json!({ "example.com/pool": pool });
    spec["tolerations"] =
        json!([{ "key": "example.com/for", "operator": "Equal", "value": pool, "effect": "NoSchedule" }]);
}
