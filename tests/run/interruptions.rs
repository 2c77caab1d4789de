//! EC2 announces that it takes instances back: their nodes are replaced before it does.

use cutlist::controller::events::Event;
use cutlist::core::plan::ReasonCode;

use crate::stage::{POOL, SETTINGS, Stage, apart};

/// Four nodes on spot with a pod each, of which no budget lets any go, and no plan may disrupt anything unasked.
async fn four_on_spot(approval: &str) -> Stage {
    let pool = POOL
        .replace("on-demand", "spot")
        .replace("consolidateAfter: 30s\n", "consolidateAfter: 1h\n    budgets: [{ nodes: \"0\" }]\n");
    let settings = format!("{SETTINGS}  approval: {{ disrupt: {approval} }}\n");
    let mut stage = Stage::new(&settings);
    stage.script.commit("spot", &[("pool.yaml", &pool), ("cutlist.yaml", &settings)]);
    assert!(stage.settle().await);
    stage.world.with(|world| world.load(apart(4)));
    assert!(stage.settle().await);
    assert_eq!(provider_ids(&stage).len(), 4);
    stage.events.borrow_mut().clear();
    stage
}

fn provider_ids(stage: &Stage) -> Vec<String> {
    stage.world.with(|world| world.instances()).into_iter().map(|instance| instance.provider_id).collect()
}

fn interrupted(stage: &Stage) -> usize {
    let is_it = |event: &Event| matches!(event, Event::DisruptingNodes { reason, .. } if reason.code == ReasonCode::Interrupted);
    stage.count(is_it)
}

#[tokio::test(start_paused = true)]
async fn pods_of_an_interrupted_spot_instance_run_elsewhere_before_it_goes() {
    let mut stage = four_on_spot("manual").await;
    let id = provider_ids(&stage)[2].clone();
    assert!(stage.world.with(|world| world.interrupt(&id)));
    stage.run_for(110).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (4, 0), "all run, ten seconds before it is taken back");
    assert!(!provider_ids(&stage).contains(&id), "it was drained and ended before");
    assert_eq!((interrupted(&stage), stage.waiting().len()), (1, 0), "nobody is asked");
    assert!(stage.settle().await);
    stage.assert_consistent("after the interruption");
}

#[tokio::test(start_paused = true)]
async fn an_offering_that_ec2_takes_back_is_not_bought_again_at_once() {
    let mut stage = four_on_spot("automatic").await;
    let before = stage.world.with(|world| world.instances());
    let interrupted = before[0].clone();
    assert!(stage.world.with(|world| world.interrupt(&interrupted.provider_id)));
    stage.run_for(60).await;
    let after = stage.world.with(|world| world.instances());
    let new = after.iter().find(|instance| !before.iter().any(|it| it.provider_id == instance.provider_id)).unwrap();
    let offering =
        |it: &cutlist::ports::Instance| (it.instance_type.clone(), it.zone.clone(), it.capacity_type.clone());
    assert_ne!(offering(new), offering(&interrupted));
}

#[tokio::test(start_paused = true)]
async fn messages_about_other_instances_and_unreadable_ones_change_nothing() {
    let mut stage = four_on_spot("automatic").await;
    let before = provider_ids(&stage);
    for body in [
        "",
        "{",
        r#"{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{"instance-id":"i-0"}}"#,
    ] {
        stage.world.with(|world| world.announce(body.to_owned()));
    }
    stage.run_for(60).await;
    assert_eq!((provider_ids(&stage), interrupted(&stage)), (before, 0));
    assert_eq!(stage.world.with(|world| world.messages_waiting()), 1, "another cluster may hear the same queue");
    stage.run_for(600).await;
    assert_eq!(stage.world.with(|world| world.messages_waiting()), 0, "none comes again for ever");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_again_after_a_crash_is_acted_on_once() {
    for call in 0..12 {
        let mut stage = four_on_spot("automatic").await;
        let id = provider_ids(&stage)[1].clone();
        stage.fuse.arm(call, crate::stage::Fault::Crash);
        assert!(stage.world.with(|world| world.interrupt(&id)));
        for _ in 0..20 {
            stage.controller.pass().await;
            stage.controller.wait().await;
            if stage.fuse.is_crashed() {
                break;
            }
        }
        stage.restart();
        assert!(stage.settle().await, "crash at call {call}");
        assert_eq!(stage.snapshot().nodes.len(), 4, "crash at call {call}");
        assert_eq!(stage.world.with(|world| world.pod_counts()), (4, 0), "crash at call {call}");
        stage.assert_consistent(&format!("crash at call {call}"));
        assert!(stage.snapshot().node_claims.iter().all(|claim| !claim.is_true("Interrupted")));
    }
}
