//! Pods that nobody needs and anybody may create: a plan ends all the same, in work that is counted here and not timed, and pods like
//! those that everybody has get their places.

use std::fmt::Write;

use cutlist::api::settings::Packing;
use cutlist::core::plan::ReasonCode;
use cutlist::core::planner::decide;
use cutlist::core::scheduler::Problem;
use cutlist::core::snapshot::limits::LIMITS;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::bad_input::{cluster, pod};

/// More than this takes longer than a second or two.
const WORK_MAX: usize = 150_000;
/// Of what each instance type is held against.
const DIMENSIONS_MAX: usize = 400;

const SHAPES: [&str; 19] = [
    "spreads",
    "hard spreads",
    "node terms",
    "expressions",
    "values",
    "preferred terms",
    "affinity",
    "anti-affinity",
    "preferred affinity",
    "namespaces",
    "tolerations",
    "containers",
    "sidecars",
    "ports",
    "resources",
    "volumes",
    "ephemeral volumes",
    "claims",
    "labels",
];

fn each(count: usize, make: impl Fn(usize) -> Value) -> Value {
    (0..count).map(make).collect()
}

fn required(kind: &str, terms: Value) -> Value {
    json!({ "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": terms } } })
}

fn preferred(kind: &str, terms: Value) -> Value {
    json!({ "affinity": { kind: { "preferredDuringSchedulingIgnoredDuringExecution": terms } } })
}

