//! Whether `packing: karpenter` places as the reference does, on random small inputs. The reference is not repeatable; an
//! input counts only if several of its runs agree. What differs is cut down to the least that still differs.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark runs programs and reads files")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use cutlist::api::keys;
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::files::{self, Files};
use crate::market::Market;
use crate::objects::{self, Pod, requirement};
use crate::ours;
use crate::program::run;
use crate::random::Random;
use crate::scenarios::{NO_NODES, Nodes, POOL, Scenario};

/// Runs of the reference that have to agree.
const AGREEING_RUNS: &str = "4";
/// And so many more where ours differs: of two zones drawn by lot, four runs in eight draw the same somewhere.
const CONFIRMING_RUNS: &str = "12";

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const UNKNOWN_CAUSE: &str = "not explained";

/// Where pods go, without the names that tell alike pods and nodes apart: for each node how many pods of each workload.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    existing: BTreeMap<String, BTreeMap<String, usize>>,
    /// Pool, type, capacity type and pods of each new node, sorted.
    new: Vec<(String, String, String, BTreeMap<String, usize>)>,
    unplaced: BTreeMap<String, usize>,
}

/// Tries the given number of inputs; the differences as Markdown.
pub fn compare(arguments: &Arguments, count: u64) -> String {
    let mut text = String::new();
    let mut judge = Judge { arguments, catalogs: BTreeMap::new() };
    let (mut determined, mut different) = (0, 0);
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..count {
        eprint!("\r{seed} of {count} inputs, {different} differ ");
        let scenario = random_scenario(seed);
        let Some((theirs, ours)) = judge.outcomes(&scenario) else { continue };
        determined += 1;
        if theirs == ours {
            continue;
        }
        different += 1;
        let least = judge.reduced(scenario);
        let cause = judge.cause(&least);
        *causes.entry(cause).or_default() += 1;
        let part = match judge.outcomes(&least) {
            Some((theirs, ours)) => described(seed, cause, &least, &theirs, &ours),
            None => format!("\n## Seed {seed}: {} pods, and not again\n", least.pending.len()),
        };
        print!("{part}");
        text.push_str(&part);
    }
    let mut sum = format!(
        "\n{count} inputs; on {determined} the reference agreed with itself, on {different} of these we differ.\n"
    );
    for (cause, inputs) in causes {
        writeln!(sum, "- {inputs}: {cause}").unwrap();
    }
    print!("{sum}");
    text + &sum
}

fn described(seed: u64, cause: &str, scenario: &Scenario, theirs: &Outcome, ours: &Outcome) -> String {
    let (pods, nodes) = (scenario.pending.len(), scenario.nodes.count);
    let mut text = format!("\n## Seed {seed}, {pods} pods, {nodes} nodes: {cause}\n\n");
    for pool in &scenario.pools {
        let (name, spec) = (&pool["metadata"]["name"], &pool["spec"]);
        let template = &spec["template"]["spec"];
        let limits = &spec["limits"];
        writeln!(
            text,
            "- pool {name} weight {} limits {limits} {} {}",
            spec["weight"], template["requirements"], template["taints"]
        )
        .unwrap();
    }
    for pod in &scenario.pending {
        let Pod { name, millicores, mebibytes, labels, spec, .. } = pod;
        writeln!(text, "- pod {name} {millicores}m {mebibytes}Mi {labels} {spec}").unwrap();
    }
    write!(text, "\nreference:\n{}ours:\n{}", shown(theirs), shown(ours)).unwrap();
    text
}

fn shown(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (node, pods) in &outcome.existing {
        writeln!(text, "  {node}: {pods:?}").unwrap();
    }
    for (pool, instance_type, capacity_type, pods) in &outcome.new {
        writeln!(text, "  new {pool} {instance_type} {capacity_type}: {pods:?}").unwrap();
    }
    writeln!(text, "  unplaced {:?}", outcome.unplaced).unwrap();
    text
}

struct Judge<'a> {
    arguments: &'a Arguments,
    catalogs: BTreeMap<&'static str, Value>,
}

