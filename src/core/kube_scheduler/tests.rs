//! One constraint at a time: a world, a pod, and the nodes that take it.

use serde_json::{Value, json};

use crate::snapshot::{Pod, Snapshot};
use crate::testing::{BuildNode, BuildPod, Merge, node, object, pod, snapshot};
use cutlist_api::keys::{HOSTNAME, ZONE};

use super::{Filter, FilterContext, FilterRefusal, refusal};

/// For each node of the snapshot, in order: which filter refuses the pod.
fn verdicts(pod: &Pod, snapshot: &Snapshot) -> Vec<Option<Filter>> {
    // Whoever has no constraint says nothing of labels, so the pod that asks is among those that are there.
    let asking =
        Snapshot { pods: snapshot.pods.iter().chain([pod]).cloned().collect::<Vec<_>>().into(), ..Snapshot::default() };
    let mut context = FilterContext::new(snapshot);
    let of_each = |context: &FilterContext<'_>| -> Vec<Option<FilterRefusal>> {
        snapshot.nodes.iter().map(|node| refusal(pod, node, context)).collect()
    };
    let verdicts = of_each(&context);
    context.find_by_labels(&asking);
    assert_eq!(of_each(&context), verdicts, "pods that are found by labels");
    verdicts.into_iter().map(|refusal| refusal.map(|refusal| refusal.filter)).collect()
}

#[track_caller]
fn expect(pod: &Pod, snapshot: &Snapshot, expected: &[Option<Filter>]) {
    assert_eq!(verdicts(pod, snapshot), expected, "{}", serde_json::to_string(&pod.spec).unwrap());
}

const YES: Option<Filter> = None;

/// Of three nodes.
type Verdicts = [Option<Filter>; 3];

#[test]
fn resources_count_what_is_there_already() {
    let no = Some(Filter::NodeResourcesFit);
    let world = snapshot(
        [node("n"), node("gpu").merge(json!({ "status": { "allocatable": { "nvidia.com/gpu": "1" } } }))],
        [
            pod("other").cpu("3").on("n"),
            pod("done").cpu("4").on("n").merge(json!({ "status": { "phase": "Succeeded" } })),
        ],
    );
    expect(&pod("p").cpu("1"), &world, &[YES, YES]);
    expect(&pod("p").cpu("1001m"), &world, &[no, YES]);
    expect(&pod("p").memory("16Gi"), &world, &[YES, YES]);
    expect(&pod("p").memory("17179869185"), &world, &[no, no]);
    expect(&pod("p").request("nvidia.com/gpu", "1"), &world, &[no, YES]);
    expect(&pod("p").request("nvidia.com/gpu", "0"), &world, &[YES, YES]);
    expect(&pod("p").cpu("lots"), &world, &[no, no]);

    let full = snapshot([node("n").allocatable("4", "16Gi", "1")], [pod("other").on("n")]);
    expect(&pod("p"), &full, &[no]);
}

#[test]
fn taints_and_every_operator_of_tolerations() {
    let no = Some(Filter::TaintToleration);
    let world = snapshot(
        [
            node("execute").taint("team", "a", "NoExecute"),
            node("schedule").taint("team", "a", "NoSchedule"),
            node("prefer").taint("team", "a", "PreferNoSchedule"),
        ],
        [],
    );
    let cases: &[(Value, [Option<Filter>; 3])] = &[
        (json!({ "key": "team", "operator": "Equal", "value": "a" }), [YES, YES, YES]),
        (json!({ "key": "team", "value": "a" }), [YES, YES, YES]),
        (json!({ "key": "team", "value": "b" }), [no, no, YES]),
        (json!({ "key": "team", "operator": "Exists" }), [YES, YES, YES]),
        (json!({ "key": "team", "operator": "Exists", "effect": "NoSchedule" }), [no, YES, YES]),
        (json!({ "operator": "Exists" }), [YES, YES, YES]),
        (json!({ "key": "other", "operator": "Exists" }), [no, no, YES]),
        (json!({ "key": "team", "operator": "Like", "value": "a" }), [no, no, YES]),
    ];
    expect(&pod("p"), &world, &[no, no, YES]);
    for (toleration, expected) in cases {
        expect(&pod("p").tolerate(toleration.clone()), &world, expected);
    }
}