/// What a pod named so says, with `count` of what the shape is about.
fn specification(shape: &str, name: &str, count: usize) -> Value {
    let selector = |number: usize| json!({ "matchLabels": { "app": format!("{name}-{number}") } });
    let spread = |when: &'static str| {
        move |number: usize| {
            let key =
                if when == "DoNotSchedule" { "topology.kubernetes.io/zone".to_owned() } else { format!("k{number}") };
            json!({ "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector(number) })
        }
    };
    let expression = |key: String, values: Value| json!({ "key": key, "operator": "NotIn", "values": values });
    let term = |number: usize| json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": selector(number) });
    let weighted = |number: usize| json!({ "weight": 1 + number % 100, "podAffinityTerm": term(number) });
    let terms = |count: usize, expressions: usize, values: usize| {
        let of_term = |term: usize| {
            each(expressions, |number| {
                expression(format!("{name}-{term}-{number}"), each(values, |value| json!(format!("v{value}"))))
            })
        };
        json!({ "nodeSelectorTerms": each(count, |term| json!({ "matchExpressions": of_term(term) })) })
    };
    match shape {
        "spreads" => json!({ "topologySpreadConstraints": each(count, spread("ScheduleAnyway")) }),
        "hard spreads" => json!({ "topologySpreadConstraints": each(count, spread("DoNotSchedule")) }),
        "node terms" => required("nodeAffinity", terms(count, 1, 3)),
        "expressions" => required("nodeAffinity", terms(1, count, 1)),
        "values" => required("nodeAffinity", terms(1, 1, count * 5)),
        "preferred terms" => preferred(
            "nodeAffinity",
            each(count, |number| {
                let preference = json!({ "matchExpressions": [{ "key": format!("k{number}"), "operator": "Exists" }] });
                json!({ "weight": 1 + number % 100, "preference": preference })
            }),
        ),
        "affinity" => required("podAffinity", each(count, term)),
        "anti-affinity" => required("podAntiAffinity", each(count, term)),
        "preferred affinity" => preferred("podAffinity", each(count, weighted)),
        "namespaces" => required(
            "podAntiAffinity",
            json!([{
                "topologyKey": "kubernetes.io/hostname", "labelSelector": selector(0),
                "namespaces": each(count, |number| json!(format!("n{number}"))),
            }]),
        ),
        "tolerations" => {
            json!({ "tolerations": each(count, |number| json!({ "key": format!("{name}{number}"), "operator": "Exists" })) })
        }
        "ephemeral volumes" => json!({ "volumes": each(count, |number| json!({
            "name": format!("v{number}"),
            "ephemeral": { "volumeClaimTemplate": { "spec": { "resources": { "requests": { "storage": "1Gi" } } } } },
        })) }),
        "volumes" => json!({ "volumes": each(count, |number| json!({
            "name": format!("v{number}"), "persistentVolumeClaim": { "claimName": format!("c{number}") },
        })) }),
        "claims" => json!({ "resourceClaims": each(count, |number| json!({
            "name": format!("r{number}"), "resourceClaimName": format!("c{number}"),
        })) }),
        "sidecars" => json!({ "initContainers": each(count, |number| json!({
            "name": format!("s{number}"), "restartPolicy": "Always",
            "resources": { "requests": { format!("example.com/{name}-{number}"): "1" } },
        })) }),
        _ => json!({}),
    }
}

fn absurd(shape: &str, name: &str, count: usize) -> Value {
    let mut made = pod(name, json!({ "cpu": "10m" }), specification(shape, name, count));
    match shape {
        "containers" => {
            let container =
                |number: usize| json!({ "name": format!("c{number}"), "resources": { "requests": { "cpu": "1m" } } });
            made["spec"]["containers"] = each(count, container);
        }
        "ports" => {
            let ports = each(count, |number| json!({ "containerPort": number + 1, "hostPort": number + 1 }));
            made["spec"]["containers"] = json!([{ "name": "main", "ports": ports }]);
        }
        "resources" => {
            for number in 0..count {
                made["spec"]["containers"][0]["resources"]["requests"][format!("example.com/{name}-{number}")] =
                    json!("1");
            }
        }
        "labels" => {
            for number in 0..count {
                made["metadata"]["labels"][format!("{name}-{number}")] = json!("x");
            }
        }
        _ => {}
    }
    made
}

fn holds(shape: &str, pods: usize, count: usize) -> Result<(), String> {
    let mut all = vec![pod("plain", json!({ "cpu": "100m" }), json!({}))];
    all.extend((0..pods).map(|number| absurd(shape, &format!("p{number}"), count)));
    let built = cluster(all);
    let inputs = built.inputs(Packing::Cheapest);
    let problem = Problem::new(&inputs);
    let mut what = String::new();
    write!(what, "{shape}: {pods} pods of {count}").unwrap();
    let work: usize = problem.variants.iter().map(|variant| 1 + variant.constraints.len()).sum();
    if work > WORK_MAX + 26 * problem.classes.len() {
        return Err(format!("{what}: {work} constraints in {} variants", problem.variants.len()));
    }
    if problem.dimensions.count() > DIMENSIONS_MAX {
        return Err(format!("{what}: {} resources", problem.dimensions.count()));
    }
    // What is left out is told, and nobody else waits for it.
    let left_out = problem.too_large_pods.len();
    if left_out > 0 && pods <= 2 {
        let plan = decide(&inputs);
        let is_plain = |pod: &String| pod == "shop/plain";
        if plan.pending.iter().any(|pending| pending.pods.iter().any(is_plain)) {
            return Err(format!("{what}: the plain pod waits"));
        }
        let told = plan.pending.iter().filter(|it| it.reasons.iter().any(|it| it.code == ReasonCode::TooManyTerms));
        let told: usize = told.map(|pending| pending.pods.len()).sum();
        if told != left_out {
            return Err(format!("{what}: {told} of {left_out} pods are told that they say too much"));
        }
    }
    Ok(())
}

#[test]
fn one_pod_alone_can_not_make_a_plan_long() {
    for shape in SHAPES {
        holds(shape, 1, 3_000).unwrap();
    }
}

#[test]
fn many_pods_that_differ_can_not_either() {
    let counts = (select(&SHAPES), select(vec![1_usize, 40, 200]), select(vec![16_usize, 32, 64, 100]));
    crate::holds_for(24, counts, |(shape, pods, count)| holds(shape, pods, count));
}

#[test]
fn as_much_as_is_allowed_is_planned_for() {
    for (shape, field) in
        [("spreads", "topologySpreadConstraints"), ("preferred terms", "preferred"), ("tolerations", "tolerations")]
    {
        let most = LIMITS.iter().find(|limit| limit.field.contains(field)).unwrap().most;
        for (count, left_out) in [(most, 0), (most + 1, 1)] {
            let built = cluster(vec![absurd(shape, "p", count)]);
            assert_eq!(
                Problem::new(&built.inputs(Packing::Cheapest)).too_large_pods.len(),
                left_out,
                "{count} {shape}"
            );
        }
    }
}
