//! Revisions that are not signed by who must have.

use cutlist::adapters::embedded::Post;
use cutlist::controller::events::Event;
use cutlist::ports::Unsigned;

use crate::stage::{POOL, SETTINGS, Stage};

fn by_eve() -> Unsigned {
    Unsigned {
        commit: "0123456789abcdef".to_owned(),
        title: "More ``` for <b>me</b>".to_owned(),
        did: "raises the limit cpu of NodePool/default".to_owned(),
        rule: Some("limits".to_owned()),
        signed: "it is signed by eve@example.com (SHA256:x)".to_owned(),
        wanted: "platform".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_not_signed_changes_nothing_and_is_said_once() {
    let mut stage = Stage::new(SETTINGS);
    stage.scale(5);
    assert!(stage.settle().await);
    let before = stage.snapshot();
    stage.script.unsigned(&[by_eve()]);
    let other = POOL.replace("\"100\"", "\"999\"").replace("30s", "1s");
    stage.script.commit("eve", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(600).await;
    assert_eq!(stage.count(|event| matches!(event, Event::RevisionUnsigned { .. })), 1);
    assert_eq!(stage.count(|event| matches!(event, Event::DefinitionApplied { is_new: false, .. })), 0);
    let pools = |snapshot: &cutlist::core::snapshot::Snapshot| snapshot.node_pools[0].spec.clone();
    assert_eq!(pools(&stage.snapshot()), pools(&before));
    let said = |event: &Event| {
        matches!(event, Event::RevisionUnsigned { in_force: Some(in_force), node_pools, unsigned, .. }
            if in_force.id != "eve" && *node_pools == ["default"] && *unsigned == [by_eve()])
    };
    assert_eq!(stage.count(said), 1);
    let posts = stage.forge.posts();
    let failures: Vec<&String> = posts
        .iter()
        .filter_map(|post| match post {
            Post::Failure { revision, markdown } if revision.id == "eve" => Some(markdown),
            _ => None,
        })
        .collect();
    let [failure] = failures.as_slice() else { panic!("{posts:?}") };
    // Whatever the message of the commit says stays inside the fence.
    assert!(failure.contains("````\ncommit 0123456 (More ``` for <b>me</b>) raises the limit cpu"), "{failure}");
    assert!(failure.contains("the one before stays in force") && failure.contains("git commit -S"), "{failure}");
    // What is in force goes on.
    stage.scale(40);
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (40, 0));
}

#[tokio::test(start_paused = true)]
async fn a_revision_is_used_once_its_signer_is_allowed() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.script.unsigned(&[by_eve()]);
    let other = POOL.replace("\"100\"", "\"999\"");
    stage.script.commit("eve", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    let revision = |stage: &Stage| {
        stage.snapshot().node_pools[0].metadata.annotations.as_ref().unwrap()["cutlist.dev/revision"].clone()
    };
    assert_ne!(revision(&stage), "eve");
    stage.script.unsigned(&[]);
    stage.script.wake();
    stage.run_for(60).await;
    assert_eq!(revision(&stage), "eve");
}

#[tokio::test(start_paused = true)]
async fn back_to_what_is_in_force_asks_nobody() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    let in_force = stage.controller.last_revision().unwrap().id.clone();
    stage.script.unsigned(&[by_eve()]);
    stage.script.commit("eve", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    stage.script.commit(&in_force, &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    assert_eq!(stage.count(|event| matches!(event, Event::RevisionUnsigned { .. })), 1);
    assert_eq!(stage.controller.last_revision().unwrap().id, in_force);
}

#[tokio::test(start_paused = true)]
async fn a_file_of_the_operator_that_can_not_be_read_stops_nothing_else() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.script.can_not_judge(true);
    let other = POOL.replace("\"100\"", "\"999\"");
    stage.script.commit("next", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "what is in force goes on");
    let said = |event: &Event| matches!(event, Event::CallFailed { error } if error.starts_with("look who signed"));
    assert_eq!(stage.count(said), 1);
    assert_eq!(stage.count(|event| matches!(event, Event::RevisionFound { revision, .. } if revision.id == "next")), 0);
    stage.script.can_not_judge(false);
    stage.script.wake();
    stage.run_for(60).await;
    assert_eq!(stage.count(|event| matches!(event, Event::RevisionFound { revision, .. } if revision.id == "next")), 1);
}
