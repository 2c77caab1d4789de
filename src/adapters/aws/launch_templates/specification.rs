//! What a NodeClaim wants of its machine, without its name: claims that want the same are launched together.

use std::collections::BTreeMap;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::Taint;
use crate::core::catalog::arithmetic::EFA;
use crate::core::model::Requirements;
use crate::core::model::tenancy::asked_for;
use crate::core::plan::Alternative;
use crate::ports::Offering;

/// The resource that pods ask for which want to run in an enclave. Source: reference, section 6.6.
const NITRO_SANDBOX: &str = "eks.amazonaws.com/nitro-sandbox";

/// Everything about a claim that its launch depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchSpecification {
    /// Who launches.
    pub installation: String,
    pub node_pool: String,
    pub node_class: String,
    pub labels: BTreeMap<String, String>,
    /// With startup taints behind.
    pub taints: Vec<Taint>,
    /// Fabric adapters are made for those who ask: they take interfaces that others have use for.
    pub wants_efa: bool,
    pub wants_enclave: bool,
    pub tenancy: String,
    /// The capacity reservation to launch into.
    pub reservation: Option<String>,
    /// The class's `context` is for launches with all the variety that was asked for.
    pub lowers_min_values: bool,
    /// In the plan's order; each once.
    pub offerings: Vec<Offering>,
}

impl LaunchSpecification {
    /// `alternatives` are the plan's, in its order. Prices are no part of it: a plan of an hour later asks for the same.
    pub fn of(claim: &NodeClaim, alternatives: &[Alternative], installation: &str) -> Self {
        let labels = claim.metadata.labels.clone().unwrap_or_default();
        let requests = &claim.spec.resources.requests;
        let mut offerings: Vec<Offering> = Vec::new();
        for offering in alternatives.iter().map(Offering::from) {
            if !offerings.contains(&offering) {
                offerings.push(offering);
            }
        }
        Self {
            installation: installation.to_owned(),
            node_pool: labels.get(keys::NODE_POOL).cloned().unwrap_or_default(),
            node_class: claim.spec.node_class_ref.name.clone(),
            taints: claim.spec.taints.iter().chain(&claim.spec.startup_taints).cloned().collect(),
            wants_efa: requests.contains_key(EFA),
            wants_enclave: requests.contains_key(NITRO_SANDBOX),
            tenancy: tenancy(claim),
            reservation: labels.get(keys::CAPACITY_RESERVATION_ID).cloned(),
            lowers_min_values: claim.annotation(keys::MIN_VALUES_RELAXED) == Some("true"),
            labels,
            offerings,
        }
    }
}

/// Of those that the claim allows the usual one.
fn tenancy(claim: &NodeClaim) -> String {
    let requirements = Requirements::from_entries(&claim.spec.requirements);
    let asked = requirements.get(keys::TENANCY);
    let tenancy = asked.map_or(keys::DEFAULT_TENANCY, |it| asked_for(it).unwrap_or(keys::DEDICATED_TENANCY));
    tenancy.to_owned()
}

#[cfg(test)]
impl LaunchSpecification {
    /// A plain one of pool `general`: types with zones and capacity types.
    pub fn plain(offerings: &[(&str, &str, &str)]) -> Self {
        let offering = |(instance_type, zone, capacity_type): &(&str, &str, &str)| Offering {
            instance_type: (*instance_type).to_owned(),
            zone: (*zone).to_owned(),
            capacity_type: (*capacity_type).to_owned(),
        };
        Self {
            installation: "main".to_owned(),
            node_pool: "general".to_owned(),
            node_class: "default".to_owned(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            wants_efa: false,
            wants_enclave: false,
            tenancy: "default".to_owned(),
            reservation: None,
            lowers_min_values: false,
            offerings: offerings.iter().map(offering).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::model::HourlyPrice;

    fn claim(spec: serde_json::Value) -> NodeClaim {
        let mut claim = json!({ "metadata": { "name": "a", "labels": { "karpenter.sh/nodepool": "general" } },
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [] } });
        claim["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn prices_and_repetitions_are_no_part_of_it() {
        let alternative = |zone: &str, nanodollars: i64| Alternative {
            instance_type: "m5.large".to_owned(),
            zone: zone.to_owned(),
            capacity_type: "spot".to_owned(),
            price_per_hour: HourlyPrice::from_nanodollars(nanodollars),
        };
        let one = LaunchSpecification::of(
            &claim(json!({})),
            &[alternative("b", 1), alternative("a", 2), alternative("b", 3)],
            "main",
        );
        let other = LaunchSpecification::of(&claim(json!({})), &[alternative("b", 4), alternative("a", 5)], "main");
        assert_eq!(one, other);
        assert_eq!(one.offerings.iter().map(|it| it.zone.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!((one.node_pool.as_str(), one.node_class.as_str()), ("general", "default"));
    }

    #[test]
    fn devices_taints_and_tenancy_are() {
        let plain = LaunchSpecification::of(&claim(json!({})), &[], "main");
        assert!(!plain.wants_efa && !plain.wants_enclave && plain.tenancy == "default");
        let specification = LaunchSpecification::of(
            &claim(json!({
                "resources": { "requests": { "vpc.amazonaws.com/efa": "1", "eks.amazonaws.com/nitro-sandbox": "1" } },
                "taints": [{ "key": "a", "effect": "NoSchedule" }], "startupTaints": [{ "key": "b", "effect": "NoExecute" }],
                "requirements": [{ "key": "karpenter.k8s.aws/instance-tenancy", "operator": "In", "values": ["dedicated"] }],
            })),
            &[],
            "main",
        );
        assert!(specification.wants_efa && specification.wants_enclave && specification.tenancy == "dedicated");
        assert_eq!(specification.taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let both = json!({ "requirements": [{ "key": "karpenter.k8s.aws/instance-tenancy", "operator": "In",
            "values": ["dedicated", "default"] }] });
        assert_eq!(LaunchSpecification::of(&claim(both), &[], "main").tenancy, "default");
    }
}
