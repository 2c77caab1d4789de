//! `cutlist facts pull` on an account that has subnets, groups, images and a cluster: what it writes is what plans and locks then go by.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::cases::scene;
use super::moto::{Moto, REGION};
use super::proxy::DENIES;
use super::whole::repository;

pub fn facts_are_pulled(moto: &Moto) {
    let scene = scene(moto, "100000000012");
    scene.proxy.always("GetServiceQuota", DENIES);
    let folder = tempfile::tempdir().unwrap();
    let definitions = repository(folder.path(), &scene.cluster);
    let facts = folder.path().join("facts.json");
    let said = cutlist(
        &scene.proxy.address,
        &["facts", "pull", text(&definitions), "--cluster-name", &scene.cluster, "--write", text(&facts)],
    );
    assert!(String::from_utf8_lossy(&said.stderr).contains("1 EC2NodeClass of us-east-1"), "{said:?}");
    let written: Value = serde_json::from_slice(&std::fs::read(&facts).unwrap()).unwrap();
    let subnets = scene.raw.ec2("DescribeSubnets", &[]).ok().all("subnetId");
    let status = &written["nodeClasses"][0]["status"];
    let count = |value: &Value| value.as_array().map_or(0, Vec::len);
    assert_eq!(count(&status["subnets"]), subnets.len(), "{status:#}");
    assert_eq!((count(&status["securityGroups"]), count(&status["amis"])), (1, 2), "{status:#}");
    let free = written["freeAddresses"].as_object().unwrap();
    assert!(subnets.iter().all(|subnet| free[subnet].as_u64().unwrap() > 1_000), "{free:?}");
    assert_eq!(written["imagesCreated"]["ami-0a0a0a0a0a0a0a0a0"], "2026-08-01T00:00:00Z");
    assert_eq!(written["denied"][0]["action"], "servicequotas:GetServiceQuota", "{:#}", written["denied"]);
    let asked = scene.proxy.counts();
    for action in ["CreateInstanceProfile", "CreateLaunchTemplate", "CreateFleet", "RunInstances"] {
        assert!(!asked.contains_key(action), "it only looks: {asked:?}");
    }

    let catalog = folder.path().join("catalog.json");
    cutlist(&scene.proxy.address, &["catalog", "pull", "--write", text(&catalog)]);
    let sold: Value = serde_json::from_slice(&std::fs::read(&catalog).unwrap()).unwrap();
    assert_eq!(sold["region"], REGION);
    assert!(count(&sold["instanceTypes"]) > 500, "{}", count(&sold["instanceTypes"]));

    // From here on nothing is asked any more.
    let nowhere = "http://127.0.0.1:1";
    let plan = cutlist(nowhere, &["plan", text(&definitions), "--facts", text(&facts), "--catalog", text(&catalog)]);
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(plan.contains("permission servicequotas:GetServiceQuota"), "{plan}");
    cutlist(nowhere, &["ami", "lock", text(&definitions), "--facts", text(&facts)]);
    let lock = std::fs::read_to_string(definitions.join("cutlist.lock")).unwrap();
    assert!(lock.contains("id: ami-0a0a0a0a0a0a0a0a0") && lock.contains("created: 2026-08-01T00:00:00Z"), "{lock}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn cutlist(endpoint: &str, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(arguments)
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_REGION", REGION)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}
