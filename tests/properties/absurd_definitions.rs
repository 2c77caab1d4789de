//! Definitions that nobody needs and anybody may commit: what is beyond the limits is an error that names them, and with what is within
//! them a plan ends in work that is counted here and not timed.

use cutlist::api::settings::Packing;
use cutlist::api::source::SourceFile;
use cutlist::core::planner::decide;
use cutlist::core::scheduler::Problem;
use cutlist::definitions::{Definitions, GivenVariables, Severity, read};
use proptest::sample::select;
use serde_json::{Value, json};

use crate::bad_input::{cluster, pod};

/// What is within the limits has so many constraints at most, of all pods and pools together.
const WORK_MAX: usize = 150_000;

const SHAPES: [&str; 21] = [
    "requirements",
    "values",
    "taints",
    "startup taints",
    "labels",
    "annotations",
    "budgets",
    "limits",
    "replicas",
    "class tags",
    "subnet terms",
    "tags of a term",
    "devices",
    "overlay values",
    "overlay capacity",
    "allow windows",
    "pools",
    "classes",
    "overlays",
    "cluster budgets",
    "buffers",
];

fn each(count: usize, make: impl Fn(usize) -> Value) -> Value {
    (0..count).map(make).collect()
}

fn map(count: usize, prefix: &str, value: &str) -> Value {
    (0..count).map(|number| (format!("{prefix}{number}"), json!(value))).collect::<serde_json::Map<_, _>>().into()
}

fn node_pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": name },
        "spec": { "limits": { "cpu": "100" }, "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [], "expireAfter": "Never",
        } } },
    })
}

fn node_class(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": name },
        "spec": {
            "role": "r", "amiSelectorTerms": [{ "alias": "al2023@v20240807" }],
            "subnetSelectorTerms": [{ "tags": { "a": "b" } }], "securityGroupSelectorTerms": [{ "tags": { "a": "b" } }],
        },
    })
}

fn overlay(name: &str) -> Value {
    let requirement = json!({ "key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m.large"] });
    json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": name },
        "spec": { "requirements": [requirement], "price": "0.1" },
    })
}

fn cluster_budget(name: &str) -> Value {
    json!({
        "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget", "metadata": { "name": name },
        "spec": { "nodes": "10%" },
    })
}

/// Definitions with so many of what the shape is about.
fn documents(shape: &str, count: usize) -> Vec<Value> {
    let (mut pool, mut class) = (node_pool("absurd"), node_class("default"));
    let taint = |number: usize| json!({ "key": format!("example.com/t{number}"), "effect": "PreferNoSchedule" });
    let window = |number: usize| json!({ "schedule": format!("{} * * * *", number % 60), "duration": "10m" });
    let values = || each(count * 10, |number| json!(format!("v{number}")));
    let mut more = Vec::new();
    let named = |make: fn(&str) -> Value| (0..count).map(|number| make(&format!("n{number}"))).collect::<Vec<_>>();
    let template = &mut pool["spec"]["template"];
    match shape {
        "requirements" => {
            let requirement =
                |number| json!({ "key": format!("example.com/k{number}"), "operator": "In", "values": ["x"] });
            template["spec"]["requirements"] = each(count, requirement);
        }
        "values" => {
            template["spec"]["requirements"] =
                json!([{ "key": "example.com/k", "operator": "In", "values": values() }]);
        }
        "taints" => template["spec"]["taints"] = each(count, taint),
        "startup taints" => template["spec"]["startupTaints"] = each(count, taint),
        "labels" => template["metadata"] = json!({ "labels": map(count, "example.com/l", "x") }),
        "annotations" => template["metadata"] = json!({ "annotations": map(count, "example.com/a", "x") }),
        "budgets" => {
            pool["spec"]["disruption"] = json!({ "consolidateAfter": "30s", "budgets": each(count, |number| {
                let mut budget = window(number);
                budget["nodes"] = json!("10%");
                budget
            }) });
        }
        "limits" => pool["spec"]["limits"] = map(count, "example.com/r", "10"),
        "replicas" => {
            pool["spec"]["replicas"] = json!(count * 10);
            pool["spec"]["limits"] = json!({ "nodes": "100000" });
        }
        "class tags" => class["spec"]["tags"] = map(count, "t", "x"),
        "subnet terms" => {
            class["spec"]["subnetSelectorTerms"] =
                each(count, |number| json!({ "tags": { "a": format!("b{number}") } }));
        }
        "tags of a term" => class["spec"]["subnetSelectorTerms"] = json!([{ "tags": map(count, "t", "x") }]),
        "devices" => {
            class["spec"]["blockDeviceMappings"] = each(
                count,
                |number| json!({ "deviceName": format!("/dev/x{number}"), "ebs": { "volumeSize": "20Gi" } }),
            );
        }
        "overlay values" => {
            let mut overlay = overlay("o");
            overlay["spec"]["requirements"][0]["values"] = values();
            more.push(overlay);
        }
        "overlay capacity" => {
            let mut overlay = overlay("o");
            overlay["spec"]["capacity"] = map(count, "example.com/r", "1");
            more.push(overlay);
        }
        "allow windows" => {
            let mut budget = cluster_budget("b");
            budget["spec"]["allowWindows"] = each(count, window);
            more.push(budget);
        }
        "pools" => more = named(node_pool),
        "classes" => more = named(node_class),
        "overlays" => more = named(overlay),
        "cluster budgets" => more = named(cluster_budget),
        _ => {
            more.push(json!({
                "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": "t", "namespace": "default" },
                "template": { "spec": { "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1" } } }] } },
            }));
            more.extend((0..count).map(|number| {
                json!({
                    "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
                    "metadata": { "name": format!("b{number}"), "namespace": "default" },
                    "spec": { "podTemplateRef": { "name": "t" }, "replicas": 1 },
                })
            }));
        }
    }
    more.extend([pool, class]);
    more
}