impl Judge<'_> {
    /// The reference's outcome and ours, or `None` where the reference does not agree with itself.
    fn outcomes(&mut self, scenario: &Scenario) -> Option<(Outcome, Outcome)> {
        let arguments = self.arguments;
        let market = scenario.market;
        let catalog = self.catalogs.entry(market.title()).or_insert_with(|| market.catalog(&arguments.cutlist));
        let files = files::write(scenario, catalog, &arguments.folder);
        let theirs = self.reference(&files, AGREEING_RUNS)?;
        ours::plan(&arguments.cutlist, &files, "karpenter", 1, 120).expect("no plan");
        let ours = of_plan(&read(&files.folder.join("karpenter.json")), scenario);
        if theirs != ours && self.reference(&files, CONFIRMING_RUNS)? != theirs {
            return None;
        }
        Some((theirs, ours))
    }

    fn reference(&self, files: &Files, runs: &str) -> Option<Outcome> {
        let output = files.folder.join("reference.json");
        let mut command = Command::new(self.arguments.peer.as_ref().expect("--parity needs --peer"));
        command.arg("-definitions").arg(&files.definitions).arg("-snapshot").arg(&files.snapshot);
        command.arg("-catalog").arg(&files.catalog).args(["-runs", runs, "-workers", "1"]);
        run(&mut command, &output, &files.folder.join("reference.errors"), 120)
            .expect("the reference's program failed");
        let solved: Value = read(&output);
        let mut outcomes = solved["runs"].as_array().unwrap().iter().map(of_reference);
        let first = outcomes.next()?;
        outcomes.all(|outcome| outcome == first).then_some(first)
    }

    /// Why an input that can not get smaller still differs, as far as it is one of the differences that are wanted: without
    /// their cause there must be none.
    fn cause(&mut self, least: &Scenario) -> &'static str {
        let mut hard = least.clone();
        let mut soft_taints = false;
        for pool in &mut hard.pools {
            let taints = pool["spec"]["template"]["spec"]["taints"].as_array_mut();
            for taint in taints.into_iter().flatten().filter(|taint| taint["effect"] == "PreferNoSchedule") {
                taint["effect"] = json!("NoSchedule");
                soft_taints = true;
            }
        }
        for pod in &mut hard.pending {
            pod.spec["tolerations"] = json!([{ "key": "team", "operator": "Exists" }]);
        }
        if !soft_taints || self.outcomes(&hard).is_none_or(|(theirs, ours)| theirs != ours) {
            return UNKNOWN_CAUSE;
        }
        let spreads = |pod: &Pod| pod.spec["topologySpreadConstraints"].is_array();
        match least.pending.iter().any(spreads) {
            true => "wanted: a pod that comes to tolerate PreferNoSchedule keeps what its spread has counted",
            false => "wanted: pods with affinity or anti-affinity over zones come to tolerate PreferNoSchedule",
        }
    }

    /// Pods, pools and nodes are taken away one after the other, as long as there is a difference.
    fn reduced(&mut self, mut scenario: Scenario) -> Scenario {
        loop {
            let smaller = candidates(&scenario)
                .into_iter()
                .find(|smaller| self.outcomes(smaller).is_some_and(|(theirs, ours)| theirs != ours));
            match smaller {
                Some(smaller) => scenario = smaller,
                None => return scenario,
            }
        }
    }
}

fn candidates(scenario: &Scenario) -> Vec<Scenario> {
    let mut smaller = Vec::new();
    if scenario.nodes.count > 0 {
        smaller.push(Scenario { nodes: NO_NODES, ..scenario.clone() });
    }
    let pods = scenario.pending.len();
    for size in [pods / 2, pods / 4, 1] {
        if size == 0 {
            continue;
        }
        for start in (0..pods).step_by(size) {
            let mut fewer = scenario.clone();
            fewer.pending.drain(start..(start + size).min(pods));
            if !fewer.pending.is_empty() && fewer.pending.len() < pods {
                smaller.push(fewer);
            }
        }
    }
    for pool in 0..scenario.pools.len() {
        let mut fewer = scenario.clone();
        fewer.pools.remove(pool);
        if !fewer.pools.is_empty() {
            smaller.push(fewer);
        }
    }
    smaller
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// `default/web-1-12` is of `web-1`, and so is `default/7.web-1-12`.
fn workload(pod: &str) -> String {
    let name = pod.rsplit(['/', '.']).next().unwrap();
    name.rsplit_once('-').unwrap().0.to_owned()
}

fn counted<'a>(pods: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for pod in pods {
        *counts.entry(workload(pod)).or_default() += 1;
    }
    counts
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

fn new_node(node: &Value, pods: BTreeMap<String, usize>) -> (String, String, String, BTreeMap<String, usize>) {
    let text = |field: &str| node[field].as_str().unwrap().to_owned();
    (text("nodePool"), text("instanceType"), text("capacityType"), pods)
}

