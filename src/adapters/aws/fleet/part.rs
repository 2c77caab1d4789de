//! The claims of a launch by what they want.

use crate::adapters::aws::launch_templates::LaunchSpecification;
use crate::api::node_claim::NodeClaim;
use crate::ports::LaunchRequest;

/// Claims that one call can ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchPart<'r> {
    /// Of the launch.
    pub launch_id: &'r str,
    pub specification: LaunchSpecification,
    /// By UID.
    pub claims: Vec<&'r NodeClaim>,
}

/// Divides the claims of a request. A launch's claims have the same labels, taints and offerings, so it is one part unless some of them ask
/// for devices or a tenancy that others do not. The same claims give the same parts in any order.
pub fn parts<'r>(request: &LaunchRequest<'r>) -> Vec<LaunchPart<'r>> {
    let mut claims = request.claims.clone();
    claims.sort_by(|one, other| one.metadata.uid.cmp(&other.metadata.uid));
    let mut parts: Vec<LaunchPart<'r>> = Vec::new();
    for claim in claims {
        let specification = LaunchSpecification::of(claim, request.alternatives, request.installation);
        match parts.iter_mut().find(|part| part.specification == specification) {
            Some(part) => part.claims.push(claim),
            None => parts.push(LaunchPart { launch_id: request.launch_id, specification, claims: vec![claim] }),
        }
    }
    parts
}

/// The token of a call: the same for the same attempt, whatever process makes it. At most 64 characters of ASCII.
///
/// Each capacity type of a launch is an attempt, and each repetition once it is known what the one before launched: EC2 refuses a token with
/// other parameters, and offerings that ran out change these.
pub fn client_token(launch_id: &str, specification: &LaunchSpecification, attempt: u32) -> String {
    format!("{launch_id}-{}-{attempt}", number(specification))
}

/// What the launch's id does not cover: nearly always 0. On instances of any other part it is a tag, since they must not go to claims of
/// another one.
pub fn number(specification: &LaunchSpecification) -> u8 {
    let devices = [
        specification.wants_efa,
        specification.wants_enclave,
        specification.tenancy == "dedicated",
        specification.lowers_min_values,
    ];
    devices.into_iter().fold(0_u8, |number, is_set| number << 1 | u8::from(is_set))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ports::LaunchRules;

    fn claim(uid: &str, requests: Value) -> NodeClaim {
        serde_json::from_value(json!({ "metadata": { "name": format!("claim-{uid}"), "uid": uid },
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [], "resources": { "requests": requests } } }))
        .unwrap()
    }

    #[test]
    fn claims_that_want_the_same_are_asked_for_together() {
        let claims = [
            claim("3", json!({ "cpu": "1" })),
            claim("1", json!({ "cpu": "2" })),
            claim("2", json!({ "vpc.amazonaws.com/efa": "1" })),
        ];
        let request = LaunchRequest {
            launch_id: "0123456789abcdef0123456789abcdef",
            installation: "main",
            claims: claims.iter().collect(),
            assigned: Vec::new(),
            class: None,
            images: None,
            alternatives: &[],
            rules: LaunchRules::default(),
        };
        let found = parts(&request);
        let uids =
            |part: &LaunchPart<'_>| part.claims.iter().filter_map(|it| it.metadata.uid.clone()).collect::<Vec<_>>();
        assert_eq!(found.iter().map(uids).collect::<Vec<_>>(), [vec!["1", "3"], vec!["2"]]);
        let turned = LaunchRequest { claims: claims.iter().rev().collect(), ..request };
        assert_eq!(parts(&turned), found);
        let tokens = [0, 1].map(|part: usize| client_token(found[part].launch_id, &found[part].specification, 0));
        assert_ne!(tokens[0], tokens[1]);
        assert_ne!(tokens[0], client_token(found[0].launch_id, &found[0].specification, 1));
    }

    #[test]
    fn tokens_are_short_enough_for_ec2() {
        let mut specification = LaunchSpecification::of(&claim("1", json!({})), &[], "main");
        (specification.wants_efa, specification.wants_enclave, specification.lowers_min_values) = (true, true, true);
        specification.tenancy = "dedicated".to_owned();
        // A claim that says nothing of its launch is launched by its UID.
        let token = client_token("6f9619ff-8b86-d011-b42d-00cf4fc964ff", &specification, u32::MAX);
        assert!(token.len() <= 64 && token.is_ascii(), "{token}");
    }
}
