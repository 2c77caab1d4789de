//! Nodes in capacity reservations, and every way to get them wrong.

use serde_json::{Value, json};

use crate::catalog::Offering;
use crate::plan::StepKind;
use crate::planner::decide;
use crate::testing::{BuildPod, Merge, object, pod};
use cutlist_api::keys;
use cutlist_api::settings::Packing;

use super::{Case, Code, valid};

/// The valid plan, with its smaller node in the one instance that is left of a reservation.
fn reserved() -> Case {
    let mut case = valid();
    let terms = json!({ "spec": { "capacityReservationSelectorTerms": [{ "id": "cr-1" }] } });
    case.classes[0] = case.classes[0].clone().merge(terms);
    case.snapshot.node_classes = case.classes.clone().into();
    case.plan.summary = case.plan.summary.clone().merge(json!({ "pricePerHourAfter": 0.300_000_01 }));
    status(&mut case, json!({ "availableInstanceCount": 1 }));
    let requirement = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    case.edit_step(
        "new-2",
        json!({
            "capacityType": "reserved", "pricePerHour": 1e-8,
            "launch": {
                "nodeClaim": { "spec": { "requirements": [
                    requirement(keys::INSTANCE_TYPE, "m.large"), requirement(keys::CAPACITY_TYPE, "reserved"),
                    requirement(keys::CAPACITY_RESERVATION_ID, "cr-1"),
                ] } },
                "alternatives": [
                    { "instanceType": "m.large", "zone": "a", "capacityType": "reserved", "pricePerHour": 1e-8 },
                ],
            },
        }),
    );
    case
}

/// What the class says of its reservation, with these fields set otherwise.
fn status(case: &mut Case, fields: Value) {
    let reservation = json!({ "id": "cr-1", "instanceType": "m.large", "availabilityZone": "a" }).merge(fields);
    let class = &mut case.snapshot.node_classes[0];
    *class = class.clone().merge(json!({ "status": { "capacityReservations": [reservation] } }));
}

#[track_caller]
fn breaks(code: Code, edit: impl FnOnce(&mut Case)) {
    let mut case = reserved();
    edit(&mut case);
    let violations = case.check();
    assert!(violations.iter().any(|violation| violation.code == code), "{code:?} is missing in {violations:#?}");
}

fn of_catalog(left: u32) -> Offering {
    object(json!({
        "zone": "a", "capacityType": "reserved", "price": 0, "reservationId": "cr-1", "availableInstanceCount": left,
    }))
}

#[test]
fn a_reserved_node_is_valid() {
    let mut case = reserved();
    assert_eq!(case.check(), []);
    case.snapshot.node_classes.clear();
    case.catalog.instance_types[0].offerings.push(of_catalog(1));
    assert_eq!(case.check(), [], "found in the catalog");
}

#[test]
fn no_more_than_is_left() {
    breaks(Code::ReservationOverused, |case| status(case, json!({ "availableInstanceCount": 0 })));
    breaks(Code::ReservationOverused, |case| status(case, json!({})));
    breaks(Code::ReservationOverused, |case| {
        case.snapshot.node_classes.clear();
        case.catalog.instance_types[0].offerings.push(of_catalog(0));
    });
    breaks(Code::ReservationOverused, |case| {
        case.edit_claim("claim-kept", json!({ "metadata": { "labels": { keys::CAPACITY_RESERVATION_ID: "cr-1" } } }));
    });
}

#[test]
fn only_what_the_class_selects() {
    breaks(Code::WrongReservation, |case| status(case, json!({ "instanceType": "m.xlarge" })));
    breaks(Code::WrongReservation, |case| status(case, json!({ "availabilityZone": "b" })));
    breaks(Code::WrongReservation, |case| status(case, json!({ "state": "expiring" })));
    breaks(Code::WrongReservation, |case| status(case, json!({ "endTime": "2026-11-20T12:00:00Z" })));
    breaks(Code::WrongReservation, |case| status(case, json!({ "id": "cr-2" })));
    breaks(Code::WrongReservation, |case| case.snapshot.node_classes.clear());
    breaks(Code::WrongReservation, |case| case.policy.feature_gates.reserved_capacity = false);
    breaks(Code::WrongReservation, |case| case.classes[0].spec.capacity_reservation_selector_terms.clear());
    breaks(Code::WrongReservation, |case| {
        case.edit_step("new-2", json!({ "launch": { "nodeClaim": { "spec": { "requirements": [] } } } }));
    });
    breaks(Code::WrongPrice, |case| {
        let alternative =
            json!({ "instanceType": "m.large", "zone": "a", "capacityType": "reserved", "pricePerHour": 0.1 });
        case.edit_step("new-2", json!({ "pricePerHour": 0.1, "launch": { "alternatives": [alternative] } }));
    });
}

