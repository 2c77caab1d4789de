//! The states of a claim as a table: what is seen, what is done.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::*;

const BEGIN: &str = "2026-11-20T09:00:00Z";

fn at(seconds: i64) -> Timestamp {
    BEGIN.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// A claim with these conditions `(type, status, seconds since the beginning)`.
fn claim(conditions: &[(&str, &str, i64)], change: &Value) -> NodeClaim {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(type_, status, seconds)| {
            json!({"type": type_, "status": status, "reason": "", "message": "", "lastTransitionTime": at(*seconds)})
        })
        .collect();
    let launched = conditions.iter().any(|condition| condition["type"] == "Launched" && condition["status"] == "True");
    let mut value = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": "default-abcde", "uid": "u", "creationTimestamp": BEGIN,
            "labels": {"eks-team": "my-team"}, "finalizers": ["karpenter.sh/termination"],
        },
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [], "startupTaints": [{"key": "starting", "effect": "NoSchedule"}]},
        "status": {"conditions": conditions},
    });
    if launched {
        value["status"]["providerID"] = json!("aws:///a/i-1");
    }
    for (pointer, new) in change.as_object().into_iter().flatten() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[key] = new.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn node(ready: bool, taints: &[&str]) -> Node {
    let taints: Vec<Value> = taints.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
    serde_json::from_value(json!({
        "metadata": {"name": "node-1"},
        "spec": {"providerID": "aws:///a/i-1", "taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": if ready {"True"} else {"False"}}]},
    }))
    .unwrap()
}

fn pod(name: &str, change: &Value) -> Pod {
    let mut value = json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"nodeName": "node-1"}});
    merge(&mut value, change);
    serde_json::from_value(value).unwrap()
}

/// Puts the objects of `change` into `target`, field by field.
fn merge(target: &mut Value, change: &Value) {
    match (target.as_object_mut(), change.as_object()) {
        (Some(fields), Some(changes)) => {
            changes.iter().for_each(|(key, value)| merge(fields.entry(key).or_insert(Value::Null), value));
        }
        _ => *target = change.clone(),
    }
}

fn seen<'a>(claim: &'a NodeClaim, node: Option<&'a Node>, seconds: i64) -> Observation<'a> {
    let attached_volumes = &[];
    Observation {
        claim,
        node,
        pods: &[],
        attached_volumes,
        is_awaited: false,
        instance_gone: false,
        consolidate_after_seconds: Some(30),
        now: at(seconds),
    }
}

