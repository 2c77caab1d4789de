//! Every constraint that kube-scheduler enforces, broken alone in a plan that is right otherwise: the checker must refuse
//! the pod, and find nothing else. What each filter says of single nodes is in `kube_scheduler/tests.rs`.

use serde_json::{Value, json};

use crate::testing::{BuildPod, Merge, object};
use cutlist_api::keys;

use super::{Case, Code, valid};

/// Breaks the valid case, and expects one kind of violation.
#[track_caller]
fn breaks_only(code: Code, edit: impl FnOnce(&mut Case)) {
    let mut case = valid();
    edit(&mut case);
    let violations = case.check();
    let mut codes: Vec<Code> = violations.iter().map(|violation| violation.code).collect();
    codes.dedup();
    assert_eq!(codes, [code], "{violations:#?}");
}

/// `job-0` shares a new node of 4 cores in zone a with `job-1` and the agent; each job asks for 1.5 cores.
#[track_caller]
fn refused(spec: Value) {
    breaks_only(Code::Refused, |case| case.edit_pod("job-0", |pod| pod.merge(json!({ "spec": spec.clone() }))));
}

fn required(kind: &str, terms: Value) -> Value {
    json!({ "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": terms } } })
}

#[test]
fn resources() {
    let container = |cpu: &str| json!({ "name": "more", "resources": { "requests": { "cpu": cpu } } });
    refused(json!({ "initContainers": [container("3")] }));
    refused(json!({ "initContainers": [container("1").merge(json!({ "restartPolicy": "Always" }))] }));
    refused(json!({ "overhead": { "cpu": "1" } }));
    refused(json!({ "resources": { "requests": { "cpu": "2500m" } } }));
    refused(json!({ "resources": { "limits": { "cpu": "2500m" } }, "containers": [{ "name": "main" }] }));
    refused(json!({ "containers": [{ "name": "main", "resources": { "limits": { "cpu": "2500m" } } }] }));
    refused(json!({ "containers": [{ "name": "main", "resources": { "requests": { "nvidia.com/gpu": "1" } } }] }));
    // What a container has while it is resized in place.
    let resized =
        json!({ "status": { "containerStatuses": [{ "name": "main", "allocatedResources": { "cpu": "2500m" } }] } });
    breaks_only(Code::Refused, |case| case.edit_pod("job-0", |pod| pod.merge(resized.clone())));
    breaks_only(Code::Refused, |case| case.edit_pod("api-0", |pod| pod.merge(resized.clone())));
}

#[test]
fn host_ports() {
    let port = |port: Value| json!({ "spec": { "containers": [{ "name": "main", "ports": [port] }] } });
    let both = |one: Value, two: Value| {
        breaks_only(Code::Refused, |case| {
            case.edit_pod("job-0", |pod| pod.merge(port(one.clone())));
            case.edit_pod("job-1", |pod| pod.merge(port(two.clone())));
        });
    };
    let at = |address: &str| json!({ "containerPort": 80, "hostPort": 80, "hostIP": address });
    both(at("10.0.0.1"), at("10.0.0.1"));
    both(at("10.0.0.1"), at("0.0.0.0"));
    both(at("10.0.0.1"), json!({ "containerPort": 80, "hostPort": 80 }));
}

#[test]
fn labels_of_the_node() {
    let zone = |zone: &str| json!({ "matchExpressions": [{ "key": keys::ZONE, "operator": "In", "values": [zone] }] });
    refused(json!({ "nodeSelector": { "team": "red" } }));
    refused(required("nodeAffinity", json!({ "nodeSelectorTerms": [zone("b"), zone("c")] })));
    refused(required("nodeAffinity", json!({ "nodeSelectorTerms": [{}] })));
    let named = json!({ "matchFields": [{ "key": "metadata.name", "operator": "NotIn", "values": ["new-1"] }] });
    refused(required("nodeAffinity", json!({ "nodeSelectorTerms": [named] })));
    let contradiction = json!([{ "matchExpressions": [
        { "key": "rack", "operator": "In", "values": ["1"] }, { "key": "rack", "operator": "In", "values": ["2"] }
    ] }]);
    refused(required("nodeAffinity", json!({ "nodeSelectorTerms": contradiction })));
}