fn of_reference(pass: &Value) -> Outcome {
    let mut existing: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for (pod, node) in pass["placements"].as_object().into_iter().flatten() {
        *existing.entry(node.as_str().unwrap().to_owned()).or_default().entry(workload(pod)).or_default() += 1;
    }
    let nodes = pass["nodes"].as_array().into_iter().flatten();
    let mut new: Vec<_> = nodes.map(|node| new_node(node, counted(strings(&node["pods"])))).collect();
    new.sort();
    let unplaced = pass["unplaced"].as_object().into_iter().flatten().map(|(pod, _)| pod.as_str());
    Outcome { existing, new, unplaced: counted(unplaced) }
}

fn of_plan(plan: &Value, scenario: &Scenario) -> Outcome {
    let mut existing: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    let mut placed: BTreeMap<String, usize> = BTreeMap::new();
    for placement in plan["placements"].as_array().unwrap() {
        let (pod, node) = (placement["pod"].as_str().unwrap(), placement["node"].as_str().unwrap());
        *existing.entry(node.to_owned()).or_default().entry(workload(pod)).or_default() += 1;
        *placed.entry(workload(pod)).or_default() += 1;
    }
    let mut new = Vec::new();
    for step in plan["steps"].as_array().unwrap().iter().filter(|step| step["kind"] == "create") {
        let pods = counted(strings(&step["pods"]));
        for (workload, count) in &pods {
            *placed.entry(workload.clone()).or_default() += count;
        }
        new.push(new_node(step, pods));
    }
    new.sort();
    let mut unplaced = counted(scenario.pending.iter().map(|pod| pod.name.as_str()));
    for (workload, count) in placed {
        *unplaced.get_mut(&workload).expect("a pod that was not asked for") -= count;
    }
    unplaced.retain(|_, count| *count > 0);
    Outcome { existing, new, unplaced }
}

/// A few workloads of a few pods, one to three pools, perhaps nodes; larger with the seed.
fn random_scenario(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let market = random.pick(&[Market::Invented, Market::BuiltIn]);
    let pools: Vec<Value> = (0..=random.below(3)).map(|number| random_pool(&mut random, market, number)).collect();
    let mut pending = Vec::new();
    for number in 0..=random.below(4 + usize::try_from(seed / 20).unwrap()) {
        let pod = random_workload(&mut random, market, number);
        let count = 1 + random.below(6);
        pending.extend((0..count).map(|index| Pod { name: format!("{}-{index}", pod.name), ..pod.clone() }));
    }
    let with_nodes = market == Market::BuiltIn && random.below(3) == 0;
    let scenario = Scenario {
        pools,
        nodes: if with_nodes { Nodes { count: 1 + random.below(4), pods_on_each: random.below(12) } } else { NO_NODES },
        ..Scenario::new("parity", market, pending)
    };
    if seed.is_multiple_of(2) { scenario } else { varied(&mut random, scenario) }
}

/// The same with DaemonSets, workloads of several constraints, pods that came in another order, and perhaps one of so many pods
/// that its nodes are sorted otherwise than a few are.
fn varied(random: &mut Random, mut scenario: Scenario) -> Scenario {
    if random.below(3) == 0 {
        scenario.daemon_sets = vec![objects::daemon_set("logs", 150, 268)];
    }
    if random.below(5) == 0 {
        let labels = json!({ "app": "many" });
        let term = json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": keys::HOSTNAME });
        let spec = json!({ "affinity": { "podAntiAffinity": { REQUIRED: [term] } } });
        let many = Pod { name: String::new(), labels, millicores: 1000, mebibytes: 1024, spec, owner: None };
        let count = 10 + random.below(60);
        scenario.pending.extend((0..count).map(|index| Pod { name: format!("many-{index}"), ..many.clone() }));
    }
    let mut further: BTreeMap<String, Value> = BTreeMap::new();
    for pod in &mut scenario.pending {
        let market = scenario.market;
        let spec = further.entry(workload(&pod.name)).or_insert_with(|| further_spec(random, market));
        merge(&mut pod.spec, spec);
        pod.name = format!("{}.{}", random.below(10), pod.name);
    }
    scenario
}

