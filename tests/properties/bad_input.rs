//! Input that nobody should write and somebody will: a plan with a pending pod and its reason, a note, or an error that
//! says what is wrong; never a panic, an overflow or an endless loop.
#![expect(clippy::disallowed_methods, reason = "what takes long enough has not ended")]

use std::time::{Duration, Instant};

use cutlist::api::keys::{HOSTNAME, ZONE};
use cutlist::api::node_pool::NodePool;
use cutlist::api::settings::Packing;
use cutlist::core::catalog::Catalog;
use cutlist::core::check::check;
use cutlist::core::inputs::Inputs;
use cutlist::core::model::HourlyPrice;
use cutlist::core::plan::{NoteCode, Plan, ReasonCode};
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use cutlist::core::snapshot::read::read;
use cutlist::core::snapshot::write::write;
use jiff::SignedDuration;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};
use serde_json::{Value, json};

use crate::build::Built;
use crate::world;

/// A plan for what a test writes takes far less; this is for the slowest machine there is.
const LONGEST: Duration = Duration::from_secs(60);

/// Each takes some hundredths of a second without optimisation.
const MUTATED_WORLDS: u32 = 48;

/// Decides in both ways, and asks the checker too: it reads the same input.
fn plans(built: &Built) -> Vec<Plan> {
    let begin = Instant::now();
    let plans = [Packing::Cheapest, Packing::Karpenter].map(|packing| {
        let inputs = built.inputs(packing);
        let plan = decide(&inputs);
        check(&plan, &inputs);
        plan
    });
    assert!(begin.elapsed() < LONGEST, "took {:?}", begin.elapsed());
    plans.into()
}

/// Numbers that choose, one after the other, again from the start when they are used up.
struct Choices<'c> {
    numbers: &'c [u32],
    used: usize,
}

impl Choices<'_> {
    fn among(&mut self, count: usize) -> usize {
        self.used += 1;
        let number = self.numbers[self.used % self.numbers.len()].rotate_left(u32::try_from(self.used % 32).unwrap());
        usize::try_from(number).unwrap() % count.max(1)
    }
}

/// Goes down to some place in the document, and makes something else of it.
fn mutate(value: &mut Value, choices: &mut Choices<'_>, depth: usize) {
    let stop = depth > 2 && choices.among(4) == 0;
    match value {
        Value::Object(fields) if !fields.is_empty() && !stop => {
            let key = fields.keys().nth(choices.among(fields.len())).cloned().unwrap();
            if depth > 2 && choices.among(12) == 0 {
                fields.remove(&key);
            } else {
                mutate(&mut fields[&key], choices, depth + 1);
            }
        }
        Value::Array(items) if !items.is_empty() && !stop => {
            let index = choices.among(items.len());
            match choices.among(12) {
                0 => items.push(items[index].clone()),
                1 => items.reverse(),
                _ => mutate(&mut items[index], choices, depth + 1),
            }
        }
        other => *other = absurd(choices),
    }
}

fn absurd(choices: &mut Choices<'_>) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(1e300),
        json!(""),
        json!("-1"),
        json!("1e30"),
        json!("2cores"),
        json!("NaN"),
        json!("9223372036854775807"),
        json!("8Ei"),
        json!("0"),
        json!("é\u{0}\u{202e}"),
        json!("x".repeat(5_000)),
        json!("app-0"),
        json!("zone-a"),
        json!("node-0"),
        json!("2026-02-30T25:00:00Z"),
        json!([]),
        json!([null]),
        json!({}),
        json!({ "key": "team", "operator": "In", "values": [] }),
    ];
    values[choices.among(values.len())].clone()
}

