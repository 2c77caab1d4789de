//! What is known of a class, as the controller asks for it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::addresses::Addresses;
use super::Resolution;
use super::status::READY;
use crate::api::ec2_node_class::EC2NodeClassStatus;
use crate::ports::{ClassCondition, ClassFacts};

/// From the status that [`super::status::status`] made of the facts. A condition that is not said of this generation is one of which
/// nothing could be found out. Zones are those of the subnets in the status, so that they stay while EC2 is out of reach.
pub fn to_port(status: &EC2NodeClassStatus, facts: &Resolution, addresses: &Addresses) -> ClassFacts {
    let zones: BTreeSet<&String> = status.subnets.iter().map(|subnet| &subnet.zone).collect();
    let conditions = status.conditions.iter().filter(|condition| condition.type_ != READY).map(|condition| {
        let is_now = condition.observed_generation >= facts.generation;
        let said = match condition.status.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        };
        ClassCondition {
            type_: condition.type_.clone(),
            status: said.filter(|_| is_now),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    });
    let listed = |id: &str| {
        let subnets = facts.subnets.value().into_iter().flatten();
        subnets.filter(|subnet| subnet.id == id).map(|subnet| subnet.free_addresses).next()
    };
    let free = |id: &String| {
        let left = addresses.room(id).map(|room| room.left()).or_else(|| listed(id))?;
        Some((id.clone(), u64::from(left)))
    };
    ClassFacts {
        zones: zones.into_iter().cloned().collect(),
        conditions: conditions.collect(),
        free_addresses: status.subnets.iter().filter_map(|subnet| free(&subnet.id)).collect::<BTreeMap<_, _>>(),
        images_created: facts.images.as_ref().map(|images| images.created.clone()).unwrap_or_default(),
        found: Some(EC2NodeClassStatus { conditions: Vec::new(), ..status.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::Resolver;
    use super::super::cluster::Identity;
    use super::*;
    use crate::api::ec2_node_class::EC2NodeClass;

    #[test]
    fn what_was_said_of_an_earlier_generation_is_not_known_now() {
        let condition = |type_: &str, generation: i64, status: &str| {
            json!({ "type": type_, "status": status, "reason": "R", "message": "", "observedGeneration": generation,
                "lastTransitionTime": "2026-09-01T12:00:00Z" })
        };
        let class: EC2NodeClass = serde_json::from_value(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default", "generation": 2 },
            "spec": { "role": "nodes", "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] },
            "status": { "subnets": [{ "id": "subnet-a", "zone": "us-east-1a" }, { "id": "subnet-b", "zone": "us-east-1a" }],
                "conditions": [condition("SubnetsReady", 2, "True"), condition("AMIsReady", 1, "True"),
                    condition("InstanceProfileReady", 2, "Unknown"), condition("SecurityGroupsReady", 2, "False"),
                    condition("Ready", 2, "False")] },
        }))
        .unwrap();
        let identity = Identity {
            cluster: "demo".to_owned(),
            region: "us-east-1".to_owned(),
            installation: "one".to_owned(),
            kubernetes_version: None,
        };
        let facts = Resolver::new(identity).facts(&class, Timestamp::UNIX_EPOCH);
        let found = to_port(class.status.as_ref().unwrap(), &facts, &Addresses::default());
        let said: Vec<Option<bool>> = found.conditions.iter().map(|condition| condition.status).collect();
        assert_eq!(said, [Some(true), None, None, Some(false)], "without `Ready`, which follows");
        assert_eq!((found.zones.len(), found.free_addresses.len()), (1, 0));
        assert_eq!(found.found.unwrap().subnets.len(), 2);
    }
}