#[test]
fn taints() {
    for (key, effect) in [
        ("team", "NoSchedule"),
        ("team", "NoExecute"),
        ("node.example.com/starting", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ] {
        // On a node that is up already, what belongs to starting is a taint like any other.
        let taints = json!({ "spec": { "taints": [{ "key": key, "effect": effect }] } });
        breaks_only(Code::Refused, |case| case.edit_node("node-kept", taints));
    }
    let soft = json!({ "spec": { "taints": [{ "key": "team", "effect": "PreferNoSchedule" }] } });
    let mut case = valid();
    case.edit_node("node-kept", soft);
    assert_eq!(case.check(), [], "a preference forbids nothing");
}

/// A term over host names that selects pods with this label.
fn term(app: &str, extra: Value) -> Value {
    json!({ "topologyKey": keys::HOSTNAME, "labelSelector": { "matchLabels": { "app": app } } }).merge(extra)
}

#[test]
fn pods_nearby() {
    refused(required("podAffinity", json!([term("nobody", json!({}))])));
    let beside_job_1 = |term: Value| {
        breaks_only(Code::Refused, |case| {
            case.edit_pod("job-1", |pod| pod.label("app", "leader").label("version", "1"));
            let affinity = json!({ "spec": required("podAffinity", json!([term])) });
            case.edit_pod("job-0", |pod| pod.label("version", "2").merge(affinity.clone()));
        });
    };
    beside_job_1(term("leader", json!({ "namespaces": ["other"] })));
    beside_job_1(term("leader", json!({ "namespaceSelector": { "matchLabels": { "team": "red" } } })));
    beside_job_1(term("leader", json!({ "matchLabelKeys": ["version"] })));
    let same_version = |case: &mut Case, key: &str| {
        let affinity = json!({ "spec": required("podAffinity", json!([term("leader", json!({ key: ["version"] }))])) });
        case.edit_pod("job-1", |pod| pod.label("app", "leader").label("version", "1"));
        case.edit_pod("job-0", |pod| pod.label("version", "1").merge(affinity.clone()));
    };
    breaks_only(Code::Refused, |case| same_version(case, "mismatchLabelKeys"));
    let mut case = valid();
    same_version(&mut case, "matchLabelKeys");
    assert_eq!(case.check(), [], "the same version is near enough");
}

#[test]
fn pods_to_keep_away_from() {
    breaks_only(Code::Refused, |case| {
        case.edit_pod("job-1", |pod| pod.label("app", "loud"));
        case.edit_pod("job-0", |pod| pod.anti_affinity_to("loud", keys::HOSTNAME));
    });
    // The other way round: the pod that is there keeps others away.
    breaks_only(Code::Refused, |case| {
        case.edit_pod("api-0", |pod| pod.anti_affinity_to("tiny", keys::HOSTNAME));
        case.edit_pod("tiny", |pod| pod.label("app", "tiny"));
    });
    let everywhere = json!([term("loud", json!({ "namespaceSelector": {} }))]);
    breaks_only(Code::Refused, |case| {
        case.edit_pod("api-0", |pod| pod.label("app", "loud"));
        case.edit_pod("tiny", |pod| pod.merge(json!({ "spec": required("podAntiAffinity", everywhere.clone()) })));
    });
}

#[test]
fn spread() {
    let constraint = |key: &str, extra: Value| {
        json!({ "topologySpreadConstraints": [json!({
            "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "job" } },
        }).merge(extra)] })
    };
    let edit = |case: &mut Case, spec: Value| {
        for name in ["job-0", "job-1"] {
            let labelled = |pod: crate::snapshot::Pod| pod.label("app", "job").label("revision", name);
            case.edit_pod(name, |pod| labelled(pod).merge(json!({ "spec": spec.clone() })));
        }
    };
    breaks_only(Code::Refused, |case| edit(case, constraint(keys::HOSTNAME, json!({}))));
    breaks_only(Code::Refused, |case| edit(case, constraint(keys::ZONE, json!({ "minDomains": 2 }))));
    for allowed in [
        json!({ "maxSkew": 2 }),
        json!({ "matchLabelKeys": ["revision"] }),
        json!({ "whenUnsatisfiable": "ScheduleAnyway" }),
    ] {
        let mut case = valid();
        edit(&mut case, constraint(keys::HOSTNAME, allowed));
        assert_eq!(case.check(), []);
    }
    // An empty zone b counts, or not, by the two policies.
    let with_zone_b = |case: &mut Case, taint: Value, spec: Value| {
        case.edit_node(
            "node-empty",
            json!({ "metadata": { "labels": { keys::ZONE: "b" } }, "spec": { "taints": taint } }),
        );
        case.edit_step("claim-empty", json!({ "zone": "b" }));
        edit(case, spec);
    };
    let tainted = json!([{ "key": "team", "effect": "NoSchedule" }]);
    let ignored = constraint(keys::ZONE, json!({ "nodeTaintsPolicy": "Ignore" }));
    breaks_only(Code::Refused, |case| with_zone_b(case, tainted.clone(), ignored));
    let mut case = valid();
    with_zone_b(&mut case, tainted, constraint(keys::ZONE, json!({ "nodeTaintsPolicy": "Honor" })));
    assert_eq!(case.check(), []);
    let in_zone_a = |policy: &str| {
        constraint(keys::ZONE, json!({ "nodeAffinityPolicy": policy }))
            .merge(json!({ "nodeSelector": { keys::ZONE: "a" } }))
    };
    breaks_only(Code::Refused, |case| with_zone_b(case, json!([]), in_zone_a("Ignore")));
    let mut case = valid();
    with_zone_b(&mut case, json!([]), in_zone_a("Honor"));
    assert_eq!(case.check(), []);
}

/// A claim of namespace default, and the volume it is bound to, if a zone is given.
fn add_claim(case: &mut Case, name: &str, zone: Option<&str>, class: &str, mode: &str) {
    let bound = if zone.is_some() { json!({ "pv.kubernetes.io/bind-completed": "yes" }) } else { json!({}) };
    case.snapshot.persistent_volume_claims.push(object(json!({
        "metadata": { "name": name, "namespace": "default", "annotations": bound },
        "spec": { "accessModes": [mode], "storageClassName": class, "volumeName": zone.map(|_| name) },
    })));
    if let Some(zone) = zone {
        let terms = json!([{ "matchExpressions": [{ "key": keys::ZONE, "operator": "In", "values": [zone] }] }]);
        case.snapshot.persistent_volumes.push(object(json!({
            "metadata": { "name": name },
            "spec": { "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": name }, "nodeAffinity": { "required": { "nodeSelectorTerms": terms } } },
        })));
    }
}

