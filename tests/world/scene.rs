//! A small region and the objects of a small cluster.

use cutlist::adapters::embedded::{EmbeddedCloud, EmbeddedWorld, WorldSettings};
use cutlist::api::node_claim::NodeClaim;
use cutlist::core::catalog::Catalog;
use cutlist::core::plan::Alternative;
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::{Clock, Cloud, Instance, LaunchRequest, LaunchRules, PortError};
use serde_json::{Value, json};

/// Two instance types in two zones.
pub fn catalog() -> Catalog {
    let instance_type = |name: &str, cpu: u32, price: f64| {
        let offering = |zone: &str, capacity_type: &str, price: f64| json!({"zone": zone, "capacityType": capacity_type, "price": price});
        json!({
            "name": name,
            "requirements": {"kubernetes.io/arch": ["amd64"], "kubernetes.io/os": ["linux"],
                "node.kubernetes.io/instance-type": [name]},
            "capacity": {"cpu": cpu, "memory": format!("{}Gi", cpu * 2), "pods": 58, "example.com/device": 1},
            "overhead": {"cpu": "90m", "memory": "1Gi"},
            "offerings": [offering("zone-a", "on-demand", price), offering("zone-b", "on-demand", price),
                offering("zone-a", "spot", price / 3.0)],
        })
    };
    serde_json::from_value(json!({
        "version": 1, "region": "test-region", "date": "2026-11-20",
        "instanceTypes": [instance_type("c7.large", 2, 0.1), instance_type("c7.2xlarge", 8, 0.4)],
    }))
    .unwrap()
}

pub fn world(seed: u64) -> EmbeddedWorld {
    let epoch = "2026-11-20T09:00:00Z".parse().unwrap();
    EmbeddedWorld::new(WorldSettings::new(seed, epoch), catalog())
}

/// A Deployment `default/NAME` of pods that ask for so much cpu.
pub fn deployment(name: &str, replicas: u32, cpu: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
        }},
    })
}

pub fn load_deployment(world: &EmbeddedWorld, deployment: Value) {
    let snapshot =
        Snapshot { deployments: vec![serde_json::from_value(deployment).unwrap()].into(), ..Snapshot::default() };
    world.with(|world| world.load(snapshot));
}

pub fn claim(name: &str) -> NodeClaim {
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"team": "a"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
    }))
    .unwrap()
}

/// Launches an instance for a claim of this UID and name.
pub async fn launch(
    cloud: &EmbeddedCloud,
    uid: &str,
    name: &str,
    instance_types: &[&str],
    capacity_type: &str,
) -> Result<Instance, PortError> {
    let alternatives = instance_types.iter().map(|name| Alternative {
        instance_type: (*name).to_owned(),
        zone: "zone-a".to_owned(),
        capacity_type: capacity_type.to_owned(),
        price_per_hour: Default::default(),
    });
    let mut claim = claim(name);
    claim.metadata.uid = Some(uid.to_owned());
    if capacity_type == "reserved" {
        let pinned = json!({"key": "karpenter.k8s.aws/capacity-reservation-id", "operator": "In", "values": ["cr-1"]});
        claim.spec.requirements.push(serde_json::from_value(pinned).unwrap());
    }
    let request = LaunchRequest {
        launch_id: uid,
        installation: "",
        claims: vec![&claim],
        assigned: Vec::new(),
        class: None,
        images: None,
        alternatives: &alternatives.collect::<Vec<_>>(),
        rules: LaunchRules::default(),
    };
    cloud.launch(&request).await.remove(0).map_err(|failure| failure.error)
}

/// Lets so many seconds pass.
pub async fn pass(world: &EmbeddedWorld, seconds: u64) {
    tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    world.with(|_| ());
}

pub fn seconds_since_beginning(world: &EmbeddedWorld) -> i64 {
    let epoch: jiff::Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
    world.clock().now().duration_since(epoch).as_secs()
}