/// Effects in short: what kind, on what, and which conditions a written claim got.
fn short(reaction: &Reaction) -> Vec<String> {
    reaction
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::WriteClaim(claim) => {
                let conditions = claim.status.iter().flat_map(|status| &status.conditions);
                let on: Vec<_> = conditions.filter(|it| it.status == "True").map(|it| it.type_.as_str()).collect();
                format!("write {}", on.join(" "))
            }
            Effect::PatchNode(patch) => format!("patch {patch}"),
            Effect::Evict { name, .. } => format!("evict {name}"),
            Effect::DeletePod { name, grace_seconds, .. } => format!("delete {name} in {grace_seconds}s"),
            Effect::Reached(milestone) => format!("{milestone:?}").split([' ', '{']).next().unwrap().to_owned(),
            other @ (Effect::Launch
            | Effect::DeleteClaim(_)
            | Effect::DeleteNode { .. }
            | Effect::TerminateInstance { .. }) => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_new_claim_is_launched_and_given_up_after_five_minutes() {
    let new = claim(&[], &json!({}));
    assert_eq!(react(&seen(&new, None, 0)).effects, [Effect::Launch]);
    assert_eq!(react(&seen(&new, None, 299)).look_again_at, Some(at(300)));
    assert_eq!(react(&seen(&new, None, 300)).effects, [Effect::DeleteClaim(DeletionCause::LaunchTimeout)]);
}

#[test]
fn a_node_that_does_not_join_is_given_up_after_fifteen_minutes() {
    let launched = claim(&[("Launched", "True", 3), ("Registered", "Unknown", 3)], &json!({}));
    assert_eq!(react(&seen(&launched, None, 902)).effects, []);
    assert_eq!(react(&seen(&launched, None, 903)).effects, [Effect::DeleteClaim(DeletionCause::RegistrationTimeout)]);
}

#[test]
fn registration_gives_labels_and_taints_and_takes_the_unregistered_taint() {
    let launched = claim(&[("Launched", "True", 3), ("Registered", "Unknown", 3)], &json!({}));
    let joined = node(false, &["karpenter.sh/unregistered", "node.kubernetes.io/not-ready"]);
    let reaction = react(&seen(&launched, Some(&joined), 30));
    let Effect::PatchNode(patch) = &reaction.effects[0] else { panic!("{reaction:?}") };
    assert_eq!(patch["metadata"]["labels"], json!({"eks-team": "my-team", "karpenter.sh/registered": "true"}));
    let taints: Vec<_> = patch["spec"]["taints"].as_array().unwrap().iter().map(|taint| &taint["key"]).collect();
    assert_eq!(taints, ["node.kubernetes.io/not-ready", "starting"]);
    assert_eq!(short(&reaction)[1..], ["write Launched Registered", "Registered"]);
}

#[test]
fn a_node_that_joins_ready_is_registered_and_initialized_at_once_unless_it_has_startup_taints() {
    let stages = [("Launched", "True", 3), ("Registered", "Unknown", 3)];
    let joined = node(true, &["karpenter.sh/unregistered"]);
    let without = claim(&stages, &json!({"/spec/startupTaints": []}));
    let reaction = react(&seen(&without, Some(&joined), 30));
    let Effect::PatchNode(patch) = &reaction.effects[0] else { panic!("{reaction:?}") };
    assert_eq!(patch["metadata"]["labels"]["karpenter.sh/initialized"], "true");
    assert_eq!(
        short(&reaction)[1..],
        ["write Launched Registered Ready Initialized ConsistentStateFound", "Registered", "Initialized"]
    );
    let with = claim(&stages, &json!({}));
    assert_eq!(short(&react(&seen(&with, Some(&joined), 30)))[1..], ["write Launched Registered", "Registered"]);
}

#[test]
fn initialization_waits_for_ready_and_for_startup_taints() {
    let stages = [("Launched", "True", 3), ("Registered", "True", 30), ("Initialized", "Unknown", 30)];
    let registered = claim(&stages, &json!({}));
    for (node, done) in [
        (node(false, &[]), false),
        (node(true, &["starting"]), false),
        (node(true, &["node.kubernetes.io/not-ready"]), false),
        (node(true, &["readiness.k8s.io/network"]), false),
        (node(true, &["somebody.else"]), true),
    ] {
        let effects = short(&react(&seen(&registered, Some(&node), 40)));
        assert_eq!(effects.contains(&"Initialized".to_owned()), done, "{effects:?}");
    }
}

#[test]
fn consolidatable_comes_and_goes_with_pod_events() {
    let stages = [
        ("Launched", "True", 3),
        ("Registered", "True", 30),
        ("Initialized", "True", 40),
        ("ConsistentStateFound", "True", 40),
    ];
    let ready = node(true, &[]);
    let fresh = claim(&stages, &json!({}));
    assert_eq!(react(&seen(&fresh, Some(&ready), 69)), Reaction { effects: vec![], look_again_at: Some(at(70)) });
    assert_eq!(short(&react(&seen(&fresh, Some(&ready), 70)))[1], "Consolidatable");
    let marked = [stages[0], stages[1], stages[2], stages[3], ("Consolidatable", "True", 70)];
    let disturbed = claim(&marked, &json!({"/status/lastPodEventTime": at(80)}));
    assert_eq!(
        short(&react(&seen(&disturbed, Some(&ready), 81))),
        ["write Launched Registered Initialized ConsistentStateFound"]
    );
    let never = Observation { consolidate_after_seconds: None, ..seen(&fresh, Some(&ready), 1000) };
    assert_eq!(react(&never), Reaction::default());
}

#[test]
fn a_deleted_node_takes_its_claim_with_it() {
    let stages = [("Launched", "True", 3), ("Registered", "True", 30), ("Initialized", "True", 40)];
    let claim = claim(&stages, &json!({}));
    let mut node = node(true, &[]);
    node.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(50)));
    assert_eq!(react(&seen(&claim, Some(&node), 50)).effects, [Effect::DeleteClaim(DeletionCause::NodeDeleted)]);
}