#[test]
fn mutated_objects_end_in_a_plan_or_in_an_error() {
    let fixed =
        Config { cases: MUTATED_WORLDS, rng_seed: RngSeed::Fixed(1), max_shrink_iters: 256, ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    let inputs = (world::worlds(), vec(any::<u32>(), 8..64), 1..12_usize);
    let planned = std::cell::Cell::new(0_u32);
    let result = runner.run(&inputs, |(world, numbers, times)| {
        let mut built = Built::new(&world);
        let mut choices = Choices { numbers: &numbers, used: 0 };
        let text = write(&built.snapshot).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut objects: Value = serde_json::from_str(&text).unwrap();
        let mut catalog = serde_json::to_value(&built.catalog).unwrap();
        let mut pools = serde_json::to_value(&built.pools).unwrap();
        for _ in 0..times {
            match choices.among(8) {
                0 => mutate(&mut catalog, &mut choices, 1),
                1 => mutate(&mut pools, &mut choices, 1),
                _ => mutate(&mut objects["items"], &mut choices, 1),
            }
        }
        // What can not be read says so, and the rest is planned for as it was.
        if let Ok(catalog) = Catalog::parse(catalog.to_string()) {
            built.catalog = catalog;
        }
        if let Ok(pools) = serde_json::from_value::<Vec<NodePool>>(pools) {
            built.pools = pools;
        }
        let mut snapshot = Snapshot::default();
        match read(objects.to_string().as_bytes(), &mut snapshot) {
            Ok(_) => {
                built.snapshot = snapshot;
                planned.set(planned.get() + 1);
            }
            Err(error) if error.to_string().is_empty() => return Err(TestCaseError::fail("an error without a word")),
            Err(_) => {}
        }
        plans(&built);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(planned.get() > MUTATED_WORLDS / 8, "only {} snapshots could be read", planned.get());
}

pub fn instance_type(name: &str, cpu: u32) -> Value {
    let offering = |zone: &str| json!({ "zone": zone, "capacityType": "on-demand", "price": f64::from(cpu) * 0.05 });
    json!({
        "name": name,
        "requirements": {
            "node.kubernetes.io/instance-type": [name], "kubernetes.io/arch": ["amd64"], "kubernetes.io/os": ["linux"],
            ZONE: ["zone-a", "zone-b"], "karpenter.sh/capacity-type": ["on-demand"],
        },
        "capacity": { "cpu": cpu.to_string(), "memory": format!("{}Gi", cpu * 4), "pods": "58" },
        "overhead": {}, "offerings": [offering("zone-a"), offering("zone-b")],
    })
}

/// A cluster of these pods, and a pool that sells two types.
pub fn cluster(pods: Vec<Value>) -> Built {
    cluster_of(json!({}), vec![instance_type("m.large", 2), instance_type("m.xlarge", 4)], pods)
}

pub fn cluster_of(limits: Value, types: Vec<Value>, pods: Vec<Value>) -> Built {
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
        "spec": { "limits": limits, "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" }, "requirements": [],
        } } },
    });
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
        "spec": { "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] },
    });
    Built::of_objects(pool, class, types, pods)
}

/// A pod with these requests and whatever else the specification says.
pub fn pod(name: &str, requests: Value, spec: Value) -> Value {
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "shop", "labels": { "app": name } },
        "spec": spec, "status": { "phase": "Pending" },
    });
    pod["spec"]["containers"] = json!([{ "name": "main", "resources": { "requests": requests } }]);
    pod
}

fn affinity(kind: &str, terms: Value) -> Value {
    json!({ "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": terms } } })
}

fn near(app: &str, key: &str) -> Value {
    json!([{ "topologyKey": key, "labelSelector": { "matchLabels": { "app": app } } }])
}

fn nodes_with(entries: &[(&str, &str, &[&str])]) -> Value {
    let expressions: Vec<Value> = entries
        .iter()
        .map(|(key, operator, values)| json!({ "key": key, "operator": operator, "values": values }))
        .collect();
    affinity("nodeAffinity", json!({ "nodeSelectorTerms": [{ "matchExpressions": expressions }] }))
}

/// Why this pod is left pending; `None` when it has a place.
fn reason(plan: &Plan, pod: &str) -> Option<ReasonCode> {
    let pending = plan.pending.iter().find(|pending| pending.pods.iter().any(|it| it == pod))?;
    Some(pending.reasons.first().unwrap_or_else(|| panic!("{pod} is pending without a reason")).code)
}

