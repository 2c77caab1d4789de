//! Capacity that runs out, budgets that block, approvals that are missing.

use cutlist::controller::MoveRefusal;
use cutlist::controller::events::Event;
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::{Cluster, Offering};
use serde_json::json;

use crate::stage::{POOL, SETTINGS, Stage};

#[tokio::test(start_paused = true)]
async fn when_capacity_runs_out_the_next_offering_is_taken() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    // Whatever the plan would take first is gone, three times over.
    for _ in 0..3 {
        stage.scale(5);
        stage.run_for(2).await;
        let taken = stage.world.with(|world| world.instances());
        assert_eq!(taken.len(), 1);
        stage.scale(0);
        assert!(stage.settle().await);
        let offering = Offering {
            instance_type: taken[0].instance_type.clone(),
            zone: taken[0].zone.clone(),
            capacity_type: taken[0].capacity_type.clone(),
        };
        stage.world.with(|world| world.exhaust(offering));
    }
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    stage.assert_consistent("after capacity ran out");
}

#[tokio::test(start_paused = true)]
async fn when_nothing_is_left_the_claim_goes_and_another_type_is_planned() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    // Everything that the first plan may launch, which is the cheaper part of what fits.
    stage.scale(5);
    stage.run_for(2).await;
    let claim = stage.snapshot().node_claims[0].clone();
    let launched = &claim.metadata.annotations.unwrap()["cutlist.dev/launch-alternatives"];
    let alternatives: Vec<cutlist::core::plan::Alternative> = serde_json::from_str(launched).unwrap();
    stage.scale(0);
    assert!(stage.settle().await);
    let cheap: Vec<Offering> = alternatives.iter().map(Offering::from).collect();
    cheap.iter().for_each(|offering| stage.world.with(|world| world.exhaust(offering.clone())));
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    let said = stage.count(|event| matches!(event, Event::InsufficientCapacity { .. }));
    assert!(said > 0, "the first claim found nothing and went");
    stage.assert_consistent("after another type was planned");
}

