use cutlist::core::snapshot::Snapshot;
use cutlist::ports::{Cluster, PortErrorKind};
use serde_json::{Value, json};

use crate::scene::{deployment, load_deployment, pass, world};

fn node(name: &str, cpu: u32) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu.to_string(), "memory": "32Gi", "pods": "58"},
            "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn snapshot(value: Value) -> Snapshot {
    let list = |key: &str| value.get(key).cloned().unwrap_or_else(|| json!([]));
    Snapshot {
        nodes: serde_json::from_value(list("nodes")).unwrap(),
        daemon_sets: serde_json::from_value(list("daemonSets")).unwrap(),
        pod_disruption_budgets: serde_json::from_value(list("budgets")).unwrap(),
        ..Snapshot::default()
    }
}

#[tokio::test(start_paused = true)]
async fn pods_spread_to_the_least_allocated_node_and_the_rest_waits() {
    let world = world(0);
    world.with(|world| world.load(snapshot(json!({"nodes": [node("a", 2), node("b", 4)]}))));
    load_deployment(&world, deployment("web", 8, "1"));
    assert_eq!(world.with(|world| world.pod_counts()), (6, 2));
    let pods = world.cluster().observe().await.unwrap().pods.clone();
    let waiting: Vec<_> = pods.iter().filter(|pod| pod.spec.node_name.is_none()).collect();
    assert!(waiting.iter().all(|pod| {
        pod.status
            .conditions
            .iter()
            .any(|it| it.type_ == "PodScheduled" && it.reason.as_deref() == Some("Unschedulable"))
    }));
    world.with(|world| world.scale("default/web", 3));
    assert_eq!(world.with(|world| world.pod_counts()), (3, 0), "those without a node go first");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_runs_on_each_node() {
    let world = world(0);
    let daemon = json!({
        "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "agent"}], "tolerations": [{"operator": "Exists"}]}}},
    });
    world.with(|world| world.load(snapshot(json!({"nodes": [node("a", 2), node("b", 2)], "daemonSets": [daemon]}))));
    let pods = world.cluster().observe().await.unwrap().pods.clone();
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|pod| pod.is_owned_by("DaemonSet") && pod.spec.node_name.is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_budget_forbids_the_second_eviction_until_the_first_pod_is_replaced() {
    let world = world(0);
    let budget = json!({"metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
    world.with(|world| world.load(snapshot(json!({"nodes": [node("a", 8)], "budgets": [budget]}))));
    load_deployment(&world, deployment("web", 3, "1"));
    pass(&world, 5).await;
    let cluster = world.cluster();
    let pods = cluster.observe().await.unwrap().pods.clone();
    cluster.evict("default", &pods[0.into()].metadata.name, "").await.unwrap();
    let error = cluster.evict("default", &pods[1.into()].metadata.name, "").await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Conflict);
    pass(&world, 10).await;
    cluster.evict("default", &pods[1.into()].metadata.name, "").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_history_and_another_seed_another() {
    async fn names(seed: u64) -> Vec<String> {
        let world = world(seed);
        world.with(|world| world.load(snapshot(json!({"nodes": [node("a", 8)]}))));
        load_deployment(&world, deployment("web", 3, "1"));
        world.cluster().observe().await.unwrap().pods.iter().map(cutlist::core::snapshot::pod::Pod::key).collect()
    }
    assert_eq!(names(1).await, names(1).await);
    assert_ne!(names(1).await, names(2).await);
}
