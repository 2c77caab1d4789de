//! Changes of a pool or of its class: one canary, then waves, and a halt when new nodes do not become ready.

use cutlist::adapters::embedded::NodeFault;
use cutlist::api::keys;
use cutlist::controller::events::Event;
use cutlist::core::lifecycle::DeletionCause;
use cutlist::core::plan::{ReasonCode, StepKind};
use cutlist::core::snapshot::Snapshot;
use serde_json::json;

use crate::stage::{POOL, SETTINGS, Stage, apart};

/// Any number of nodes may go at once, and each has room for one pod.
fn pool() -> String {
    let pool = POOL.replace(
        "consolidationPolicy: WhenEmptyOrUnderutilized\n    consolidateAfter: 30s\n",
        "consolidationPolicy: WhenEmpty\n    consolidateAfter: 1h\n    budgets: [{ nodes: \"100%\" }]\n",
    );
    assert_ne!(pool, POOL);
    pool
}

/// The same with another template.
fn labelled(generation: &str) -> String {
    let label = format!("    metadata: {{ labels: {{ generation: {generation} }} }}\n    spec:\n");
    pool().replacen("    spec:\n", &label, 1)
}

/// For each plan that was posted, how many nodes it removes because they drifted.
fn replaced_by_plan(stage: &Stage) -> Vec<usize> {
    let events = stage.events.borrow();
    let plans = events.iter().filter_map(|event| match event {
        Event::PlanPosted { plan, .. } => Some(plan),
        _ => None,
    });
    let drifted = plans.map(|plan| {
        let removed = plan.steps.iter().filter(|step| step.kind == StepKind::Remove);
        removed.filter(|step| step.reason.code == ReasonCode::Drifted).count()
    });
    drifted.filter(|removed| *removed > 0).collect()
}

fn given_up(stage: &Stage, cause: DeletionCause) -> usize {
    stage.count(|event| matches!(event, Event::GaveUp { cause: its, .. } if *its == cause))
}

fn halts(stage: &Stage) -> Vec<String> {
    let events = stage.events.borrow();
    let halts = events.iter().filter_map(|event| match event {
        Event::RolloutHalted { because, .. } => Some(because.clone()),
        _ => None,
    });
    halts.collect()
}

fn condition(stage: &Stage, type_: &str) -> (String, String) {
    let snapshot = stage.snapshot();
    let conditions = &snapshot.node_pools[0].status.as_ref().unwrap().conditions;
    let condition = conditions.iter().find(|condition| condition.type_ == type_).unwrap();
    (condition.status.clone(), condition.reason.clone())
}

fn updated(stage: &Stage, generation: &str) -> usize {
    let snapshot = stage.snapshot();
    let nodes = snapshot.nodes.iter().filter(|node| {
        node.metadata.labels.as_ref().is_some_and(|it| it.get("generation").is_some_and(|its| its == generation))
    });
    nodes.count()
}