#[test]
fn a_cordoned_node_takes_what_tolerates_it() {
    let world = snapshot([node("n").cordoned()], []);
    expect(&pod("p"), &world, &[Some(Filter::NodeUnschedulable)]);
    let toleration = json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists" });
    expect(&pod("p").tolerate(toleration), &world, &[YES]);
}

#[test]
fn node_selector_and_every_operator_of_node_affinity() {
    let no = Some(Filter::NodeAffinity);
    let world = snapshot(
        [node("n5").node_label("generation", "5"), node("n7").node_label("generation", "7"), node("bare")],
        [],
    );
    expect(&pod("p").node_selector("generation", "7"), &world, &[no, YES, no]);
    let cases: [(&str, &[&str], Verdicts); 8] = [
        ("In", &["5", "6"], [YES, no, no]),
        ("NotIn", &["5", "6"], [no, YES, YES]),
        ("Exists", &[], [YES, YES, no]),
        ("DoesNotExist", &[], [no, no, YES]),
        ("Gt", &["5"], [no, YES, no]),
        ("Lt", &["6"], [YES, no, no]),
        ("Gt", &["many"], [no, no, no]),
        ("Near", &["5"], [no, no, no]),
    ];
    for (operator, values, expected) in &cases {
        expect(&pod("p").node_affinity("generation", operator, values), &world, expected);
    }
}

#[test]
fn node_affinity_terms_are_alternatives_and_empty_ones_match_nothing() {
    let no = Some(Filter::NodeAffinity);
    let world = snapshot([node("one").zone("a"), node("two").zone("b"), node("three").zone("c")], []);
    let terms = |terms: Value| {
        pod("p").merge(json!({ "spec": { "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms }
        } } } }))
    };
    let zone = |zone: &str| json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
    let name = |operator: &str, name: &str| json!({ "matchFields": [{ "key": "metadata.name", "operator": operator, "values": [name] }] });
    expect(&terms(json!([zone("a"), zone("b")])), &world, &[YES, YES, no]);
    expect(&terms(json!([{}])), &world, &[no, no, no]);
    expect(&terms(json!([{}, zone("c")])), &world, &[no, no, YES]);
    expect(&terms(json!([name("In", "two")])), &world, &[no, YES, no]);
    expect(&terms(json!([name("NotIn", "two")])), &world, &[YES, no, YES]);
    let both =
        json!([{ "matchExpressions": zone("a")["matchExpressions"], "matchFields": name("In", "two")["matchFields"] }]);
    expect(&terms(both), &world, &[no, no, no]);
}

#[test]
fn host_ports_conflict_by_address_protocol_and_port() {
    let no = Some(Filter::NodePorts);
    let port = |name: &str, port: Value| {
        pod(name).merge(json!({ "spec": { "containers": [{ "name": "main", "ports": [port] }] } }))
    };
    let world = |taken: Value| snapshot([node("n")], [port("other", taken).on("n")]);
    let cases: &[(Value, Value, Option<Filter>)] = &[
        (json!({ "hostPort": 80 }), json!({ "hostPort": 80 }), no),
        (json!({ "hostPort": 80 }), json!({ "hostPort": 81 }), YES),
        (json!({ "containerPort": 80 }), json!({ "containerPort": 80 }), YES),
        (json!({ "hostPort": 80 }), json!({ "hostPort": 80, "protocol": "UDP" }), YES),
        (json!({ "hostPort": 80 }), json!({ "hostPort": 80, "protocol": "TCP" }), no),
        (json!({ "hostPort": 80, "hostIP": "10.0.0.1" }), json!({ "hostPort": 80, "hostIP": "10.0.0.2" }), YES),
        (json!({ "hostPort": 80, "hostIP": "10.0.0.1" }), json!({ "hostPort": 80 }), no),
        (json!({ "hostPort": 80, "hostIP": "0.0.0.0" }), json!({ "hostPort": 80, "hostIP": "10.0.0.2" }), no),
    ];
    for (taken, wanted, expected) in cases {
        expect(&port("p", wanted.clone()), &world(taken.clone()), &[*expected]);
    }
    let on_host = port("p", json!({ "containerPort": 80 })).merge(json!({ "spec": { "hostNetwork": true } }));
    expect(&on_host, &world(json!({ "hostPort": 80 })), &[no]);
}

