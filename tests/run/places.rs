//! Plans that follow one another while nodes are on their way leave each pod the place that the first of them found.

use std::collections::BTreeMap;

use cutlist::api::keys;

use crate::stage::{SETTINGS, Stage};

#[tokio::test(start_paused = true)]
async fn each_pod_has_one_place_on_the_claims_on_their_way() {
    let mut stage = Stage::new(SETTINGS);
    for replicas in [10, 21, 33] {
        stage.scale(replicas);
        stage.run_for(3).await;
    }
    let snapshot = stage.snapshot();
    assert!(
        snapshot.node_claims.iter().count() > 2 && snapshot.nodes.is_empty(),
        "plans were made, and no node is there yet"
    );
    let mut times: BTreeMap<String, usize> = snapshot.pods.iter().map(|pod| (pod.key(), 0)).collect();
    for pod in snapshot.node_claims.iter().flat_map(|claim| claim.listed(keys::PODS)) {
        *times.entry(pod.to_owned()).or_default() += 1;
    }
    times.retain(|_, times| *times != 1);
    assert!(times.is_empty(), "{times:?}");
    assert!(stage.settle().await);
    stage.assert_consistent("after three plans");
}