#[test]
fn a_pod_that_can_not_be_served_is_pending_with_its_reason() {
    let cpu = |text: &str| json!({ "cpu": text });
    let no = |code| Some(code);
    let cases: Vec<(&str, Value, Option<ReasonCode>)> = vec![
        ("negative", pod("p", cpu("-1"), json!({})), no(ReasonCode::InvalidPod)),
        ("beyond a quantity", pod("p", cpu("1e30"), json!({})), no(ReasonCode::InvalidPod)),
        ("unknown unit", pod("p", cpu("2cores"), json!({})), no(ReasonCode::InvalidPod)),
        (
            "the largest quantity",
            pod("p", json!({ "cpu": "9223372036854775807", "memory": "7Ei" }), json!({})),
            no(ReasonCode::NoInstanceTypeFits),
        ),
        (
            "a resource nobody has",
            pod("p", json!({ "example.com/unicorn": "1" }), json!({})),
            no(ReasonCode::NoInstanceTypeFits),
        ),
        (
            "two zones at once",
            pod("p", cpu("1"), nodes_with(&[(ZONE, "In", &["zone-a"]), (ZONE, "In", &["zone-b"])])),
            no(ReasonCode::RequirementsConflict),
        ),
        (
            "two values of a label that no node has",
            pod("p", cpu("1"), nodes_with(&[("team", "In", &["a"]), ("team", "In", &["b"])])),
            no(ReasonCode::RequirementsConflict),
        ),
        (
            "there and not there",
            pod("p", cpu("1"), nodes_with(&[("team", "Exists", &[]), ("team", "DoesNotExist", &[])])),
            no(ReasonCode::RequirementsConflict),
        ),
        (
            "an operator that does not exist",
            pod("p", cpu("1"), nodes_with(&[(ZONE, "Near", &["zone-a"])])),
            no(ReasonCode::RequirementsConflict),
        ),
        (
            "a bound that is no number",
            pod("p", cpu("1"), nodes_with(&[("rack", "Gt", &["many"])])),
            no(ReasonCode::RequirementsConflict),
        ),
        ("near to itself", pod("p", cpu("1"), affinity("podAffinity", near("p", HOSTNAME))), None),
        ("away from itself", pod("p", cpu("1"), affinity("podAntiAffinity", near("p", ZONE))), None),
        (
            "near to nobody",
            pod("p", cpu("1"), affinity("podAffinity", near("ghost", ZONE))),
            no(ReasonCode::AffinityUnsatisfied),
        ),
        (
            "a selector of everything",
            pod("p", cpu("1"), affinity("podAffinity", json!([{ "topologyKey": ZONE, "labelSelector": {} }]))),
            None,
        ),
        (
            "a spread of no skew",
            pod(
                "p",
                cpu("1"),
                json!({ "topologySpreadConstraints": [
                { "topologyKey": ZONE, "maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": { "matchLabels": { "app": "p" } } }
            ] }),
            ),
            None,
        ),
        (
            "a claim that does not exist",
            pod(
                "p",
                cpu("1"),
                json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "lost" } }] }),
            ),
            no(ReasonCode::InvalidPod),
        ),
    ];
    for (what, it, expected) in cases {
        for plan in plans(&cluster(vec![it.clone()])) {
            assert_eq!(reason(&plan, "shop/p"), expected, "{what}");
        }
    }
}

#[test]
fn pods_that_wait_for_each_other_wait_together() {
    let next =
        |name: &str, other: &str| pod(name, json!({ "cpu": "1" }), affinity("podAffinity", near(other, HOSTNAME)));
    for plan in plans(&cluster(vec![next("a", "b"), next("b", "c"), next("c", "a")])) {
        for name in ["shop/a", "shop/b", "shop/c"] {
            assert_eq!(reason(&plan, name), Some(ReasonCode::AffinityUnsatisfied));
        }
    }
    let away =
        |name: &str, other: &str| pod(name, json!({ "cpu": "1" }), affinity("podAntiAffinity", near(other, ZONE)));
    for plan in plans(&cluster(vec![away("a", "b"), away("b", "c"), away("c", "a")])) {
        let left: usize = plan.pending.iter().map(|pending| pending.pods.len()).sum();
        // A node that may still come up in either zone keeps both.
        assert!((1..3).contains(&left), "two zones hold one or two of three that avoid each other: {:?}", plan.pending);
    }
}

#[test]
fn a_market_without_goods_and_limits_of_nothing_leave_pods_pending() {
    let one = || vec![pod("p", json!({ "cpu": "1" }), json!({}))];
    for plan in plans(&cluster_of(json!({}), Vec::new(), one())) {
        assert_eq!(reason(&plan, "shop/p"), Some(ReasonCode::NodePoolHasNoInstanceType));
    }
    for limits in [json!({ "cpu": 0 }), json!({ "nodes": "0" }), json!({ "memory": "0" }), json!({ "cpu": "-5" })] {
        for plan in plans(&cluster_of(limits, vec![instance_type("m.large", 2)], one())) {
            assert_eq!(reason(&plan, "shop/p"), Some(ReasonCode::LimitReached));
        }
    }
    let mut unavailable = instance_type("m.large", 2);
    unavailable["offerings"] = json!([]);
    for plan in plans(&cluster_of(json!({}), vec![unavailable], one())) {
        assert!(reason(&plan, "shop/p").is_some());
    }
}

