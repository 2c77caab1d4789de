//! Nodes that go because they are broken.

use serde_json::json;

use super::{Case, Code, valid};

/// The empty node is repaired: it has not been ready for a time.
fn broken(case: &mut Case, since: &str) {
    case.policy.feature_gates.node_repair = true;
    case.edit_step("claim-empty", json!({ "reason": { "code": "Unhealthy" } }));
    say(case, "node-empty", "Ready", "Unknown", since);
}

fn say(case: &mut Case, node: &str, type_: &str, status: &str, since: &str) {
    let condition = json!({ "type": type_, "status": status, "lastTransitionTime": since });
    case.edit_node(node, json!({ "status": { "conditions": [condition] } }));
}

fn may_go(edit: &dyn Fn(&mut Case)) -> bool {
    let mut case = valid();
    edit(&mut case);
    !case.check().iter().any(|violation| violation.code == Code::NotRemovable)
}

#[test]
fn long_enough_and_not_too_many() {
    assert!(may_go(&|case| broken(case, "2026-11-20T11:30:00Z")));
    assert!(!may_go(&|case| broken(case, "2026-11-20T11:30:01Z")));
    assert!(!may_go(&|case| {
        broken(case, "2026-11-20T11:30:00Z");
        case.policy.feature_gates.node_repair = false;
    }));
    assert!(may_go(&|case| {
        broken(case, "2026-11-20T11:30:00Z");
        say(case, "node-empty", "AcceleratedHardwareReady", "False", "2026-11-20T11:50:00Z");
    }));
    assert!(!may_go(&|case| {
        broken(case, "2026-11-20T11:30:00Z");
        say(case, "node-kept", "StorageReady", "False", "2026-11-20T11:59:00Z");
    }));
}