#[test]
fn affinity_needs_a_pod_in_the_domain_and_the_first_of_its_kind_may_go_anywhere() {
    let no = Some(Filter::InterPodAffinity);
    let nodes = || [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b")];
    let with_db = snapshot(nodes(), [pod("db").label("app", "db").on("a1")]);
    expect(&pod("p").affinity_to("db", ZONE), &with_db, &[YES, YES, no]);
    expect(&pod("p").affinity_to("db", HOSTNAME), &with_db, &[YES, no, no]);
    expect(&pod("p").affinity_to("cache", ZONE), &with_db, &[no, no, no]);
    let first = pod("p").label("app", "web").affinity_to("web", ZONE);
    expect(&first, &with_db, &[YES, YES, YES]);
    let second = snapshot(nodes(), [pod("web-0").label("app", "web").on("b1")]);
    expect(&first, &second, &[no, no, YES]);
    expect(&first.affinity_to("web", "rack"), &with_db, &[no, no, no]);
    expect(&pod("p").namespace("other").affinity_to("db", ZONE), &with_db, &[no, no, no]);
}

#[test]
fn anti_affinity_works_both_ways() {
    let no = Some(Filter::InterPodAffinity);
    let nodes = || [node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b")];
    let web = |name: &str| pod(name).label("app", "web");
    let world = snapshot(nodes(), [web("web-0").on("a1")]);
    expect(&pod("p").anti_affinity_to("web", HOSTNAME), &world, &[no, YES, YES]);
    expect(&pod("p").anti_affinity_to("web", ZONE), &world, &[no, no, YES]);
    expect(&pod("p").anti_affinity_to("web", "rack"), &world, &[YES, YES, YES]);
    let inverse = snapshot(nodes(), [pod("hermit").anti_affinity_to("web", ZONE).on("a1")]);
    expect(&web("p"), &inverse, &[no, no, YES]);
    expect(&pod("p"), &inverse, &[YES, YES, YES]);
    expect(&web("p").namespace("other"), &inverse, &[YES, YES, YES]);
}

#[test]
fn affinity_terms_choose_namespaces_and_label_keys() {
    let no = Some(Filter::InterPodAffinity);
    let mut world = snapshot(
        [node("n"), node("m")],
        [pod("db").namespace("data").label("app", "db").label("version", "1").on("n")],
    );
    let term = |extra: Value| {
        let term = json!({ "topologyKey": HOSTNAME, "labelSelector": { "matchLabels": { "app": "db" } } }).merge(extra);
        pod("p").label("version", "2").merge(json!({ "spec": { "affinity": { "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]
        } } } }))
    };
    let team = json!({ "namespaceSelector": { "matchLabels": { "team": "a" } } });
    expect(&term(json!({})), &world, &[no, no]);
    expect(&term(json!({ "namespaces": ["data"] })), &world, &[YES, no]);
    expect(&term(json!({ "namespaceSelector": {} })), &world, &[YES, no]);
    expect(
        &term(json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "data" } } })),
        &world,
        &[YES, no],
    );
    expect(&term(team.clone()), &world, &[no, no]);
    expect(&term(json!({ "namespaces": ["data"], "matchLabelKeys": ["version"] })), &world, &[no, no]);
    expect(&term(json!({ "namespaces": ["data"], "matchLabelKeys": ["absent"] })), &world, &[YES, no]);
    expect(&term(json!({ "namespaces": ["data"], "mismatchLabelKeys": ["version"] })), &world, &[YES, no]);
    world.namespaces.push(object(json!({ "metadata": { "name": "data", "labels": { "team": "a" } } })));
    expect(&term(team), &world, &[YES, no]);
}