#[test]
fn prices_that_are_none_are_refused_with_the_type_that_has_them() {
    for price in ["null", "\"NaN\"", "NaN", "-0.1", "1e400", "\"\""] {
        let text = json!({
            "version": 1, "region": "us-east-1", "date": "2026-11-20", "instanceTypes": [instance_type("m.large", 2)],
        })
        .to_string()
        .replace("\"price\":0.1", &format!("\"price\":{price}"));
        assert!(text.contains(price), "{text}");
        assert!(Catalog::parse(&text).is_err(), "{price}");
    }
    // A node type for nothing is no reason to divide by zero.
    let mut free = instance_type("m.large", 2);
    free["offerings"] = json!([{ "zone": "zone-a", "capacityType": "on-demand", "price": 0.0 }]);
    for plan in plans(&cluster_of(
        json!({}),
        vec![free, instance_type("m.xlarge", 4)],
        vec![pod("p", json!({ "cpu": "1" }), json!({}))],
    )) {
        assert_eq!(reason(&plan, "shop/p"), None);
    }
}

#[test]
fn pods_of_nodes_that_are_not_there_are_noted_and_left_out() {
    let mut lost = pod("lost", json!({ "cpu": "1" }), json!({}));
    lost["spec"]["nodeName"] = json!("nowhere");
    lost["status"]["phase"] = json!("Running");
    for plan in plans(&cluster(vec![lost, pod("p", json!({ "cpu": "1" }), json!({}))])) {
        assert!(plan.notes.iter().any(|note| note.code == NoteCode::NodeMissing), "{:?}", plan.notes);
        assert_eq!(reason(&plan, "shop/p"), None);
    }
}

#[test]
fn two_nodes_of_one_name_are_one_node() {
    let node = |cpu: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "twin", "labels": { HOSTNAME: "twin", ZONE: "zone-a" } },
            "status": { "allocatable": { "cpu": cpu, "memory": "8Gi", "pods": "10" }, "conditions": [{ "type": "Ready", "status": "True" }] },
        })
    };
    let pods: Vec<Value> = (0..4).map(|number| pod(&format!("p{number}"), json!({ "cpu": "1" }), json!({}))).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [node("8"), node("2")] });
    let mut snapshot = Snapshot::default();
    let report = read(list.to_string().as_bytes(), &mut snapshot).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("twin")), "{:?}", report.notes);
    let mut built = cluster(pods);
    built.snapshot.nodes = snapshot.nodes;
    // Also when they come past the reader.
    let second = serde_json::from_value(node("8")).unwrap();
    built.snapshot.nodes.push(second);
    for plan in plans(&built) {
        let on_it = plan.placements.iter().filter(|placement| placement.node == "twin").count();
        assert!(on_it <= 2, "room was counted twice: {:?}", plan.placements);
    }
}

