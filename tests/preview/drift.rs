//! What a change of definitions makes old is replaced in the next 24 hours, to the last node: the first plan has only a canary.

use serde_json::{Value, json};

use crate::fleet::{Nodes, class, hashes, pool, snapshot};
use crate::sums::previewed;

const NODES: u64 = 4;

/// The class as the cluster has it, with what was found for it.
pub fn found(mut class: Value) -> Value {
    let when = "2026-11-01T00:00:00Z";
    class["metadata"]["uid"] = json!("class");
    class["metadata"]["creationTimestamp"] = json!(when);
    let ready = |kind: &str| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": when });
    let kinds =
        ["AMIsReady", "SubnetsReady", "SecurityGroupsReady", "InstanceProfileReady", "ValidationSucceeded", "Ready"];
    let conditions: Vec<Value> = kinds.map(ready).into();
    class["status"] = json!({
        "amis": [{ "id": "ami-old", "name": "old", "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }] }],
        "subnets": [{ "id": "subnet-a", "zone": "us-east-1a" }],
        "securityGroups": [{ "id": "sg-1" }],
        "conditions": conditions,
    });
    class
}

#[test]
fn all_that_drifts_is_replaced() {
    let with = |pointer: &str, value: Value| {
        let mut changed = [class(), pool("a", &["m5"], "WhenEmpty")];
        let (kind, path) = pointer.split_once(' ').unwrap();
        let document = &mut changed[usize::from(kind == "pool")];
        let (parent, field) = path.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap()[field] = value;
        changed
    };
    let changes = [
        ("another alias", with("class /spec/amiSelectorTerms", json!([{ "alias": "al2023@v20251112" }]))),
        ("another image", with("class /spec/amiSelectorTerms", json!([{ "id": "ami-new" }]))),
        ("another subnet", with("class /spec/subnetSelectorTerms", json!([{ "id": "subnet-b" }]))),
        ("another security group", with("class /spec/securityGroupSelectorTerms", json!([{ "id": "sg-2" }]))),
        ("other user data", with("class /spec/userData", json!("#!/bin/sh\n"))),
        ("another role", with("class /spec/role", json!("others"))),
        ("another label", with("pool /spec/template/metadata", json!({ "labels": { "team": "shop" } }))),
        ("another family", with("pool /spec/template/spec/requirements/0/values", json!(["m6i"]))),
    ];
    let nodes = Nodes {
        pool: "a",
        instance_type: "m5.large",
        memory: "6903Mi",
        count: usize::try_from(NODES).unwrap(),
        pod_millicores: 1_500,
        pods: 1,
    };
    let base = [class(), pool("a", &["m5"], "WhenEmpty")];
    let mut of_cluster = base.to_vec();
    of_cluster[0] = found(class());
    of_cluster[1]["metadata"]["annotations"] = hashes();
    let cluster = snapshot(&[nodes], of_cluster);
    let mut wrong = Vec::new();
    for (name, head) in &changes {
        let folder = tempfile::tempdir().unwrap();
        let target = previewed(folder.path(), &base, head, &cluster, &[]);
        let figures = &target["figures"];
        let held = target["heldBack"].as_array().into_iter().flatten();
        let follow: u64 =
            held.filter(|it| it["code"] == "WaitsForCanary").map(|it| it["count"].as_u64().unwrap()).sum();
        let first = figures["nodesReplaced"].as_u64().unwrap();
        let day = target["next24Hours"][0].as_str().unwrap();
        let headline = target["headline"].as_str().unwrap();
        let says_so = follow == 0 || headline.contains(&format!("{follow} to follow"));
        if first + follow != NODES || !day.contains(&format!(" {NODES} removed")) || !says_so {
            wrong.push(format!("{name}: {headline}; {first} and {follow} of {NODES}, then {day}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
