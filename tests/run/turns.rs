//! Pods of a consolidation come to be where the plan says, since nodes take turns in getting them.

use std::collections::BTreeMap;

use cutlist::api::keys;
use cutlist::core::snapshot::Snapshot;

use crate::stage::{Fault, SETTINGS, Stage, without_pods};

/// Nodes that others are preferred to.
fn discouraged(snapshot: &Snapshot) -> usize {
    let taints = snapshot.nodes.iter().flat_map(|node| node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()));
    taints.filter(|taint| taint.key == keys::HELD_FOR_MOVE_TAINT).count()
}

/// How many pods each node has.
fn pods_by_node(snapshot: &Snapshot) -> BTreeMap<String, usize> {
    let mut pods = BTreeMap::new();
    for node in snapshot.pods.iter().filter(|pod| !pod.is_terminating()).filter_map(|pod| pod.spec.node_name.clone()) {
        *pods.entry(node).or_default() += 1;
    }
    pods
}

/// Four nodes with three pods each, of which one then goes from each: one node can be done without, and its two pods find room on three.
async fn play(stage: &mut Stage, mut look: impl FnMut(&Snapshot)) -> bool {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let scale = |stage: &Stage, name: &str, replicas| {
        assert!(stage.world.with(|world| world.scale(&format!("default/{name}"), replicas)));
    };
    stage.world.with(|world| world.load(without_pods(&NAMES)));
    for name in NAMES {
        scale(stage, name, 3);
        if !stage.settle().await {
            return false;
        }
    }
    NAMES.iter().for_each(|name| scale(stage, name, 2));
    stage.settle_watched(|stage| look(&stage.snapshot())).await
}

#[tokio::test(start_paused = true)]
async fn pods_come_to_be_where_the_plan_says() {
    let mut stage = Stage::new(SETTINGS);
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    let mut most_discouraged = 0;
    let settled = play(&mut stage, |snapshot| {
        most_discouraged = most_discouraged.max(discouraged(snapshot));
        let leaving: Vec<_> =
            snapshot.node_claims.iter().filter(|claim| claim.listed(keys::DESTINATIONS).count() > 0).collect();
        if expected.is_empty() && !leaving.is_empty() {
            expected = pods_by_node(snapshot);
            for (_, node) in
                leaving.iter().flat_map(|claim| claim.listed(keys::DESTINATIONS)).filter_map(|it| it.split_once('='))
            {
                *expected.entry(node.to_owned()).or_default() += 1;
            }
            for claim in leaving {
                expected.remove(claim.status.as_ref().unwrap().node_name.as_ref().unwrap());
            }
        }
    })
    .await;
    assert!(settled);
    assert!(most_discouraged > 0, "some nodes had to wait for their turn");
    assert_eq!(pods_by_node(&stage.snapshot()), expected);
    assert_eq!(discouraged(&stage.snapshot()), 0);
    stage.assert_consistent("at the end");
}

#[tokio::test(start_paused = true)]
async fn no_pod_leaves_before_a_node_that_somebody_else_changed_is_tainted_too() {
    let mut stage = Stage::new(SETTINGS);
    let (fuse, mut overtook, mut discouraged_for_the_first) = (stage.fuse.clone(), false, None);
    let settled = play(&mut stage, |snapshot| {
        let moves = || snapshot.node_claims.iter().flat_map(|claim| claim.listed(keys::DESTINATIONS));
        let is_first_gone = pods_by_node(snapshot).values().any(|count| *count < 2);
        if is_first_gone && discouraged_for_the_first.is_none() {
            discouraged_for_the_first = Some(discouraged(snapshot));
        }
        if overtook || moves().next().is_none() {
            return;
        }
        overtook = true;
        let gets_nothing = |node: &&String| !moves().any(|entry| entry.ends_with(node.as_str()));
        let staying = snapshot.node_claims.iter().filter(|claim| claim.listed(keys::DESTINATIONS).next().is_none());
        let nodes = staying.filter_map(|claim| claim.status.as_ref()?.node_name.as_ref());
        nodes.filter(gets_nothing).for_each(|node| fuse.overtake(node));
        assert!(fuse.overtakes());
    });
    assert!(settled.await && overtook);
    assert!(!stage.fuse.overtakes(), "its patch was refused");
    assert_eq!(discouraged_for_the_first, Some(2), "both that it does not go to");
}

#[tokio::test(start_paused = true)]
async fn no_crash_leaves_a_node_tainted() {
    let mut stage = Stage::new(SETTINGS);
    assert!(play(&mut stage, |_| ()).await);
    let calls = stage.fuse.calls();
    // Nodes come in the first half of them.
    for call in calls / 2..calls {
        let context = format!("crash before call {call}");
        let mut stage = Stage::new(SETTINGS);
        stage.fuse.arm(call, Fault::Crash);
        assert!(!play(&mut stage, |_| ()).await && stage.fuse.is_crashed(), "{context}: never came to it");
        stage.restart();
        assert!(stage.settle().await, "{context}: did not settle after the restart");
        assert_eq!(discouraged(&stage.snapshot()), 0, "{context}");
        stage.run_for(150).await;
        stage.assert_consistent(&context);
    }
}
