//! What changes while something is under way: the revision, the leader, a budget, a node.

use cutlist::controller::events::Event;
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::Cluster;
use serde_json::json;

use crate::stage::{POOL, SETTINGS, Stage};

/// Any number of nodes may go at once, and each has room for one pod.
fn pool(generation: &str) -> String {
    let pool = POOL.replace(
        "consolidationPolicy: WhenEmptyOrUnderutilized\n    consolidateAfter: 30s\n",
        "consolidationPolicy: WhenEmpty\n    consolidateAfter: 1h\n    budgets: [{ nodes: \"100%\" }]\n",
    );
    let label = format!("    metadata: {{ labels: {{ generation: {generation} }} }}\n    spec:\n");
    pool.replacen("    spec:\n", &label, 1)
}

/// One with four nodes that a revision is about to replace.
async fn about_to_replace() -> Stage {
    let stage = Stage::of_four_nodes(&pool("first")).await;
    stage.script.commit("second", &[("pool.yaml", &pool("second")), ("cutlist.yaml", SETTINGS)]);
    stage
}

fn of_generation(stage: &Stage, generation: &str) -> usize {
    let is_of = |labels: &std::collections::BTreeMap<String, String>| {
        labels.get("generation").is_some_and(|its| its == generation)
    };
    stage.snapshot().nodes.iter().filter(|node| node.metadata.labels.as_ref().is_some_and(is_of)).count()
}

/// How many calls the replacement takes.
async fn calls() -> (usize, usize) {
    let mut stage = about_to_replace().await;
    let before = stage.fuse.calls();
    assert!(stage.settle().await);
    assert_eq!(of_generation(&stage, "second"), 4);
    (before, stage.fuse.calls())
}

/// Between any two calls of a rollout: what was begun is finished or undone, and the last revision is what comes of it.
#[tokio::test(start_paused = true)]
async fn a_revision_that_comes_between_two_calls() {
    let (first, last) = calls().await;
    assert!(last - first > 60, "{}", last - first);
    for call in (first..last).step_by(11) {
        let mut stage = about_to_replace().await;
        let script = stage.script.clone();
        stage.fuse.before(call, move || {
            script.commit("third", &[("pool.yaml", &pool("third")), ("cutlist.yaml", SETTINGS)]);
        });
        assert!(stage.settle().await, "before call {call}: did not settle");
        stage.run_for(600).await;
        assert!(!stage.fuse.is_to_come());
        assert_eq!((of_generation(&stage, "third"), stage.snapshot().nodes.len()), (4, 4), "before call {call}");
        assert_eq!(stage.world.with(|world| world.pod_counts()), (4, 0), "before call {call}");
        stage.assert_consistent(&format!("a revision before call {call}"));
    }
}

/// The pool is taken out, or held back, between two steps: nothing of the plan before goes on that the revision does not want.
#[tokio::test(start_paused = true)]
async fn a_revision_that_takes_back_between_two_calls() {
    let (first, last) = calls().await;
    for call in (first..last).step_by(23) {
        let mut stage = about_to_replace().await;
        let script = stage.script.clone();
        stage.fuse.before(call, move || {
            script.commit("back", &[("pool.yaml", &pool("first")), ("cutlist.yaml", SETTINGS)]);
        });
        assert!(stage.settle().await, "before call {call}: did not settle");
        stage.run_for(600).await;
        assert_eq!(of_generation(&stage, "first"), 4, "before call {call}");
        assert_eq!(stage.world.with(|world| world.pod_counts()), (4, 0), "before call {call}");
        stage.assert_consistent(&format!("taken back before call {call}"));
    }
}

/// The leader changes again and again while nodes are replaced and drained: each one goes on where the one before was.
#[tokio::test(start_paused = true)]
async fn leaders_that_change_in_the_middle() {
    for seconds in [1, 3, 7, 20] {
        let mut stage = about_to_replace().await;
        for _ in 0..40 {
            stage.run_for(seconds).await;
            stage.restart();
        }
        assert!(stage.settle().await, "every {seconds} s");
        stage.run_for(900).await;
        assert_eq!((of_generation(&stage, "second"), stage.snapshot().nodes.len()), (4, 4), "every {seconds} s");
        assert_eq!(stage.world.with(|world| world.pod_counts()), (4, 0), "every {seconds} s");
        let evicted = stage.world.pods_evicted();
        assert!(evicted <= 8, "every {seconds} s: {evicted} evictions of four pods");
        stage.assert_consistent(&format!("another leader every {seconds} s"));
    }
}

fn budget(most_unavailable: u32) -> Snapshot {
    let budget = json!({"metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": most_unavailable, "selector": {"matchLabels": {"app": "web"}}}});
    Snapshot { pod_disruption_budgets: vec![serde_json::from_value(budget).unwrap()].into(), ..Snapshot::default() }
}

/// One node of twenty pods, which somebody deletes, and of which some have left.
async fn in_a_drain() -> (Stage, String) {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.world.with(|world| world.load(budget(2)));
    stage.scale(12);
    assert!(stage.settle().await);
    let node = stage.snapshot().nodes[0].metadata.name.clone().unwrap();
    Cluster::delete_node(&stage.world.cluster(), &node, "").await.unwrap();
    for _ in 0..600 {
        stage.run_for(1).await;
        if (1..10).contains(&on(&stage, &node)) && stage.world.pods_evicted() > 0 {
            return (stage, node);
        }
    }
    panic!("the drain never was in its middle: {} pods", on(&stage, &node));
}

fn on(stage: &Stage, node: &str) -> usize {
    let snapshot = stage.snapshot();
    snapshot.pods.iter().filter(|pod| pod.spec.node_name.as_deref() == Some(node) && !pod.is_terminating()).count()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_made_in_the_middle_of_a_drain() {
    let (mut stage, node) = in_a_drain().await;
    stage.world.with(|world| world.load(budget(0)));
    stage.run_for(10).await;
    let left = on(&stage, &node);
    assert!(left > 0);
    stage.run_for(3600).await;
    assert_eq!(on(&stage, &node), left, "no more pods leave");
    assert!(stage.count(|event| matches!(event, Event::EvictionBlocked { .. })) >= left);
    assert!(stage.world.with(|world| world.instances()).len() >= 2, "its instance runs on");
    stage.world.with(|world| world.load(budget(3)));
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (12, 0));
    assert!(stage.snapshot().nodes.iter().all(|it| it.metadata.name.as_ref() != Some(&node)));
    stage.assert_consistent("after the budget opened");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_any_more_in_the_middle_of_a_drain() {
    let (mut stage, node) = in_a_drain().await;
    let held: Vec<String> = stage
        .snapshot()
        .pods
        .iter()
        .filter(|pod| pod.spec.node_name.as_deref() == Some(&node))
        .map(cutlist::core::snapshot::Pod::key)
        .collect();
    stage.world.with(|world| {
        world.set_node_condition(&node, "Ready", "Unknown");
        held.iter().for_each(|pod| world.hold_pod(pod));
    });
    stage.run_for(3600).await;
    // Nobody can end its pods: they are waited for as long as any that ends, and its instance goes.
    let snapshot = stage.snapshot();
    assert!(snapshot.nodes.iter().all(|it| it.metadata.name.as_ref() != Some(&node)), "{:?}", snapshot.nodes.len());
    stage.world.with(cutlist::adapters::embedded::World::let_pods_go);
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (12, 0));
    stage.assert_consistent("after a node that was lost in its drain");
}
