//! Clusters at half load, drawn from fixed seeds.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark writes files")]

use std::path::Path;

use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::keys;
use cutlist::api::node_pool::NodePool;
use cutlist::api::settings::Packing;
use cutlist::core::catalog::Catalog;
use cutlist::core::inputs::{Inputs, Policy};
use cutlist::core::plan::Revision;
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::carried_out::carry_out;
use crate::frontier::Frontier;
use crate::objects::{self, requirement};
use crate::workloads;

/// The folder of the definitions under which any saving will do.
pub const PATIENT: &str = "definitions-payback-never";

/// A cluster that is not built yet.
pub struct Draft {
    pub title: String,
    /// Those that are left.
    pub pods: usize,
    deployments: usize,
    pools: usize,
    /// On how many CPUs a node may have at most.
    largest_cpus: Option<usize>,
    /// Of ten pods, how many are left.
    kept: usize,
    shape: Shape,
    capacity_types: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum Shape {
    Deployments,
    /// The same with at most 250 millicores and a GiB.
    Small,
    /// One of each kind on a node (reference, section 9.7).
    HostSpread,
}

pub struct Start {
    pub title: String,
    pub snapshot: Snapshot,
    pub pools: Vec<NodePool>,
    pub classes: Vec<EC2NodeClass>,
    pub catalog: Catalog,
}

fn draft(title: &str, pods: usize, deployments: usize, pools: usize, largest_cpus: Option<usize>) -> Draft {
    Draft {
        title: title.to_owned(),
        pods,
        deployments,
        pools,
        largest_cpus,
        kept: 5,
        shape: Shape::Deployments,
        capacity_types: &["on-demand"],
    }
}

fn host_spread() -> Draft {
    Draft { kept: 7, shape: Shape::HostSpread, ..draft("host spread", 1400, 2, 1, Some(31)) }
}

pub fn table() -> Vec<Draft> {
    vec![
        draft("1,500 pods", 1500, 100, 1, None),
        Draft { capacity_types: &["on-demand", "spot"], ..draft("1,500 pods, spot", 1500, 100, 1, None) },
        draft("3,000 pods", 3000, 100, 1, Some(16)),
        draft("3,000 pods, 20 pools", 3000, 100, 20, Some(16)),
        host_spread(),
        Draft { shape: Shape::Small, ..draft("30,000 pods, 20 pools", 30_000, 600, 20, Some(16)) },
        Draft { shape: Shape::Small, ..draft("150,000 pods, 20 pools", 150_000, 3000, 20, Some(16)) },
    ]
}

/// Those that the reference can be given too: sizes at which it comes to an end in minutes, and one at which it does not.
pub fn against_the_reference() -> Vec<Draft> {
    vec![
        draft("19 large nodes", 1500, 100, 1, None),
        draft("60 nodes", 1500, 100, 1, Some(32)),
        draft("100 nodes", 1200, 100, 1, Some(16)),
        Draft { shape: Shape::Small, ..draft("small pods", 3000, 100, 1, Some(16)) },
        draft("20 pools of 5 nodes", 1200, 100, 20, Some(16)),
        host_spread(),
        draft("300 nodes", 3600, 100, 1, Some(16)),
        Draft { kept: 3, ..draft("5,000 pods, then 1,500", 1500, 100, 1, Some(8)) },
    ]
}

/// As programs get it: what pods have in common is kept once, which takes half as long to look at.
fn as_read(snapshot: &Snapshot) -> Snapshot {
    let mut read = Snapshot::default();
    let text = cutlist::core::snapshot::write::write(snapshot).unwrap();
    cutlist::core::snapshot::read::read(text.as_ref(), &mut read).unwrap();
    read
}

impl Draft {
    /// Buys for all pods as the reference would, and takes the share that is not kept away.
    pub fn build(&self, seed: u64) -> Start {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        let classes = vec![serde_json::from_value(objects::node_class()).unwrap()];
        let pools: Vec<NodePool> =
            (0..self.pools).map(|pool| serde_json::from_value(self.node_pool(pool)).unwrap()).collect();
        let count = self.pods * 10 / self.kept;
        let whole = match self.shape {
            Shape::Deployments => workloads::deployments(seed, self.deployments, count),
            Shape::Small => workloads::small(workloads::deployments(seed, self.deployments, count)),
            Shape::HostSpread => workloads::spread_over_hosts(count),
        };
        let whole = if self.pools > 1 { workloads::of_team(whole, self.pools) } else { whole };
        let mut snapshot = Snapshot {
            pods: whole.iter().map(|pod| serde_json::from_value(pod.pending()).unwrap()).collect(),
            ..Snapshot::default()
        };
        let mut start = Start { title: self.title.clone(), snapshot: Snapshot::default(), pools, classes, catalog };
        let before: Timestamp = objects::CREATED.parse().unwrap();
        let plan = decide(&start.inputs(&snapshot, Packing::Karpenter, before));
        assert!(plan.pending.is_empty(), "{:?}", plan.pending.first());
        carry_out(&plan, &mut snapshot, &start.catalog, &start.classes, before);
        let mut number = 0;
        snapshot.pods.retain(|_| {
            // Teams take turns, so a round of them stays or goes.
            let round = number / self.pools;
            number += 1;
            if self.kept == 5 { round.is_multiple_of(2) } else { round % 10 < self.kept }
        });
        start.snapshot = as_read(&snapshot);
        start
    }