#[test]
fn volumes() {
    let once = "ReadWriteOnce";
    breaks_only(Code::Refused, |case| {
        add_claim(case, "data", Some("b"), "any", once);
        case.edit_pod("job-0", |pod| pod.claim("data"));
    });
    breaks_only(Code::Refused, |case| {
        case.snapshot.storage_classes.push(object(json!({
            "metadata": { "name": "zone-b" }, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{ "matchLabelExpressions": [{ "key": keys::ZONE, "values": ["b"] }] }],
        })));
        add_claim(case, "data", None, "zone-b", once);
        case.edit_pod("job-0", |pod| pod.claim("data"));
    });
    breaks_only(Code::Refused, |case| {
        add_claim(case, "one", Some("a"), "any", once);
        add_claim(case, "two", Some("a"), "any", once);
        case.edit_pod("api-0", |pod| pod.claim("one"));
        case.edit_pod("tiny", |pod| pod.claim("two"));
        case.snapshot.csi_nodes.push(object(json!({ "metadata": { "name": "node-kept" }, "spec": {
            "drivers": [{ "name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": { "count": 1 } }]
        } })));
    });
    breaks_only(Code::Refused, |case| {
        add_claim(case, "data", Some("a"), "any", "ReadWriteOncePod");
        case.edit_pod("job-0", |pod| pod.claim("data"));
        case.edit_pod("job-1", |pod| pod.claim("data"));
    });
}

