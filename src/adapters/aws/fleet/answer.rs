//! What CreateFleet answers: instances, and why there are not more.

use std::collections::BTreeMap;

use crate::adapters::aws::api::launch::{FleetAnswer, FleetRequest, Override};
use crate::adapters::aws::failures::{Failure, FailureClass, classify};
use crate::ports::Offering;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchedInstance {
    pub id: String,
    pub instance_type: String,
    pub zone: String,
    pub subnet_id: String,
    pub image_id: String,
    pub capacity_type: String,
}

/// Something that EC2 refused, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferingFailure {
    /// `None` where EC2 does not say which it was.
    pub offering: Option<Offering>,
    pub subnet_id: Option<String>,
    pub failure: Failure,
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetOutcome {
    /// By id.
    pub instances: Vec<LaunchedInstance>,
    pub failures: Vec<OfferingFailure>,
}

impl FleetOutcome {
    /// What the claims without an instance are told: the failure that somebody can do most about. Only where all are shortages is it one. An answer
    /// without instances and without errors is a fault of EC2's: nothing was learnt about capacity.
    pub fn class(&self) -> FailureClass {
        let class = self.failures.iter().map(|it| it.failure.class).max_by_key(|class| rank(*class));
        class.unwrap_or(FailureClass::Server)
    }
}

/// Throttling and faults come before shortages: repeated, the call may still bring what the plan wants.
fn rank(class: FailureClass) -> u8 {
    match class {
        FailureClass::Capacity => 0,
        FailureClass::Addresses => 1,
        FailureClass::Quota => 2,
        FailureClass::Conflict | FailureClass::NotFound => 3,
        FailureClass::Server => 4,
        FailureClass::Throttled => 5,
        FailureClass::NotYetKnown => 6,
        FailureClass::TemplateGone => 7,
        FailureClass::TokenTaken => 8,
        FailureClass::Invalid => 9,
        FailureClass::Denied => 10,
    }
}

