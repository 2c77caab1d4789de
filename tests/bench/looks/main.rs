//! How long one look of the controller takes in a large cluster that has come to rest, and how long a pod waits that comes to it: from the
//! batch that closes to the plan that is posted. The controller is the whole one, on a cluster in memory and in virtual time; the seconds
//! are of this machine. `make bench-looks` runs it.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and what the system says of this process")]

#[path = "../files.rs"]
#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod files;
#[path = "../machine.rs"]
mod machine;
#[path = "../market.rs"]
#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod market;
#[path = "../objects.rs"]
mod objects;
#[path = "../random.rs"]
mod random;
#[path = "../scenarios.rs"]
#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod scenarios;
#[path = "../trace.rs"]
mod trace;
#[path = "../workloads.rs"]
mod workloads;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser;
use cutlist::adapters::embedded::{
    EmbeddedClock, EmbeddedCloud, EmbeddedCluster, EmbeddedForge, EmbeddedWorld, OneRevision, WorldSettings,
};
use cutlist::api::approval_rules::ApprovalRules;
use cutlist::api::source::SourceFile;
use cutlist::controller::events::Event;
use cutlist::controller::{Controller, Journal, Mode, Options, Ports, Shutdown};
use cutlist::core::catalog::Catalog;
use cutlist::core::plan::Revision;
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use cutlist::core::snapshot::read::read;
use cutlist::definitions::GivenVariables;
use cutlist::ports::RevisionContent;
use serde_json::json;

use files::Files;
use scenarios::{Nodes, Scenario};

const COMMAND: &str = "make bench-looks";
/// Daemon pods among them.
const PODS_ON_EACH_NODE: usize = 30;
/// Looks until the cluster has come to rest; each of some seconds.
const LOOKS_MAX: usize = 200;

#[derive(Debug, Parser)]
struct Arguments {
    /// Nodes of the cluster
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// Pods that come, one after the other
    #[arg(long, default_value_t = 30)]
    pods: usize,
    /// Put the table into the marked block of this document
    #[arg(long)]
    readme: Option<PathBuf>,
    /// `cargo bench` says that it is one
    #[arg(long, hide = true)]
    bench: bool,
}

type Played = Controller<OneRevision, EmbeddedCluster, EmbeddedCloud, EmbeddedForge, EmbeddedClock>;

/// The controller, its world, and how many plans it has posted.
struct Scene {
    world: EmbeddedWorld,
    controller: Played,
    plans: Rc<Cell<usize>>,
}

/// How long looks took.
#[derive(Default)]
struct Looks {
    with_plan: Vec<Duration>,
    without: Vec<Duration>,
}

fn main() {
    let arguments = Arguments::parse();
    assert!(arguments.bench, "run it with `make bench-looks`, or `cargo bench`: a test it is not");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let text = runtime.block_on(measured(&arguments));
    print!("{text}");
    if let Some(readme) = &arguments.readme {
        machine::replace_block(readme, COMMAND, &(machine::preamble(COMMAND) + &text));
    }
}

async fn measured(arguments: &Arguments) -> String {
    let files = written(arguments.nodes);
    let mut scene = Scene::new(&files);
    let mut first = Looks::default();
    assert!(scene.settle(&mut first).await, "the cluster does not come to rest");
    eprintln!("at rest");
    let mut idle = Looks::default();
    for _ in 0..20 {
        scene.look(&mut idle).await;
        scene.controller.wait().await;
    }
    let mut coming = Looks::default();
    for number in 0..arguments.pods {
        scene.world.with(|world| world.load(pod_that_fits_nowhere(number)));
        assert!(scene.settle(&mut coming).await, "the cluster does not come to rest");
    }
    let row = |what: &str, mut looks: Vec<Duration>| {
        looks.sort_unstable();
        let part = |percent: usize| {
            let place = (looks.len() * percent).div_ceil(100).saturating_sub(1);
            looks.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
        };
        format!("| {what} | {} | {:.1} | {:.1} |\n", looks.len(), part(50), part(99))
    };
    let mut text = String::from("| looks | count | p50 ms | p99 ms |\n|---|--:|--:|--:|\n");
    text += &row("until rest, with a plan", first.with_plan);
    text += &row("idle", [idle.without, idle.with_plan].concat());
    text += &row("a pod comes: with a plan", coming.with_plan);
    text += &row("a pod comes: without", coming.without);
    text
}

