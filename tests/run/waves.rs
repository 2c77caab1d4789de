//! A plan in waves: what goes in a later wave stays until the nodes of the earlier ones are gone.

use cutlist::controller::events::Event;

use crate::stage::{POOL, SETTINGS, Stage, apart};

#[tokio::test(start_paused = true)]
async fn a_later_wave_waits_for_the_nodes_of_the_earlier_one() {
    let settings = format!("{SETTINGS}  disruption:\n    rollout: {{ canary: false }}\n");
    let mut stage = Stage::new(&settings);
    let all_at_once =
        POOL.replace("consolidateAfter: 30s\n", "consolidateAfter: 30s\n    budgets: [{ nodes: \"100%\" }]\n");
    assert_ne!(all_at_once, POOL);
    stage.script.commit("all-at-once", &[("pool.yaml", &all_at_once), ("cutlist.yaml", settings.as_str())]);
    stage.world.with(|world| world.load(apart(2)));
    assert!(stage.settle().await);
    assert_eq!(stage.snapshot().nodes.len(), 2);
    // Both nodes drift.
    let labelled =
        all_at_once.replacen("    spec:\n", "    metadata: { labels: { generation: second } }\n    spec:\n", 1);
    assert_ne!(labelled, all_at_once);
    stage.script.commit("labelled", &[("pool.yaml", &labelled), ("cutlist.yaml", settings.as_str())]);
    let (mut second_waited, mut settled) = (false, false);
    for _ in 0..5000 {
        stage.controller.pass().await;
        let snapshot = stage.snapshot();
        let of_wave = |wave: &str| {
            let claims = snapshot.node_claims.iter().filter(|claim| {
                claim
                    .metadata
                    .annotations
                    .as_ref()
                    .is_some_and(|it| it.get("cutlist.dev/wave").is_some_and(|its| its == wave))
            });
            claims.collect::<Vec<_>>()
        };
        if let ([_], [second]) = (of_wave("1").as_slice(), of_wave("2").as_slice()) {
            second_waited = true;
            assert!(second.metadata.deletion_timestamp.is_none(), "the first is still there");
        }
        let is_up = |pod: &&cutlist::core::snapshot::Pod| pod.spec.node_name.is_some() && !pod.is_terminating();
        assert!(snapshot.pods.iter().any(|pod| is_up(&pod)), "one of the two is always there");
        settled = second_waited && stage.controller.is_settled() && stage.world.with(|world| world.is_still());
        if settled {
            break;
        }
        stage.controller.wait().await;
    }
    assert!(second_waited && settled, "waited: {second_waited}, settled: {settled}");
    let snapshot = stage.snapshot();
    let has_label = |label: &str| {
        let labels = snapshot.nodes.iter().filter_map(|node| node.metadata.labels.as_ref());
        labels.filter(|labels| labels.get("generation").is_some_and(|its| its == label)).count()
    };
    assert_eq!((snapshot.nodes.len(), has_label("second")), (2, 2));
    stage.assert_consistent("after two waves");
    let going = stage.count(|event| matches!(event, Event::TerminatingNode { .. }));
    assert_eq!(going, 2, "each node is said to go once, and not when it begins to wait");
}
