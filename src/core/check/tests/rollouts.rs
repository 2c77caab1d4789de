//! Nodes that go because their pool changed.

use serde_json::json;

use crate::lifecycle::rollout_failures::Failures;
use crate::lifecycle::rollout_failures::GivenUp;
use crate::model::static_hash::HASH_VERSION;
use crate::testing::Merge;
use cutlist_api::keys;

use super::{Case, Code, NOW, breaks, claim_of, valid};

/// The large node is replaced because it drifted, and no node is as the pool wants it now.
fn drifted(case: &mut Case) {
    case.plan.budgets[0].used = 2;
    for step in ["new-2", "claim-big"] {
        case.edit_step(step, json!({ "reason": { "code": "Drifted" } }));
    }
    for claim in ["claim-big", "claim-kept", "claim-empty"] {
        let hash = json!({ keys::NODE_POOL_HASH: "1", keys::NODE_POOL_HASH_VERSION: HASH_VERSION });
        case.edit_claim(claim, json!({ "metadata": { "annotations": hash } }));
    }
}

/// A node of the pool that is on its way.
fn coming(case: &mut Case) {
    let claim = claim_of("claim-new", "").merge(json!({
        "metadata": { "labels": { keys::NODE_POOL: "default" } },
        "status": { "nodeName": null, "conditions": [] },
    }));
    case.snapshot.node_claims.push(claim);
}

fn failed(case: &mut Case, times: usize) {
    let pool = &case.pools[0];
    let mut failures = None;
    for number in 0..times {
        let uid = number.to_string();
        let given_up = GivenUp {
            name: "default-x",
            uid: &uid,
            pool,
            class: case.classes.first(),
            revision: "abc",
            became_ready: None,
            most: 9,
            now: NOW.parse().unwrap(),
        };
        failures = Some(Failures::with(failures, &given_up));
    }
    let note = failures.map(|failures| failures.to_annotation());
    case.snapshot.node_pools.push(pool.clone().merge(json!({
        "metadata": { "annotations": { keys::ROLLOUT_FAILURES: note } },
    })));
}

#[test]
fn one_node_goes_before_the_others() {
    let codes = |edit: &dyn Fn(&mut Case)| {
        let mut case = valid();
        drifted(&mut case);
        edit(&mut case);
        case.check().into_iter().map(|violation| violation.code).collect::<Vec<_>>()
    };
    assert_eq!(codes(&|_| {}), []);
    breaks(Code::NoCanary, |case| {
        drifted(case);
        coming(case);
    });
    let no_canary = |edit: &dyn Fn(&mut Case)| codes(edit).contains(&Code::NoCanary);
    assert!(!no_canary(&|case| {
        coming(case);
        case.policy.disruption.rollout.canary = Some(false);
    }));
    assert!(!no_canary(&|case| {
        coming(case);
        case.edit_claim("claim-kept", json!({ "metadata": { "annotations": null } }));
    }));
}

#[test]
fn no_node_goes_when_new_ones_do_not_come() {
    breaks(Code::RolloutHalted, |case| {
        drifted(case);
        failed(case, 3);
    });
    let is_halted = |edit: &dyn Fn(&mut Case)| {
        let mut case = valid();
        drifted(&mut case);
        edit(&mut case);
        case.check().iter().any(|violation| violation.code == Code::RolloutHalted)
    };
    assert!(!is_halted(&|case| failed(case, 2)));
    assert!(!is_halted(&|case| {
        failed(case, 3);
        case.policy.disruption.rollout.halt_after_failures = 4;
    }));
    assert!(!is_halted(&|case| {
        failed(case, 3);
        case.classes[0] = case.classes[0].clone().merge(json!({ "spec": { "tags": { "a": "b" } } }));
    }));
}
