//! Bad revisions, empty ones, and repositories that are away.

use cutlist::adapters::embedded::{Post, World};
use cutlist::api::node_pool::NodePool;
use cutlist::controller::events::Event;
use cutlist::core::plan::NoteCode;
use cutlist::core::snapshot::Snapshot;

use crate::stage::{POOL, SETTINGS, Stage};

#[tokio::test(start_paused = true)]
async fn a_revision_with_errors_leaves_the_last_good_one_in_force() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    let broken = POOL.replace("consolidateAfter", "consolidateAfterwards").replace("\"100\"", "\"1\"");
    stage.script.commit("broken", &[("pool.yaml", &broken), ("cutlist.yaml", SETTINGS)]);
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!(stage.count(|event| matches!(event, Event::RevisionRefused { .. })), 1);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "the good revision still provisions");
    let posts = stage.forge.posts();
    let row = "| error | <code>pool.yaml&#58;";
    let is_told = |markdown: &str| markdown.contains(row) && !markdown.contains("```");
    let failed = posts.iter().any(
        |post| matches!(post, Post::Failure { revision, markdown } if revision.id == "broken" && is_told(markdown)),
    );
    assert!(failed, "{posts:?}");
    assert_eq!(stage.snapshot().node_pools.len(), 1);
    stage.script.commit("good", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    let pool = &stage.snapshot().node_pools[0];
    assert_eq!(pool.metadata.annotations.as_ref().unwrap()["cutlist.dev/revision"], "good");
}

/// Settings that are lost take the values of variables with them.
#[tokio::test(start_paused = true)]
async fn a_revision_that_loses_the_values_of_variables_is_not_used() {
    let mut stage = Stage::new(SETTINGS);
    let pool = POOL.replace("role: karpenterNodeRole-test", "role: ${ROLE_NAME}");
    assert_ne!(pool, POOL);
    let settings = format!("{SETTINGS}  variables: {{ ROLE_NAME: karpenterNodeRole-test }}\n");
    stage.script.commit("valued", &[("pool.yaml", &pool), ("cutlist.yaml", &settings)]);
    assert!(stage.settle().await);
    let role = |stage: &Stage| stage.snapshot().node_classes[0].spec.role.clone();
    assert_eq!(role(&stage).as_deref(), Some("karpenterNodeRole-test"));
    stage.script.commit("lost", &[("pool.yaml", &pool)]);
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!(role(&stage).as_deref(), Some("karpenterNodeRole-test"));
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "the revision before still provisions");
    let posts = stage.forge.posts();
    let is_said = |post: &Post| matches!(post, Post::Failure { revision, markdown } if revision.id == "lost" && markdown.contains("ROLE_NAME"));
    assert!(posts.iter().any(is_said), "{posts:?}");
}

/// Settings of another cluster, as of a branch that was mistaken for this one's.
#[tokio::test(start_paused = true)]
async fn a_revision_for_another_cluster_is_not_used() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    let settings = SETTINGS.replace("clusterName: test", "clusterName: staging");
    assert_ne!(settings, SETTINGS);
    let pool = POOL.replace("cpu: \"100\"", "cpu: \"1\"");
    stage.script.commit("staging", &[("pool.yaml", &pool), ("cutlist.yaml", &settings)]);
    stage.scale(5);
    assert!(stage.settle().await);
    let held = |event: &Event| {
        let says = |text: &str| ["staging", "write clusterName: test"].iter().all(|words| text.contains(words));
        matches!(event, Event::OfAnotherCluster { in_force: Some(_), because, .. } if says(because))
    };
    assert_eq!(stage.count(held), 1);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "the revision before still provisions");
    let posts = stage.forge.posts();
    let is_said = |post: &Post| matches!(post, Post::Failure { revision, markdown } if revision.id == "staging" && markdown.contains("clusterName: test"));
    assert!(posts.iter().any(is_said), "{posts:?}");
    // One that names no cluster may be for any.
    stage.script.commit("any", &[("pool.yaml", POOL)]);
    assert!(stage.settle().await);
    let pool = &stage.snapshot().node_pools[0];
    assert_eq!(pool.metadata.annotations.as_ref().unwrap()["cutlist.dev/revision"], "any");
}

#[tokio::test(start_paused = true)]
async fn a_revision_for_another_region_is_not_used() {
    let settings = SETTINGS.replace("clusterName: test", "clusterName: test\n  region: eu-west-1");
    assert_ne!(settings, SETTINGS);
    let held = |event: &Event| {
        let says = |text: &str| text.contains("eu-west-1") && text.contains("write region: us-east-1");
        matches!(event, Event::OfAnotherCluster { because, .. } if says(because))
    };
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.script.commit("moved", &[("pool.yaml", POOL), ("cutlist.yaml", &settings)]);
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!((stage.count(held), stage.controller.must_begin_anew()), (1, None));
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "the revision before still provisions");
    // Where it is the first one, another process takes its region.
    let mut stage = Stage::new(&settings);
    stage.scale(5);
    stage.run_for(60).await;
    assert_eq!((stage.count(held), stage.world.with(|world| world.instances()).len()), (1, 0));
    assert!(stage.controller.must_begin_anew().is_some_and(|because| because.contains("eu-west-1")));
}