/// Whatever is left of it, and whichever way is packed, the planner keeps to it, and uses it up before it buys.
#[test]
fn plans_use_reservations_up_and_no_further() {
    for packing in [Packing::Cheapest, Packing::Karpenter] {
        for left in 0..4 {
            let mut case = reserved();
            case.policy.packing = packing;
            case.pools[0].spec.limits.clear();
            status(&mut case, json!({ "availableInstanceCount": left }));
            case.snapshot.pods.extend((0..3).map(|number| pod(&format!("more-{number}")).cpu("1800m").unschedulable()));
            case.plan = decide(&case.inputs());
            assert_eq!(case.check_as_it_is(), [], "{packing:?} with {left} left");
            let created = case.plan.steps.iter().filter(|step| step.kind == StepKind::Create);
            let reserved = created.filter(|step| step.capacity_type == keys::RESERVED).count();
            assert_eq!(reserved, left, "{packing:?}");
        }
    }
}

/// A pod that only a reserved node has room for leaves a bound that can be believed.
#[test]
fn the_bound_knows_of_what_only_a_reservation_has() {
    let mut case = reserved();
    case.pools[0].spec.limits.clear();
    status(&mut case, json!({ "instanceType": "m.2xlarge", "availableInstanceCount": 1 }));
    case.catalog.instance_types[2].offerings.iter_mut().for_each(|offering| offering.available = false);
    case.edit_pod("never", |pod| pod.cpu("7"));
    case.plan = decide(&case.inputs());
    assert_eq!(case.check_as_it_is(), []);
    let summary = &case.plan.summary;
    assert!(case.plan.pending.is_empty());
    assert!(
        summary.lower_bound_price_per_hour.is_none_or(|bound| bound <= summary.price_per_hour_after),
        "{summary:?}"
    );
}

/// A node that expired in the last instance of the reservation, which is all that its pool asks for, with this requirement beside.
fn expired_in_it(requirement: &Value) -> Case {
    let mut case = reserved();
    status(&mut case, json!({ "instanceType": "m.xlarge", "availableInstanceCount": 0 }));
    case.snapshot.nodes.retain(|node| node.metadata.name.as_deref() == Some("node-big"));
    case.snapshot.node_claims.retain(|claim| claim.metadata.name.as_deref() == Some("claim-big"));
    case.snapshot.pods.retain(|pod| pod.metadata.name == "web-0");
    let labels = json!({
        keys::CAPACITY_TYPE: keys::RESERVED, keys::CAPACITY_RESERVATION_ID: "cr-1", keys::INSTANCE_CATEGORY: "m",
    });
    case.edit_node("node-big", json!({ "metadata": { "labels": labels } }));
    // EC2 counts its instance as taken.
    let is = |condition: &str| json!({ "type": condition, "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-11-20T00:10:00Z" });
    let conditions = [is("Launched"), is("Initialized")];
    case.edit_claim("claim-big", json!({ "spec": { "expireAfter": "1h" }, "status": { "conditions": conditions } }));
    let reserved = json!({ "key": keys::CAPACITY_TYPE, "operator": "In", "values": [keys::RESERVED] });
    case.edit_pool(json!({ "spec": { "template": { "spec": { "requirements": [reserved, requirement] } } } }));
    case.pools[0].spec.limits.clear();
    case.plan = decide(&case.inputs());
    case
}

/// What has its instance next is as the pool is now.
#[test]
fn what_drifted_as_well_goes_first() {
    let case = expired_in_it(&json!({ "key": "example.com/rack", "operator": "In", "values": ["7"] }));
    let reasons: Vec<&str> = case.plan.steps.iter().map(|step| step.reason.text.as_str()).collect();
    let goes = "it takes the last instance of capacity reservation cr-1: it goes first, and its pods wait for the node that replaces it";
    assert!(matches!(reasons.as_slice(), [reason] if reason.ends_with(goes)), "{reasons:?} {:#?}", case.plan.held_back);
}

#[test]
fn what_could_not_come_back_stays_and_says_what_to_change() {
    let case = expired_in_it(&json!({ "key": keys::INSTANCE_TYPE, "operator": "In", "values": ["m.large"] }));
    assert!(case.plan.steps.is_empty(), "{:?}", case.plan.steps);
    let [held_back] = case.plan.held_back.as_slice() else { panic!("{:?}", case.plan.held_back) };
    let says = "it takes the last instance of capacity reservation cr-1, where its replacement could not be, since NodePool default no \
                longer allows node.kubernetes.io/instance-type m.xlarge, so it will not go by itself: let the NodePool allow what \
                capacity reservation cr-1 has, or its EC2NodeClass select a reservation of what the NodePool allows";
    assert!(held_back.text.ends_with(says), "{}", held_back.text);
}
