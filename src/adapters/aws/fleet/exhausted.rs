//! What is not to be asked for again for a while, of what a launch was allowed to become.

use crate::adapters::aws::failures::Remembered;
use crate::api::keys;
use crate::core::catalog::vcpu_quotas::code_of;
use crate::core::plan::Alternative;
use crate::ports::Offering;

use super::{FleetOutcome, OfferingFailure};

impl FleetOutcome {
    /// The alternatives of which there are none for now by what EC2 refused: a quota stands for every type under it, a full placement group for its
    /// zone. A subnet without addresses says nothing of offerings, nor does throttling. In the order of the alternatives, each once.
    pub fn exhausted(&self, alternatives: &[Alternative]) -> Vec<Offering> {
        let mut exhausted: Vec<Offering> = Vec::new();
        for offering in alternatives.iter().map(Offering::from) {
            if !exhausted.contains(&offering) && self.failures.iter().any(|failure| covers(failure, &offering)) {
                exhausted.push(offering);
            }
        }
        exhausted
    }
}

fn covers(failure: &OfferingFailure, offering: &Offering) -> bool {
    let failed = failure.offering.as_ref();
    match failure.failure.remembered {
        Remembered::Nothing | Remembered::Subnet => false,
        Remembered::AllSpot => offering.capacity_type == keys::SPOT,
        Remembered::Reservation => offering.capacity_type == keys::RESERVED && failed.is_none_or(|it| it == offering),
        Remembered::Offering => failed == Some(offering),
        Remembered::PlacementGroupInZone => {
            failed.is_some_and(|it| (&it.zone, &it.capacity_type) == (&offering.zone, &offering.capacity_type))
        }
        Remembered::Quota => failed.is_some_and(|it| {
            let quota = |it: &Offering| code_of(&it.instance_type, &it.capacity_type);
            it == offering || (quota(it).is_some() && quota(it) == quota(offering))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::aws::failures::classify;
    use crate::core::model::HourlyPrice;

    fn alternative(instance_type: &str, zone: &str, capacity_type: &str) -> Alternative {
        Alternative {
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            capacity_type: capacity_type.to_owned(),
            price_per_hour: HourlyPrice::from_nanodollars(1),
        }
    }

    #[test]
    fn each_failure_stands_for_what_it_is_about() {
        let alternatives = [
            alternative("m5.large", "a", "spot"),
            alternative("m5.large", "b", "spot"),
            alternative("c5.large", "a", "spot"),
            alternative("g5.large", "a", "spot"),
            alternative("m5.large", "a", "on-demand"),
            alternative("m5.large", "a", "reserved"),
        ];
        let exhausted = |code: &str, message: &str, failed: Option<usize>| {
            let failure = OfferingFailure {
                offering: failed.map(|place| Offering::from(&alternatives[place])),
                subnet_id: None,
                failure: classify(code, message),
                code: code.to_owned(),
                message: message.to_owned(),
            };
            let found = FleetOutcome { instances: Vec::new(), failures: vec![failure] }.exhausted(&alternatives);
            let place = |it: &Offering| alternatives.iter().position(|other| Offering::from(other) == *it).unwrap();
            found.iter().map(place).collect::<Vec<_>>()
        };
        assert_eq!(exhausted("InsufficientInstanceCapacity", "", Some(1)), [1]);
        assert_eq!(exhausted("InsufficientInstanceCapacity", "", None), [0; 0]);
        assert_eq!(exhausted("MaxSpotInstanceCountExceeded", "", Some(0)), [0, 1, 2]);
        assert_eq!(exhausted("VcpuLimitExceeded", "", Some(4)), [4], "reserved capacity does not count again");
        let spread = "You've reached the limit of instances in this spread placement group";
        assert_eq!(exhausted("InsufficientInstanceCapacity", spread, Some(0)), [0, 2, 3]);
        assert_eq!(exhausted("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "", None), [0, 1, 2, 3]);
        assert_eq!(exhausted("ReservationCapacityExceeded", "", Some(5)), [5]);
        assert_eq!(exhausted("InsufficientFreeAddressesInSubnet", "", Some(0)), [0; 0]);
        assert_eq!(exhausted("RequestLimitExceeded", "", Some(0)), [0; 0]);
    }
}
