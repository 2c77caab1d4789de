//! Nodes that stay broken: repaired by force after their time, and not while many are broken at once.

use cutlist::controller::events::Event;
use cutlist::core::plan::ReasonCode;
use cutlist::core::snapshot::Snapshot;
use serde_json::json;

use crate::stage::{POOL, SETTINGS, Stage};

/// Four nodes with a pod each, of which no budget lets any go.
pub async fn four_nodes() -> Stage {
    let settings = format!("{SETTINGS}  featureGates: {{ NodeRepair: true }}\n");
    let mut stage = Stage::new(&settings);
    let pool = POOL.replace("consolidateAfter: 30s\n", "consolidateAfter: 1h\n    budgets: [{ nodes: \"0\" }]\n");
    assert_ne!(pool, POOL);
    stage.script.commit("begin", &[("pool.yaml", &pool), ("cutlist.yaml", &settings)]);
    let deployment = json!({
        "metadata": {"name": "spread", "namespace": "default"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "spread"}}, "template": {
            "metadata": {"labels": {"app": "spread"}, "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "spread"}}},
                ]}},
            },
        }},
    });
    let budget = json!({"metadata": {"name": "spread", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "spread"}}}});
    let deployments = vec![serde_json::from_value(deployment).unwrap()].into();
    let pod_disruption_budgets = vec![serde_json::from_value(budget).unwrap()].into();
    stage.world.with(|world| world.load(Snapshot { deployments, pod_disruption_budgets, ..Snapshot::default() }));
    assert!(stage.settle().await);
    assert_eq!(stage.snapshot().nodes.len(), 4);
    stage
}

pub fn names(stage: &Stage) -> Vec<String> {
    stage.snapshot().nodes.iter().map(|node| node.metadata.name.clone().unwrap()).collect()
}

pub fn say(stage: &Stage, node: &str, ready: &str) {
    stage.world.with(|world| world.set_node_condition(node, "Ready", ready));
}

pub fn repaired(stage: &Stage) -> usize {
    stage.count(|event| matches!(event, Event::DisruptingNodes { reason, .. } if reason.code == ReasonCode::Unhealthy))
}

#[tokio::test(start_paused = true)]
async fn a_broken_node_goes_by_force_when_its_time_is_over() {
    let mut stage = four_nodes().await;
    let broken = names(&stage)[1].clone();
    say(&stage, &broken, "False");
    stage.run_for(29 * 60).await;
    assert!(names(&stage).contains(&broken) && repaired(&stage) == 0);
    stage.run_for(5 * 60).await;
    assert_eq!(repaired(&stage), 1);
    assert!(!names(&stage).contains(&broken));
    assert_eq!(stage.count(|event| matches!(event, Event::EvictionBlocked { .. })), 0, "budgets of pods do not count");
    assert_eq!((stage.snapshot().nodes.len(), stage.world.with(|world| world.pod_counts())), (4, (4, 0)));
    stage.assert_consistent("after the repair");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_well_again_stays() {
    let mut stage = four_nodes().await;
    let broken = names(&stage)[1].clone();
    say(&stage, &broken, "Unknown");
    stage.run_for(25 * 60).await;
    say(&stage, &broken, "True");
    stage.run_for(3600).await;
    assert!(names(&stage).contains(&broken) && repaired(&stage) == 0);
}

#[tokio::test(start_paused = true)]
async fn when_many_are_broken_at_once_none_is_repaired() {
    let mut stage = four_nodes().await;
    let before = names(&stage);
    say(&stage, &before[0], "False");
    say(&stage, &before[2], "Unknown");
    stage.run_for(2 * 3600).await;
    assert_eq!((names(&stage), repaired(&stage)), (before.clone(), 0));
    say(&stage, &before[0], "True");
    stage.run_for(5 * 60).await;
    assert_eq!(repaired(&stage), 1);
    assert!(names(&stage).contains(&before[0]) && !names(&stage).contains(&before[2]));
    stage.assert_consistent("after the repair");
}
