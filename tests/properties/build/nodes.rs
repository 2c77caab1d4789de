//! Nodes with their claims, in every state of their lives.

use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::keys;
use cutlist::core::catalog::{Catalog, InstanceType, for_node_class};
use cutlist::core::snapshot::Snapshot;
use serde_json::{Value, json};

use super::definitions::{pool_name, startup_taints, team_name};
use super::{DRIVER, ZONES, minutes_ago, object};
use crate::world::{Node, NodeState, World};

pub(super) fn add_node(
    index: usize,
    node: &Node,
    world: &World,
    catalog: &Catalog,
    classes: &[EC2NodeClass],
    snapshot: &mut Snapshot,
) {
    let pool_index = node.pool % world.pools.len();
    let (pool, class) = (&world.pools[pool_index], &classes[pool_index]);
    let instance_type: InstanceType =
        for_node_class(&catalog.instance_types[node.instance_type % catalog.instance_types.len()], &class.spec);
    let zone = ZONES[node.zone];
    let wanted = if node.spot { keys::SPOT } else { keys::ON_DEMAND };
    let is_offered = instance_type.offerings.iter().any(|it| it.zone == zone && it.capacity_type == wanted);
    let capacity_type = if is_offered { wanted } else { keys::ON_DEMAND };
    let name = format!("node-{index}");
    let starting = node.state == NodeState::Starting;
    let mut labels = json!({
        keys::NODE_POOL: pool_name(pool_index), keys::EC2_NODE_CLASS: pool_name(pool_index), keys::HOSTNAME: name,
        keys::REGISTERED: "true",
    });
    for (key, values) in &instance_type.requirements {
        labels[key] = json!(values[0]);
    }
    labels[keys::ZONE] = json!(zone);
    labels[keys::ZONE_ID] = json!(format!("use1-az{}", node.zone));
    labels[keys::CAPACITY_TYPE] = json!(capacity_type);
    if !starting {
        labels[keys::INITIALIZED] = json!("true");
    }
    if let Some(team) = pool.team {
        labels["team"] = json!(team_name(team));
    }
    let mut taints = Vec::new();
    if pool.tainted {
        taints.push(json!({ "key": "team", "value": "a", "effect": "NoSchedule" }));
    }
    if starting {
        taints.push(startup_taints()[0].clone());
    }
    let deleting = (node.state == NodeState::Deleting).then(|| minutes_ago(1));
    if deleting.is_some() {
        taints.push(json!({ "key": keys::DISRUPTED_TAINT, "effect": "NoSchedule" }));
    }
    let ready = if node.state == NodeState::NotReady { "False" } else { "True" };
    if node.state == NodeState::NotReady {
        taints.push(json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }));
    }
    let annotations =
        if node.state == NodeState::DoNotDisrupt { json!({ keys::DO_NOT_DISRUPT: "true" }) } else { json!({}) };
    let status = |is_true: bool| if is_true { "True" } else { "Unknown" };
    let condition = |name: &str, is_true: bool| json!({ "type": name, "status": status(is_true), "reason": name, "message": "", "lastTransitionTime": minutes_ago(150) });
    let birth = if node.state == NodeState::Expired { minutes_ago(31 * 24 * 60) } else { minutes_ago(160) };
    let metadata = |name: &str| {
        json!({
            "name": name, "uid": format!("uid-{name}"), "labels": labels, "annotations": annotations,
            "creationTimestamp": birth, "deletionTimestamp": deleting, "finalizers": [keys::TERMINATION_FINALIZER],
        })
    };
    let provider_id = format!("aws:///{zone}/i-{index}");
    snapshot.nodes.push(object(json!({
        "metadata": metadata(&name),
        "spec": { "providerID": provider_id, "taints": taints },
        "status": {
            "capacity": instance_type.capacity, "allocatable": instance_type.allocatable(),
            "conditions": [{ "type": "Ready", "status": ready }],
        },
    })));
    if let Some(count) = node.volumes_max {
        let driver = json!({ "name": DRIVER, "nodeID": format!("i-{index}"), "allocatable": { "count": count } });
        snapshot.csi_nodes.push(object(json!({ "metadata": { "name": name }, "spec": { "drivers": [driver] } })));
    }
    let claim_name = format!("{}-{index}", pool_name(pool_index));
    let template = &snapshot.node_pools[pool_index].spec.template.spec;
    snapshot.node_claims.push(object(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata(&claim_name),
        "spec": {
            "nodeClassRef": template.node_class_ref, "requirements": template.requirements, "taints": template.taints,
            "startupTaints": template.startup_taints, "expireAfter": "720h",
        },
        "status": {
            "nodeName": name, "providerID": provider_id, "capacity": instance_type.capacity,
            "allocatable": instance_type.allocatable(),
            "conditions": [condition("Launched", true), condition("Registered", true), condition("Initialized", !starting)],
            "lastPodEventTime": minutes_ago(i64::from(node.minutes_since_pod_event)),
        },
    })));
}

pub(super) fn unmanaged_node(index: usize) -> Value {
    let name = format!("static-{index}");
    let amounts = json!({ "cpu": "4", "memory": "16Gi", "pods": "30", "ephemeral-storage": "20Gi" });
    json!({
        "metadata": { "name": name, "labels": {
            keys::HOSTNAME: name, keys::ZONE: ZONES[index % 3], keys::ARCHITECTURE: "amd64", keys::OPERATING_SYSTEM: "linux",
        } },
        "spec": {},
        "status": { "capacity": amounts, "allocatable": amounts, "conditions": [{ "type": "Ready", "status": "True" }] },
    })
}
