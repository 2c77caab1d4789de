//! The process ends between any two calls and another one goes on; or an answer is lost and the process goes on.

use cutlist::api::keys;
use cutlist::api::node_claim::NodeClaim;
use cutlist::controller::MoveRefusal;
use cutlist::controller::events::Event;
use cutlist::core::plan::StepKind;
use cutlist::core::snapshot::Snapshot;

use crate::stage::{Fault, POOL, SETTINGS, Stage};

/// Scales up, then lets a commit replace the node, then scales down.
async fn play(stage: &mut Stage) -> bool {
    let graviton = POOL.replace("[\"amd64\"]", "[\"amd64\", \"arm64\"]");
    stage.scale(5);
    if !stage.settle().await {
        return false;
    }
    stage.script.commit("graviton", &[("pool.yaml", &graviton), ("cutlist.yaml", SETTINGS)]);
    if !stage.settle().await {
        return false;
    }
    stage.scale(0);
    stage.settle().await
}

/// How many calls an undisturbed play makes.
async fn calls() -> usize {
    let mut stage = Stage::new(SETTINGS);
    assert!(play(&mut stage).await);
    assert!(stage.snapshot().node_claims.is_empty());
    stage.fuse.calls()
}

#[tokio::test(start_paused = true)]
async fn no_crash_loses_a_node_leaks_an_instance_or_launches_twice() {
    let calls = calls().await;
    assert!(calls > 50, "{calls} calls");
    for call in 0..calls {
        let context = format!("crash before call {call}");
        let mut stage = Stage::new(SETTINGS);
        stage.fuse.arm(call, Fault::Crash);
        assert!(!play(&mut stage).await && stage.fuse.is_crashed(), "{context}: never came to it");
        stage.restart();
        assert!(stage.settle().await, "{context}: did not settle after the restart");
        // Long enough for what leaked to be collected.
        stage.run_for(150).await;
        stage.assert_consistent(&context);
        stage.scale(0);
        assert!(stage.settle().await, "{context}: did not settle at the end");
        assert!(stage.snapshot().node_claims.is_empty(), "{context}");
        stage.assert_consistent(&context);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_no_harm() {
    for call in (0..calls().await).step_by(3) {
        let context = format!("answer of call {call} lost");
        let mut stage = Stage::new(SETTINGS);
        stage.fuse.arm(call, Fault::LostAnswer);
        assert!(play(&mut stage).await, "{context}: did not settle");
        stage.run_for(150).await;
        assert!(stage.snapshot().node_claims.is_empty(), "{context}");
        stage.assert_consistent(&context);
    }
}

/// Each claim that a move stands for which was begun is of the plan of that move.
fn assert_claims_are_of_their_plans(stage: &Stage, context: &str) {
    let plan_of = |claim: &NodeClaim| claim.metadata.annotations.clone().unwrap_or_default().remove(keys::PLAN);
    let claims = stage.snapshot().node_claims;
    let events = stage.events.borrow();
    let begun = events.iter().filter_map(|event| match event {
        Event::MoveBegun { plan_id, move_number } => Some((plan_id, *move_number)),
        _ => None,
    });
    for (plan_id, number) in begun {
        let posted = events.iter().find_map(|event| match event {
            Event::PlanPosted { plan, .. } if plan.id == *plan_id => Some(plan),
            _ => None,
        });
        let Some(posted) = posted else { continue };
        let steps = posted.steps.iter().filter(|step| step.move_number == number);
        for step in steps.filter(|step| step.kind == StepKind::Create) {
            let is_it = |claim: &&NodeClaim| claim.metadata.name.as_ref() == Some(&step.node_claim);
            let made_by = claims.iter().find(is_it).and_then(plan_of);
            assert_eq!(made_by.as_ref(), Some(plan_id), "{context}: {}", step.node_claim);
        }
    }
}

/// A call of the process before was under way when that ended, and comes late: its claim has the name that the next plan gives to another,
/// for names come of pools and pods alone.
#[tokio::test(start_paused = true)]
async fn a_claim_that_came_late_is_not_taken_for_that_of_the_next_plan() {
    let mut first = Stage::new(SETTINGS);
    assert!(first.settle().await);
    first.scale(5);
    assert!(first.settle().await);
    let mut late = first.snapshot().node_claims[0].clone();
    late.status = None;
    late.metadata.uid = None;
    late.metadata.creation_timestamp = None;
    let annotations = late.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::PLAN.to_owned(), "the plan before".to_owned());
    annotations.insert(keys::LAUNCH.to_owned(), "the launch before".to_owned());
    let mut refused = 0;
    for call in 0..8 {
        let mut stage = Stage::new(SETTINGS);
        assert!(stage.settle().await);
        let (world, late) = (stage.world.clone(), late.clone());
        stage.fuse.before(stage.fuse.calls() + call, move || {
            let is_there = |claim: &NodeClaim| claim.metadata.name == late.metadata.name;
            world.with(|world| {
                if !world.snapshot().node_claims.iter().any(is_there) {
                    world.load(Snapshot { node_claims: vec![late.clone()].into(), ..Snapshot::default() });
                }
            });
        });
        stage.scale(5);
        stage.run_for(15).await;
        assert_claims_are_of_their_plans(&stage, &format!("before call {call}"));
        refused += stage
            .count(|event| matches!(event, Event::PlanSuperseded { refusal: MoveRefusal::NodeClaimExists { .. }, .. }));
        stage.run_for(300).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "before call {call}");
    }
    assert!(refused > 0, "it came between a plan and its claim");
}
