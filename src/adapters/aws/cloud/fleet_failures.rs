//! What CreateFleet refused: of what there is too little, and what the refusal of a whole call says.

use crate::adapters::aws::api::ApiError;
use crate::adapters::aws::api::launch::{FleetAnswer, FleetRequest};
use crate::adapters::aws::failures::{FailureClass, Remembered, classify};
use crate::adapters::aws::fleet::OfferingFailure;
use crate::adapters::aws::shortages::Scarce;
use crate::api::keys;
use crate::core::catalog::vcpu_quotas::code_of;
use crate::ports::Offering;

/// What a failure is about, where it is to be remembered.
pub fn scarce(failure: &OfferingFailure) -> Option<Scarce> {
    let offering = failure.offering.as_ref();
    match failure.failure.remembered {
        Remembered::Nothing | Remembered::Subnet | Remembered::Reservation | Remembered::PlacementGroupInZone => None,
        Remembered::Offering => Some(Scarce::Offering(offering?.clone())),
        Remembered::AllSpot => Some(Scarce::CapacityType(keys::SPOT.to_owned())),
        Remembered::Quota => {
            let offering = offering?;
            let quota = code_of(&offering.instance_type, &offering.capacity_type);
            Some(quota.map_or_else(|| Scarce::Offering(offering.clone()), |code| Scarce::Quota(code.to_owned())))
        }
    }
}

/// A call that failed as a whole, as a failure of nothing in particular.
pub fn classify_call(fleet: &FleetRequest, error: &ApiError) -> OfferingFailure {
    let first = fleet.configs.iter().flat_map(|config| &config.overrides).next();
    let offering = first.map(|it| Offering {
        instance_type: it.instance_type.clone(),
        zone: it.zone.clone(),
        capacity_type: fleet.capacity_type.clone(),
    });
    let mut failure = classify(&error.code, &error.message);
    // Which offering it was is not said; a quota is of all of them.
    if failure.remembered == Remembered::Offering {
        failure.remembered = Remembered::Nothing;
    }
    OfferingFailure { offering, subnet_id: None, failure, code: error.code.clone(), message: error.message.clone() }
}

/// Whether EC2 does not know a template of the call: it says so of the whole call, or of each override.
pub fn lacks_template(answer: &Result<FleetAnswer, ApiError>) -> bool {
    match answer {
        Err(error) => error.class == FailureClass::TemplateGone,
        Ok(answer) => {
            let is_gone = |code: &str, message: &str| classify(code, message).class == FailureClass::TemplateGone;
            answer.instances.is_empty() && answer.failures.iter().any(|it| is_gone(&it.code, &it.message))
        }
    }
}