#[test]
fn spread_compares_with_the_emptiest_domain_that_counts() {
    let no = Some(Filter::PodTopologySpread);
    let web = |name: &str| pod(name).label("app", "web");
    let spread = || web("p").spread(ZONE, 1, "web");
    let nodes = || [node("a1").zone("a"), node("b1").zone("b"), node("c1").zone("c").taint("team", "a", "NoSchedule")];
    let world = snapshot(nodes(), [web("w0").on("a1")]);
    expect(&spread(), &world, &[no, YES, Some(Filter::TaintToleration)]);
    for odd in [0, -1, i32::MIN] {
        expect(&web("p").spread(ZONE, odd, "web"), &world, &[no, YES, Some(Filter::TaintToleration)]);
    }
    let both = snapshot(nodes(), [web("w0").on("a1"), web("w1").on("b1")]);
    expect(&spread(), &both, &[no, no, Some(Filter::TaintToleration)]);
    let with = |extra: Value| {
        let mut pod = spread();
        let constraint = pod.spec.topology_spread_constraints.remove(0).merge(extra);
        pod.spec.topology_spread_constraints.push(constraint);
        pod
    };
    let tainted = Some(Filter::TaintToleration);
    expect(&with(json!({ "nodeTaintsPolicy": "Honor" })), &both, &[YES, YES, tainted]);
    expect(&with(json!({ "maxSkew": 2 })), &both, &[YES, YES, tainted]);
    expect(&with(json!({ "whenUnsatisfiable": "ScheduleAnyway" })), &both, &[YES, YES, tainted]);
    expect(&with(json!({ "nodeTaintsPolicy": "Honor", "minDomains": 3 })), &both, &[no, no, tainted]);
    expect(&with(json!({ "labelSelector": null })), &both, &[YES, YES, tainted]);
    let in_two_zones =
        |policy: &str| with(json!({ "nodeAffinityPolicy": policy })).node_affinity(ZONE, "In", &["a", "b"]);
    expect(&in_two_zones("Honor"), &both, &[YES, YES, tainted]);
    expect(&in_two_zones("Ignore"), &both, &[no, no, tainted]);
    // A pod that does not select itself adds nothing to the skew.
    expect(&pod("p").spread(ZONE, 1, "web"), &world, &[YES, YES, tainted]);
    let leaving = web("w0").on("a1").merge(json!({ "metadata": { "deletionTimestamp": "2026-11-20T00:00:00Z" } }));
    expect(&spread(), &snapshot(nodes(), [leaving]), &[YES, YES, tainted]);
    expect(&spread(), &snapshot([node("n").merge(json!({ "metadata": { "labels": null } }))], []), &[no]);
}

#[test]
fn spread_by_label_keys_counts_one_revision() {
    let web = |name: &str, revision: &str| pod(name).label("app", "web").label("pod-template-hash", revision);
    let world = snapshot([node("a1").zone("a"), node("b1").zone("b")], [web("old", "1").on("a1")]);
    let mut new = web("p", "2").spread(ZONE, 1, "web");
    expect(&new, &world, &[Some(Filter::PodTopologySpread), YES]);
    new.spec.topology_spread_constraints[0].match_label_keys = Some(vec!["pod-template-hash".to_owned()]);
    expect(&new, &world, &[YES, YES]);
}

fn claim(name: &str, spec: Value, bound: bool) -> Value {
    let annotations = if bound { json!({ "pv.kubernetes.io/bind-completed": "yes" }) } else { json!({}) };
    json!({ "metadata": { "name": name, "namespace": "default", "annotations": annotations }, "spec": spec, "status": { "phase": if bound { "Bound" } else { "Pending" } } })
}

fn volume(name: &str, zone: &str) -> Value {
    let terms = json!([{ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] }]);
    json!({ "metadata": { "name": name }, "spec": {
        "csi": { "driver": "ebs.csi.aws.com", "volumeHandle": format!("vol-{name}") },
        "nodeAffinity": { "required": { "nodeSelectorTerms": terms } },
    } })
}

#[test]
fn volumes_are_reached_from_their_zone() {
    let no = Some(Filter::VolumeBinding);
    let mut world = snapshot([node("a1").zone("a"), node("b1").zone("b")], []);
    expect(&pod("p").claim("data"), &world, &[no, no]);
    world.persistent_volume_claims.push(object(claim("data", json!({ "volumeName": "v" }), true)));
    expect(&pod("p").claim("data"), &world, &[no, no]);
    world.persistent_volumes.push(object(volume("v", "a")));
    expect(&pod("p").claim("data"), &world, &[YES, no]);
    world.persistent_volumes[0] = object(
        json!({ "metadata": { "name": "v", "labels": { ZONE: "b__c" } }, "spec": { "csi": { "driver": "d", "volumeHandle": "h" } } }),
    );
    expect(&pod("p").claim("data"), &world, &[Some(Filter::VolumeZone), YES]);
    world.persistent_volume_claims[0] = object(claim("data", json!({ "volumeName": "v" }), false));
    expect(&pod("p").claim("data"), &world, &[no, no]);
}