#[test]
fn termination_goes_from_taint_to_the_last_finalizer() {
    let stages = [("Launched", "True", 3), ("Registered", "True", 30), ("Initialized", "True", 40)];
    let deleted = claim(&stages, &json!({"/metadata/deletionTimestamp": at(100)}));
    let ready = node(true, &[]);
    let first = short(&react(&seen(&deleted, Some(&ready), 100)));
    assert_eq!(first[0], "DeleteNode { node: \"node-1\" }");
    assert!(first[1].contains("karpenter.sh/disrupted") && first[1].contains("exclude-from-external"), "{first:?}");

    let mut tainted = node(true, &["karpenter.sh/disrupted"]);
    tainted.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(100)));
    tainted.metadata.labels =
        Some([("node.kubernetes.io/exclude-from-external-load-balancers".to_owned(), "karpenter".to_owned())].into());
    assert_eq!(react(&seen(&deleted, Some(&tainted), 104)), Reaction { effects: vec![], look_again_at: Some(at(105)) });
    assert_eq!(
        short(&react(&seen(&deleted, Some(&tainted), 105))),
        ["write Launched Registered Initialized Drained VolumesDetached"]
    );

    let drained = [stages[0], stages[1], stages[2], ("Drained", "True", 105), ("VolumesDetached", "True", 105)];
    let drained = claim(&drained, &json!({"/metadata/deletionTimestamp": at(100)}));
    let effects = short(&react(&seen(&drained, Some(&tainted), 105)));
    assert_eq!(effects[0], "TerminateInstance { provider_id: \"aws:///a/i-1\" }");
    let gone = Observation { instance_gone: true, ..seen(&drained, Some(&tainted), 110) };
    assert_eq!(short(&react(&gone)), ["patch {\"metadata\":{\"finalizers\":null}}", "NodeDeleted"]);
    // What somebody else holds stays held, and nothing is written again and again for it.
    let mut held = tainted.clone();
    held.metadata.finalizers = Some(vec!["example.com/keep".to_owned(), "karpenter.sh/termination".to_owned()]);
    let gone = Observation { instance_gone: true, ..seen(&drained, Some(&held), 110) };
    assert_eq!(short(&react(&gone)), ["patch {\"metadata\":{\"finalizers\":[\"example.com/keep\"]}}"]);
    held.metadata.finalizers = Some(vec!["example.com/keep".to_owned()]);
    let gone = Observation { instance_gone: true, ..seen(&drained, Some(&held), 110) };
    assert_eq!(react(&gone), Reaction { effects: vec![], look_again_at: None });
    let mut held = drained.clone();
    held.metadata.finalizers = Some(vec!["example.com/keep".to_owned()]);
    let gone = Observation { instance_gone: true, ..seen(&held, None, 110) };
    assert_eq!(react(&gone), Reaction { effects: vec![], look_again_at: None });
    let last = Observation { instance_gone: true, ..seen(&drained, None, 110) };
    let Effect::WriteClaim(released) = &react(&last).effects[0] else { panic!() };
    assert_eq!(released.metadata.finalizers, Some(vec![]));
}

#[test]
fn a_claim_that_was_never_launched_goes_without_asking_the_cloud() {
    let deleted = claim(&[("Launched", "Unknown", 0)], &json!({"/metadata/deletionTimestamp": at(10)}));
    assert_eq!(short(&react(&seen(&deleted, None, 10)))[1], "ClaimDeleted");
}

