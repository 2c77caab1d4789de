//! What is measured. Everything is drawn from fixed seeds: the same files on every machine.

#![cfg(test)]

use cutlist::api::keys;
use serde_json::{Value, json};

use crate::market::Market;
use crate::objects::{self, Pod, requirement};
use crate::{trace, workloads};

#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub market: Market,
    pub pools: Vec<Value>,
    pub preference_policy: &'static str,
    pub daemon_sets: Vec<Value>,
    pub nodes: Nodes,
    pub pending: Vec<Pod>,
    /// Small enough for `--quick`.
    pub quick: bool,
}

/// Nodes that exist, and the pods on each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    pub count: usize,
    pub pods_on_each: usize,
}

pub const NO_NODES: Nodes = Nodes { count: 0, pods_on_each: 0 };

/// The type of the nodes that exist: 16 CPUs, 64 GiB.
pub const NODE_TYPE: &str = "m5.4xlarge";
pub const POOL: &str = "default";

impl Scenario {
    pub fn new(name: impl Into<String>, market: Market, pending: Vec<Pod>) -> Self {
        let requirements = match market {
            Market::Invented => vec![linux()],
            Market::BuiltIn | Market::BuiltInWithSpotPrices => {
                vec![linux(), requirement(keys::CAPACITY_TYPE, "In", &["on-demand", "spot"])]
            }
        };
        Self {
            name: name.into(),
            market,
            pools: vec![objects::node_pool(POOL, &requirements)],
            preference_policy: "Respect",
            daemon_sets: Vec::new(),
            nodes: NO_NODES,
            quick: pending.len() <= 1000,
            pending,
        }
    }

    /// The folder that its files are written to.
    pub fn folder(&self) -> String {
        let plain: String = self.title().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
        words.join("-").to_lowercase()
    }

    pub fn title(&self) -> String {
        format!("{} ({})", self.name, self.market.title())
    }
}

/// Every row of the table, in its order.
pub fn table() -> Vec<Scenario> {
    let mut scenarios = published_mix();
    scenarios.extend(preferences());
    scenarios.extend(prices());
    scenarios.extend(workload_shapes());
    scenarios.extend(existing_nodes());
    scenarios
}

fn published_mix() -> Vec<Scenario> {
    let sizes = [1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000];
    let mix =
        |market| move |count: usize| Scenario::new(format!("published mix {count}"), market, workloads::diverse(count));
    sizes.map(mix(Market::Invented)).into_iter().chain(sizes.map(mix(Market::BuiltIn))).collect()
}

fn preferences() -> Vec<Scenario> {
    let policies = [("respected", "Respect"), ("ignored", "Ignore")];
    let scenario = |(title, preference_policy)| Scenario {
        preference_policy,
        quick: preference_policy == "Ignore",
        ..Scenario::new(format!("preferences {title}"), Market::Invented, workloads::with_preferences(4000))
    };
    policies.map(scenario).into()
}

/// The pool of the reference's getting-started guide, and four DaemonSets of together 330m and 516 Mi.
fn prices() -> Vec<Scenario> {
    let daemon_sets = [("node-agent", 50, 64), ("proxy", 100, 64), ("storage", 30, 120), ("logs", 150, 268)];
    let daemon_sets = daemon_sets.map(|(name, cpu, memory)| objects::daemon_set(name, cpu, memory));
    let ways = [("on-demand", Market::BuiltIn), ("spot", Market::BuiltInWithSpotPrices)];
    let rows = ways.map(|(way, market)| {
        let capacity_types: &[&str] = if way == "spot" { &["on-demand", "spot"] } else { &["on-demand"] };
        let pool = getting_started(POOL, capacity_types, &["c", "m", "r"]);
        let diverse = Scenario {
            pools: vec![pool.clone()],
            ..Scenario::new(format!("price, {way}: published mix"), market, workloads::diverse(1000))
        };
        let mixed = Scenario {
            pools: vec![pool],
            daemon_sets: daemon_sets.to_vec(),
            quick: true,
            ..Scenario::new(format!("price, {way}: 100 Deployments"), market, workloads::deployments(3, 100, 2000))
        };
        [diverse, mixed]
    });
    rows.into_iter().flatten().collect()
}

