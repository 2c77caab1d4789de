//! Nodes that expired, and go before what replaces them is there.

use serde_json::json;

use crate::planner::decide;
use crate::testing::object;
use cutlist_api::cloud_facts::VcpuQuotaUse;
use cutlist_api::keys;

use super::{Case, valid};

/// One node, which expired, and whose pod fits nowhere else.
fn expired() -> Case {
    let mut case = valid();
    case.snapshot.nodes.retain(|node| node.metadata.name.as_deref() == Some("node-big"));
    case.snapshot.node_claims.retain(|claim| claim.metadata.name.as_deref() == Some("claim-big"));
    case.snapshot.pods.retain(|pod| pod.metadata.name == "web-0");
    case.edit_claim("claim-big", json!({ "spec": { "expireAfter": "1h" } }));
    case.pools[0].spec.limits.clear();
    case
}

#[test]
fn what_it_takes_of_limits_does_not_hold_it() {
    let limits = |cpu: u32| object(json!({ "cpu": cpu }));
    let cases = [
        (true, false, "the limits of its NodePool"),
        (false, true, "the limits of cutlist.yaml"),
        (true, true, "the limits of its NodePool and of cutlist.yaml"),
    ];
    for (of_pool, of_cluster, whose) in cases {
        let mut case = expired();
        if of_pool {
            case.pools[0].spec.limits = limits(4);
        }
        if of_cluster {
            case.policy.limits = limits(4);
        }
        case.plan = decide(&case.inputs());
        assert_eq!(case.check_as_it_is(), [], "{whose}");
        let reasons: Vec<&str> = case.plan.steps.iter().map(|step| step.reason.text.as_str()).collect();
        let goes = format!(
            "it takes what its replacement would need of {whose}: it goes first, and its pods wait for the node that replaces it"
        );
        assert!(matches!(reasons.as_slice(), [reason] if reason.ends_with(&goes)), "{reasons:?}");
    }
}

#[test]
fn what_it_takes_of_the_quota_of_the_account_does_not_hold_it() {
    let mut case = expired();
    for (instance_type, vcpus) in case.catalog.instance_types.iter_mut().zip(["2", "4", "8"]) {
        instance_type.requirements.insert(keys::INSTANCE_CPU.to_owned(), vec![vcpus.to_owned()]);
    }
    case.policy.vcpu_quotas = vec![VcpuQuotaUse { code: "L-1216C47A".to_owned(), vcpus: 4, used: Some(4) }];
    case.plan = decide(&case.inputs());
    let reasons: Vec<&str> = case.plan.steps.iter().map(|step| step.reason.text.as_str()).collect();
    let goes = "it takes what its replacement would need of the account's quota on-demand standard L-1216C47A: it goes first, and its pods \
                wait for the node that replaces it";
    assert!(matches!(reasons.as_slice(), [reason] if reason.ends_with(goes)), "{reasons:?}");
}

#[test]
fn a_limit_that_its_replacement_exceeds_alone_holds_it() {
    let mut case = expired();
    case.policy.limits = object(json!({ "cpu": 1 }));
    case.plan = decide(&case.inputs());
    assert!(case.plan.steps.is_empty(), "{:?}", case.plan.steps);
}
