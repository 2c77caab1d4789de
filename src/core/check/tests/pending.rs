//! Why pods wait, as plans say it.

use serde_json::json;

use crate::plan::ReasonCode;
use crate::planner::decide;
use crate::testing::BuildPod;
use cutlist_api::keys;

use super::valid;

/// The sentences about a pool that matches no instance type, where a pod asks for these labels.
fn said_of_an_empty_pool(labels: &[(&str, &str)]) -> Vec<String> {
    let mut case = valid();
    case.snapshot.nodes.clear();
    case.snapshot.node_claims.clear();
    case.snapshot.pods.retain(|pod| pod.metadata.name == "never");
    for (key, value) in labels {
        case.edit_pod("never", |pod| pod.node_selector(key, value));
    }
    let requirement = json!({ "key": keys::INSTANCE_CATEGORY, "operator": "In", "values": ["x"] });
    case.edit_pool(json!({ "spec": { "template": { "spec": { "requirements": [requirement] } } } }));
    let pending = decide(&case.inputs()).pending;
    let reasons = pending.into_iter().flat_map(|pending| pending.reasons);
    let reasons = reasons.filter(|reason| reason.code == ReasonCode::NodePoolHasNoInstanceType);
    reasons.map(|reason| reason.text).collect()
}

#[test]
fn that_a_pool_has_nothing_is_said_once() {
    let of_one = said_of_an_empty_pool(&[(keys::ARCHITECTURE, "amd64")]);
    assert_eq!(of_one.len(), 1, "{of_one:?}");
    assert_eq!(said_of_an_empty_pool(&[(keys::ARCHITECTURE, "amd64"), (keys::ZONE, "a")]), of_one);
}
