//! The process ends between any two calls, before or after the call took effect, and another one goes on.

use crate::stage::{POOL, SETTINGS, Stage};

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

#[tokio::test(start_paused = true)]
async fn no_crash_loses_a_node_leaks_an_instance_or_launches_twice() {
    let calls = {
        let mut stage = Stage::new(SETTINGS);
        assert!(play(&mut stage).await);
        assert!(stage.snapshot().node_claims.is_empty());
        stage.fuse.calls()
    };
    assert!(calls > 30, "{calls} calls");
    for call in 0..calls {
        for after in [false, true] {
            let context = format!("crash {} call {call}", if after { "after" } else { "before" });
            let mut stage = Stage::new(SETTINGS);
            stage.fuse.arm(call, after);
            // The script goes on where the crash was; what was committed before is seen again by the new process.
            let finished = play(&mut stage).await;
            if !finished {
                assert!(stage.fuse.is_blown(), "{context}: never settled");
                stage.restart();
                assert!(stage.settle().await, "{context}: did not settle after the restart");
                stage.run_for(180).await;
                stage.assert_consistent(&context);
            }
            stage.scale(0);
            assert!(stage.settle().await, "{context}: did not settle at the end");
            assert!(stage.snapshot().node_claims.is_empty(), "{context}");
            stage.assert_consistent(&context);
        }
    }
}