#[tokio::test(start_paused = true)]
async fn a_commit_without_any_pool_is_held() {
    let mut stage = Stage::new(SETTINGS);
    stage.scale(5);
    assert!(stage.settle().await);
    stage.script.commit("empty", &[("cutlist.yaml", SETTINGS)]);
    stage.run_for(600).await;
    assert_eq!(stage.count(|event| matches!(event, Event::RemovalHeld { .. })), 1);
    let posts = stage.forge.posts();
    let says = |post: &Post| matches!(post, Post::Failure { markdown, .. } if markdown.contains("kubectl delete nodepools default"));
    assert!(posts.iter().any(says), "it is said how to allow it: {posts:?}");
    let snapshot = stage.snapshot();
    assert_eq!((snapshot.node_pools.len(), snapshot.node_classes.len(), snapshot.nodes.len()), (1, 1, 1));
    assert_eq!(stage.count(|event| matches!(event, Event::DefinitionPruned { .. })), 0);
}

#[tokio::test(start_paused = true)]
async fn what_left_git_is_pruned_when_its_nodes_are_gone() {
    let mut stage = Stage::new(SETTINGS);
    let second = POOL.split("---").next().unwrap().replacen("name: default", "name: extra", 1);
    stage.script.commit("two", &[("pool.yaml", POOL), ("extra.yaml", &second), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    stage.run_for(1).await;
    assert_eq!(stage.snapshot().node_pools.len(), 2);
    stage.script.commit("one", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    assert_eq!(stage.snapshot().node_pools.len(), 1);
    assert_eq!(stage.count(|event| matches!(event, Event::DefinitionPruned { .. })), 1);
}

/// Somebody makes a definition anew by hand, and the watch is late.
#[tokio::test(start_paused = true)]
async fn what_took_the_name_of_a_definition_that_left_git_stays() {
    let mut stage = Stage::new(SETTINGS);
    let second = POOL.split("---").next().unwrap().replacen("name: default", "name: extra", 1);
    stage.script.commit("two", &[("pool.yaml", POOL), ("extra.yaml", &second), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    stage.run_for(1).await;
    let is_extra = |pool: &&NodePool| pool.metadata.name.as_deref() == Some("extra");
    let mut anew = stage.snapshot().node_pools.iter().find(is_extra).unwrap().clone();
    anew.metadata.uid = Some("another".to_owned());
    stage.world.with(|world| {
        world.freeze(&["nodepools"], None);
        world.load(Snapshot { node_pools: vec![anew].into(), ..Snapshot::default() });
    });
    stage.script.commit("one", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    stage.world.with(World::see_all);
    let pools = stage.snapshot().node_pools;
    let extra = pools.iter().find(is_extra).expect("made anew");
    assert_eq!(extra.metadata.uid.as_deref(), Some("another"));
}

#[tokio::test(start_paused = true)]
async fn a_repository_that_is_away_is_said_once_and_stops_nothing() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    for _ in 0..3 {
        stage.script.fail();
    }
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!(stage.count(|event| matches!(event, Event::RepositoryUnreachable { .. })), 1);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    // What the last plan that was shown says of it.
    let noted = |stage: &Stage| {
        let events = stage.events.borrow();
        let plan = events.iter().rev().find_map(|event| match event {
            Event::PlanPosted { plan, .. } => Some(plan),
            _ => None,
        });
        let note = plan.unwrap().notes.iter().find(|note| note.code == NoteCode::RepositoryUnreachable);
        note.map(|note| note.text.clone())
    };
    let text = noted(&stage).unwrap();
    assert!(text.starts_with("the repository can not be read since 20") && text.ends_with(": fetch main"), "{text}");
    stage.script.commit("back", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    assert_eq!(stage.count(|event| matches!(event, Event::RepositoryBack)), 1);
    assert_eq!(noted(&stage), None);
}

#[tokio::test(start_paused = true)]
async fn definitions_that_are_refused_are_soon_tried_again_and_not_all_the_time() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    let label = |stage: &Stage| {
        let pools = stage.snapshot().node_pools;
        pools.iter().next().and_then(|pool| pool.metadata.annotations.as_ref()?.get("cutlist.dev/revision").cloned())
    };
    stage.fuse.freeze_definitions(true);
    stage.script.commit("changed", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(2).await;
    assert!(stage.fuse.refused() >= 2, "tried again before the poll");
    stage.fuse.freeze_definitions(false);
    stage.run_for(4).await;
    assert_eq!(label(&stage).as_deref(), Some("changed"), "before the poll");

    let before = stage.fuse.refused();
    stage.fuse.freeze_definitions(true);
    stage.script.commit("again", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(120).await;
    assert!(stage.fuse.refused() - before < 20, "{} times in two minutes", stage.fuse.refused() - before);

    // Also what leaves Git.
    stage.fuse.freeze_definitions(false);
    let second = POOL.replace("name: default\n", "name: second\n").replacen("name: second", "name: extra", 1);
    let second = second.split("---").next().unwrap().replace("name: second", "name: default");
    stage.script.commit("two", &[("pool.yaml", POOL), ("extra.yaml", &second), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    assert_eq!(stage.snapshot().node_pools.len(), 2);
    stage.script.commit("one", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.controller.pass().await;
    stage.fuse.freeze_definitions(true);
    stage.run_for(3).await;
    stage.fuse.freeze_definitions(false);
    stage.run_for(5).await;
    assert_eq!(stage.snapshot().node_pools.len(), 1, "before the poll");
}