#[test]
fn volumes_to_be_made_follow_their_class() {
    let no = Some(Filter::VolumeBinding);
    let class = |name: &str, mode: &str, extra: Value| {
        let class =
            json!({ "metadata": { "name": name }, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": mode });
        object(class.merge(extra))
    };
    let zone_b = json!({ "allowedTopologies": [{ "matchLabelExpressions": [{ "key": ZONE, "values": ["b"] }] }] });
    let is_default =
        json!({ "metadata": { "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } } });
    let mut world = snapshot([node("a1").zone("a"), node("b1").zone("b")], []);
    world.storage_classes = vec![
        class("anywhere", "WaitForFirstConsumer", is_default),
        class("at-once", "Immediate", json!({})),
        class("local", "WaitForFirstConsumer", json!({ "provisioner": "kubernetes.io/no-provisioner" })),
        class("zone-b", "WaitForFirstConsumer", zone_b),
    ]
    .into();
    for name in ["anywhere", "at-once", "local", "zone-b", "missing"] {
        world.persistent_volume_claims.push(object(claim(name, json!({ "storageClassName": name }), false)));
    }
    world.persistent_volume_claims.push(object(claim("unnamed", json!({}), false)));
    for (name, expected) in [
        ("anywhere", [YES, YES]),
        ("unnamed", [YES, YES]),
        ("at-once", [no, no]),
        ("local", [no, no]),
        ("zone-b", [no, YES]),
        ("missing", [no, no]),
    ] {
        expect(&pod("p").claim(name), &world, &expected);
    }
    let disk = json!({ "metadata": { "name": "disk" }, "spec": { "storageClassName": "local", "capacity": { "storage": "1Gi" } }, "status": { "phase": "Available" } });
    world.persistent_volumes.push(object(volume("disk", "a").merge(disk)));
    expect(&pod("p").claim("local"), &world, &[YES, no]);
    let template = json!({ "spec": { "volumes": [{ "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": { "storageClassName": "zone-b" } } } }] } });
    expect(&pod("p").merge(template), &world, &[no, YES]);
}

#[test]
fn nodes_attach_as_many_volumes_as_their_driver_says() {
    let mut world = snapshot([node("a1"), node("a2")], [pod("other").claim("one").on("a1")]);
    for name in ["one", "two"] {
        world.persistent_volume_claims.push(object(claim(name, json!({ "volumeName": name }), true)));
        world.persistent_volumes.push(object(volume(name, "a")));
    }
    world.csi_nodes.push(object(json!({ "metadata": { "name": "a1" }, "spec": {
        "drivers": [{ "name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": { "count": 1 } }]
    } })));
    expect(&pod("p").claim("two"), &world, &[Some(Filter::NodeVolumeLimits), YES]);
    expect(&pod("p").claim("one"), &world, &[YES, YES]);
}

#[test]
fn a_claim_for_one_pod_serves_one_pod() {
    let mut world = snapshot([node("a1"), node("a2")], [pod("other").claim("data").on("a1")]);
    let spec = json!({ "volumeName": "data", "accessModes": ["ReadWriteOncePod"] });
    world.persistent_volume_claims.push(object(claim("data", spec, true)));
    world.persistent_volumes.push(object(volume("data", "a")));
    let no = Some(Filter::VolumeRestrictions);
    expect(&pod("p").claim("data"), &world, &[no, no]);
}

#[test]
fn gates_and_device_claims_keep_a_pod_off_every_node() {
    let world = snapshot([node("n")], []);
    let gated = pod("p").merge(json!({ "spec": { "schedulingGates": [{ "name": "quota" }] } }));
    expect(&gated, &world, &[Some(Filter::SchedulingGates)]);
    let with_device = pod("p").merge(json!({ "spec": { "resourceClaims": [{ "name": "gpu" }] } }));
    expect(&with_device, &world, &[Some(Filter::DynamicResources)]);
}

#[test]
fn placing_and_removing_leaves_no_trace() {
    let world = snapshot([node("n"), node("m")], []);
    let hermit = pod("hermit").cpu("4").label("app", "web").anti_affinity_to("web", HOSTNAME);
    let other = pod("p").cpu("1").label("app", "web");
    let mut context = FilterContext::new(&world);
    assert!(context.place(&hermit, "n") && !context.place(&hermit, "nowhere"));
    assert!(context.node_of(&hermit).is_none(), "a pod that can not go where it should is nowhere");
    assert!(context.place(&hermit, "n") && context.place(&hermit, "m"));
    assert_eq!(refusal(&other, &world.nodes[0], &context), None);
    assert_eq!(refusal(&other, &world.nodes[1], &context).unwrap().filter, Filter::NodeResourcesFit);
    assert!(context.remove(&hermit) && !context.remove(&hermit));
    assert_eq!(refusal(&other, &world.nodes[1], &context), None);
    assert!(context.requested_on("m").iter().all(|(_, amount)| amount == 0));
}

#[test]
fn devices_are_given_once_and_match() {
    let no = Some(Filter::DynamicResources);
    let gpu = |name: &str, model: &str| json!({ "name": name, "attributes": { "model": { "string": model } } });
    let claim = |name: &str, model: &str, status: Value| -> Value {
        let expression = format!("device.attributes[\"gpu.example.com\"].model == \"{model}\"");
        let exactly = json!({ "deviceClassName": "gpu", "selectors": [{ "cel": { "expression": expression } }] });
        json!({
            "metadata": { "name": name, "namespace": "default" }, "status": status,
            "spec": { "devices": { "requests": [{ "name": "gpu", "exactly": exactly }] } },
        })
    };
    let mut world = snapshot([node("n"), node("m")], []);
    world.device_classes.push(object(json!({ "metadata": { "name": "gpu" }, "spec": {} })));
    world.resource_slices.push(object(json!({
        "metadata": { "name": "n-gpu" },
        "spec": {
            "driver": "gpu.example.com", "nodeName": "n",
            "pool": { "name": "n", "generation": 1, "resourceSliceCount": 1 },
            "devices": [gpu("a", "A100"), gpu("b", "T4"), gpu("c", "L4")],
        },
    })));
    let results = json!([{ "request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": "b" }]);
    let taken = json!({ "allocation": { "devices": { "results": results } } });
    for claim in [
        claim("one", "A100", json!({})),
        claim("two", "A100", json!({})),
        claim("t4", "T4", json!({})),
        claim("l4", "L4", json!({})),
        claim("has-b", "T4", taken),
    ] {
        world.resource_claims.push(object(claim));
    }
    let user = |claim: &str| {
        let claims = json!([{ "name": "gpu", "resourceClaimName": claim }]);
        pod(claim).merge(json!({ "spec": { "resourceClaims": claims } }))
    };
    let (one, l4) = (user("one"), user("l4"));
    let mut context = FilterContext::new(&world);
    context.judge_devices(&world);
    let verdict = |context: &FilterContext<'_>, claim: &str, node: usize| {
        refusal(&user(claim), &world.nodes[node], context).map(|refusal| refusal.filter)
    };
    assert_eq!([verdict(&context, "one", 0), verdict(&context, "one", 1)], [YES, no]);
    assert_eq!(verdict(&context, "t4", 0), no, "another claim has it");
    assert_eq!(verdict(&context, "absent", 0), no);
    assert_eq!(verdict(&context, "has-b", 1), YES, "it is available everywhere");
    context.place(&one, "n");
    context.place(&l4, "n");
    assert_eq!(verdict(&context, "two", 0), no, "one has the only A100");
    context.remove(&one);
    assert_eq!(verdict(&context, "two", 0), YES);
}

/// What comes and goes is found by its labels as well, and others are not looked at.
#[test]
fn pods_found_by_labels_follow_those_that_move() {
    let apart = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": HOSTNAME, "labelSelector": { "matchLabels": { "app": "web" } } },
    ] } } });
    let web = |name: &str| pod(name).label("app", "web").merge(json!({ "spec": apart }));
    let others = (0..50).map(|number| pod(&format!("other-{number}")).label("app", "other").on("a"));
    let nodes = ["a", "b"].map(|name| node(name).allocatable("4", "16Gi", "110"));
    let world = snapshot(nodes, others.chain([web("web-0").on("a"), web("web-1"), web("web-2")]));
    let of = |name: &str| world.pods.iter().find(|pod| pod.metadata.name == name).unwrap();
    let mut context = FilterContext::new(&world);
    context.find_by_labels(&world);
    let takes = |context: &FilterContext<'_>| -> Vec<bool> {
        world.nodes.iter().map(|node| refusal(of("web-2"), node, context).is_none()).collect()
    };
    let before = context.looks();
    assert_eq!(takes(&context), [false, true]);
    assert!(context.looks() - before < 10, "{} looks", context.looks() - before);
    context.place(of("web-1"), "b");
    assert_eq!(takes(&context), [false, false]);
    context.remove(of("web-0"));
    assert_eq!(takes(&context), [true, false]);
    context.place(of("web-1"), "a");
    assert_eq!(takes(&context), [false, true]);
    context.remove_node("a");
    context.add_node(&world.nodes[0]);
    assert_eq!(takes(&context), [true, true]);
}