#[test]
fn what_is_not_ready_to_be_scheduled() {
    refused(json!({ "schedulingGates": [{ "name": "example.com/quota" }] }));
    refused(json!({ "resourceClaims": [{ "name": "gpu" }] }));
}

#[test]
fn a_pod_that_leaves_with_its_node_keeps_nobody_away() {
    let mut case = valid();
    case.edit_pod("tiny", |pod| pod.label("app", "tiny").anti_affinity_to("tiny", keys::ZONE));
    let leaving = crate::testing::pod("tiny-before").label("app", "tiny").on("node-leaving");
    case.snapshot.pods.push(leaving.owned_by("DaemonSet", "tiny"));
    let node = super::pool_node("node-leaving", "m.large", "2", "8Gi");
    case.snapshot
        .nodes
        .push(node.merge(json!({ "spec": { "taints": [{ "key": keys::DISRUPTED_TAINT, "effect": "NoSchedule" }] } })));
    assert!(case.check().iter().all(|violation| violation.code != Code::Refused), "{:?}", case.check());
    case.edit_node("node-leaving", json!({ "spec": { "taints": [] } }));
    assert!(case.check().iter().any(|violation| violation.code == Code::Refused), "it stays, and keeps the zone");
}

/// The pod that goes to node-kept asks for devices by a claim for each of the models; the node has one A100.
fn asks_for_devices(case: &mut Case, models: &[&str]) {
    case.policy.scheduling.ignore_dynamic_resource_allocation = false;
    case.snapshot.device_classes.push(object(json!({ "metadata": { "name": "gpu" }, "spec": {} })));
    case.snapshot.resource_slices.push(object(json!({ "metadata": { "name": "slice" }, "spec": {
        "driver": "gpu.example.com", "nodeName": "node-kept",
        "pool": { "name": "node-kept", "generation": 1, "resourceSliceCount": 1 },
        "devices": [{ "name": "gpu-0", "attributes": { "model": { "string": "A100" } } }],
    } })));
    let mut claims = Vec::new();
    for (number, model) in models.iter().enumerate() {
        let name = format!("claim-{number}");
        let expression = format!("device.attributes['gpu.example.com'].model == '{model}'");
        let exactly = json!({ "deviceClassName": "gpu", "selectors": [{ "cel": { "expression": expression } }] });
        case.snapshot.resource_claims.push(object(json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "devices": { "requests": [{ "name": "gpu", "exactly": exactly }] } },
        })));
        claims.push(json!({ "name": name, "resourceClaimName": name }));
    }
    case.edit_pod("tiny", |pod| pod.merge(json!({ "spec": { "resourceClaims": claims } })));
}

#[test]
fn devices() {
    let mut case = valid();
    asks_for_devices(&mut case, &["A100"]);
    assert_eq!(case.check(), []);
    case.policy.scheduling.ignore_dynamic_resource_allocation = true;
    assert!(case.check().iter().any(|violation| violation.code == Code::Refused), "nobody judges devices by default");
    breaks_only(Code::Refused, |case| asks_for_devices(case, &["A100", "A100"]));
    breaks_only(Code::Refused, |case| asks_for_devices(case, &["T4"]));
    breaks_only(Code::Refused, |case| {
        asks_for_devices(case, &["A100"]);
        let results =
            json!([{ "request": "gpu", "driver": "gpu.example.com", "pool": "node-kept", "device": "gpu-0" }]);
        case.snapshot.resource_claims.push(object(json!({
            "metadata": { "name": "other", "namespace": "default" }, "spec": {},
            "status": { "allocation": { "devices": { "results": results } } },
        })));
    });
}
