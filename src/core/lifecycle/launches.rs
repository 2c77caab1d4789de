//! Which instances are asked for together: those of one plan that are alike. Their claims bear one launch ID from the moment they are
//! written, so that a call whose answer was lost, or a process that ended, leaves instances that can be told whose they are.

use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::model::hexadecimal;
use cutlist_api::node_claim::NodeClaim;

/// Of the hash; no two launches of an account will share so many by chance. EC2 takes 64 characters in a client token.
const DIGITS: usize = 32;

/// The launch that a claim is part of: equal for claims of one plan that ask for the same, and different whenever a plan is carried out
/// anew. `offerings`: what the claim asks for, as it is noted on it.
pub fn launch_id(plan_id: &str, carried_out_at: Timestamp, claim: &NodeClaim, offerings: &str) -> String {
    let asked = json!({
        "plan": plan_id,
        "carriedOutAt": carried_out_at.as_nanosecond().to_string(),
        "labels": claim.metadata.labels,
        "nodeClass": claim.spec.node_class_ref,
        "taints": claim.spec.taints,
        "startupTaints": claim.spec.startup_taints,
        "requirements": claim.spec.requirements,
        // How much is asked of them does not matter to the machine; of devices it matters which.
        "resources": claim.spec.resources.requests.keys().collect::<Vec<_>>(),
        "offerings": offerings,
    });
    let hash = hexadecimal(Sha256::digest(asked.to_string()));
    hash.chars().take(DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(labels: &serde_json::Value, taints: &serde_json::Value) -> NodeClaim {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": "default-1", "uid": "uid-1", "labels": labels },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [], "taints": taints,
            },
        }))
        .unwrap()
    }

    #[test]
    fn what_a_machine_is_told_tells_launches_apart_and_what_a_claim_is_called_does_not() {
        let at: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
        let later = at.checked_add(jiff::Span::new().nanoseconds(1)).unwrap();
        let plain = claim(&json!({ "karpenter.sh/nodepool": "default" }), &json!([]));
        let id = launch_id("plan", at, &plain, "[]");
        assert_eq!(id.len(), DIGITS);
        let mut renamed = plain.clone();
        renamed.metadata.name = Some("default-2".to_owned());
        renamed.metadata.uid = Some("uid-2".to_owned());
        assert_eq!(launch_id("plan", at, &renamed, "[]"), id);
        let tainted =
            claim(&json!({ "karpenter.sh/nodepool": "default" }), &json!([{ "key": "a", "effect": "NoSchedule" }]));
        let labelled = claim(&json!({ "karpenter.sh/nodepool": "default", "team": "a" }), &json!([]));
        for other in [
            launch_id("other", at, &plain, "[]"),
            launch_id("plan", later, &plain, "[]"),
            launch_id("plan", at, &plain, "[{}]"),
            launch_id("plan", at, &tainted, "[]"),
            launch_id("plan", at, &labelled, "[]"),
        ] {
            assert_ne!(other, id);
        }
    }
}
