//! A plan as if everything went as it says: its claims are nodes, its pods are where it puts them, what it removes is gone.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::keys;
use cutlist::core::catalog::{Catalog, for_node_class};
use cutlist::core::plan::{Plan, Step, StepKind};
use cutlist::core::snapshot::Snapshot;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn object<T: DeserializeOwned>(value: Value) -> T {
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// Changes the snapshot to what it is when the plan is done. How many pods moved from one node to another.
pub fn carry_out(
    plan: &Plan,
    snapshot: &mut Snapshot,
    catalog: &Catalog,
    classes: &[EC2NodeClass],
    now: Timestamp,
) -> usize {
    let mut destinations: BTreeMap<&str, &str> = BTreeMap::new();
    for step in plan.steps.iter().filter(|step| step.kind == StepKind::Create) {
        create(step, snapshot, catalog, classes, now);
        destinations.extend(step.pods.iter().map(|pod| (pod.as_str(), step.node_claim.as_str())));
    }
    destinations.extend(plan.placements.iter().map(|placement| (placement.pod.as_str(), placement.node.as_str())));
    let mut touched: BTreeSet<String> = BTreeSet::new();
    let mut moved = 0;
    for pod in &mut snapshot.pods {
        let Some(node) = destinations.get(pod.key().as_str()) else { continue };
        if let Some(before) = pod.spec.node_name.replace((*node).to_owned()) {
            touched.insert(before);
            moved += 1;
        }
        touched.insert((*node).to_owned());
        pod.status = object(json!({ "phase": "Running", "conditions": [
            { "type": "PodScheduled", "status": "True" }, { "type": "Ready", "status": "True" },
        ] }));
    }
    let removed = plan.steps.iter().filter(|step| step.kind == StepKind::Remove);
    let (claims, nodes): (BTreeSet<&str>, BTreeSet<Option<&str>>) =
        removed.map(|step| (step.node_claim.as_str(), step.node.as_deref())).unzip();
    snapshot.node_claims.retain(|claim| !claim.metadata.name.as_deref().is_some_and(|name| claims.contains(name)));
    snapshot.nodes.retain(|node| !nodes.contains(&node.metadata.name.as_deref()));
    // DaemonSets take their pods from nodes that are gone.
    snapshot.pods.retain(|pod| !nodes.contains(&pod.spec.node_name.as_deref()));
    for claim in &mut snapshot.node_claims {
        let Some(status) = claim.status.as_mut() else { continue };
        if status.node_name.as_ref().is_some_and(|node| touched.contains(node)) {
            status.last_pod_event_time = Some(now.to_string());
        }
    }
    moved
}

fn create(step: &Step, snapshot: &mut Snapshot, catalog: &Catalog, classes: &[EC2NodeClass], now: Timestamp) {
    let mut claim = step.launch.as_ref().unwrap().node_claim.clone();
    let class = claim["spec"]["nodeClassRef"]["name"].as_str().unwrap();
    let class = classes.iter().find(|it| it.metadata.name.as_deref() == Some(class)).unwrap();
    let sold = catalog.instance_types.iter().find(|it| it.name == step.instance_type).unwrap();
    let instance_type = for_node_class(sold, &class.spec);
    let name = &step.node_claim;
    let mut labels = claim["metadata"]["labels"].clone();
    for (key, values) in &instance_type.requirements {
        labels[key] = json!(values[0]);
    }
    let mut offerings = instance_type.offerings.iter();
    let offering = offerings.find(|it| it.zone == step.zone && it.capacity_type == step.capacity_type).unwrap();
    labels[keys::ZONE] = json!(step.zone);
    labels[keys::CAPACITY_TYPE] = json!(step.capacity_type);
    if let Some(zone_id) = &offering.zone_id {
        labels[keys::ZONE_ID] = json!(zone_id);
    }
    labels[keys::HOSTNAME] = json!(name);
    labels[keys::REGISTERED] = json!("true");
    labels[keys::INITIALIZED] = json!("true");
    let provider_id = format!("aws:///{}/i-{name}", step.zone);
    let taints: Vec<Value> = claim["spec"]["taints"].as_array().cloned().unwrap_or_default();
    snapshot.nodes.push(object(json!({
        "metadata": { "name": name, "uid": format!("uid-{name}"), "labels": labels, "creationTimestamp": now.to_string() },
        "spec": { "providerID": provider_id, "taints": taints },
        "status": {
            "capacity": instance_type.capacity, "allocatable": instance_type.allocatable(),
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    })));
    let condition = |name: &str| json!({ "type": name, "status": "True", "reason": name, "message": "", "lastTransitionTime": now.to_string() });
    claim["metadata"]["labels"] = labels;
    claim["metadata"]["creationTimestamp"] = json!(now.to_string());
    claim["status"] = json!({
        "nodeName": name, "providerID": provider_id, "capacity": instance_type.capacity,
        "allocatable": instance_type.allocatable(),
        "conditions": [condition("Launched"), condition("Registered"), condition("Initialized")],
        "lastPodEventTime": now.to_string(),
    });
    snapshot.node_claims.push(object(claim));
}