fn further_spec(random: &mut Random, market: Market) -> Value {
    let zone = random.pick(&zones(market));
    let capacity_type = random.pick(&["on-demand", "spot"]);
    let is_in = |key: &str, value: &str| json!({ "matchExpressions": [requirement(key, "In", &[value])] });
    match random.below(8) {
        0 => random_workload(random, market, 0).spec,
        1 => random_workload(random, market, 1).spec,
        2 => json!({ "affinity": { "nodeAffinity": { PREFERRED: [
            { "weight": 1 + random.below(5), "preference": is_in(keys::ZONE, zone) },
            { "weight": 1 + random.below(5), "preference": is_in(keys::CAPACITY_TYPE, capacity_type) },
        ] } } }),
        3 => json!({ "affinity": { "nodeAffinity": { REQUIRED: {
            "nodeSelectorTerms": [is_in(keys::CAPACITY_TYPE, capacity_type), is_in(keys::ZONE, zone)],
        } } } }),
        _ => json!({}),
    }
}

/// Adds what the other has: lists are joined, and of single values the first stays.
fn merge(one: &mut Value, other: &Value) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            for (key, value) in other {
                merge(one.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(one), Value::Array(other)) => one.extend(other.iter().cloned()),
        (one @ Value::Null, other) => *one = other.clone(),
        _ => {}
    }
}

fn random_pool(random: &mut Random, market: Market, number: usize) -> Value {
    let mut requirements = vec![requirement(keys::OPERATING_SYSTEM, "In", &["linux"])];
    match random.below(3) {
        0 => requirements.push(requirement(keys::CAPACITY_TYPE, "In", &["on-demand"])),
        1 => requirements.push(requirement(keys::CAPACITY_TYPE, "In", &["on-demand", "spot"])),
        _ => {}
    }
    if random.below(2) == 0 {
        requirements.push(requirement(keys::ZONE, "In", &zones(market)[..2]));
    }
    if market == Market::BuiltIn {
        requirements.push(requirement(keys::INSTANCE_CATEGORY, "In", &["c", "m", "r"]));
    }
    let name = if number == 0 { POOL.to_owned() } else { format!("pool-{number}") };
    let mut pool = objects::node_pool(&name, &requirements);
    pool["spec"]["weight"] = json!(1 + random.below(3));
    if random.below(4) == 0 {
        pool["spec"]["limits"] = json!({ "cpu": (2 + random.below(30)).to_string() });
    }
    if random.below(4) == 0 {
        let effect = random.pick(&["NoSchedule", "PreferNoSchedule"]);
        pool["spec"]["template"]["spec"]["taints"] = json!([{ "key": "team", "value": "a", "effect": effect }]);
    }
    pool
}

fn zones(market: Market) -> [&'static str; 3] {
    match market {
        Market::Invented => ["test-zone-1", "test-zone-2", "test-zone-3"],
        Market::BuiltIn | Market::BuiltInWithSpotPrices => ["us-east-1a", "us-east-1b", "us-east-1c"],
    }
}

fn random_workload(random: &mut Random, market: Market, number: usize) -> Pod {
    let name = format!("web-{number}");
    let labels = json!({ "app": name });
    let selected = if random.below(4) == 0 { json!({ "app": "web-0" }) } else { labels.clone() };
    let key = random.pick(&[keys::ZONE, keys::HOSTNAME]);
    let term = json!({ "labelSelector": { "matchLabels": selected }, "topologyKey": key });
    let weighted = json!([{ "weight": 1 + random.below(5), "podAffinityTerm": term }]);
    let mut spec = match random.below(8) {
        0 => json!({ "topologySpreadConstraints": [{
            "maxSkew": 1 + random.below(2), "topologyKey": key, "labelSelector": { "matchLabels": selected },
            "whenUnsatisfiable": random.pick(&["DoNotSchedule", "ScheduleAnyway"]),
        }] }),
        1 => json!({ "affinity": { "podAffinity": { REQUIRED: [term] } } }),
        2 => json!({ "affinity": { "podAntiAffinity": { REQUIRED: [term] } } }),
        3 => json!({ "affinity": { "podAntiAffinity": { PREFERRED: weighted } } }),
        4 => json!({ "affinity": { "podAffinity": { PREFERRED: weighted } } }),
        5 => json!({ "nodeSelector": { keys::ZONE: random.pick(&zones(market)) } }),
        _ => json!({}),
    };
    if random.below(3) == 0 {
        spec["tolerations"] = json!([{ "key": "team", "operator": "Exists" }]);
    }
    let (millicores, mebibytes) = (random.pick(&[100, 500, 1000, 2500]), random.pick(&[128, 1024, 3000, 9000]));
    Pod { name, labels, millicores, mebibytes, spec, owner: None }
}