fn getting_started(name: &str, capacity_types: &[&str], categories: &[&str]) -> Value {
    let requirements = [
        linux(),
        requirement(keys::ARCHITECTURE, "In", &["amd64"]),
        requirement(keys::CAPACITY_TYPE, "In", capacity_types),
        requirement(keys::INSTANCE_CATEGORY, "In", categories),
        requirement(keys::INSTANCE_GENERATION, "Gt", &["2"]),
    ];
    objects::node_pool(name, &requirements)
}

fn workload_shapes() -> Vec<Scenario> {
    let hosts = Scenario {
        pools: vec![objects::node_pool(
            POOL,
            &[
                linux(),
                requirement(keys::CAPACITY_TYPE, "In", &["on-demand", "spot"]),
                requirement(keys::INSTANCE_CPU, "Lt", &["32"]),
            ],
        )],
        ..Scenario::new("host spread, 2 Deployments", Market::BuiltIn, workloads::spread_over_hosts(2000))
    };
    let deployments = |count: usize, pods: usize| {
        Scenario::new(format!("{count} Deployments"), Market::BuiltIn, workloads::deployments(5, count, pods))
    };
    vec![
        hosts,
        deployments(200, 5000),
        deployments(400, 20_000),
        Scenario::new("one Deployment", Market::BuiltIn, workloads::one_deployment(20_000)),
        Scenario::new("all different", Market::BuiltIn, workloads::one_off(5000)),
        pools_of_teams(63, 5000),
        with_accelerators(8152),
    ]
}

fn with_accelerators(pods: usize) -> Scenario {
    let pool = |name: &str, categories: &[&str]| getting_started(name, &["on-demand"], categories);
    Scenario {
        pools: vec![pool(POOL, &["c", "m", "r"]), pool("accelerated", &["g", "p"])],
        ..Scenario::new("sizes of a trace", Market::BuiltIn, trace::pods(pods))
    }
}

fn pools_of_teams(teams: usize, pods: usize) -> Scenario {
    let pool = |number: usize| {
        let team = format!("team-{number}");
        let mut pool = objects::node_pool(&team, &[linux(), requirement(keys::CAPACITY_TYPE, "In", &["on-demand"])]);
        pool["spec"]["template"]["metadata"] = json!({ "labels": { "team": team } });
        pool["spec"]["template"]["spec"]["taints"] = json!([{ "key": "team", "value": team, "effect": "NoSchedule" }]);
        pool
    };
    Scenario {
        pools: (0..teams).map(pool).collect(),
        ..Scenario::new(
            format!("{teams} pools"),
            Market::BuiltIn,
            workloads::of_team(workloads::deployments(9, 200, pods), teams),
        )
    }
}

fn existing_nodes() -> Vec<Scenario> {
    let scenario = |name: &str, count, pods_on_each, pending| Scenario {
        nodes: Nodes { count, pods_on_each },
        ..Scenario::new(name, Market::BuiltIn, pending)
    };
    vec![
        scenario("one Deployment, 1,000 nodes", 1000, 10, workloads::one_deployment(20_000)),
        scenario("1,000 nodes with 30,000 pods", 1000, 30, workloads::deployments(5, 200, 5000)),
        scenario("400 Deployments, 1,000 nodes", 1000, 10, workloads::deployments(5, 400, 40_000)),
        scenario("5,000 nodes with 145,000 pods", 5000, 29, workloads::deployments(5, 100, 5000)),
    ]
}

/// For the exponent over pods: Deployments of 50, all of them pending.
pub fn growing_pods(quick: bool) -> Vec<Scenario> {
    let sizes = [1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 150_000];
    let sizes = sizes.into_iter().filter(|count| !quick || *count <= 10_000);
    let scenario = |count: usize| {
        Scenario::new(format!("{count} pods"), Market::BuiltIn, workloads::deployments(5, count / 50, count))
    };
    sizes.map(scenario).collect()
}

/// For the exponent over nodes: 1,000 pods are pending, and each node has 29.
pub fn growing_nodes(quick: bool) -> Vec<Scenario> {
    let sizes = [100, 200, 500, 1000, 2000, 5000].into_iter().filter(|count| !quick || *count <= 1000);
    let scenario = |count: usize| Scenario {
        nodes: Nodes { count, pods_on_each: 29 },
        ..Scenario::new(format!("{count} nodes"), Market::BuiltIn, workloads::deployments(5, 20, 1000))
    };
    sizes.map(scenario).collect()
}

fn linux() -> Value {
    requirement(keys::OPERATING_SYSTEM, "In", &["linux"])
}
