//! The process ends between any two calls and another one goes on; or an answer is lost and the process goes on.

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