fn definitions(shape: &str, count: usize) -> Definitions {
    let text: Vec<String> = documents(shape, count).iter().map(Value::to_string).collect();
    read(&[SourceFile::new("all.yaml", text.join("\n---\n"))], &GivenVariables::default())
}

/// An error that says how many are allowed.
fn names_a_limit(definitions: &Definitions) -> bool {
    let errors = definitions.diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let texts: Vec<&str> = errors.map(|it| it.message.as_str()).collect();
    texts.iter().any(|text| text.contains("at most") || text.contains("more than"))
}

fn holds(shape: &str, count: usize) -> Result<(), String> {
    let definitions = definitions(shape, count);
    if definitions.has_errors() {
        let named = names_a_limit(&definitions);
        return if named { Ok(()) } else { Err(format!("{shape}: {count}: {:?}", definitions.diagnostics.first())) };
    }
    let mut built = cluster(vec![pod("plain", json!({ "cpu": "100m" }), json!({}))]);
    built.pools.extend(definitions.node_pools.iter().map(|it| it.value.clone()));
    built.overlays.extend(definitions.node_overlays.iter().map(|it| it.value.clone()));
    let mut inputs = built.inputs(Packing::Cheapest);
    let buffers: Vec<_> = definitions.capacity_buffers.iter().map(|it| it.value.clone()).collect();
    let templates: Vec<_> = definitions.pod_templates.iter().map(|it| it.value.clone()).collect();
    let budgets: Vec<_> = definitions.disruption_budgets.iter().map(|it| it.value.clone()).collect();
    (inputs.capacity_buffers, inputs.pod_templates, inputs.disruption_budgets) = (&buffers, &templates, &budgets);
    let problem = Problem::new(&inputs);
    let work: usize = problem.variants.iter().map(|variant| 1 + variant.constraints.len()).sum();
    if work > WORK_MAX {
        return Err(format!("{shape}: {count}: {work} constraints in {} variants", problem.variants.len()));
    }
    let plan = decide(&inputs);
    let waits = plan.pending.iter().any(|pending| pending.pods.iter().any(|pod| pod == "shop/plain"));
    if waits { Err(format!("{shape}: {count}: the plain pod waits")) } else { Ok(()) }
}

#[test]
fn what_is_absurd_is_an_error_that_names_the_limit() {
    for shape in SHAPES {
        // Reading so many documents takes as long as they are long, and no longer.
        let is_many_documents = ["pools", "classes", "overlays", "cluster budgets", "buffers"].contains(&shape);
        let found = definitions(shape, if is_many_documents { 600 } else { 3_000 });
        assert!(found.has_errors() && names_a_limit(&found), "{shape}: {:?}", found.diagnostics.first());
    }
}

#[test]
fn what_is_allowed_is_planned_with() {
    let counts = (select(&SHAPES), select(vec![1_usize, 20, 50, 100]));
    crate::holds_for(24, counts, |(shape, count)| holds(shape, count));
}
