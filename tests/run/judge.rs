//! A plan that breaks a rule is shown for what it is, and nothing of it is done; where it is the place of a pod alone that is wrong, only
//! that pod waits.

use cutlist::adapters::embedded::Post;
use cutlist::controller::events::Event;
use cutlist::core::inputs::Inputs;
use cutlist::core::plan::{NoteCode, Plan, StepKind};
use cutlist::core::planner::decide;

use crate::stage::{SETTINGS, Stage, apart};

/// A planner with a mistake: it puts the pods of all new nodes on the first alone, whatever they say of each other.
fn mistaken(inputs: &Inputs<'_>) -> Plan {
    let mut plan = decide(inputs);
    let created = || plan.steps.iter().filter(|step| step.kind == StepKind::Create);
    let pods: Vec<String> = created().flat_map(|step| step.pods.clone()).collect();
    let first = created().next().map(|step| step.node_claim.clone());
    plan.steps.retain(|step| step.kind != StepKind::Create || first.as_ref() == Some(&step.node_claim));
    if let Some(first) = plan.steps.iter_mut().find(|step| step.kind == StepKind::Create) {
        first.pods = pods;
    }
    plan.id = plan.content_hash();
    plan
}

/// Another: its new nodes are not what their pool says.
fn careless(inputs: &Inputs<'_>) -> Plan {
    let mut plan = decide(inputs);
    plan.steps.iter_mut().filter(|step| step.kind == StepKind::Create).for_each(|step| step.launch = None);
    plan.id = plan.content_hash();
    plan
}

#[tokio::test(start_paused = true)]
async fn who_would_be_refused_waits_alone() {
    let mut stage = Stage::new(SETTINGS);
    stage.restart_with(mistaken);
    stage.world.with(|world| world.load(apart(2)));
    assert!(stage.settle().await, "the others get their nodes, and then nothing is wrong any more");
    assert_eq!(stage.snapshot().nodes.len(), 2);
    let is_said = |event: &Event| matches!(event, Event::PlanPosted { plan, .. } if plan.is_sound() && plan.notes.iter().any(|note| note.code == NoteCode::PlaceWithheld));
    assert!(stage.count(is_said) > 0, "it is said");
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_wrong_plan_is_done() {
    nothing_is_done(SETTINGS).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_wrong_plan_in_the_order_of_karpenter_is_done() {
    nothing_is_done(&format!("{SETTINGS}  packing: karpenter\n")).await;
}

async fn nothing_is_done(settings: &str) {
    let mut stage = Stage::new(settings);
    stage.restart_with(careless);
    stage.world.with(|world| world.load(apart(2)));
    stage.run_for(120).await;
    assert!(stage.snapshot().node_claims.is_empty(), "nothing is created");
    assert!(
        stage
            .forge
            .posts()
            .iter()
            .any(|post| matches!(post, Post::Plan { markdown, .. } if markdown.contains("this plan is wrong")))
    );
    let is_said = |event: &Event| matches!(event, Event::PlanPosted { plan, .. } if plan.notes.iter().any(|note| note.code == NoteCode::BreaksRule));
    assert_eq!(stage.count(is_said), 1, "it is said once");

    stage.restart_with(decide);
    assert!(stage.settle().await);
    assert_eq!(stage.snapshot().nodes.len(), 2, "a planner without the mistake goes on");
}