#[tokio::test(start_paused = true)]
async fn one_node_is_replaced_first_and_the_others_when_it_is_ready() {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    stage.script.commit("second", &[("pool.yaml", &labelled("second")), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    assert_eq!(replaced_by_plan(&stage), [1, 3]);
    assert_eq!((stage.snapshot().nodes.len(), updated(&stage, "second")), (4, 4));
    assert_eq!(condition(&stage, "NodeRegistrationHealthy"), ("True".to_owned(), "NodeRegistrationHealthy".to_owned()));
    stage.assert_consistent("after the rollout");
}

/// The class that is applied says nothing of nodes that are still of the one before.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_class_reaches_every_node() {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    let changed = pool().replace("intent: apps", "intent: other-apps");
    assert_ne!(changed, pool());
    stage.script.commit("tagged", &[("pool.yaml", &changed), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    assert_eq!(replaced_by_plan(&stage), [1, 3]);
    let going = |event: &Event| matches!(event, Event::TerminatingNode { reason, .. } if reason == "Drifted");
    let evicted = |event: &Event| matches!(event, Event::EvictedPod { reason, .. } if reason == "Drifted");
    let waits = |event: &Event| matches!(event, Event::AwaitingReplacement { .. });
    assert_eq!((stage.count(going), stage.count(evicted), stage.count(waits)), (4, 4, 4));
    stage.assert_consistent("after the rollout");
}

/// Whichever way the new nodes fail, the old ones stay; a restart knows what was tried; a change of the pool goes on.
async fn halts_and_goes_on(fault: NodeFault, cause: DeletionCause) {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    stage.world.with(|world| world.spoil_nodes("default", Some(fault)));
    stage.script.commit("second5678", &[("pool.yaml", &labelled("second")), ("cutlist.yaml", SETTINGS)]);
    // Long enough for two of them.
    stage.run_for(40 * 60).await;
    assert_eq!((given_up(&stage, cause), halts(&stage).len()), (2, 0));
    stage.restart();
    assert!(stage.settle().await);
    assert_eq!(given_up(&stage, cause), 3);
    let halts_said = halts(&stage);
    assert_eq!(halts_said.len(), 1, "{halts_said:?}");
    assert!(halts_said[0].starts_with("3 nodes of revision second5 did not become ready"), "{halts_said:?}");
    assert_eq!(condition(&stage, "Stalled"), ("True".to_owned(), "RolloutHalted".to_owned()));
    assert_eq!(condition(&stage, "NodeRegistrationHealthy"), ("False".to_owned(), "NodesNotReady".to_owned()));
    let untouched = |stage: &Stage| {
        let snapshot = stage.snapshot();
        let ready =
            snapshot.nodes.iter().filter(|node| node.spec.as_ref().unwrap().taints.as_ref().is_none_or(Vec::is_empty));
        (ready.count(), stage.world.with(|world| world.pod_counts()))
    };
    assert_eq!(untouched(&stage), (4, (4, 0)), "nothing was taken away");
    stage.run_for(2 * 3600).await;
    assert_eq!((given_up(&stage, cause), untouched(&stage)), (3, (4, (4, 0))), "and nothing more is tried");

    // Another commit that leaves the pool as it is changes nothing; pods that wait still get nodes, and those may come.
    stage.world.with(|world| world.spoil_nodes("default", None));
    let text = format!("{SETTINGS}  batch: {{ idle: 2s }}\n");
    stage.script.commit("unrelated", &[("pool.yaml", &labelled("second")), ("cutlist.yaml", &text)]);
    stage.scale(1);
    assert!(stage.settle().await);
    assert_eq!(replaced_by_plan(&stage).len(), 3, "only what was tried before");
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));

    stage.script.commit("third", &[("pool.yaml", &labelled("third")), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    let nodes = stage.snapshot().nodes.len();
    assert_eq!(updated(&stage, "third"), nodes);
    assert_eq!(condition(&stage, "Stalled").0, "False");
    stage.assert_consistent("after the third");
}

#[tokio::test(start_paused = true)]
async fn nodes_that_never_join_halt_the_rollout() {
    halts_and_goes_on(NodeFault::NeverJoins, DeletionCause::RegistrationTimeout).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_that_never_get_ready_halt_the_rollout() {
    halts_and_goes_on(NodeFault::NeverReady, DeletionCause::InitializationTimeout).await;
}

/// The class is somebody else's, such as Terraform's, and no file of the repository.
#[tokio::test(start_paused = true)]
async fn a_rollout_halts_where_the_class_is_in_the_cluster_only() {
    let without_class = |text: &str| text.split_once("---\n").unwrap().0.to_owned();
    let class = serde_yaml::from_str(POOL.split_once("---\n").unwrap().1).unwrap();
    let mut stage = Stage::new(SETTINGS);
    stage.world.with(|world| world.load(Snapshot { node_classes: vec![class].into(), ..apart(4) }));
    stage.script.commit("begin", &[("pool.yaml", &without_class(&pool())), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    stage.world.with(|world| world.spoil_nodes("default", Some(NodeFault::NeverJoins)));
    stage.script.commit("second", &[("pool.yaml", &without_class(&labelled("second"))), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(3 * 3600).await;
    assert_eq!((given_up(&stage, DeletionCause::RegistrationTimeout), halts(&stage).len()), (3, 1));
    assert_eq!(condition(&stage, "Stalled"), ("True".to_owned(), "RolloutHalted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn somebody_lets_a_halted_rollout_go_on() {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    stage.world.with(|world| world.spoil_nodes("default", Some(NodeFault::NeverJoins)));
    stage.script.commit("second", &[("pool.yaml", &labelled("second")), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    assert_eq!(halts(&stage).len(), 1);
    stage.world.with(|world| world.spoil_nodes("default", None));
    let lifted = json!({"metadata": {"annotations": {keys::ROLLOUT_FAILURES: null}}});
    cutlist::ports::Cluster::patch_node_pool(&stage.world.cluster(), "default", &lifted).await.unwrap();
    stage.run_for(60).await;
    assert!(stage.settle().await);
    assert_eq!((stage.snapshot().nodes.len(), updated(&stage, "second")), (4, 4));
    assert_eq!(condition(&stage, "Stalled").0, "False");
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_comes_at_the_third_attempt_is_good_enough() {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    stage.world.with(|world| world.spoil_nodes("default", Some(NodeFault::NeverJoins)));
    stage.script.commit("second", &[("pool.yaml", &labelled("second")), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(20 * 60).await;
    // Too late for the second.
    stage.world.with(|world| world.spoil_nodes("default", None));
    assert!(stage.settle().await);
    assert_eq!((given_up(&stage, DeletionCause::RegistrationTimeout), halts(&stage).len()), (2, 0));
    assert_eq!(replaced_by_plan(&stage), [1, 1, 1, 3]);
    assert_eq!((stage.snapshot().nodes.len(), updated(&stage, "second")), (4, 4));
}

/// Another version of an alias is another image, and so is another id; the new nodes have it, and that is that.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_image_reaches_every_node_once() {
    let mut stage = Stage::of_four_nodes(&pool()).await;
    let mut replaced = Vec::new();
    for terms in ["- alias: al2023@v20260101", "- id: ami-0123456789abcdef0\n  amiFamily: AL2023"] {
        let changed = pool().replace("- alias: al2023@v20240807", terms);
        assert_ne!(changed, pool());
        stage.script.commit(terms, &[("pool.yaml", &changed), ("cutlist.yaml", SETTINGS)]);
        assert!(stage.settle().await);
        replaced.extend([1, 3]);
        assert_eq!(replaced_by_plan(&stage), replaced);
    }
    let snapshot = stage.snapshot();
    let images = snapshot.node_claims.iter().filter_map(|claim| claim.status.as_ref()?.image_id.as_deref());
    assert_eq!(images.collect::<Vec<_>>(), ["ami-0123456789abcdef0"; 4]);
    stage.assert_consistent("after the rollout");
}

/// Status, reason and time of the condition of each claim that has it.
fn drifted(stage: &Stage) -> Vec<(String, String, String)> {
    let snapshot = stage.snapshot();
    let conditions = snapshot.node_claims.iter().filter_map(|claim| claim.condition("Drifted"));
    conditions.map(|it| (it.status.clone(), it.reason.clone(), it.last_transition_time.0.to_string())).collect()
}

/// Nothing may go, and what drifted says so on its NodeClaim, from when it did, until it is as the definitions say again.
#[tokio::test(start_paused = true)]
async fn drift_stands_on_each_claim_since_when_it_is_and_no_longer() {
    let none_may_go = |pool: String| pool.replace("nodes: \"100%\"", "nodes: \"0\"");
    let mut stage = Stage::of_four_nodes(&none_may_go(pool())).await;
    assert!(drifted(&stage).is_empty());
    stage.script.commit("second", &[("pool.yaml", &none_may_go(labelled("second"))), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    let marked = drifted(&stage);
    assert_eq!(marked.len(), 4);
    assert!(marked.iter().all(|(status, reason, _)| status == "True" && reason == "NodePoolDrifted"), "{marked:?}");
    let versions = |stage: &Stage| -> Vec<_> {
        stage.snapshot().node_claims.iter().map(|claim| claim.metadata.resource_version.clone()).collect()
    };
    let before = versions(&stage);
    stage.restart();
    stage.run_for(120).await;
    assert_eq!((drifted(&stage), versions(&stage)), (marked, before), "nothing is written again");

    stage.script.commit("back", &[("pool.yaml", &none_may_go(pool())), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    assert!(drifted(&stage).is_empty());
    assert!(replaced_by_plan(&stage).is_empty());
}
