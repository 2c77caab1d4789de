//! What random worlds found, written by hand.

use cutlist::api::keys::{HOSTNAME, ZONE};
use cutlist::api::settings::Packing;
use cutlist::core::check::check;
use cutlist::core::planner::decide;
use serde_json::json;

use crate::bad_input::{cluster, pod};

#[test]
fn a_spread_counts_the_zones_of_all_terms_of_node_affinity() {
    let term = |zone: &str| json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
    let spec = json!({
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term("zone-b"), term("zone-a")]
        } } },
        "topologySpreadConstraints": [{
            "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        }],
    });
    let pods = (0..4).map(|number| {
        let mut web = pod(&format!("web-{number}"), json!({ "cpu": "100m" }), spec.clone());
        web["metadata"]["labels"] = json!({ "app": "web" });
        web
    });
    let built = cluster(pods.collect());
    for packing in [Packing::Cheapest, Packing::Karpenter] {
        let inputs = built.inputs(packing);
        let plan = decide(&inputs);
        assert_eq!(plan.pending, [], "{packing:?}");
        assert_eq!(check(&plan, &inputs), [], "{packing:?}");
    }
}

/// A node of a pool that wants none hands its pod to another node, which is empty, and stays for it.
#[test]
fn a_node_that_gets_pods_of_a_surplus_node_is_not_removed_as_empty() {
    let mut built = cluster(Vec::new());
    let mut surplus = built.pools[0].clone();
    surplus.metadata.name = Some("static".to_owned());
    surplus.spec.replicas = Some(0);
    built.pools.push(surplus);
    let conditions = |names: &[&str]| -> Vec<serde_json::Value> {
        let moment = "2026-11-20T10:00:00Z";
        let condition = |name| json!({ "type": name, "status": "True", "reason": "r", "message": "", "lastTransitionTime": moment });
        names.iter().map(condition).collect()
    };
    for (name, pool) in [("empty", "default"), ("surplus", "static")] {
        let labels = json!({
            "karpenter.sh/nodepool": pool, "karpenter.sh/initialized": "true", "karpenter.sh/capacity-type": "on-demand",
            "node.kubernetes.io/instance-type": "m.large", HOSTNAME: name, ZONE: "zone-a",
        });
        let room = json!({ "cpu": "2", "memory": "8Gi", "pods": "58" });
        let metadata = json!({ "name": name, "labels": labels, "creationTimestamp": "2026-11-20T10:00:00Z" });
        built.snapshot.nodes.push(
            serde_json::from_value(json!({
                "metadata": metadata, "spec": { "providerID": name },
                "status": { "capacity": room, "allocatable": room, "conditions": conditions(&["Ready"]) },
            }))
            .unwrap(),
        );
        built.snapshot.node_claims.push(serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata,
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" }, "requirements": [] },
            "status": {
                "nodeName": name, "providerID": name, "capacity": room, "allocatable": room,
                "conditions": conditions(&["Launched", "Registered", "Initialized"]),
            },
        })).unwrap());
    }
    let mut web = pod("web", json!({ "cpu": "1" }), json!({}));
    web["spec"]["nodeName"] = json!("surplus");
    web["status"]["phase"] = json!("Running");
    built.snapshot.pods = vec![serde_json::from_value(web).unwrap()].into();
    for packing in [Packing::Cheapest, Packing::Karpenter] {
        let inputs = built.inputs(packing);
        let plan = decide(&inputs);
        let gone: Vec<_> = plan.steps.iter().filter_map(|step| step.node.as_deref()).collect();
        assert_eq!((gone, check(&plan, &inputs)), (vec!["surplus"], Vec::new()), "{packing:?}");
    }
}
