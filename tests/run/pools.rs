//! Pools that leave the definitions, under another name or for good.

use std::collections::BTreeSet;

use cutlist::api::keys;
use cutlist::controller::events::Event;
use cutlist::core::plan::StepKind;

use crate::stage::{Fault, POOL, SETTINGS, Stage};

fn pool() -> String {
    let pool = POOL.replace("consolidateAfter: 30s\n", "consolidateAfter: 1h\n    budgets: [{ nodes: \"100%\" }]\n");
    assert_ne!(pool, POOL);
    pool
}

/// Under another name, and with other budgets.
fn renamed() -> String {
    pool().replacen("name: default", "name: renamed", 1).replace("nodes: \"100%\"", "nodes: \"50%\"")
}

fn nodes(stage: &Stage) -> BTreeSet<String> {
    stage.snapshot().nodes.iter().map(|node| node.metadata.name.clone().unwrap()).collect()
}

/// How many nodes, and how many claims, say that they belong to a pool.
fn of_pool(stage: &Stage, pool: &str) -> (usize, usize) {
    let snapshot = stage.snapshot();
    let is_of_pool = |labels: &std::collections::BTreeMap<String, String>| labels[keys::NODE_POOL] == pool;
    let nodes = snapshot.nodes.iter().filter(|node| is_of_pool(node.metadata.labels.as_ref().unwrap())).count();
    let claims =
        snapshot.node_claims.iter().filter(|claim| is_of_pool(claim.metadata.labels.as_ref().unwrap())).count();
    (nodes, claims)
}

fn pools(stage: &Stage) -> Vec<String> {
    stage.snapshot().node_pools.iter().map(|pool| pool.metadata.name.clone().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pool_under_another_name_keeps_its_nodes() {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    let before = nodes(&stage);
    stage.script.commit("renamed", &[("pool.yaml", &renamed()), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    stage.run_for(60).await;
    assert_eq!((nodes(&stage), of_pool(&stage, "renamed")), (before, (4, 4)));
    assert_eq!(pools(&stage), ["renamed"]);
    assert_eq!(stage.count(|event| matches!(event, Event::AdoptedNode { .. })), 4);
    assert_eq!(stage.count(|event| matches!(event, Event::DisruptingNodes { .. })), 0);
    stage.assert_consistent("after the adoption");
}

/// Wherever the process ends, the next one goes on, and no node is lost between two pools.
#[tokio::test(start_paused = true)]
async fn an_adoption_survives_a_crash_at_any_call() {
    let mut crashed = 0;
    for call in 0..30 {
        let mut stage = Stage::of_four_nodes(&pool()).await;
        let before = nodes(&stage);
        stage.script.commit("renamed", &[("pool.yaml", &renamed()), ("cutlist.yaml", SETTINGS)]);
        stage.fuse.arm(stage.fuse.calls() + call, Fault::Crash);
        if !stage.settle().await {
            crashed += 1;
            stage.restart();
            assert!(stage.settle().await, "after a crash at call {call}");
        }
        stage.run_for(60).await;
        assert_eq!((nodes(&stage), of_pool(&stage, "renamed")), (before, (4, 4)), "call {call}");
        assert_eq!(pools(&stage), ["renamed"], "call {call}");
    }
    assert!(crashed > 10, "{crashed}");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_gone_gives_way_when_somebody_confirms_it() {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    let before = nodes(&stage);
    // Another template: other machines.
    let other = renamed().replacen("    spec:\n", "    metadata: { labels: { generation: second } }\n    spec:\n", 1);
    stage.script.commit("other", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(600).await;
    assert_eq!((nodes(&stage), pools(&stage)), (before.clone(), vec!["default".to_owned(), "renamed".to_owned()]));
    let waiting = stage.waiting();
    assert_eq!(waiting.len(), 1, "said once, not at every poll");
    // Another process asks again.
    stage.restart();
    stage.run_for(60).await;
    assert_eq!(nodes(&stage), before);
    let plan = stage.waiting().pop();
    assert!(stage.controller.approve(&plan.unwrap()));
    let mut least = usize::MAX;
    for _ in 0..5000 {
        stage.controller.pass().await;
        let snapshot = stage.snapshot();
        let ready = snapshot.nodes.iter().filter(|node| {
            let conditions = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
            conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        });
        least = least.min(ready.count());
        if stage.controller.is_settled() && pools(&stage) == ["renamed"] && stage.world.with(|world| world.is_still()) {
            break;
        }
        stage.controller.wait().await;
    }
    assert_eq!((pools(&stage), of_pool(&stage, "renamed")), (vec!["renamed".to_owned()], (4, 4)));
    assert!(least >= 4, "capacity comes before it is taken away: {least}");
    let removed: Vec<usize> = stage
        .events
        .borrow()
        .iter()
        .filter_map(|event| match event {
            Event::DisruptingNodes { disrupted, .. } => Some(disrupted.len()),
            _ => None,
        })
        .collect();
    assert_eq!(removed, [1; 4], "confirmed once");
    let first = stage.events.borrow().iter().find_map(|event| match event {
        Event::PlanPosted { plan, .. } if plan.steps.iter().any(|step| step.kind == StepKind::Remove) => {
            Some(plan.clone())
        }
        _ => None,
    });
    let steps = first.unwrap().steps;
    assert_eq!(steps.iter().filter(|step| step.kind == StepKind::Remove).count(), 1, "a canary first");
    stage.assert_consistent("after the migration");
}

/// An approval is of one removal: where the pool came back meanwhile, the next one is another.
#[tokio::test(start_paused = true)]
async fn the_removal_of_a_pool_that_came_back_is_asked_about_anew() {
    let confirmed = |stage: &Stage| {
        let pool =
            stage.snapshot().node_pools.iter().find(|it| it.metadata.name.as_deref() == Some("default")).cloned();
        pool.and_then(|pool| pool.metadata.annotations?.remove(keys::REMOVAL_CONFIRMED))
    };
    let mut stage = Stage::of_four_nodes(&pool()).await;
    let other = renamed().replacen("    spec:\n", "    metadata: { labels: { generation: second } }\n    spec:\n", 1);
    stage.script.commit("other", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    assert!(stage.controller.approve(&stage.waiting().pop().unwrap()));
    stage.controller.pass().await;
    assert!(confirmed(&stage).is_some_and(|value| value.starts_with("plan ")));
    let (added, _) = other.split_once("---\n").unwrap();
    let both = format!("{added}---\n{}", pool());
    stage.script.commit("both", &[("pool.yaml", &both), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(600).await;
    assert_eq!((confirmed(&stage), pools(&stage)), (None, vec!["default".to_owned(), "renamed".to_owned()]));
    let (before, asked) = (of_pool(&stage, "default"), stage.waiting().len());
    assert!(before.0 > 0);
    stage.script.commit("again", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(600).await;
    assert_eq!((of_pool(&stage, "default"), stage.waiting().len()), (before, asked + 1));
}