#[test]
fn pods_leave_in_four_tiers() {
    let daemon = json!({"metadata": {"ownerReferences": [{"kind": "DaemonSet", "apiVersion": "apps/v1", "name": "d", "uid": "d"}]}});
    let critical = json!({"spec": {"priorityClassName": "system-node-critical"}});
    let mut critical_daemon = daemon.clone();
    merge(&mut critical_daemon, &critical);
    let tolerating = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let pods = [
        pod("critical-daemon", &critical_daemon),
        pod("critical", &critical),
        pod("daemon", &daemon),
        pod("ordinary", &json!({})),
        pod("tolerating", &tolerating),
        pod("ended", &json!({"status": {"phase": "Succeeded"}})),
    ];
    let mut left: Vec<&Pod> = pods.iter().collect();
    let mut order = Vec::new();
    loop {
        let drain = drain::next(&left, None, at(0));
        let Some((_, name)) = drain.evict.first().cloned() else { break };
        assert_eq!(drain.evict.len(), 1, "{drain:?}");
        left.retain(|pod| pod.metadata.name != name);
        order.push(name);
    }
    assert_eq!(order, ["ordinary", "daemon", "critical", "critical-daemon"]);
    let protected = pod("protected", &protected);
    let drain = drain::next(&[&protected], None, at(0));
    assert_eq!((drain.evict.len(), drain.waiting), (0, 1));
}

#[test]
fn much_larger_pods_leave_first_and_those_that_are_alike_mixed() {
    let asks = |name: String, cpu: &str, memory: &str| {
        let requests = json!({"cpu": cpu, "memory": memory});
        pod(&name, &json!({"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}))
    };
    let mut pods: Vec<Pod> = (0..16).map(|number| asks(format!("cores-{number:02}"), "200m", "128Mi")).collect();
    pods.extend((0..16).map(|number| asks(format!("memory-{number:02}"), "100m", "256Mi")));
    pods.push(asks("z-large".to_owned(), "4", "30Gi"));
    let order = drain::order_of_eviction(&pods.iter().collect::<Vec<_>>());
    let names: Vec<&str> = order.iter().map(|position| pods[*position].metadata.name.as_str()).collect();
    assert_eq!((names.len(), names[0]), (33, "z-large"));
    // Of any twelve in a row some ask for cores and some for memory.
    let is_of_cores = |name: &&str| name.starts_with("cores");
    for row in names[1..].windows(12) {
        assert!((2..=10).contains(&row.iter().filter(|name| is_of_cores(name)).count()), "{names:?}");
    }
    // Pods that are held back change nothing for the others.
    let others: Vec<&Pod> = pods.iter().filter(|pod| !pod.metadata.name.ends_with('3')).collect();
    let of_others: Vec<&str> =
        drain::order_of_eviction(&others).iter().map(|position| others[*position].metadata.name.as_str()).collect();
    let expected: Vec<&str> = names.into_iter().filter(|name| !name.ends_with('3')).collect();
    assert_eq!(of_others, expected);
}

#[test]
fn the_grace_period_ends_every_wait() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "spec": {"terminationGracePeriodSeconds": 20}});
    let pod = pod("protected", &protected);
    assert_eq!(drain::next(&[&pod], Some(at(100)), at(79)).next_deadline, Some(at(80)));
    let drain = drain::next(&[&pod], Some(at(100)), at(80));
    assert_eq!(drain.delete, [("n".to_owned(), "protected".to_owned(), 20)]);
    let over = drain::next(&[&pod], Some(at(100)), at(500));
    assert_eq!(over.delete[0].2, 1);
}

