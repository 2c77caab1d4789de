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
/// Bytes that are said of why a pod waits: what nobody reads is not worth the time that it takes.
const SAID_MAX: usize = 20_000;

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

/// The most of each shape that is planned for, by the limit on it. One that is counted together with others leaves room for what the pod has
/// beside it.
fn most_of(shape: &str) -> usize {
    let limit = |field: &str| LIMITS.iter().find(|limit| limit.field.contains(field)).unwrap().most;
    match shape {
        "spreads" | "hard spreads" => limit("topologySpreadConstraints"),
        "node terms" => limit("required terms"),
        "preferred terms" => limit("preferred terms"),
        "affinity" | "anti-affinity" | "preferred affinity" => limit("podAffinity"),
        // A key and a value.
        "expressions" => limit("keys and values") / 2,
        // Five values each, and the key.
        "values" => (limit("keys and values") - 1) / 5,
        "namespaces" => limit("keys and values") - 1,
        "tolerations" => limit("tolerations"),
        "containers" => limit("spec.containers"),
        // Each names a resource, as the container does.
        "sidecars" | "resources" => limit("names of resources") - 1,
        "ports" => limit("ports"),
        "volumes" | "ephemeral volumes" => limit("spec.volumes"),
        "claims" => limit("resourceClaims"),
        // The pod has one.
        "labels" => limit("metadata.labels") - 1,
        shape => panic!("{shape} has no limit"),
    }
}

/// All of the second that the first does not have; lists are put together.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) if into.is_null() => *into = from,
        _ => {}
    }
}

/// A pod with as much of several shapes as all of them together may have.
fn combined(name: &str, shapes: &[(&str, usize)]) -> Value {
    let mut made = pod(name, json!({ "cpu": "10m" }), json!({}));
    for (shape, count) in shapes {
        let mut further = absurd(shape, name, *count);
        if !["containers", "ports", "resources"].contains(shape) {
            further["spec"].as_object_mut().unwrap().remove("containers");
        }
        merge(&mut made, further);
    }
    made
}

/// Decides for these pods, and counts: what a look at one place is made of, and what is said of it all.
fn decided(what: &str, absurd: Vec<Value>) -> Result<(), String> {
    let pods = absurd.len();
    let mut all = vec![pod("plain", json!({ "cpu": "100m" }), json!({}))];
    all.extend(absurd);
    let built = cluster(all);
    for packing in [Packing::Cheapest, Packing::Karpenter] {
        let inputs = built.inputs(packing);
        let problem = Problem::new(&inputs);
        // Many together may be more than is planned for at a time.
        if pods == 1 && !problem.too_large_pods.is_empty() {
            return Err(format!("{what}: it is left out, though it is within the limits"));
        }
        let work: usize = problem.variants.iter().map(|variant| 1 + variant.constraints.len()).sum();
        if work > WORK_MAX || problem.dimensions.count() > DIMENSIONS_MAX {
            return Err(format!("{what}: {work} constraints, {} resources", problem.dimensions.count()));
        }
        let plan = decide(&inputs);
        let is_plain = |pod: &String| pod == "shop/plain";
        if plan.pending.iter().any(|pending| pending.pods.iter().any(is_plain)) {
            return Err(format!("{what}: the plain pod waits"));
        }
        let said: usize = plan.pending.iter().flat_map(|it| &it.reasons).map(|reason| reason.text.len()).sum();
        if plan.steps.len() > pods + 1 || said > SAID_MAX * (pods + 1) {
            return Err(format!("{what}: {} steps, {said} bytes of reasons", plan.steps.len()));
        }
    }
    Ok(())
}

#[test]
fn what_is_as_large_as_it_may_be_is_decided_on() {
    for shape in SHAPES {
        let of_shape = |pods: usize| (0..pods).map(|number| absurd(shape, &format!("p{number}"), most_of(shape)));
        decided(&format!("one pod of {shape}"), of_shape(1).collect()).unwrap();
        decided(&format!("pods of {shape}"), of_shape(12).collect()).unwrap();
    }
}

/// Lists that share a limit share it here, too.
#[test]
fn what_is_as_large_as_it_may_be_in_everything_is_decided_on() {
    let half = |shape: &str| most_of(shape) / 2;
    let quarter = |shape: &str| most_of(shape) / 4;
    let shapes = [
        ("spreads", half("spreads")),
        ("hard spreads", half("hard spreads")),
        ("node terms", most_of("node terms") - 1),
        // Beside some thousand keys and values of the others.
        ("values", half("values")),
        ("preferred terms", most_of("preferred terms")),
        ("affinity", quarter("affinity")),
        ("anti-affinity", quarter("affinity")),
        ("preferred affinity", quarter("affinity")),
        ("tolerations", most_of("tolerations")),
        ("containers", half("containers")),
        ("sidecars", half("sidecars")),
        ("ports", most_of("ports")),
        ("resources", half("resources")),
        ("volumes", half("volumes")),
        ("ephemeral volumes", half("ephemeral volumes")),
        ("claims", most_of("claims")),
        ("labels", most_of("labels")),
    ];
    for pods in [1, 6] {
        let all = (0..pods).map(|number| combined(&format!("p{number}"), &shapes)).collect();
        decided(&format!("{pods} pods of everything"), all).unwrap();
    }
    let pairs = SHAPES.iter().zip(SHAPES.iter().skip(1));
    for (one, other) in pairs {
        let shapes = [(*one, half(one)), (*other, half(other))];
        let all = (0..3).map(|number| combined(&format!("p{number}"), &shapes)).collect();
        decided(&format!("{one} and {other}"), all).unwrap();
    }
}