/// Nodes of one pool that nobody may disrupt, though nearly all could go.
fn written(nodes: usize) -> Files {
    let market = market::Market::BuiltIn;
    let mut scenario = Scenario::new(format!("looks at {nodes} nodes"), market, Vec::new());
    scenario.nodes = Nodes { count: nodes, pods_on_each: PODS_ON_EACH_NODE };
    for pool in &mut scenario.pools {
        pool["spec"]["disruption"] = json!({
            "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s", "budgets": [{ "nodes": "0" }],
        });
    }
    let catalog = serde_json::to_value(Catalog::built_in("us-east-1").unwrap()).unwrap();
    files::write(&scenario, &catalog, &std::env::current_dir().unwrap().join("target/bench"))
}

fn pod_that_fits_nowhere(number: usize) -> Snapshot {
    let name = format!("large-{number}");
    let deployment = json!({ "metadata": { "name": name, "namespace": "default" }, "spec": { "replicas": 1,
        "selector": { "matchLabels": { "app": name } }, "template": { "metadata": { "labels": { "app": name } }, "spec": {
            "containers": [{ "name": "main", "resources": { "requests": { "cpu": "30" } } }] } } } });
    Snapshot { deployments: vec![serde_json::from_value(deployment).unwrap()].into(), ..Snapshot::default() }
}

impl Scene {
    fn new(files: &Files) -> Self {
        let now = objects::NOW.parse().unwrap();
        let catalog = Catalog::parse(std::fs::read_to_string(&files.catalog).unwrap()).unwrap();
        let world = EmbeddedWorld::new(WorldSettings::new(0, now), catalog);
        let mut snapshot = Snapshot::default();
        read(&std::fs::read(&files.snapshot).unwrap(), &mut snapshot).unwrap();
        world.with(|world| world.take_over(snapshot));
        let definitions = std::fs::read_dir(&files.definitions).unwrap().map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            SourceFile::new(&name, std::fs::read_to_string(path).unwrap())
        });
        let revision = Revision { id: "revision-1".to_owned(), reference: "main".to_owned() };
        let content = RevisionContent::without_history(revision, "", definitions.collect(), Vec::new());
        let ports = Ports {
            repository: OneRevision::new(content),
            cluster: world.cluster(),
            cloud: world.cloud(),
            forge: EmbeddedForge::default(),
            clock: world.clock(),
        };
        let options = Options {
            mode: Mode::Enforce,
            applies_definitions: true,
            lease_transitions: None,
            installation: "one".to_owned(),
            cluster_name: None,
            region: None,
            approval_floor: ApprovalRules::default(),
            allows_older_revisions: false,
            read: Box::new(|files| cutlist::definitions::read(files, &GivenVariables::default())),
            seed: 0,
            planner: Box::new(decide),
        };
        let plans = Rc::new(Cell::new(0));
        let posted = Rc::clone(&plans);
        let journal = Journal::new(move |_, event| {
            if matches!(event, Event::PlanPosted { .. }) {
                posted.set(posted.get() + 1);
            }
        });
        Self { controller: Controller::new(ports, options, journal, Shutdown::default()), world, plans }
    }

    async fn look(&mut self, looks: &mut Looks) {
        let plans = self.plans.get();
        let begun = Instant::now();
        Box::pin(self.controller.pass()).await;
        let times = if self.plans.get() > plans { &mut looks.with_plan } else { &mut looks.without };
        times.push(begun.elapsed());
    }

    /// Whether it came to rest.
    async fn settle(&mut self, looks: &mut Looks) -> bool {
        for _ in 0..LOOKS_MAX {
            self.look(looks).await;
            if self.controller.is_settled() && self.world.with(|world| world.is_still()) {
                return true;
            }
            self.controller.wait().await;
        }
        false
    }
}