#[test]
fn a_drained_node_waits_for_its_volumes_until_its_time_is_over() {
    let stages =
        [("Launched", "True", 3), ("Registered", "True", 30), ("Initialized", "True", 40), ("Drained", "True", 105)];
    let deleted = json!({"/metadata/deletionTimestamp": at(100), "/metadata/annotations": {
        "karpenter.sh/nodeclaim-termination-timestamp": at(200)}, "/spec/terminationGracePeriod": "100s"});
    let drained = claim(&stages, &deleted);
    let mut node = node(true, &["karpenter.sh/disrupted"]);
    node.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(100)));
    node.metadata.labels =
        Some([("node.kubernetes.io/exclude-from-external-load-balancers".to_owned(), "karpenter".to_owned())].into());
    let volumes = ["pv-1".to_owned()];
    let attached = |claim, seconds| Observation { attached_volumes: &volumes, ..seen(claim, Some(&node), seconds) };
    let first = react(&attached(&drained, 105));
    assert_eq!(short(&first), ["write Launched Registered Initialized Drained", "AwaitsDetachment"]);
    let Effect::WriteClaim(waiting) = &first.effects[0] else { panic!() };
    let condition = waiting.condition("VolumesDetached").unwrap();
    assert_eq!((condition.status.as_str(), condition.message.as_str()), ("Unknown", "1 volume is attached: pv-1"));
    assert_eq!(react(&attached(waiting, 110)), Reaction { effects: vec![], look_again_at: Some(at(111)) });
    // The last one goes.
    let detached = react(&seen(waiting, Some(&node), 111));
    assert_eq!(short(&detached), ["write Launched Registered Initialized Drained VolumesDetached"]);
    // Or its time does.
    let over = react(&attached(waiting, 200));
    let Effect::WriteClaim(over) = &over.effects[0] else { panic!() };
    assert_eq!(over.condition("VolumesDetached").unwrap().reason, "TerminationGracePeriodElapsed");
    assert!(short(&react(&attached(over, 200)))[0].starts_with("TerminateInstance"));
}

#[test]
fn volumes_of_pods_that_stay_and_volumes_of_others_are_not_waited_for() {
    use crate::snapshot::Snapshot;
    let attachment = |source: Value| {
        let value = json!({"metadata": {"name": "a"}, "spec": {"attacher": "ebs.csi.aws.com", "nodeName": "node-1", "source": source}});
        serde_json::from_value(value).unwrap()
    };
    let attachments = [
        attachment(json!({"persistentVolumeName": "pv-1"})),
        attachment(json!({"persistentVolumeName": "pv-2"})),
        attachment(json!({"inlineVolumeSpec": {}})),
    ];
    let claim = |name: &str, volume: &str| {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"volumeName": volume}}))
            .unwrap()
    };
    let claims = vec![claim("web-scratch", "pv-1"), claim("data", "pv-2")];
    let snapshot = Snapshot { persistent_volume_claims: claims.into(), ..Snapshot::default() };
    let tolerations = json!([{"operator": "Exists"}]);
    let ephemeral =
        pod("web", &json!({"spec": {"tolerations": tolerations, "volumes": [{"name": "scratch", "ephemeral": {}}]}}));
    let leaving =
        pod("db", &json!({"spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}}));
    let attachments: Vec<_> = attachments.iter().collect();
    let attached = |pods: &[&Pod]| volumes::attached(&attachments, pods, &snapshot, at(0));
    assert_eq!(attached(&[&ephemeral, &leaving]), ["pv-2"]);
    assert_eq!(attached(&[]), ["pv-1", "pv-2"]);
}

#[test]
fn a_node_with_less_than_was_launched_is_said_to_be() {
    let stages = [("Launched", "True", 3), ("Registered", "True", 30), ("Initialized", "True", 40)];
    let sized =
        json!({"/spec/resources": {"requests": {"cpu": "1"}}, "/status/capacity": {"cpu": "4", "memory": "8Gi"}});
    let claim = claim(&stages, &sized);
    let with = |cpu: &str| {
        let mut node = node(true, &[]);
        let capacity = [("cpu".to_owned(), k8s_openapi::apimachinery::pkg::api::resource::Quantity(cpu.to_owned()))];
        node.status.get_or_insert_default().capacity = Some(capacity.into());
        node
    };
    // Nobody asked for memory, of which there is none.
    assert_eq!(
        short(&react(&seen(&claim, Some(&with("3600m")), 41)))[0],
        "write Launched Registered Initialized ConsistentStateFound"
    );
    let small = with("3599m");
    let reaction = react(&seen(&claim, Some(&small), 41));
    let fault = "expected 4 of resource cpu, but found 3599m".to_owned();
    assert_eq!(reaction.effects[1], Effect::Reached(Milestone::Inconsistent { fault: fault.clone() }));
    let Effect::WriteClaim(noted) = &reaction.effects[0] else { panic!() };
    assert_eq!(noted.condition("ConsistentStateFound").unwrap().message, fault);
    assert_eq!(react(&seen(noted, Some(&small), 42)).effects, [], "said once");
}
