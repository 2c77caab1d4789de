//! Instances that end before their nodes join: why is said where people look, and the same is not launched without end.

use cutlist::adapters::embedded::NodeFault;
use cutlist::api::keys;
use cutlist::controller::events::Event;
use cutlist::core::lifecycle::DeletionCause;
use cutlist::core::plan::{EndCause, NoteCode, Plan, ReasonCode};
use jiff::Timestamp;

use crate::stage::{POOL, SETTINGS, Stage, apart};

fn ending(cause: EndCause, pods: u32) -> Stage {
    let stage = Stage::new(SETTINGS);
    stage.world.with(|world| {
        world.spoil_nodes("default", Some(NodeFault::Ends(cause)));
        world.load(apart(pods));
    });
    stage
}

fn launched(stage: &Stage) -> usize {
    stage.count(|event| matches!(event, Event::LaunchedNodeClaim { .. }))
}

fn pauses(stage: &Stage) -> Vec<Timestamp> {
    let events = stage.events.borrow();
    let pauses = events.iter().filter_map(|event| match event {
        Event::LaunchesPaused { until, .. } => until.parse().ok(),
        _ => None,
    });
    pauses.collect()
}

fn last_plan(stage: &Stage) -> Plan {
    let events = stage.events.borrow();
    let mut plans = events.iter().rev().filter_map(|event| match event {
        Event::PlanPosted { plan, .. } => Some(plan.as_ref().clone()),
        _ => None,
    });
    plans.next().unwrap()
}

fn is_noted(stage: &Stage) -> bool {
    let snapshot = stage.snapshot();
    let annotations = snapshot.node_pools[0].metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(keys::EARLY_ENDS))
}

#[tokio::test(start_paused = true)]
async fn the_wait_doubles_and_one_is_tried_alone() {
    let mut stage = ending(EndCause::Encryption, 4);
    stage.run_for(3 * 60).await;
    assert_eq!((launched(&stage), pauses(&stage).len()), (4, 1), "all at once, and then none");
    let plan = last_plan(&stage);
    let reason = &plan.pending[0].reasons[0];
    assert_eq!((reason.code, reason.node_pool.as_str()), (ReasonCode::InstancesEndEarly, "default"));
    let until = plan.ended_instances[0].next_attempt_at.clone().unwrap();
    let text = &plan.notes.iter().find(|note| note.code == NoteCode::InstancesEndedEarly).unwrap().text;
    assert!(text.contains("4 instances in a row") && text.contains(&until) && text.contains("Encryption"), "{text}");
    assert!(reason.text.contains(&until), "{}", reason.text);
    assert_eq!(plan.ended_instances[0].cause, EndCause::Encryption);
    stage.restart();
    stage.run_for(24 * 3_600).await;
    let pauses = pauses(&stage);
    assert_eq!(launched(&stage), 4 + pauses.len() - 1, "one for each wait that is over");
    assert!((10..20).contains(&pauses.len()), "{pauses:?}");
    let apart: Vec<i64> = pauses.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_mins()).collect();
    assert!(apart.windows(2).all(|pair| pair[1] >= pair[0]), "{apart:?}");
    assert!(apart[0] >= 10 && *apart.last().unwrap() <= 125, "{apart:?}");
}

#[tokio::test(start_paused = true)]
async fn why_stands_on_the_claim_until_it_is_given_up() {
    let mut stage = ending(EndCause::VolumeQuota, 1);
    let mut messages = Vec::new();
    for _ in 0..40 {
        stage.run_for(5).await;
        for claim in &stage.snapshot().node_claims {
            let registered = claim.condition("Registered");
            messages.extend(registered.filter(|it| it.reason == "InstanceEnded").map(|it| it.message.clone()));
        }
    }
    assert!(messages.len() >= 4, "long enough to be read: {messages:?}");
    assert!(messages.iter().all(|it| it.contains("VolumeQuota")), "{messages:?}");
    let given_up = stage.count(|event| matches!(event, Event::GaveUp { cause: DeletionCause::InstanceEnded, .. }));
    let ended = stage.count(|event| matches!(event, Event::InstanceEnded { .. }));
    assert!(given_up >= 1 && (ended == given_up || ended == given_up + 1), "{ended} ended, {given_up} given up");
}

#[tokio::test(start_paused = true)]
async fn when_one_joins_the_others_follow_and_nothing_is_left_noted() {
    let mut stage = ending(EndCause::Unknown, 4);
    stage.run_for(3 * 60).await;
    stage.world.with(|world| world.spoil_nodes("default", None));
    let before = launched(&stage);
    let mut most = 0;
    for _ in 0..70 {
        stage.run_for(5).await;
        let claims = stage.snapshot().node_claims.len();
        if launched(&stage) > before && stage.snapshot().nodes.is_empty() {
            most = most.max(claims);
        }
    }
    assert_eq!(most, 1, "one alone");
    assert!(stage.settle().await);
    assert_eq!((stage.snapshot().nodes.len(), launched(&stage)), (4, before + 4));
    assert!(!is_noted(&stage));
    assert!(last_plan(&stage).ended_instances.is_empty());
    stage.assert_consistent("after the trouble");
}

#[tokio::test(start_paused = true)]
async fn another_template_need_not_wait() {
    let mut stage = ending(EndCause::Encryption, 4);
    stage.run_for(2 * 60).await;
    assert_eq!(pauses(&stage).len(), 1);
    stage.world.with(|world| world.spoil_nodes("default", None));
    let changed = POOL.replace("intent: apps", "intent: other-apps");
    stage.script.commit("mended", &[("pool.yaml", &changed), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(2 * 60).await;
    assert_eq!((stage.snapshot().nodes.len(), is_noted(&stage)), (4, false));
}

/// EC2 had none in the end: another offering is asked for, and the pool is not to blame.
#[tokio::test(start_paused = true)]
async fn a_shortage_is_of_the_offering_and_not_of_the_pool() {
    let mut stage = ending(EndCause::Capacity, 4);
    stage.run_for(4 * 60).await;
    assert!(launched(&stage) > 4);
    assert_eq!((pauses(&stage).len(), is_noted(&stage)), (0, false));
    let events = stage.events.borrow();
    let types: std::collections::BTreeSet<(&str, &str)> = events
        .iter()
        .filter_map(|event| match event {
            Event::LaunchedNodeClaim { instance_type, zone, .. } => Some((instance_type.as_str(), zone.as_str())),
            _ => None,
        })
        .collect();
    assert!(types.len() > 1, "{types:?}");
}