/// A volume of one node at a time that several pods name: on another node than the first the others would wait for it.
#[test]
fn pods_that_share_a_volume_of_one_node_are_on_one_node() {
    let volumes = json!({ "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }] });
    let built = |cpu: &str, mode: &str, nodes: &[&str]| {
        let pods = (0..2).map(|number| {
            let mut pod = pod(&format!("web-{number}"), json!({ "cpu": cpu }), volumes.clone());
            let node = nodes.get(number).copied();
            pod["spec"]["nodeName"] = json!(node);
            pod["status"]["phase"] = json!(if node.is_some() { "Running" } else { "Pending" });
            pod
        });
        let mut built = cluster_of(json!({}), vec![instance_type("m.large", 2)], pods.collect());
        let items = json!([
            {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data", "namespace": "shop" },
                "spec": { "accessModes": [mode], "storageClassName": "gp3" }, "status": { "phase": "Pending" },
            },
            {
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "gp3" },
                "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
            },
            {
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": "here", "labels": { HOSTNAME: "here", ZONE: "zone-a" } },
                "status": { "allocatable": { "cpu": "2", "memory": "8Gi", "pods": "10" }, "conditions": [{ "type": "Ready", "status": "True" }] },
            },
        ]);
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
        read(list.to_string().as_bytes(), &mut built.snapshot).unwrap();
        built
    };
    let nodes_of = |plan: &Plan| {
        let mut nodes: Vec<String> = plan.placements.iter().map(|placement| placement.node.clone()).collect();
        nodes.extend(plan.steps.iter().flat_map(|step| step.pods.iter().map(|_| step.node_claim.clone())));
        nodes.sort();
        nodes
    };
    // Only one of them fits on a node.
    for nodes in [&["here"][..], &[]] {
        let [cheapest, karpenter] = plans(&built("1500m", "ReadWriteOnce", nodes)).try_into().unwrap();
        let pending: Vec<&String> = cheapest.pending.iter().flat_map(|pending| &pending.pods).collect();
        assert_eq!(pending.len(), 1, "{:?}", cheapest.pending);
        assert_eq!(reason(&cheapest, pending[0]), Some(ReasonCode::VolumeUnsatisfied));
        assert!(cheapest.pending[0].reasons[0].text.contains("PersistentVolumeClaim data is ReadWriteOnce"));
        assert_eq!(karpenter.pending, []);
    }
    for plan in plans(&built("1500m", "ReadWriteMany", &[])) {
        assert_eq!(plan.pending, []);
    }
    let together = &plans(&built("700m", "ReadWriteOnce", &[]))[0];
    assert_eq!(nodes_of(together), ["here", "here"]);
}

#[test]
fn ten_thousand_label_keys_are_ten_thousand_labels() {
    let labels = |number: usize| -> Value {
        (0..50).map(|key| (format!("key-{}", number * 50 + key), json!("v"))).collect::<serde_json::Map<_, _>>().into()
    };
    let pods = (0..200).map(|number| {
        let expressions: Vec<Value> =
            (0..50).map(|key| json!({ "key": format!("key-{}", number * 50 + key), "operator": "Exists" })).collect();
        let terms = json!([{ "topologyKey": HOSTNAME, "labelSelector": { "matchExpressions": expressions } }]);
        let mut it = pod(&format!("p{number}"), json!({ "cpu": "500m" }), affinity("podAntiAffinity", terms));
        it["metadata"]["labels"] = labels(number);
        it
    });
    for plan in plans(&cluster(pods.collect())) {
        assert_eq!(plan.pending, []);
    }
}

/// What a market may look like at the next look: dearer by a million, for nothing, with half of it gone, empty.
fn other_markets(catalog: &Catalog) -> Vec<Catalog> {
    let changed = |change: &dyn Fn(usize, &mut Catalog)| {
        let mut market = catalog.clone();
        (0..market.instance_types.len()).for_each(|position| change(position, &mut market));
        market
    };
    let priced = |of: fn(HourlyPrice) -> HourlyPrice| {
        changed(&move |position, market| {
            for offering in market.instance_types[position].offerings.iter_mut().skip(position % 2) {
                offering.price = of(offering.price);
            }
        })
    };
    let mut without_types = catalog.clone();
    let mut position = 0;
    without_types.instance_types.retain(|_| {
        position += 1;
        position % 2 == 0
    });
    vec![
        priced(|price| price.times(1_000_000)),
        priced(|_| HourlyPrice::ZERO),
        changed(&|position, market| market.instance_types[position].offerings.truncate(position % 3)),
        without_types,
        Catalog { instance_types: Vec::new(), ..catalog.clone() },
    ]
}

/// Between two looks prices vanish or jump, and the clock steps back or far ahead: the next plan is as valid as any.
#[test]
fn other_prices_and_another_time_at_the_next_look_make_another_valid_plan() {
    const YEARS: i64 = 24 * 366;
    crate::for_worlds(12, |built| {
        let hours = [0, -1, -20 * YEARS, 20 * YEARS, -30];
        for (catalog, hours) in other_markets(&built.catalog).iter().zip(hours) {
            for packing in [Packing::Cheapest, Packing::Karpenter] {
                let first = built.inputs(packing);
                let now = first.now + SignedDuration::from_hours(hours);
                let inputs = Inputs { catalog, now, ..first };
                let violations = check(&decide(&inputs), &inputs);
                if !violations.is_empty() {
                    return Err(format!("{packing:?}, {hours} hours later: {violations:?}"));
                }
            }
        }
        Ok(())
    });
}