/// A claim whose node somebody else changed at that moment is looked at again; the others go on, and nothing is said that was not
/// done.
#[tokio::test(start_paused = true)]
async fn a_conflict_at_registration_ends_that_claims_look_only() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    // More than one node can hold.
    stage.scale(40);
    let registered = |stage: &Stage, node: &str| {
        stage.count(|event| matches!(event, Event::RegisteredNodeClaim { node: its, .. } if its == node))
    };
    let mut joined = Vec::new();
    for _ in 0..5000 {
        stage.controller.pass().await;
        stage.controller.wait().await;
        let snapshot = stage.snapshot();
        joined = snapshot.nodes.iter().filter_map(|node| node.metadata.name.clone()).collect::<Vec<_>>();
        if joined.len() > 1 && joined.len() == snapshot.node_claims.len() {
            break;
        }
    }
    // One that joined long before the last one did not wait for it.
    joined.retain(|node| registered(&stage, node) == 0);
    assert!(joined.len() > 1, "several nodes are about to register");
    let (first, others) = joined.split_first().expect("several nodes joined");
    stage.fuse.overtake(first);
    // Nodes of one plan open in one look, when the last of them is ready.
    for _ in 0..5000 {
        stage.controller.pass().await;
        if !stage.fuse.overtakes() {
            break;
        }
        stage.controller.wait().await;
    }
    assert_eq!(registered(&stage, first), 0, "its patch was refused");
    assert!(others.iter().all(|node| registered(&stage, node) == 1), "the others registered in the same look");
    assert_eq!(stage.count(|event| matches!(event, Event::CallFailed { .. })), 0, "that is no trouble");
    assert!(stage.settle().await);
    assert_eq!(registered(&stage, first), 1);
    stage.assert_consistent("after a conflict");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_allows_nothing_keeps_the_pods_where_they_are() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.scale(5);
    assert!(stage.settle().await);
    let budget = json!({"metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}});
    let pod_disruption_budgets = vec![serde_json::from_value(budget).unwrap()];
    stage.world.with(|world| {
        world.load(Snapshot { pod_disruption_budgets: pod_disruption_budgets.into(), ..Snapshot::default() });
    });
    // Somebody deletes the node by hand: it is tainted, and drained no further than the budget allows.
    let node = stage.snapshot().nodes[0].metadata.name.clone().unwrap();
    Cluster::delete_node(&stage.world.cluster(), &node, "").await.unwrap();
    stage.run_for(600).await;
    let snapshot = stage.snapshot();
    assert_eq!(snapshot.pods.iter().filter(|pod| pod.spec.node_name.as_deref() == Some(&node)).count(), 5);
    assert_eq!(stage.count(|event| matches!(event, Event::EvictionBlocked { .. })), 5, "said once for each pod");

    let budget = json!({"metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let pod_disruption_budgets = vec![serde_json::from_value(budget).unwrap()];
    stage.world.with(|world| {
        world.load(Snapshot { pod_disruption_budgets: pod_disruption_budgets.into(), ..Snapshot::default() });
    });
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    assert!(stage.snapshot().nodes.iter().all(|object| object.metadata.name.as_ref() != Some(&node)));
    stage.assert_consistent("after the drain");
}

#[tokio::test(start_paused = true)]
async fn a_manual_gate_shows_the_plan_and_waits() {
    let settings = format!("{SETTINGS}  approval:\n    provision: manual\n    disrupt: manual\n");
    let mut stage = Stage::new(&settings);
    assert!(stage.settle().await);
    stage.scale(5);
    stage.run_for(60).await;
    assert_eq!(stage.snapshot().node_claims.len(), 0);
    let waiting = stage.waiting();
    assert_eq!(waiting.len(), 1, "said once, not at every poll");
    assert!(!stage.controller.approve("another"));
    assert!(stage.controller.approve(&waiting[0]));
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_or_removed_that_no_posted_plan_named() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    for replicas in [5, 20, 3, 0, 7] {
        stage.scale(replicas);
        assert!(stage.settle().await);
    }
    let mut named = Vec::new();
    for event in stage.events.borrow().iter() {
        match event {
            Event::PlanPosted { plan, .. } => named.extend(plan.steps.iter().map(|step| step.node_claim.clone())),
            Event::CreatedNodeClaim { node_claim, .. } | Event::DeletedNodeClaim { node_claim, .. } => {
                assert!(named.contains(node_claim), "{node_claim}");
            }
            _ => {}
        }
    }
    stage.assert_consistent("at the end");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_exchanged_since_the_plan_keeps_its_node() {
    let settings = format!("{SETTINGS}  approval:\n    provision: automatic\n    disrupt: manual\n");
    let mut stage = Stage::new(&settings);
    assert!(stage.settle().await);
    stage.scale(1);
    assert!(stage.settle().await);
    let labelled = POOL.replacen("    spec:\n", "    metadata: { labels: { generation: second } }\n    spec:\n", 1);
    stage.script.commit("labelled", &[("pool.yaml", &labelled), ("cutlist.yaml", settings.as_str())]);
    stage.run_for(60).await;
    let waiting = stage.waiting();
    let plan = waiting.last().unwrap();
    // Its owner makes another one, for which there is no other node.
    let before = stage.snapshot().pods.first().unwrap().metadata.name.clone();
    stage.world.cluster().evict("default", &before, "").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let after = stage.snapshot().pods.first().unwrap().clone();
    assert!(after.metadata.name != before && after.spec.node_name.is_some(), "{:?}", after.metadata);
    assert!(stage.controller.approve(plan));
    stage.run_for(5).await;
    let refused = |event: &Event| {
        matches!(
            event,
            Event::PlanSuperseded { refusal: MoveRefusal::NodeHoldsOtherPods { planned: 1, found: 1, .. }, .. }
        )
    };
    assert_eq!(stage.count(refused), 1);
    assert_eq!(stage.count(|event| matches!(event, Event::MoveBegun { .. })), 1, "only the creation");
}