    /// As in the reference's getting-started guide, but without a limit on how many nodes go at once.
    fn node_pool(&self, number: usize) -> Value {
        let mut requirements = vec![
            requirement(keys::OPERATING_SYSTEM, "In", &["linux"]),
            requirement(keys::ARCHITECTURE, "In", &["amd64"]),
            requirement(keys::CAPACITY_TYPE, "In", self.capacity_types),
            requirement(keys::INSTANCE_CATEGORY, "In", &["c", "m", "r"]),
            requirement(keys::INSTANCE_GENERATION, "Gt", &["2"]),
        ];
        if let Some(cpus) = self.largest_cpus {
            requirements.push(requirement(keys::INSTANCE_CPU, "Lt", &[&(cpus + 1).to_string()]));
        }
        let team = format!("team-{number}");
        let mut pool = objects::node_pool(if self.pools == 1 { "default" } else { &team }, &requirements);
        if self.pools > 1 {
            pool["spec"]["template"]["metadata"] = json!({ "labels": { "team": team } });
            pool["spec"]["template"]["spec"]["taints"] =
                json!([{ "key": "team", "value": team, "effect": "NoSchedule" }]);
        }
        pool["spec"]["disruption"] =
            json!({ "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [] });
        pool
    }
}

impl Start {
    pub fn inputs<'a>(&'a self, snapshot: &'a Snapshot, packing: Packing, now: Timestamp) -> Inputs<'a> {
        Inputs {
            revision: Revision { id: "start".to_owned(), reference: "start".to_owned() },
            cluster: "bench",
            node_pools: &self.pools,
            node_classes: &self.classes,
            node_overlays: &[],
            capacity_buffers: &[],
            pod_templates: &[],
            disruption_budgets: &[],
            places: cutlist::core::plan::DefinitionPlaces::none(),
            snapshot,
            catalog: &self.catalog,
            policy: Policy { packing, ..Policy::default() },
            seed: 1,
            now,
            notes: Vec::new(),
        }
    }

    /// The pods of the start, and no nodes.
    fn without_nodes(&self) -> Snapshot {
        let mut pending = Snapshot { pods: self.snapshot.pods.clone(), ..Snapshot::default() };
        for pod in &mut pending.pods {
            pod.spec.node_name = None;
            pod.status = serde_json::from_value(json!({ "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
            ] }))
            .unwrap();
        }
        pending
    }

    /// Dollars per hour: what new nodes for these pods would cost, and what no fleet for them costs less than.
    pub fn fresh_and_bound(&self) -> (f64, f64) {
        let pending = self.without_nodes();
        let now = objects::NOW.parse().unwrap();
        let plan = decide(&self.inputs(&pending, Packing::Cheapest, now));
        let bound =
            plan.summary.lower_bound_price_per_hour.map_or(f64::NAN, cutlist::core::model::HourlyPrice::dollars);
        (plan.summary.price_per_hour_after.dollars(), bound)
    }

    /// How few pods can move.
    pub fn frontier(&self) -> Option<Frontier> {
        let now = objects::NOW.parse().unwrap();
        Frontier::new(&self.inputs(&self.snapshot, Packing::Cheapest, now))
    }

    /// Files: `definitions/`, `snapshot.json`, and `pending.json` with the same pods before they have nodes.
    pub fn write(&self, folder: &Path) {
        let definitions = folder.join("definitions");
        std::fs::create_dir_all(&definitions).unwrap();
        let write = |name: String, value: &Value| {
            std::fs::write(definitions.join(name), serde_json::to_vec_pretty(value).unwrap()).unwrap();
        };
        for (number, pool) in self.pools.iter().enumerate() {
            write(format!("nodepool-{number}.yaml"), &serde_json::to_value(pool).unwrap());
        }
        write("ec2nodeclass.yaml".to_owned(), &objects::node_class());
        let mut settings = objects::settings("Respect");
        write("cutlist.yaml".to_owned(), &settings);
        settings["spec"]["disruption"] = json!({ "payback": "Never" });
        let patient = folder.join(PATIENT);
        std::fs::create_dir_all(&patient).unwrap();
        for entry in std::fs::read_dir(&definitions).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, patient.join(path.file_name().unwrap())).unwrap();
        }
        std::fs::write(patient.join("cutlist.yaml"), serde_json::to_vec_pretty(&settings).unwrap()).unwrap();
        for (name, snapshot) in [("snapshot.json", &self.snapshot), ("pending.json", &self.without_nodes())] {
            std::fs::write(folder.join(name), cutlist::core::snapshot::write::write(snapshot).unwrap()).unwrap();
        }
    }
}
