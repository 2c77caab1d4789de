//! Nodes that another pool takes over.

use serde_json::json;

use crate::testing::{Merge, object};
use cutlist_api::keys;

use super::{Case, Code, valid};

/// The node that stays is of a pool that is gone, and goes to the one there is.
fn adopted(case: &mut Case) {
    let gone = case.pools[0].clone().merge(json!({
        "metadata": { "name": "gone", "labels": { keys::MANAGED_BY: keys::FIELD_MANAGER } },
        "spec": { "disruption": { "budgets": [] } },
    }));
    case.snapshot.node_pools.push(gone);
    case.edit_node(
        "node-kept",
        json!({
            "metadata": { "labels": { keys::NODE_POOL: "gone" } },
            "status": { "capacity": { "cpu": "2", "memory": "8Gi" } },
        }),
    );
    let step = object(json!({
        "kind": "adopt", "move": 4, "nodePool": "default", "nodeClaim": "claim-kept", "node": "node-kept",
        "instanceType": "m.large", "zone": "a", "capacityType": "on-demand", "pricePerHour": 0.1, "pods": [],
        "reason": { "code": "NodePoolRenamed", "text": "" }, "preconditions": [], "allocatable": {}, "requested": {},
    }));
    case.plan.steps.push(step);
}

fn is_adoptable(edit: &dyn Fn(&mut Case)) -> bool {
    let mut case = valid();
    adopted(&mut case);
    edit(&mut case);
    !case.check().iter().any(|violation| violation.code == Code::NotAdoptable)
}

#[test]
fn theirs_is_gone_and_the_other_makes_the_same() {
    assert!(is_adoptable(&|_| {}));
    assert!(is_adoptable(&|case| {
        let values = json!({ "template": { "spec": { "requirements": [
            { "key": keys::INSTANCE_CATEGORY, "operator": "In", "values": ["c", "m"] },
        ] } } });
        case.edit_pool(json!({ "spec": values }));
    }));
    assert!(!is_adoptable(&|case| {
        case.edit_pool(json!({ "spec": { "template": { "metadata": { "labels": { "team": "red" } } } } }));
    }));
    assert!(!is_adoptable(&|case| {
        let mut other = case.snapshot.node_pools[0].clone();
        other.metadata.name = Some("gone".to_owned());
        case.pools.push(other);
    }));
    assert!(!is_adoptable(&|case| {
        case.edit_claim("claim-kept", json!({ "metadata": { "deletionTimestamp": "2026-11-20T11:59:00Z" } }));
    }));
    assert!(!is_adoptable(&|case| case.edit_pool(json!({ "spec": { "limits": { "cpu": 1 } } }))));
    assert!(!is_adoptable(&|case| case.edit_pool(json!({ "spec": { "limits": { "nodes": 0 } } }))));
}
