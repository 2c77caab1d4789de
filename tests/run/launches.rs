//! EC2 counts calls: claims that ask for the same are asked for together, and each gets an instance of its own.

use cutlist::api::node_claim::NodeClaim;

use crate::stage::{SETTINGS, Stage, apart};

fn provider_ids(stage: &Stage) -> Vec<String> {
    let of_claim = |claim: &NodeClaim| claim.status.as_ref().and_then(|status| status.provider_id.clone());
    let mut ids: Vec<String> = stage.snapshot().node_claims.iter().filter_map(of_claim).collect();
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_alike_are_asked_for_in_one_call() {
    let mut stage = Stage::new(SETTINGS);
    stage.world.with(|world| world.load(apart(20)));
    assert!(stage.settle().await);
    stage.assert_consistent("20 nodes");
    let ids = provider_ids(&stage);
    assert_eq!(ids.len(), 20);
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "each claim has an instance of its own");
    let calls = stage.launches.borrow().calls;
    assert!(calls <= 4, "{calls} calls for 20 nodes");
}
