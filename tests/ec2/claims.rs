//! Claims of a launch, and what a controller does with them.

use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::node_claim::NodeClaim;
use cutlist::core::model::HourlyPrice;
use cutlist::core::plan::Alternative;
use cutlist::ports::{Cloud, Instance, LaunchFailure, LaunchRequest, LaunchRules};
use serde_json::json;

pub fn claims(launch: &str, count: usize) -> Vec<NodeClaim> {
    let claim = |number: usize| {
        let value = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": format!("{launch}-{number}"), "uid": format!("{launch}-uid-{:04}", (number * 7_919) % 10_000),
                "annotations": { "cutlist.dev/launch": launch }, "labels": { "karpenter.sh/nodepool": launch } },
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" }, "requirements": [],
                "resources": { "requests": { "cpu": "1", "pods": "3" } } } });
        serde_json::from_value(value).unwrap()
    };
    (0..count).map(claim).collect()
}

pub fn alternatives(offerings: &[&str]) -> Vec<Alternative> {
    let alternative = |text: &&str| {
        let words: Vec<&str> = text.split(' ').collect();
        Alternative {
            instance_type: words[0].to_owned(),
            zone: format!("us-east-1{}", words[1]),
            capacity_type: words[2].to_owned(),
            price_per_hour: HourlyPrice::from_nanodollars(1),
        }
    };
    offerings.iter().map(alternative).collect()
}

/// One try for the claims of a launch that lack an instance; what came of it is written on the first `writes` of them.
pub async fn pass(
    cloud: &impl Cloud,
    class: &EC2NodeClass,
    claims: &mut [NodeClaim],
    offerings: &[Alternative],
    writes: usize,
) -> Vec<LaunchFailure> {
    let all = claims.to_vec();
    let lacking: Vec<usize> = (0..all.len()).filter(|index| provider_id(&all[*index]).is_none()).collect();
    let request = LaunchRequest {
        launch_id: all[0].launch_id(),
        installation: "one",
        claims: lacking.iter().map(|index| &all[*index]).collect(),
        assigned: all.iter().filter_map(provider_id).collect(),
        class: Some(class),
        images: None,
        alternatives: offerings,
        rules: LaunchRules::default(),
    };
    let mut failures = Vec::new();
    for (index, answer) in lacking.into_iter().zip(cloud.launch(&request).await).take(writes) {
        match answer {
            Ok(instance) => write(&mut claims[index], &instance),
            Err(failure) => failures.push(failure),
        }
    }
    failures
}

fn write(claim: &mut NodeClaim, instance: &Instance) {
    let status = json!({ "providerID": instance.provider_id });
    claim.status = serde_json::from_value(status).unwrap();
}

pub fn provider_id(claim: &NodeClaim) -> Option<&str> {
    claim.status.as_ref()?.provider_id.as_deref()
}