/// Understands an answer to this request. Where EC2 leaves out a zone or a type, it is known from what was asked.
pub fn read(request: &FleetRequest, answer: &FleetAnswer) -> FleetOutcome {
    let capacity_type = request.capacity_type.as_str();
    let overrides = || request.configs.iter().flat_map(|config| &config.overrides);
    // A zone has one subnet in a request.
    let zones: BTreeMap<&str, &Override> = overrides().map(|it| (it.subnet_id.as_str(), it)).collect();
    let zone_of = |zone: &Option<String>, subnet: &Option<String>| {
        zone.clone().or_else(|| zones.get(subnet.as_deref()?).map(|it| it.zone.clone()))
    };
    let mut instances = Vec::new();
    for entry in &answer.instances {
        let zone = zone_of(&entry.zone, &entry.subnet_id);
        let asked = overrides()
            .find(|it| Some(&it.instance_type) == entry.instance_type.as_ref() && Some(&it.zone) == zone.as_ref());
        let of_request = |value: &Option<String>, of: fn(&Override) -> &String| {
            value.clone().or_else(|| asked.map(|it| of(it).clone())).unwrap_or_default()
        };
        instances.extend(entry.ids.iter().map(|id| LaunchedInstance {
            id: id.clone(),
            instance_type: entry.instance_type.clone().unwrap_or_default(),
            zone: zone.clone().unwrap_or_default(),
            subnet_id: of_request(&entry.subnet_id, |it| &it.subnet_id),
            image_id: of_request(&entry.image_id, |it| &it.image_id),
            capacity_type: capacity_type.to_owned(),
        }));
    }
    instances.sort();
    instances.dedup_by(|one, other| one.id == other.id);
    let mut failures: Vec<OfferingFailure> = Vec::new();
    for error in &answer.failures {
        let zone = zone_of(&error.zone, &error.subnet_id);
        let offering = error.instance_type.clone().zip(zone).map(|(instance_type, zone)| Offering {
            instance_type,
            zone,
            capacity_type: capacity_type.to_owned(),
        });
        // Each unit of a request may fail by itself, and says the same as the others.
        let is_known = failures
            .iter()
            .any(|it| it.offering == offering && it.code == error.code && it.subnet_id == error.subnet_id);
        if !is_known {
            failures.push(OfferingFailure {
                offering,
                subnet_id: error.subnet_id.clone(),
                failure: classify(&error.code, &error.message),
                code: error.code.clone(),
                message: error.message.clone(),
            });
        }
    }
    FleetOutcome { instances, failures }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::aws::api::launch::{Config, FleetFailure, FleetInstances, Target};
    use crate::adapters::aws::failures::Remembered;

    fn request() -> FleetRequest {
        let entry = |instance_type: &str, zone: &str| Override {
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            subnet_id: format!("subnet-{zone}"),
            image_id: "ami-1".to_owned(),
            priority: 0,
        };
        let overrides = vec![entry("m5.large", "a"), entry("m5.large", "b"), entry("c5.large", "a")];
        FleetRequest {
            client_token: "token".to_owned(),
            capacity_type: "spot".to_owned(),
            target: Target::Spot,
            count: 3,
            strategy: None,
            configs: vec![Config { template: "cutlist.dev/1".to_owned(), overrides }],
            tags: BTreeMap::new(),
            context: None,
        }
    }

    fn error(code: &str, instance_type: Option<&str>, zone: Option<&str>, subnet: Option<&str>) -> FleetFailure {
        let text = |text: Option<&str>| text.map(str::to_owned);
        FleetFailure {
            code: code.to_owned(),
            message: String::new(),
            instance_type: text(instance_type),
            zone: text(zone),
            subnet_id: text(subnet),
        }
    }

    #[test]
    fn instances_and_failures_stand_beside_each_other() {
        let launched = FleetInstances {
            ids: vec!["i-2".to_owned(), "i-1".to_owned()],
            instance_type: Some("m5.large".to_owned()),
            subnet_id: Some("subnet-b".to_owned()),
            ..FleetInstances::default()
        };
        let answer = FleetAnswer {
            instances: vec![launched],
            failures: vec![
                error("InsufficientInstanceCapacity", Some("c5.large"), Some("a"), Some("subnet-a")),
                error("InsufficientInstanceCapacity", Some("c5.large"), Some("a"), Some("subnet-a")),
                error("InsufficientFreeAddressesInSubnet", Some("m5.large"), None, Some("subnet-a")),
            ],
        };
        let outcome = read(&request(), &answer);
        let ids: Vec<_> =
            outcome.instances.iter().map(|it| (it.id.as_str(), it.zone.as_str(), it.image_id.as_str())).collect();
        assert_eq!(ids, [("i-1", "b", "ami-1"), ("i-2", "b", "ami-1")]);
        let failures: Vec<_> = outcome
            .failures
            .iter()
            .map(|it| (it.offering.as_ref().map(|it| it.zone.as_str()), it.failure.remembered))
            .collect();
        assert_eq!(failures, [(Some("a"), Remembered::Offering), (Some("a"), Remembered::Subnet)]);
        assert_eq!(outcome.class(), FailureClass::Addresses);
    }

    #[test]
    fn only_shortages_alone_are_a_shortage() {
        let class = |codes: &[&str]| {
            let errors = codes.iter().map(|code| error(code, None, None, None)).collect();
            read(&request(), &FleetAnswer { instances: Vec::new(), failures: errors }).class()
        };
        assert_eq!(class(&["InsufficientInstanceCapacity"]), FailureClass::Capacity);
        assert_eq!(class(&["InsufficientInstanceCapacity", "RequestLimitExceeded"]), FailureClass::Throttled);
        assert_eq!(class(&["UnauthorizedOperation", "RequestLimitExceeded"]), FailureClass::Denied);
        assert_eq!(class(&["VcpuLimitExceeded", "UnfulfillableCapacity"]), FailureClass::Quota);
        assert_eq!(class(&[]), FailureClass::Server, "an empty answer says nothing about capacity");
    }
}
