//! In a large cluster pods that wait are planned for before it is searched what could be saved, which takes longer.

use std::time::Duration;

use cutlist::controller::events::Event;
use cutlist::core::plan::{Plan, ReasonCode, StepKind};
use cutlist::core::snapshot::Snapshot;
use serde_json::json;

use crate::stage::{POOL, SETTINGS, Stage};

/// A Deployment of pods that ask for so much.
fn deployment(name: &str, replicas: u32, cpu: &str) -> Snapshot {
    let deployment = json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
        }},
    });
    Snapshot { deployments: vec![serde_json::from_value(deployment).unwrap()].into(), ..Snapshot::default() }
}

/// The plans that are posted for a large pod, which comes to a cluster of so many small ones that is at rest.
async fn plans_for_a_large_pod(small: u32) -> Vec<Plan> {
    let mut stage = Stage::new(SETTINGS);
    let without_limits = POOL.replace("  limits:\n    cpu: \"100\"\n", "");
    stage.script.commit("begin", &[("pool.yaml", &without_limits), ("cutlist.yaml", SETTINGS)]);
    stage.world.with(|world| world.load(deployment("small", small, "10m")));
    assert!(stage.settle().await);
    // Nobody looks meanwhile, so that the search for what could be saved is due when the pod comes.
    tokio::time::sleep(Duration::from_mins(2)).await;
    stage.events.borrow_mut().clear();
    stage.world.with(|world| world.load(deployment("large", 1, "15")));
    assert!(stage.settle().await);
    let events = stage.events.borrow();
    let plans = events.iter().filter_map(|event| match event {
        Event::PlanPosted { plan, .. } => Some(plan.as_ref().clone()),
        _ => None,
    });
    plans.collect()
}

/// Whether the plan left the search for another one.
fn leaves_the_search(plan: &Plan) -> bool {
    plan.held_back.iter().any(|held| held.text.contains("looked at again when the nodes"))
}

fn buys(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| step.kind == StepKind::Create && step.reason.code == ReasonCode::PodsPending)
}

#[tokio::test(start_paused = true)]
async fn the_search_of_a_large_cluster_comes_after_the_pods() {
    let plans = plans_for_a_large_pod(2_000).await;
    assert!(buys(&plans[0]) && leaves_the_search(&plans[0]), "{:#?}", plans[0].held_back);
    assert!(plans.iter().any(|plan| !leaves_the_search(plan)), "it comes");
    // In a small one it takes no time.
    let plans = plans_for_a_large_pod(50).await;
    assert!(buys(&plans[0]) && !leaves_the_search(&plans[0]), "{:#?}", plans[0].held_back);
}
